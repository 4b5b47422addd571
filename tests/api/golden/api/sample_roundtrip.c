/*
 * Made from sample.api by apigen.py; edit those.
 *
 * Each operation's part of the round-trip test.
 */
#include "tests/unit/api/test_api_roundtrip.h"

#include "api/sample_guest.h"
#include "api/sample_host.h"

static struct fgv_everything_request sent_everything;
static struct fgv_everything_out give_everything, got_everything;

CUresult fgv_do_everything(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_everything_in *in, struct fgv_everything_out *out)
{
	trip_enter(session, request, FGV_OP_EVERYTHING);
	ck_assert_mem_eq(&in->a, &sent_everything.a, sizeof(sent_everything.a));
	ck_assert_mem_eq(&in->b, &sent_everything.b, sizeof(sent_everything.b));
	ck_assert_mem_eq(&in->c, &sent_everything.c, sizeof(sent_everything.c));
	trip_is_span(in->d, in->d_len, sent_everything.d_off, sent_everything.d_len);
	ck_assert_mem_eq(&in->e, &sent_everything.e, sizeof(sent_everything.e));
	ck_assert_mem_eq(in->f, sent_everything.f, sizeof(sent_everything.f));
	trip_is_object(in->module, FGV_KIND_MODULE, sent_everything.module);
	trip_is_object(in->stream, FGV_KIND_STREAM, sent_everything.stream);
	trip_is_object(in->event, FGV_KIND_EVENT, sent_everything.event);
	trip_is_object(in->array, FGV_KIND_ARRAY, sent_everything.array);
	trip_is_object(in->texture, FGV_KIND_TEXTURE, sent_everything.texture);
	trip_is_span(in->g, in->g_len, sent_everything.g_off, sent_everything.g_len);
	trip_is_object(in->function, FGV_KIND_FUNCTION, sent_everything.function);
	trip_is_data(in->rest, in->rest_len);
	*out = give_everything;
	return trip_answer();
}

static void draw_everything(void)
{
	trip_random(&sent_everything, sizeof(sent_everything));
	trip_span(&sent_everything.d_off, &sent_everything.d_len);
	sent_everything.module = trip_handle(FGV_KIND_MODULE);
	sent_everything.stream = trip_optional(FGV_KIND_STREAM);
	sent_everything.event = trip_handle(FGV_KIND_EVENT);
	sent_everything.array = trip_optional(FGV_KIND_ARRAY);
	sent_everything.texture = trip_handle(FGV_KIND_TEXTURE);
	trip_span(&sent_everything.g_off, &sent_everything.g_len);
	sent_everything.function = trip_handle(FGV_KIND_FUNCTION);
	trip_random(&give_everything, sizeof(give_everything));
}

static CUresult send_everything(struct fgv_lane *lane, const void *data, uint32_t len)
{
	return fgv_call_everything(lane, sent_everything.a, sent_everything.b, sent_everything.c,
				   sent_everything.d_off, sent_everything.d_len, sent_everything.e,
				   sent_everything.f, sent_everything.module,
				   sent_everything.stream, sent_everything.event,
				   sent_everything.array, sent_everything.texture,
				   sent_everything.g_off, sent_everything.g_len,
				   sent_everything.function, data, len, &got_everything.function,
				   &got_everything.sum, &got_everything.c, got_everything.e);
}

static void compare_everything(void)
{
	ck_assert_mem_eq(&got_everything.function, &give_everything.function,
			 sizeof(give_everything.function));
	ck_assert_mem_eq(&got_everything.sum, &give_everything.sum, sizeof(give_everything.sum));
	ck_assert_mem_eq(&got_everything.c, &give_everything.c, sizeof(give_everything.c));
	ck_assert_mem_eq(got_everything.e, give_everything.e, sizeof(give_everything.e));
}

CUresult fgv_do_nothing_at_all(struct fgv_session *session, struct fgv_request *request)
{
	trip_enter(session, request, FGV_OP_NOTHING_AT_ALL);
	return trip_answer();
}

static CUresult send_nothing_at_all(struct fgv_lane *lane, const void *data, uint32_t len)
{
	(void)data;
	(void)len;
	return fgv_post_nothing_at_all(lane);
}

CUresult fgv_do_ask(struct fgv_session *session, struct fgv_request *request)
{
	trip_enter(session, request, FGV_OP_ASK);
	return trip_answer();
}

static CUresult send_ask(struct fgv_lane *lane, const void *data, uint32_t len)
{
	(void)data;
	(void)len;
	return fgv_call_ask(lane);
}

CUresult fgv_do_only_bytes(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_only_bytes_in *in)
{
	trip_enter(session, request, FGV_OP_ONLY_BYTES);
	trip_is_data(in->text, in->text_len);
	return trip_answer();
}

static CUresult send_only_bytes(struct fgv_lane *lane, const void *data, uint32_t len)
{
	return fgv_post_only_bytes(lane, data, len);
}

static void *begin_only_bytes(struct fgv_lane *lane, uint32_t len)
{
	return fgv_begin_only_bytes(lane, len);
}

static struct fgv_ask_bytes_request sent_ask_bytes;

CUresult fgv_do_ask_bytes(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_ask_bytes_in *in)
{
	trip_enter(session, request, FGV_OP_ASK_BYTES);
	ck_assert_mem_eq(in->where, sent_ask_bytes.where, sizeof(sent_ask_bytes.where));
	trip_is_data(in->text, in->text_len);
	return trip_answer();
}

