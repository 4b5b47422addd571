/*
 * Made from sample.api by apigen.py; edit those.
 *
 * The guest's stubs. A post returns as soon as it lies in the ring: its status is that of
 * the session. A call returns its reply's status and stores results only on CUDA_SUCCESS;
 * its send half posts and returns the call's number for fgv_lane_wait. A source or a sink
 * is (x_off, x_len) in the window. Bytes that are too long for a message are
 * CUDA_ERROR_INVALID_VALUE and nothing is sent; the begin half of a post returns NULL
 * then, else where its bytes go, and fgv_lane_commit posts it. A stub is called by the
 * thread that owns the lane.
 */
#ifndef FGV_API_SAMPLE_GUEST_H
#define FGV_API_SAMPLE_GUEST_H

#include <cuda.h>
#include <stdint.h>
#include <string.h>

#include "api/guest.h"
#include "api/sample_wire.h"

/*
 * Every type as an argument, in an order that needs padding twice, and at the end of it all as
 * well, which takes a long line to say.
 */
CUresult fgv_send_everything(struct fgv_lane *lane, uint32_t a, uint64_t b, int32_t c,
			     uint64_t d_off, uint64_t d_len, float e, const uint64_t f[2],
			     uint32_t module, uint32_t stream, uint32_t event, uint32_t array,
			     uint32_t texture, uint64_t g_off, uint64_t g_len, uint32_t function,
			     const void *rest, uint32_t rest_len, uint32_t *call);
CUresult fgv_call_everything(struct fgv_lane *lane, uint32_t a, uint64_t b, int32_t c,
			     uint64_t d_off, uint64_t d_len, float e, const uint64_t f[2],
			     uint32_t module, uint32_t stream, uint32_t event, uint32_t array,
			     uint32_t texture, uint64_t g_off, uint64_t g_len, uint32_t function,
			     const void *rest, uint32_t rest_len, uint32_t *out_function,
			     uint64_t *out_sum, int32_t *out_c, float out_e[3]);

/* A post without arguments. */
CUresult fgv_post_nothing_at_all(struct fgv_lane *lane);

/* A call without arguments or results. */
uint32_t fgv_send_ask(struct fgv_lane *lane);
CUresult fgv_call_ask(struct fgv_lane *lane);

/* A post of bytes. */
static inline void *fgv_begin_only_bytes(struct fgv_lane *lane, uint32_t text_len)
{
	return fgv_lane_begin(lane, FGV_OP_ONLY_BYTES, text_len);
}

CUresult fgv_post_only_bytes(struct fgv_lane *lane, const void *text, uint32_t text_len);

/* A call of bytes without results. */
CUresult fgv_send_ask_bytes(struct fgv_lane *lane, const float where[3], const void *text,
			    uint32_t text_len, uint32_t *call);
CUresult fgv_call_ask_bytes(struct fgv_lane *lane, const float where[3], const void *text,
			    uint32_t text_len);

/* Two streams, and an array that leaves a gap at the end. */
CUresult fgv_post_streams(struct fgv_lane *lane, uint32_t from, uint32_t to, uint64_t at,
			  const int32_t delta[3]);

/* The highest number, written first; a bar | does not end a table's cell. */
uint32_t fgv_send_last(struct fgv_lane *lane);
CUresult fgv_call_last(struct fgv_lane *lane, uint32_t out_all[10]);

#endif
