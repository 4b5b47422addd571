/*
 * Every operation from the guest's stub to its handler and back, and every way in which a
 * request can be wrong. The generated part (<stem>_roundtrip.c) knows the arguments; here
 * are a lane that decodes on the spot, a session with a few objects and a window, and the
 * checks, which hold for any description: API_WIRE names the one under test.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/api/test_api_roundtrip.h"

#ifndef API_WIRE
#define API_WIRE "api/gpu_wire.h"
#endif
#include API_WIRE

#define ROUNDS		32
#define WINDOW_LEN	(256u * 1024)
#define OBJECTS		8
#define STATUS_FAILED	CUDA_ERROR_NOT_READY
#define STATUS_ENDED	CUDA_ERROR_DEVICE_UNAVAILABLE
#define STATUS_UNSET	((CUresult)12345)
#define REPLY_LEN_UNSET 54321u

struct fgv_object {
	enum fgv_kind kind;
};

struct fgv_session {
	uint8_t window[WINDOW_LEN];
	struct fgv_object objects[FGV_KINDS][OBJECTS];
};

/* A lane with room for one request; commit decodes it and keeps the reply for wait. */
struct fgv_lane {
	CUresult ended; /* what a session that has ended says */
	uint32_t calls;
	uint16_t op;
	uint32_t len;
	uint64_t message[FGV_MESSAGE_MAX / 8 + 1];
	uint8_t reply[FGV_SLOT_INLINE];
	uint32_t reply_len;
	CUresult status;
	const uint32_t *spoil; /* where the reply gets damaged, NULL: nowhere */
};

static struct fgv_session session;
static struct fgv_lane lane;
static uint8_t data[FGV_MESSAGE_MAX];
static uint32_t data_len;
static CUresult answer; /* what handlers return */
static uint32_t handlers_ran;
static uint64_t random_state;

/* --- Values ---------------------------------------------------------------- */

static uint64_t draw(uint64_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 20) % below;
}

void trip_random(void *to, size_t len)
{
	uint8_t *bytes = to;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)draw(256);
}

uint32_t trip_handle(enum fgv_kind kind)
{
	return ((uint32_t)kind + 1) << 8 | (uint32_t)draw(OBJECTS);
}

uint32_t trip_optional(enum fgv_kind kind)
{
	return draw(2) ? trip_handle(kind) : 0;
}

/* Empty ones and the whole window among them. */
void trip_span(uint64_t *off, uint64_t *len)
{
	*off = draw(4) ? draw(WINDOW_LEN + 1) : 0;
	*len = draw(4) ? draw(WINDOW_LEN - *off + 1) : WINDOW_LEN - *off;
}

/* As many bytes as fit beside the arguments every now and then, else a few or none. */
static void draw_data(const struct trip *trip)
{
	const struct fgv_op_info *info = &fgv_op_infos[trip->op];

	data_len = draw(8) ? (uint32_t)draw(70) : FGV_MESSAGE_MAX - info->request_len;
	if (!info->has_bytes)
		data_len = 0;
	trip_random(data, data_len);
}

/* --- The session ----------------------------------------------------------- */

void *fgv_session_resolve(struct fgv_session *in, uint64_t off, uint64_t len)
{
	ck_assert_ptr_eq(in, &session);
	if (off > WINDOW_LEN || len > WINDOW_LEN - off)
		return NULL;
	return in->window + off;
}

static struct fgv_object *object_of(enum fgv_kind kind, uint32_t handle)
{
	uint32_t index = handle & 0xff;

	if (handle >> 8 != (uint32_t)kind + 1 || index >= OBJECTS)
		return NULL;
	return &session.objects[kind][index];
}

struct fgv_object *fgv_session_lookup(struct fgv_session *in, enum fgv_kind kind, uint32_t handle)
{
	ck_assert_ptr_eq(in, &session);
	return object_of(kind, handle);
}

void trip_enter(struct fgv_session *in, const struct fgv_request *request, uint16_t op)
{
	ck_assert_ptr_eq(in, &session);
	ck_assert_uint_eq(request->op, op);
	ck_assert_uint_eq(request->vcpu, 7);
	ck_assert_ptr_null(request->violation);
	handlers_ran++;
}

void trip_is_object(const struct fgv_object *object, enum fgv_kind kind, uint32_t handle)
{
	ck_assert_ptr_eq(object, handle ? object_of(kind, handle) : NULL);
}

void trip_is_span(const void *at, uint64_t len, uint64_t sent_off, uint64_t sent_len)
{
	ck_assert_ptr_eq(at, session.window + sent_off);
	ck_assert_uint_eq(len, sent_len);
}

void trip_is_data(const void *at, uint32_t len)
{
	ck_assert_uint_eq(len, data_len);
	ck_assert_mem_eq(at, data, len);
}

