/*
 * Made from sample.api by apigen.py; edit those.
 *
 * The guest's stubs.
 */
#include "api/sample_guest.h"

static void *begin_everything(struct fgv_lane *lane, uint32_t a, uint64_t b, int32_t c,
			      uint64_t d_off, uint64_t d_len, float e, const uint64_t f[2],
			      uint32_t module, uint32_t stream, uint32_t event, uint32_t array,
			      uint32_t texture, uint64_t g_off, uint64_t g_len, uint32_t function,
			      uint32_t rest_len)
{
	struct fgv_everything_request *msg;

	if (rest_len > FGV_MESSAGE_MAX - sizeof(*msg))
		return NULL;
	msg = fgv_lane_begin(lane, FGV_OP_EVERYTHING, sizeof(*msg) + rest_len);
	msg->a = a;
	msg->reserved0 = 0;
	msg->b = b;
	msg->c = c;
	msg->reserved1 = 0;
	msg->d_off = d_off;
	msg->d_len = d_len;
	msg->e = e;
	msg->reserved2 = 0;
	memcpy(msg->f, f, sizeof(msg->f));
	msg->module = module;
	msg->stream = stream;
	msg->event = event;
	msg->array = array;
	msg->texture = texture;
	msg->reserved3 = 0;
	msg->g_off = g_off;
	msg->g_len = g_len;
	msg->function = function;
	msg->reserved4 = 0;
	return msg + 1;
}

CUresult fgv_send_everything(struct fgv_lane *lane, uint32_t a, uint64_t b, int32_t c,
			     uint64_t d_off, uint64_t d_len, float e, const uint64_t f[2],
			     uint32_t module, uint32_t stream, uint32_t event, uint32_t array,
			     uint32_t texture, uint64_t g_off, uint64_t g_len, uint32_t function,
			     const void *rest, uint32_t rest_len, uint32_t *call)
{
	void *room = begin_everything(lane, a, b, c, d_off, d_len, e, f, module, stream, event,
				      array, texture, g_off, g_len, function, rest_len);

	if (!room)
		return CUDA_ERROR_INVALID_VALUE;
	if (rest_len)
		memcpy(room, rest, rest_len);
	*call = fgv_lane_commit(lane);
	return CUDA_SUCCESS;
}

CUresult fgv_call_everything(struct fgv_lane *lane, uint32_t a, uint64_t b, int32_t c,
			     uint64_t d_off, uint64_t d_len, float e, const uint64_t f[2],
			     uint32_t module, uint32_t stream, uint32_t event, uint32_t array,
			     uint32_t texture, uint64_t g_off, uint64_t g_len, uint32_t function,
			     const void *rest, uint32_t rest_len, uint32_t *out_function,
			     uint64_t *out_sum, int32_t *out_c, float out_e[3])
{
	struct fgv_everything_reply reply;
	uint32_t call;
	CUresult status;

	status = fgv_send_everything(lane, a, b, c, d_off, d_len, e, f, module, stream, event,
				     array, texture, g_off, g_len, function, rest, rest_len, &call);
	if (status != CUDA_SUCCESS)
		return status;
	status = fgv_lane_wait(lane, call, &reply, sizeof(reply));
	if (status != CUDA_SUCCESS)
		return status;
	if (reply.reserved0)
		return CUDA_ERROR_UNKNOWN;
	*out_function = reply.function;
	*out_sum = reply.sum;
	*out_c = reply.c;
	memcpy(out_e, reply.e, sizeof(reply.e));
	return CUDA_SUCCESS;
}

CUresult fgv_post_nothing_at_all(struct fgv_lane *lane)
{
	fgv_lane_begin(lane, FGV_OP_NOTHING_AT_ALL, 0);
	fgv_lane_commit(lane);
	return fgv_lane_status(lane);
}

uint32_t fgv_send_ask(struct fgv_lane *lane)
{
	fgv_lane_begin(lane, FGV_OP_ASK, 0);
	return fgv_lane_commit(lane);
}

CUresult fgv_call_ask(struct fgv_lane *lane)
{
	return fgv_lane_wait(lane, fgv_send_ask(lane), NULL, 0);
}

CUresult fgv_post_only_bytes(struct fgv_lane *lane, const void *text, uint32_t text_len)
{
	void *room = fgv_begin_only_bytes(lane, text_len);

	if (!room)
		return CUDA_ERROR_INVALID_VALUE;
	if (text_len)
		memcpy(room, text, text_len);
	fgv_lane_commit(lane);
	return fgv_lane_status(lane);
}

static void *begin_ask_bytes(struct fgv_lane *lane, const float where[3], uint32_t text_len)
{
	struct fgv_ask_bytes_request *msg;

	if (text_len > FGV_MESSAGE_MAX - sizeof(*msg))
		return NULL;
	msg = fgv_lane_begin(lane, FGV_OP_ASK_BYTES, sizeof(*msg) + text_len);
	memcpy(msg->where, where, sizeof(msg->where));
	return msg + 1;
}

CUresult fgv_send_ask_bytes(struct fgv_lane *lane, const float where[3], const void *text,
			    uint32_t text_len, uint32_t *call)
{
	void *room = begin_ask_bytes(lane, where, text_len);

	if (!room)
		return CUDA_ERROR_INVALID_VALUE;
	if (text_len)
		memcpy(room, text, text_len);
	*call = fgv_lane_commit(lane);
	return CUDA_SUCCESS;
}

CUresult fgv_call_ask_bytes(struct fgv_lane *lane, const float where[3], const void *text,
			    uint32_t text_len)
{
	uint32_t call;
	CUresult status;

	status = fgv_send_ask_bytes(lane, where, text, text_len, &call);
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_lane_wait(lane, call, NULL, 0);
}

CUresult fgv_post_streams(struct fgv_lane *lane, uint32_t from, uint32_t to, uint64_t at,
			  const int32_t delta[3])
{
	struct fgv_streams_request *msg = fgv_lane_begin(lane, FGV_OP_STREAMS, sizeof(*msg));

	msg->from = from;
	msg->to = to;
	msg->at = at;
	memcpy(msg->delta, delta, sizeof(msg->delta));
	msg->reserved0 = 0;
	fgv_lane_commit(lane);
	return fgv_lane_status(lane);
}

uint32_t fgv_send_last(struct fgv_lane *lane)
{
	fgv_lane_begin(lane, FGV_OP_LAST, 0);
	return fgv_lane_commit(lane);
}

CUresult fgv_call_last(struct fgv_lane *lane, uint32_t out_all[10])
{
	struct fgv_last_reply reply;
	CUresult status;

	status = fgv_lane_wait(lane, fgv_send_last(lane), &reply, sizeof(reply));
	if (status != CUDA_SUCCESS)
		return status;
	memcpy(out_all, reply.all, sizeof(reply.all));
	return CUDA_SUCCESS;
}
