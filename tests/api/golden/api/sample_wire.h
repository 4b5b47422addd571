/*
 * Made from sample.api by apigen.py; edit those.
 *
 * The messages of all operations, as guest and host exchange them. Reserved fields are
 * zero on send and checked on receipt.
 */
#ifndef FGV_API_SAMPLE_WIRE_H
#define FGV_API_SAMPLE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/wire.h"

/* For people; what both sides compare is the hash. */
#define FGV_API_VERSION 7

/* Of all that both must have alike: the operations, and what the build adds. */
#define FGV_API_HASH 0x73727d733c40c1afull

enum fgv_op {
	FGV_OP_EVERYTHING = 3,
	FGV_OP_NOTHING_AT_ALL = 4,
	FGV_OP_ASK = 5,
	FGV_OP_ONLY_BYTES = 6,
	FGV_OP_ASK_BYTES = 7,
	FGV_OP_STREAMS = 8,
	FGV_OP_LAST = 1023,
};
#define FGV_OP_MAX 1023

struct fgv_op_info {
	const char *name;	/* NULL: no such operation */
	uint16_t request_len;	/* of the arguments, without bytes */
	uint16_t reply_len;
	bool call;		/* has a reply */
	bool has_bytes;		/* data follows the arguments */
	bool work;		/* puts work on the GPU: takes the grant */
	bool apart;		/* need not wait for work before it */
	bool errand;		/* no work, but takes the driver's time */
	uint16_t stream_off;	/* of the stream in the arguments */
};
#define FGV_OP_NO_STREAM UINT16_MAX
extern const struct fgv_op_info fgv_op_infos[FGV_OP_MAX + 1];

_Static_assert(FGV_SLOT_FIRST >= 40, "a reply fits its slot");
_Static_assert(FGV_MESSAGE_MAX - FGV_DATA_MAX >= 512, "arguments fit beside data");

/*
 * Every type as an argument, in an order that needs padding twice, and at the end of it all as
 * well, which takes a long line to say.
 */
struct fgv_everything_request {
	uint32_t a;
	uint32_t reserved0;
	uint64_t b;
	int32_t c;
	uint32_t reserved1;
	uint64_t d_off;
	uint64_t d_len;
	float e;
	uint32_t reserved2;
	uint64_t f[2];
	uint32_t module;
	uint32_t stream;
	uint32_t event;
	uint32_t array;
	uint32_t texture;
	uint32_t reserved3;
	uint64_t g_off;
	uint64_t g_len;
	uint32_t function;
	uint32_t reserved4;
};
_Static_assert(offsetof(struct fgv_everything_request, a) == 0, "wire");
_Static_assert(offsetof(struct fgv_everything_request, reserved0) == 4, "wire");
_Static_assert(offsetof(struct fgv_everything_request, b) == 8, "wire");
_Static_assert(offsetof(struct fgv_everything_request, c) == 16, "wire");
_Static_assert(offsetof(struct fgv_everything_request, reserved1) == 20, "wire");
_Static_assert(offsetof(struct fgv_everything_request, d_off) == 24, "wire");
_Static_assert(offsetof(struct fgv_everything_request, d_len) == 32, "wire");
_Static_assert(offsetof(struct fgv_everything_request, e) == 40, "wire");
_Static_assert(offsetof(struct fgv_everything_request, reserved2) == 44, "wire");
_Static_assert(offsetof(struct fgv_everything_request, f) == 48, "wire");
_Static_assert(offsetof(struct fgv_everything_request, module) == 64, "wire");
_Static_assert(offsetof(struct fgv_everything_request, stream) == 68, "wire");
_Static_assert(offsetof(struct fgv_everything_request, event) == 72, "wire");
_Static_assert(offsetof(struct fgv_everything_request, array) == 76, "wire");
_Static_assert(offsetof(struct fgv_everything_request, texture) == 80, "wire");
_Static_assert(offsetof(struct fgv_everything_request, reserved3) == 84, "wire");
_Static_assert(offsetof(struct fgv_everything_request, g_off) == 88, "wire");
_Static_assert(offsetof(struct fgv_everything_request, g_len) == 96, "wire");
_Static_assert(offsetof(struct fgv_everything_request, function) == 104, "wire");
_Static_assert(offsetof(struct fgv_everything_request, reserved4) == 108, "wire");
_Static_assert(sizeof(struct fgv_everything_request) == 112, "wire");
struct fgv_everything_reply {
	uint32_t function;
	uint32_t reserved0;
	uint64_t sum;
	int32_t c;
	float e[3];
};
_Static_assert(offsetof(struct fgv_everything_reply, function) == 0, "wire");
_Static_assert(offsetof(struct fgv_everything_reply, reserved0) == 4, "wire");
_Static_assert(offsetof(struct fgv_everything_reply, sum) == 8, "wire");
_Static_assert(offsetof(struct fgv_everything_reply, c) == 16, "wire");
_Static_assert(offsetof(struct fgv_everything_reply, e) == 20, "wire");
_Static_assert(sizeof(struct fgv_everything_reply) == 32, "wire");

/* A call of bytes without results. */
struct fgv_ask_bytes_request {
	float where[3];
};
_Static_assert(offsetof(struct fgv_ask_bytes_request, where) == 0, "wire");
_Static_assert(sizeof(struct fgv_ask_bytes_request) == 12, "wire");

/* Two streams, and an array that leaves a gap at the end. */
struct fgv_streams_request {
	uint32_t from;
	uint32_t to;
	uint64_t at;
	int32_t delta[3];
	uint32_t reserved0;
};
_Static_assert(offsetof(struct fgv_streams_request, from) == 0, "wire");
_Static_assert(offsetof(struct fgv_streams_request, to) == 4, "wire");
_Static_assert(offsetof(struct fgv_streams_request, at) == 8, "wire");
_Static_assert(offsetof(struct fgv_streams_request, delta) == 16, "wire");
_Static_assert(offsetof(struct fgv_streams_request, reserved0) == 28, "wire");
_Static_assert(sizeof(struct fgv_streams_request) == 32, "wire");

/* The highest number, written first; a bar | does not end a table's cell. */
struct fgv_last_reply {
	uint32_t all[10];
};
_Static_assert(offsetof(struct fgv_last_reply, all) == 0, "wire");
_Static_assert(sizeof(struct fgv_last_reply) == 40, "wire");

#endif
