/*
 * Made from sample.api by apigen.py; edit those.
 *
 * The handlers that the vGPU provides, one per operation, with the arguments that
 * fgv_dispatch decodes for them and the results that they give. See api/host.h for what
 * was checked. A result counts only where the handler returns CUDA_SUCCESS; all are zero
 * before it runs. A handle among the results is a new object's. fgv_encode_<op> writes a
 * reply for a handler that returned FGV_PENDING: reply has room for FGV_SLOT_FIRST bytes;
 * returns the length.
 */
#ifndef FGV_API_SAMPLE_HOST_H
#define FGV_API_SAMPLE_HOST_H

#include <cuda.h>
#include <stdint.h>

#include "api/host.h"
#include "api/sample_wire.h"

/*
 * Every type as an argument, in an order that needs padding twice, and at the end of it all as
 * well, which takes a long line to say.
 */
struct fgv_everything_in {
	uint32_t a;
	uint64_t b;
	int32_t c;
	const void *d;
	uint64_t d_len;
	float e;
	uint64_t f[2];
	struct fgv_object *module;
	struct fgv_object *stream;
	struct fgv_object *event;
	struct fgv_object *array;
	struct fgv_object *texture;
	void *g;
	uint64_t g_len;
	struct fgv_object *function;
	const void *rest;
	uint32_t rest_len;
};
struct fgv_everything_out {
	uint32_t function;
	uint64_t sum;
	int32_t c;
	float e[3];
};
uint32_t fgv_encode_everything(void *reply, const struct fgv_everything_out *out);
CUresult fgv_do_everything(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_everything_in *in, struct fgv_everything_out *out);

/* A post without arguments. */
CUresult fgv_do_nothing_at_all(struct fgv_session *session, struct fgv_request *request);

/* A call without arguments or results. */
CUresult fgv_do_ask(struct fgv_session *session, struct fgv_request *request);

/* A post of bytes. */
struct fgv_only_bytes_in {
	const void *text;
	uint32_t text_len;
};
CUresult fgv_do_only_bytes(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_only_bytes_in *in);

/* A call of bytes without results. */
struct fgv_ask_bytes_in {
	float where[3];
	const void *text;
	uint32_t text_len;
};
CUresult fgv_do_ask_bytes(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_ask_bytes_in *in);

/* Two streams, and an array that leaves a gap at the end. */
struct fgv_streams_in {
	struct fgv_object *from;
	struct fgv_object *to;
	uint64_t at;
	int32_t delta[3];
};
CUresult fgv_do_streams(struct fgv_session *session, struct fgv_request *request,
			const struct fgv_streams_in *in);

/* The highest number, written first; a bar | does not end a table's cell. */
struct fgv_last_out {
	uint32_t all[10];
};
uint32_t fgv_encode_last(void *reply, const struct fgv_last_out *out);
CUresult fgv_do_last(struct fgv_session *session, struct fgv_request *request,
		     struct fgv_last_out *out);

#endif