CUresult trip_answer(void)
{
	return answer;
}

/*
 * Decodes from memory of just the message's size and of no alignment, where a sanitizer
 * sees every byte read beyond.
 */
static int dispatch(uint16_t op, const void *message, uint32_t len)
{
	struct fgv_request request = {.op = op, .vcpu = 7, .violation = "unset"};
	uint8_t *copy = malloc(len + 1);
	int error;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy + 1, message, len);
	lane.status = STATUS_UNSET;
	lane.reply_len = REPLY_LEN_UNSET;
	error = fgv_dispatch(&session, &request, copy + 1, len, lane.reply, &lane.reply_len,
			     &lane.status);
	free(copy);
	if (error) {
		ck_assert_ptr_nonnull(request.violation);
		ck_assert_int_eq(lane.status, STATUS_UNSET);
		ck_assert_uint_eq(lane.reply_len, REPLY_LEN_UNSET);
	} else {
		ck_assert_ptr_null(request.violation);
	}
	return error;
}

/* --- The lane -------------------------------------------------------------- */

void *fgv_lane_begin(struct fgv_lane *in, uint16_t op, uint32_t len)
{
	if (len > FGV_MESSAGE_MAX)
		return NULL;
	in->op = op;
	in->len = len;
	memset(in->message, 0xee, sizeof(in->message));
	return in->message;
}

uint32_t fgv_lane_commit(struct fgv_lane *in)
{
	if (in->ended == CUDA_SUCCESS)
		ck_assert_int_eq(dispatch(in->op, in->message, in->len), 0);
	return in->calls++;
}

CUresult fgv_lane_wait(struct fgv_lane *in, uint32_t call, void *reply, uint32_t reply_len)
{
	ck_assert_uint_eq(call, in->calls - 1);
	if (in->ended != CUDA_SUCCESS)
		return in->ended;
	if (in->status != CUDA_SUCCESS) {
		ck_assert_uint_eq(in->reply_len, 0);
		return in->status;
	}
	ck_assert_uint_eq(reply_len, in->reply_len);
	ck_assert_uint_eq(reply_len, fgv_op_infos[in->op].reply_len);
	if (in->spoil)
		in->reply[*in->spoil] = 1;
	if (reply_len)
		memcpy(reply, in->reply, reply_len);
	return CUDA_SUCCESS;
}

CUresult fgv_lane_status(struct fgv_lane *in)
{
	return in->ended;
}

/* --- There and back -------------------------------------------------------- */

static const struct trip *setup_trip(int at)
{
	const struct trip *trip = &trips[at];

	random_state = 1 + (uint64_t)at;
	answer = CUDA_SUCCESS;
	return trip;
}

static void draw_trip(const struct trip *trip)
{
	if (trip->draw)
		trip->draw();
	draw_data(trip);
	if (trip->got)
		memset(trip->got, 0x5a, trip->got_len);
}

/* Sends and expects @status, the handler having run @ran times; else no result arrived. */
static void send_expecting(const struct trip *trip, uint32_t len, CUresult status, uint32_t ran)
{
	uint32_t before = handlers_ran;

	ck_assert_int_eq(trip->send(&lane, data, len), status);
	ck_assert_uint_eq(handlers_ran - before, ran);
	for (uint32_t i = 0; status != CUDA_SUCCESS && i < trip->got_len; i++)
		ck_assert_uint_eq(((uint8_t *)trip->got)[i], 0x5a);
}

START_TEST(test_results_arrive)
{
	const struct trip *trip = setup_trip(_i);

	for (int round = 0; round < ROUNDS; round++) {
		draw_trip(trip);
		send_expecting(trip, data_len, CUDA_SUCCESS, 1);
		ck_assert_uint_eq(lane.op, trip->op);
		if (trip->compare)
			trip->compare();
	}
}
END_TEST

/* A call returns its handler's status, a post success; neither has results then. */
START_TEST(test_handler_fails)
{
	const struct trip *trip = setup_trip(_i);
	bool call = fgv_op_infos[trip->op].call;

	draw_trip(trip);
	answer = STATUS_FAILED;
	send_expecting(trip, data_len, call ? STATUS_FAILED : CUDA_SUCCESS, 1);
	ck_assert_int_eq(lane.status, STATUS_FAILED);
	ck_assert_uint_eq(lane.reply_len, 0);
	answer = FGV_PENDING;
	ck_assert_int_eq(dispatch(lane.op, lane.message, lane.len), 0);
	ck_assert_int_eq(lane.status, FGV_PENDING);
	ck_assert_uint_eq(lane.reply_len, 0);
}
END_TEST

