/*
 * Fences of the CUDA implementation, with a driver of the test's: the driver alone says what
 * is done, and each look asks it.
 */
#include <check.h>
#include <stdlib.h>
#include "backend/gpu/cuda_internal.h"
#include "common/util.h"

#define LOOKS 100

/* What the driver of the test's says, and how often it was asked. */
static struct {
	CUresult stream, event;
	unsigned stream_queries, event_queries, events, frees;
} said;

static struct fgv_cuda_driver driver;
static struct cuda cuda;
static struct fgv_gpu_fence *fence;

static CUresult stream_query(CUstream stream)
{
	(void)stream;
	said.stream_queries++;
	return said.stream;
}

static CUresult event_query(CUevent event)
{
	(void)event;
	said.event_queries++;
	return said.event;
}

static CUresult event_create(CUevent *event, unsigned flags)
{
	(void)flags;
	*event = (CUevent)(uintptr_t)++said.events;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	(void)event;
	(void)stream;
	return CUDA_SUCCESS;
}

static CUresult mem_free(CUdeviceptr address)
{
	uint64_t begun_ns = fgv_now_ns();

	(void)address;
	said.frees++;
	while (fgv_now_ns() == begun_ns)
		continue;
	return CUDA_SUCCESS;
}

/* Something is at work in the legacy stream, and a fence behind it. */
static void setup(void)
{
	said = (typeof(said)){.stream = CUDA_ERROR_NOT_READY, .event = CUDA_ERROR_NOT_READY};
	driver = (struct fgv_cuda_driver){
		.stream_query = stream_query,
		.event_query = event_query,
		.event_create = event_create,
		.event_record = event_record,
		.mem_free = mem_free,
	};
	cuda = (struct cuda){.base.ops = &fgv_gpu_cuda, .driver = &driver};
	cuda.legacy.next = cuda.legacy.previous = &cuda.legacy;
	ck_assert_uint_eq(fgv_cuda_before_work(&cuda, &cuda.legacy), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_cuda_fence(&cuda.base, NULL, &fence), CUDA_SUCCESS);
}

static void teardown(void)
{
	fgv_cuda_fence_put(&cuda.base, fence);
	while (cuda.free_events) {
		struct pooled_event *event = cuda.free_events;

		cuda.free_events = event->next;
		free(event);
	}
}

START_TEST(each_look_asks_for_the_stream)
{
	for (unsigned i = 1; i <= LOOKS; i++) {
		ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, fence), CUDA_ERROR_NOT_READY);
		ck_assert_uint_eq(said.stream_queries, i);
	}
	said.stream = CUDA_SUCCESS;
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, fence), CUDA_SUCCESS);
	ck_assert_uint_eq(said.stream_queries, LOOKS + 1);
}
END_TEST

START_TEST(each_look_asks_for_the_event_where_work_is_behind)
{
	ck_assert_uint_eq(fgv_cuda_before_work(&cuda, &cuda.legacy), CUDA_SUCCESS);
	ck_assert_uint_eq(said.events, 1);
	for (unsigned i = 1; i <= LOOKS; i++) {
		ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, fence), CUDA_ERROR_NOT_READY);
		ck_assert_uint_eq(said.event_queries, i);
	}
	said.event = CUDA_SUCCESS;
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, fence), CUDA_SUCCESS);
}
END_TEST

START_TEST(fault_is_told)
{
	said.stream = CUDA_ERROR_ILLEGAL_ADDRESS;
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, fence), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* What waits until the GPU is idle takes the driver's time then, and that is told. */
START_TEST(late_frees_are_told)
{
	ck_assert_uint_eq(fgv_cuda_discard(&cuda, GARBAGE_MEMORY, 1 << 20, 512), CUDA_SUCCESS);
	ck_assert_uint_eq(said.frees, 0);
	ck_assert_uint_eq(cuda.base.late_ns, 0);
	ck_assert_uint_eq(cuda.base.late_bytes, 512);
	said.stream = CUDA_SUCCESS;
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, fence), CUDA_SUCCESS);
	ck_assert_uint_eq(said.frees, 1);
	ck_assert_uint_gt(cuda.base.late_ns, 0);
	ck_assert_uint_eq(cuda.base.late_bytes, 0);
}
END_TEST

static void add_stream(struct fgv_gpu_stream *stream)
{
	stream->next = cuda.legacy.next;
	stream->previous = &cuda.legacy;
	stream->next->previous = cuda.legacy.next = stream;
}

/* The end of a stream's work is known by one question, and so is a fault where there is none. */
START_TEST(streams_at_rest_are_not_asked)
{
	struct fgv_gpu_stream stream = {.handle = (CUstream)1};
	struct fgv_gpu_fence *all;

	said.stream = CUDA_SUCCESS;
	ck_assert_uint_eq(fgv_cuda_stream_query(&cuda, &cuda.legacy), CUDA_SUCCESS);
	add_stream(&stream);
	ck_assert_uint_eq(fgv_cuda_before_work(&cuda, &stream), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(fgv_cuda_fence_all(&cuda.base, &all), CUDA_SUCCESS);
		said.stream_queries = 0;
		ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, all), CUDA_SUCCESS);
		ck_assert_uint_eq(said.stream_queries, 1);
		fgv_cuda_fence_put(&cuda.base, all);
	}
	ck_assert(!stream.is_busy);
	said.stream = CUDA_ERROR_LAUNCH_FAILED;
	ck_assert_uint_eq(fgv_cuda_fence_all(&cuda.base, &all), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, all), CUDA_ERROR_LAUNCH_FAILED);
	fgv_cuda_fence_put(&cuda.base, all);
}
END_TEST

/* A stream with nothing but copies is none of those that compute, until something else is in it. */
START_TEST(copies_are_left_out)
{
	struct fgv_gpu_stream streams[2] = {{.handle = (CUstream)1}, {.handle = (CUstream)2}};
	struct fgv_gpu_fence *computing;

	said.stream = CUDA_SUCCESS;
	ck_assert_uint_eq(fgv_cuda_stream_query(&cuda, &cuda.legacy), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		add_stream(&streams[i]);
	said.stream = CUDA_ERROR_NOT_READY;
	cuda.base.copies = true;
	ck_assert_uint_eq(fgv_cuda_before_work(&cuda, &streams[0]), CUDA_SUCCESS);
	cuda.base.copies = false;
	ck_assert_uint_eq(fgv_cuda_fence_computing(&cuda.base, &computing), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, computing), CUDA_SUCCESS);
	fgv_cuda_fence_put(&cuda.base, computing);
	ck_assert_uint_eq(fgv_cuda_before_work(&cuda, &streams[1]), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_cuda_fence_computing(&cuda.base, &computing), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, computing), CUDA_ERROR_NOT_READY);
	said.stream = CUDA_SUCCESS;
	ck_assert_uint_eq(fgv_cuda_fence_query(&cuda.base, computing), CUDA_SUCCESS);
	fgv_cuda_fence_put(&cuda.base, computing);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_fence");
	TCase *tests = tcase_create("fences");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, each_look_asks_for_the_stream);
	tcase_add_test(tests, each_look_asks_for_the_event_where_work_is_behind);
	tcase_add_test(tests, fault_is_told);
	tcase_add_test(tests, late_frees_are_told);
	tcase_add_test(tests, streams_at_rest_are_not_asked);
	tcase_add_test(tests, copies_are_left_out);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
