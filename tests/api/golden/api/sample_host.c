/*
 * Made from sample.api by apigen.py; edit those.
 *
 * Decodes requests and runs their handlers.
 */
#include "api/sample_host.h"

#include <errno.h>
#include <string.h>

/* One call of fgv_dispatch. */
struct frame {
	struct fgv_session *session;
	struct fgv_request *request;
	const uint8_t *message;
	uint32_t len;
	uint8_t *reply;
	uint32_t reply_len;
	CUresult status;
};

static int violation(const struct frame *frame, int error, const char *why)
{
	frame->request->violation = why;
	return error;
}

/* False, and the status set, where there is no such object. */
static inline bool find(struct frame *frame, enum fgv_kind kind, uint32_t handle,
			struct fgv_object **object)
{
	*object = fgv_session_lookup(frame->session, kind, handle);
	if (!*object)
		frame->status = CUDA_ERROR_INVALID_HANDLE;
	return *object;
}

/* The same where the object may be left out: 0 is NULL. */
static inline bool find_any(struct frame *frame, enum fgv_kind kind, uint32_t handle,
			    struct fgv_object **object)
{
	*object = NULL;
	return !handle || find(frame, kind, handle, object);
}

uint32_t fgv_encode_everything(void *reply, const struct fgv_everything_out *out)
{
	struct fgv_everything_reply msg;

	msg.function = out->function;
	msg.reserved0 = 0;
	msg.sum = out->sum;
	msg.c = out->c;
	memcpy(msg.e, out->e, sizeof(msg.e));
	memcpy(reply, &msg, sizeof(msg));
	return sizeof(msg);
}

static int run_everything(struct frame *frame)
{
	struct fgv_everything_request msg;
	struct fgv_everything_in in;
	struct fgv_everything_out out;

	memcpy(&msg, frame->message, sizeof(msg));
	if (msg.reserved0 | msg.reserved1 | msg.reserved2 | msg.reserved3 | msg.reserved4)
		return violation(frame, -EBADMSG, "a reserved field is not zero");
	in.d = fgv_session_resolve(frame->session, msg.d_off, msg.d_len);
	if (!in.d)
		return violation(frame, -EFAULT, "d lies outside the window");
	in.g = fgv_session_resolve(frame->session, msg.g_off, msg.g_len);
	if (!in.g)
		return violation(frame, -EFAULT, "g lies outside the window");
	if (!find(frame, FGV_KIND_MODULE, msg.module, &in.module) ||
	    !find_any(frame, FGV_KIND_STREAM, msg.stream, &in.stream) ||
	    !find(frame, FGV_KIND_EVENT, msg.event, &in.event) ||
	    !find_any(frame, FGV_KIND_ARRAY, msg.array, &in.array) ||
	    !find(frame, FGV_KIND_TEXTURE, msg.texture, &in.texture) ||
	    !find(frame, FGV_KIND_FUNCTION, msg.function, &in.function))
		return 0;
	in.a = msg.a;
	in.b = msg.b;
	in.c = msg.c;
	in.d_len = msg.d_len;
	in.e = msg.e;
	memcpy(in.f, msg.f, sizeof(in.f));
	in.g_len = msg.g_len;
	in.rest = frame->message + sizeof(struct fgv_everything_request);
	in.rest_len = frame->len - sizeof(struct fgv_everything_request);
	memset(&out, 0, sizeof(out));
	frame->status = fgv_do_everything(frame->session, frame->request, &in, &out);
	if (frame->status == CUDA_SUCCESS)
		frame->reply_len = fgv_encode_everything(frame->reply, &out);
	return 0;
}

static int run_nothing_at_all(struct frame *frame)
{
	frame->status = fgv_do_nothing_at_all(frame->session, frame->request);
	return 0;
}

static int run_ask(struct frame *frame)
{
	frame->status = fgv_do_ask(frame->session, frame->request);
	return 0;
}

static int run_only_bytes(struct frame *frame)
{
	struct fgv_only_bytes_in in;

	in.text = frame->message;
	in.text_len = frame->len;
	frame->status = fgv_do_only_bytes(frame->session, frame->request, &in);
	return 0;
}

static int run_ask_bytes(struct frame *frame)
{
	struct fgv_ask_bytes_request msg;
	struct fgv_ask_bytes_in in;

	memcpy(&msg, frame->message, sizeof(msg));
	memcpy(in.where, msg.where, sizeof(in.where));
	in.text = frame->message + sizeof(struct fgv_ask_bytes_request);
	in.text_len = frame->len - sizeof(struct fgv_ask_bytes_request);
	frame->status = fgv_do_ask_bytes(frame->session, frame->request, &in);
	return 0;
}

static int run_streams(struct frame *frame)
{
	struct fgv_streams_request msg;
	struct fgv_streams_in in;

	memcpy(&msg, frame->message, sizeof(msg));
	if (msg.reserved0)
		return violation(frame, -EBADMSG, "a reserved field is not zero");
	if (!find_any(frame, FGV_KIND_STREAM, msg.from, &in.from) ||
	    !find_any(frame, FGV_KIND_STREAM, msg.to, &in.to))
		return 0;
	in.at = msg.at;
	memcpy(in.delta, msg.delta, sizeof(in.delta));
	frame->status = fgv_do_streams(frame->session, frame->request, &in);
	return 0;
}

uint32_t fgv_encode_last(void *reply, const struct fgv_last_out *out)
{
	struct fgv_last_reply msg;

	memcpy(msg.all, out->all, sizeof(msg.all));
	memcpy(reply, &msg, sizeof(msg));
	return sizeof(msg);
}

static int run_last(struct frame *frame)
{
	struct fgv_last_out out;

	memset(&out, 0, sizeof(out));
	frame->status = fgv_do_last(frame->session, frame->request, &out);
	if (frame->status == CUDA_SUCCESS)
		frame->reply_len = fgv_encode_last(frame->reply, &out);
	return 0;
}

static int (*const runners[FGV_OP_MAX + 1])(struct frame *) = {
	[FGV_OP_EVERYTHING] = run_everything,
	[FGV_OP_NOTHING_AT_ALL] = run_nothing_at_all,
	[FGV_OP_ASK] = run_ask,
	[FGV_OP_ONLY_BYTES] = run_only_bytes,
	[FGV_OP_ASK_BYTES] = run_ask_bytes,
	[FGV_OP_STREAMS] = run_streams,
	[FGV_OP_LAST] = run_last,
};

/* The length of a message is right before anything looks into it. */
static int check(const struct frame *frame, uint16_t op)
{
	const struct fgv_op_info *info;

	if (op > FGV_OP_MAX || !fgv_op_infos[op].name)
		return violation(frame, -EBADMSG, "unknown operation");
	info = &fgv_op_infos[op];
	if (frame->len < info->request_len)
		return violation(frame, -EBADMSG, "the message is too short");
	if (frame->len > (info->has_bytes ? FGV_MESSAGE_MAX : info->request_len))
		return violation(frame, -EBADMSG, "the message is too long");
	return 0;
}

int fgv_dispatch(struct fgv_session *session, struct fgv_request *request, const void *message,
		 uint32_t len, void *reply, uint32_t *reply_len, CUresult *status)
{
	struct frame frame = {
		.session = session, .request = request, .message = message, .len = len,
		.reply = reply,
	};
	int error;

	request->violation = NULL;
	error = check(&frame, request->op);
	if (!error)
		error = runners[request->op](&frame);
	if (error)
		return error;
	*status = frame.status;
	*reply_len = frame.status == CUDA_SUCCESS ? frame.reply_len : 0;
	return 0;
}