START_TEST(test_session_ended)
{
	const struct trip *trip = setup_trip(_i);

	draw_trip(trip);
	lane.ended = STATUS_ENDED;
	send_expecting(trip, data_len, STATUS_ENDED, 0);
}
END_TEST

START_TEST(test_begin_half)
{
	const struct trip *trip = setup_trip(_i);
	const struct fgv_op_info *info = &fgv_op_infos[trip->op];

	ck_assert_int_eq(!!trip->begin, info->has_bytes && !info->call);
	for (int round = 0; trip->begin && round < ROUNDS; round++) {
		void *room;

		draw_trip(trip);
		room = trip->begin(&lane, data_len);
		ck_assert_ptr_nonnull(room);
		memcpy(room, data, data_len);
		ck_assert_uint_eq(fgv_lane_commit(&lane), (uint32_t)round);
		ck_assert_int_eq(lane.status, CUDA_SUCCESS);
		ck_assert_uint_eq(handlers_ran, (uint32_t)round + 1);
	}
}
END_TEST

/* Up to the length with which a sum of 32 bits wraps around. */
START_TEST(test_bytes_too_long)
{
	const struct trip *trip = setup_trip(_i);
	const struct fgv_op_info *info = &fgv_op_infos[trip->op];
	uint32_t fits = FGV_MESSAGE_MAX - info->request_len;
	const uint32_t lens[] = {fits + 1, UINT32_MAX - info->request_len, UINT32_MAX};

	if (!info->has_bytes)
		return;
	draw_trip(trip);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		send_expecting(trip, lens[i], CUDA_ERROR_INVALID_VALUE, 0);
		ck_assert_uint_eq(lane.calls, 0);
		if (trip->begin)
			ck_assert_ptr_null(trip->begin(&lane, lens[i]));
	}
	ck_assert_int_eq(trip->send(&lane, NULL, data_len = 0), CUDA_SUCCESS);
}
END_TEST

START_TEST(test_reply_reserved)
{
	const struct trip *trip = setup_trip(_i);

	draw_trip(trip);
	for (uint32_t i = 0; i < trip->reply_gap_count; i++) {
		lane.spoil = &trip->reply_gaps[i];
		send_expecting(trip, data_len, CUDA_ERROR_UNKNOWN, 1);
	}
}
END_TEST

/* --- What a guest must not send -------------------------------------------- */

/* A request that is right, as its bytes. */
static uint8_t *draw_message(const struct trip *trip)
{
	draw_trip(trip);
	send_expecting(trip, data_len, CUDA_SUCCESS, 1);
	handlers_ran = 0;
	return (uint8_t *)lane.message;
}

START_TEST(test_length)
{
	const struct trip *trip = setup_trip(_i);
	const struct fgv_op_info *info = &fgv_op_infos[trip->op];
	uint8_t *message = draw_message(trip);
	uint32_t longest = info->has_bytes ? FGV_MESSAGE_MAX : info->request_len;

	if (info->request_len) {
		ck_assert_int_eq(dispatch(trip->op, message, info->request_len - 1u), -EBADMSG);
		ck_assert_int_eq(dispatch(trip->op, message, 0), -EBADMSG);
	}
	ck_assert_int_eq(dispatch(trip->op, message, longest + 1), -EBADMSG);
	ck_assert_uint_eq(handlers_ran, 0);
}
END_TEST

START_TEST(test_reserved)
{
	const struct trip *trip = setup_trip(_i);
	uint8_t *message = draw_message(trip);

	for (uint32_t i = 0; i < trip->field_count; i++) {
		const struct trip_field *field = &trip->fields[i];

		for (uint32_t b = 0; field->what == TRIP_RESERVED && b < 32; b++) {
			message[field->off + b / 8] ^= (uint8_t)(1u << b % 8);
			ck_assert_int_eq(dispatch(trip->op, message, lane.len), -EBADMSG);
			message[field->off + b / 8] ^= (uint8_t)(1u << b % 8);
		}
	}
	ck_assert_uint_eq(handlers_ran, 0);
}
END_TEST

static const uint64_t bad_spans[][2] = {
	{WINDOW_LEN + 1, 0}, {0, WINDOW_LEN + 1}, {WINDOW_LEN, 1},
	{1, UINT64_MAX},     {UINT64_MAX, 1},	  {UINT64_MAX, UINT64_MAX},
};

START_TEST(test_span)
{
	const struct trip *trip = setup_trip(_i);
	uint8_t *message = draw_message(trip);

	for (uint32_t i = 0; i < trip->field_count; i++) {
		const struct trip_field *field = &trip->fields[i];
		uint64_t good[2];

		if (field->what != TRIP_SPAN)
			continue;
		memcpy(good, message + field->off, sizeof(good));
		for (size_t j = 0; j < sizeof(bad_spans) / sizeof(bad_spans[0]); j++) {
			memcpy(message + field->off, bad_spans[j], sizeof(good));
			ck_assert_int_eq(dispatch(trip->op, message, lane.len), -EFAULT);
		}
		memcpy(message + field->off, good, sizeof(good));
	}
	ck_assert_uint_eq(handlers_ran, 0);
}
END_TEST

