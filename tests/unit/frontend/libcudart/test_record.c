/*
 * frontend/client/recorder.c and record.c: what a lane with a recorder is asked for is kept, as
 * often as wanted, in its order, and what can't be kept fails, and the recorder with it.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/client/lane.h"
#include "frontend/client/record.h"

static uint64_t nowhere[FGV_MESSAGE_MAX / sizeof(uint64_t)];
static struct fgv_recorder recorder, *finished;
static struct fgv_lane lane;

/* What note() was called with. */
static unsigned runs;
static uint64_t order[8];
static uint32_t streams[8];

static void finish(struct fgv_recorder *it)
{
	finished = it;
}

static void setup(void)
{
	fgv_recorder_init(&recorder);
	recorder.finish = finish;
	finished = NULL;
	runs = 0;
	lane = (struct fgv_lane){.nowhere = nowhere, .recorder = &recorder};
}

static void teardown(void)
{
	fgv_records_free(recorder.first);
	fgv_record_forbid(NULL);
}

/* 3 fails. */
static CUresult note(struct fgv_lane *on, void *message, uint32_t stream)
{
	ck_assert_ptr_eq(on, &lane);
	memcpy(&order[runs], message, sizeof(*order));
	streams[runs] = stream;
	return order[runs++] == 3 ? CUDA_ERROR_ASSERT : CUDA_SUCCESS;
}

static void keep(uint64_t value)
{
	void *message = fgv_recorder_add(&recorder, note, 0, sizeof(value));

	ck_assert_ptr_nonnull(message);
	memcpy(message, &value, sizeof(value));
}

START_TEST(runs_in_order)
{
	keep(7);
	keep(8);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(fgv_records_run(&lane, recorder.first, 5 + i), CUDA_SUCCESS);
	ck_assert_uint_eq(runs, 4);
	ck_assert(order[0] == 7 && order[1] == 8 && order[2] == 7 && order[3] == 8);
	ck_assert(streams[1] == 5 && streams[2] == 6);
}
END_TEST

START_TEST(stops_at_a_failure)
{
	keep(3);
	keep(4);
	ck_assert_int_eq(fgv_records_run(&lane, recorder.first, 0), CUDA_ERROR_ASSERT);
	ck_assert_uint_eq(runs, 1);
	ck_assert_int_eq(recorder.failed, CUDA_SUCCESS);
}
END_TEST

START_TEST(copies_live_alone)
{
	struct fgv_record *copy;

	keep(1);
	keep(2);
	ck_assert_int_eq(fgv_records_copy(recorder.first, &copy), 0);
	fgv_records_free(recorder.first);
	recorder.first = NULL;
	ck_assert_int_eq(fgv_records_run(&lane, copy, 9), CUDA_SUCCESS);
	ck_assert(runs == 2 && order[0] == 1 && order[1] == 2 && streams[1] == 9);
	fgv_records_free(copy);
	ck_assert_int_eq(fgv_records_copy(NULL, &copy), 0);
	ck_assert_ptr_null(copy);
}
END_TEST

/* Work is kept with its length; a call that has its answer at any time goes to the host. */
START_TEST(keeps_work)
{
	uint32_t *message = fgv_lane_begin_recorded(&lane, FGV_OP_FILL, 40);

	ck_assert_ptr_nonnull(message);
	ck_assert_ptr_eq(message, recorder.first->message);
	ck_assert_uint_eq(recorder.first->op, FGV_OP_FILL);
	ck_assert_uint_eq(recorder.first->len, 40);
	ck_assert_ptr_null(fgv_lane_begin_recorded(&lane, FGV_OP_MEM_INFO, 0));
	ck_assert_int_eq(recorder.failed, CUDA_SUCCESS);
}
END_TEST

START_TEST(refuses_what_must_be_answered)
{
	ck_assert_ptr_eq(fgv_lane_begin_recorded(&lane, FGV_OP_DEVICE_SYNC, 0), nowhere);
	ck_assert_int_eq(lane.refused, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	ck_assert_int_eq(recorder.failed, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	ck_assert_ptr_null(recorder.first);
	fgv_recorder_fail(&recorder, CUDA_ERROR_UNKNOWN);
	ck_assert_int_eq(recorder.failed, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}
END_TEST

START_TEST(tells_who_has_it_no_more)
{
	fgv_lane_leave_recorder(&lane);
	ck_assert_ptr_null(lane.recorder);
	ck_assert_ptr_eq(finished, &recorder);
}
END_TEST

static CUresult judge(void)
{
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Where nothing is recorded, calls are judged and posts are not. */
START_TEST(asks_the_judge)
{
	lane.recorder = NULL;
	ck_assert_ptr_null(fgv_lane_begin_recorded(&lane, FGV_OP_DEVICE_SYNC, 0));
	fgv_record_forbid(judge);
	ck_assert_ptr_null(fgv_lane_begin_recorded(&lane, FGV_OP_FILL, 40));
	ck_assert_int_eq(lane.refused, CUDA_SUCCESS);
	ck_assert_ptr_eq(fgv_lane_begin_recorded(&lane, FGV_OP_DEVICE_SYNC, 0), nowhere);
	ck_assert_int_eq(lane.refused, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record");
	TCase *tcase = tcase_create("record");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, runs_in_order);
	tcase_add_test(tcase, stops_at_a_failure);
	tcase_add_test(tcase, copies_live_alone);
	tcase_add_test(tcase, keeps_work);
	tcase_add_test(tcase, refuses_what_must_be_answered);
	tcase_add_test(tcase, tells_who_has_it_no_more);
	tcase_add_test(tcase, asks_the_judge);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