static void draw_ask_bytes(void)
{
	trip_random(&sent_ask_bytes, sizeof(sent_ask_bytes));
}

static CUresult send_ask_bytes(struct fgv_lane *lane, const void *data, uint32_t len)
{
	return fgv_call_ask_bytes(lane, sent_ask_bytes.where, data, len);
}

static struct fgv_streams_request sent_streams;

CUresult fgv_do_streams(struct fgv_session *session, struct fgv_request *request,
			const struct fgv_streams_in *in)
{
	trip_enter(session, request, FGV_OP_STREAMS);
	trip_is_object(in->from, FGV_KIND_STREAM, sent_streams.from);
	trip_is_object(in->to, FGV_KIND_STREAM, sent_streams.to);
	ck_assert_mem_eq(&in->at, &sent_streams.at, sizeof(sent_streams.at));
	ck_assert_mem_eq(in->delta, sent_streams.delta, sizeof(sent_streams.delta));
	return trip_answer();
}

static void draw_streams(void)
{
	trip_random(&sent_streams, sizeof(sent_streams));
	sent_streams.from = trip_optional(FGV_KIND_STREAM);
	sent_streams.to = trip_optional(FGV_KIND_STREAM);
}

static CUresult send_streams(struct fgv_lane *lane, const void *data, uint32_t len)
{
	(void)data;
	(void)len;
	return fgv_post_streams(lane, sent_streams.from, sent_streams.to, sent_streams.at,
				sent_streams.delta);
}

static struct fgv_last_out give_last, got_last;

CUresult fgv_do_last(struct fgv_session *session, struct fgv_request *request,
		     struct fgv_last_out *out)
{
	trip_enter(session, request, FGV_OP_LAST);
	*out = give_last;
	return trip_answer();
}

static void draw_last(void)
{
	trip_random(&give_last, sizeof(give_last));
}

static CUresult send_last(struct fgv_lane *lane, const void *data, uint32_t len)
{
	(void)data;
	(void)len;
	return fgv_call_last(lane, got_last.all);
}

static void compare_last(void)
{
	ck_assert_mem_eq(got_last.all, give_last.all, sizeof(give_last.all));
}

const struct trip trips[] = {
	{
		.op = FGV_OP_EVERYTHING,
		.send = send_everything,
		.draw = draw_everything,
		.compare = compare_everything,
		.got = &got_everything,
		.got_len = sizeof(got_everything),
		.field_count = 13,
		.fields = (const struct trip_field[]){
			{TRIP_RESERVED, offsetof(struct fgv_everything_request, reserved0), 0},
			{TRIP_RESERVED, offsetof(struct fgv_everything_request, reserved1), 0},
			{TRIP_RESERVED, offsetof(struct fgv_everything_request, reserved2), 0},
			{TRIP_RESERVED, offsetof(struct fgv_everything_request, reserved3), 0},
			{TRIP_RESERVED, offsetof(struct fgv_everything_request, reserved4), 0},
			{TRIP_SPAN, offsetof(struct fgv_everything_request, d_off), 0},
			{TRIP_HANDLE, offsetof(struct fgv_everything_request, module),
			 FGV_KIND_MODULE},
			{TRIP_OPTIONAL, offsetof(struct fgv_everything_request, stream),
			 FGV_KIND_STREAM},
			{TRIP_HANDLE, offsetof(struct fgv_everything_request, event),
			 FGV_KIND_EVENT},
			{TRIP_OPTIONAL, offsetof(struct fgv_everything_request, array),
			 FGV_KIND_ARRAY},
			{TRIP_HANDLE, offsetof(struct fgv_everything_request, texture),
			 FGV_KIND_TEXTURE},
			{TRIP_SPAN, offsetof(struct fgv_everything_request, g_off), 0},
			{TRIP_HANDLE, offsetof(struct fgv_everything_request, function),
			 FGV_KIND_FUNCTION},
		},
		.reply_gap_count = 1,
		.reply_gaps = (const uint32_t[]){
			offsetof(struct fgv_everything_reply, reserved0),
		},
	},
	{
		.op = FGV_OP_NOTHING_AT_ALL,
		.send = send_nothing_at_all,
	},
	{
		.op = FGV_OP_ASK,
		.send = send_ask,
	},
	{
		.op = FGV_OP_ONLY_BYTES,
		.send = send_only_bytes,
		.begin = begin_only_bytes,
	},
	{
		.op = FGV_OP_ASK_BYTES,
		.send = send_ask_bytes,
		.draw = draw_ask_bytes,
	},
	{
		.op = FGV_OP_STREAMS,
		.send = send_streams,
		.draw = draw_streams,
		.field_count = 3,
		.fields = (const struct trip_field[]){
			{TRIP_RESERVED, offsetof(struct fgv_streams_request, reserved0), 0},
			{TRIP_OPTIONAL, offsetof(struct fgv_streams_request, from),
			 FGV_KIND_STREAM},
			{TRIP_OPTIONAL, offsetof(struct fgv_streams_request, to), FGV_KIND_STREAM},
		},
	},
	{
		.op = FGV_OP_LAST,
		.send = send_last,
		.draw = draw_last,
		.compare = compare_last,
		.got = &got_last,
		.got_len = sizeof(got_last),
	},
};
const uint32_t trip_count = sizeof(trips) / sizeof(trips[0]);