/* An unknown one, one of each other kind, and 0, which only an optional one may be. */
static uint32_t bad_handle(const struct trip_field *field, uint32_t at)
{
	if (at == 0)
		return ((uint32_t)field->kind + 1) << 8 | OBJECTS;
	if (at == 1)
		return field->what == TRIP_OPTIONAL ? UINT32_MAX : 0;
	return (((uint32_t)field->kind + at - 1) % FGV_KINDS + 1) << 8;
}

START_TEST(test_handle)
{
	const struct trip *trip = setup_trip(_i);
	uint8_t *message = draw_message(trip);

	for (uint32_t i = 0; i < trip->field_count; i++) {
		const struct trip_field *field = &trip->fields[i];
		uint32_t good;

		if (field->what != TRIP_HANDLE && field->what != TRIP_OPTIONAL)
			continue;
		memcpy(&good, message + field->off, sizeof(good));
		for (uint32_t j = 0; j < FGV_KINDS + 1; j++) {
			uint32_t bad = bad_handle(field, j);

			memcpy(message + field->off, &bad, sizeof(bad));
			ck_assert_int_eq(dispatch(trip->op, message, lane.len), 0);
			ck_assert_int_eq(lane.status, CUDA_ERROR_INVALID_HANDLE);
			ck_assert_uint_eq(lane.reply_len, 0);
		}
		memcpy(message + field->off, &good, sizeof(good));
	}
	ck_assert_uint_eq(handlers_ran, 0);
}
END_TEST

/* With every handle bad as well, a violation is still seen. */
START_TEST(test_violation_first)
{
	const struct trip *trip = setup_trip(_i);
	uint8_t *message = draw_message(trip);
	const uint32_t bad = UINT32_MAX;

	for (uint32_t i = 0; i < trip->field_count; i++) {
		const struct trip_field *field = &trip->fields[i];

		if (field->what == TRIP_HANDLE || field->what == TRIP_OPTIONAL)
			memcpy(message + field->off, &bad, sizeof(bad));
	}
	for (uint32_t i = 0; i < trip->field_count; i++) {
		const struct trip_field *field = &trip->fields[i];
		uint8_t good = message[field->off + 3];

		if (field->what != TRIP_SPAN && field->what != TRIP_RESERVED)
			continue;
		message[field->off + 3] = 1;
		ck_assert_int_eq(dispatch(trip->op, message, lane.len),
				 field->what == TRIP_SPAN ? -EFAULT : -EBADMSG);
		message[field->off + 3] = good;
	}
	ck_assert_uint_eq(handlers_ran, 0);
}
END_TEST

START_TEST(test_unknown_op)
{
	static const uint8_t message[64];
	uint32_t known = 0;

	setup_trip(0);
	for (uint32_t op = 0; op <= UINT16_MAX; op++) {
		bool is_trip = known < trip_count && trips[known].op == op;

		if (op <= FGV_OP_MAX)
			ck_assert_int_eq(!!fgv_op_infos[op].name, is_trip);
		if (is_trip) {
			known++;
			continue;
		}
		ck_assert_int_eq(dispatch((uint16_t)op, message, 0), -EBADMSG);
		ck_assert_int_eq(dispatch((uint16_t)op, message, sizeof(message)), -EBADMSG);
	}
	ck_assert_uint_eq(known, trip_count);
	ck_assert_uint_eq(handlers_ran, 0);
}
END_TEST

static TCase *make_case(void)
{
	TCase *tcase = tcase_create("every operation");
	int count = (int)trip_count;

	tcase_add_loop_test(tcase, test_results_arrive, 0, count);
	tcase_add_loop_test(tcase, test_handler_fails, 0, count);
	tcase_add_loop_test(tcase, test_session_ended, 0, count);
	tcase_add_loop_test(tcase, test_begin_half, 0, count);
	tcase_add_loop_test(tcase, test_bytes_too_long, 0, count);
	tcase_add_loop_test(tcase, test_reply_reserved, 0, count);
	tcase_add_loop_test(tcase, test_length, 0, count);
	tcase_add_loop_test(tcase, test_reserved, 0, count);
	tcase_add_loop_test(tcase, test_span, 0, count);
	tcase_add_loop_test(tcase, test_handle, 0, count);
	tcase_add_loop_test(tcase, test_violation_first, 0, count);
	tcase_add_test(tcase, test_unknown_op);
	tcase_set_timeout(tcase, 60);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("api");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, make_case());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
