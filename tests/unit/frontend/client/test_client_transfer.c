/*
 * Large copies, with helpers and without: every byte of rows and boxes, the order among requests
 * of a thread, threads that share chunks and helpers, and copies that fail, are refused, or whose
 * thread is cancelled.
 */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "frontend/client/lane.h"
#include "frontend/client/staging.h"
#include "frontend/cuda/memory/copy.h"
#include "tests/unit/frontend/client/test_client_host.h"

#define KIB 1024u
#define MIB (1024u * KIB)

static struct fgv_lane *lane;

static void start(const char *helpers)
{
	setenv("FAIRGV_COPY_THREADS", helpers, 1);
	host_init();
	host_be_h200();
	host_start();
	ck_assert_int_eq(fgv_lane_enter(&lane), CUDA_SUCCESS);
}

static void setup_alone(void)
{
	start("0");
}

static void setup_helped(void)
{
	start("3");
}

static void teardown(void)
{
	ck_assert_uint_eq(host.violations, 0);
	host_stop();
}

static uint64_t allocate(uint64_t size)
{
	uint64_t address;

	ck_assert_int_eq(fgv_call_mem_alloc(lane, size, &address), CUDA_SUCCESS);
	return address;
}

static void fill(uint8_t *data, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		data[i] = (uint8_t)((i + seed) * 2654435761u >> 11);
}

static uint8_t *filled(uint64_t len, uint64_t seed)
{
	uint8_t *data = malloc(len);

	ck_assert_ptr_ne(data, NULL);
	fill(data, len, seed);
	return data;
}

static const uint64_t lengths[] = {
	FGV_DATA_MAX + 1, 256 * KIB,	 256 * KIB + 1, 1 * MIB - 1,
	1 * MIB,	  5 * MIB + 123, 12 * MIB + 1,
};

START_TEST(rows)
{
	uint64_t len = lengths[_i], address = allocate(len + 64);
	uint8_t *data = filled(len, len), *back = malloc(len + 1);

	back[len] = 0x5a;
	ck_assert_int_eq(fgv_copy_in(lane, address + 3, data, len, 0), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_copy_out(lane, back, address + 3, len, 0), CUDA_SUCCESS);
	ck_assert_int_eq(memcmp(data, back, len), 0);
	ck_assert_uint_eq(back[len], 0x5a);
	free(back);
	free(data);
}
END_TEST

/* Bytes, rows and slices; pitches of the program's and of the device's side; rows of a slice. */
static const struct shape {
	uint64_t box[3], pitch, device_pitch, rows;
} shapes[] = {
	{{1000, 3000, 1}, 1024, 1536, 3000},	/* many rows in a piece */
	{{3 * MIB, 3, 1}, 3 * MIB, 4 * MIB, 3}, /* rows of many pieces, then whole ones */
	{{333333, 17, 1}, 400000, 400000, 17},	/* rows that fit in larger pieces only */
	{{100, 50, 600}, 128, 160, 60},		/* many slices in a piece */
	{{700, 900, 9}, 700, 704, 1000},	/* slices of some pieces */
};

START_TEST(boxes)
{
	const struct shape *shape = &shapes[_i];
	uint64_t len = shape->pitch * shape->rows * shape->box[2];
	uint64_t device_len = shape->device_pitch * shape->rows * shape->box[2];
	struct fgv_place place = {0, {allocate(device_len), shape->device_pitch, shape->rows}};
	uint8_t *data = filled(len, 1), *back = filled(len, 2), *was = filled(len, 2);
	struct fgv_rows from = {data, shape->pitch, shape->rows};
	struct fgv_rows to = {back, shape->pitch, shape->rows};

	ck_assert_int_eq(fgv_copy_box_in(lane, &place, &from, shape->box, 0), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_copy_box_out(lane, &to, &place, shape->box, 0), CUDA_SUCCESS);
	for (uint64_t i = 0; i < len; i++) {
		bool inside = i % shape->pitch < shape->box[0] &&
			      i / shape->pitch % shape->rows < shape->box[1];

		if (back[i] != (inside ? data : was)[i])
			ck_abort_msg("wrong at %llu", (unsigned long long)i);
	}
	free(was);
	free(back);
	free(data);
}
END_TEST

/* What was posted before and after a large copy comes before and after it. */
START_TEST(the_order_of_a_thread)
{
	uint64_t len = 6 * MIB, address = allocate(len);
	uint8_t *data = malloc(len), *back = malloc(len), one = 0xee;

	for (unsigned round = 0; round < 4; round++) {
		uint64_t place = round * 2 * MIB - round;

		fill(data, len, round);
		ck_assert_int_eq(fgv_post_fill(lane, address, len, 0x77, 1, 0), CUDA_SUCCESS);
		ck_assert_int_eq(fgv_copy_in(lane, address, data, len, 0), CUDA_SUCCESS);
		ck_assert_int_eq(fgv_post_copy_in(lane, address + place, 0, &one, 1), CUDA_SUCCESS);
		/* The program's again. */
		data[place] = one;
		ck_assert_int_eq(fgv_copy_out(lane, back, address, len, 0), CUDA_SUCCESS);
		ck_assert_int_eq(memcmp(data, back, len), 0);
	}
	free(back);
	free(data);
}
END_TEST

struct mate {
	pthread_t thread;
	uint64_t address, len;
	unsigned rounds;
};

static void *copy_around(void *arg)
{
	const struct mate *mate = arg;
	uint8_t *data = malloc(mate->len), *back = malloc(mate->len);
	struct fgv_lane *own;

	ck_assert_int_eq(fgv_lane_enter(&own), CUDA_SUCCESS);
	for (unsigned i = 0; i < mate->rounds; i++) {
		fill(data, mate->len, mate->address + i);
		ck_assert_int_eq(fgv_copy_in(own, mate->address, data, mate->len, 0), 0);
		ck_assert_int_eq(fgv_copy_out(own, back, mate->address, mate->len, 0), 0);
		ck_assert_int_eq(memcmp(data, back, mate->len), 0);
	}
	fgv_lane_leave(own);
	free(back);
	free(data);
	return NULL;
}

/* Small ones among them, which need one chunk to get on, and more threads than chunks. */
START_TEST(threads_share)
{
	static struct mate mates[FGV_STAGING_CHUNKS_MAX + 4];
	unsigned count = host.lanes - 3;

	ck_assert_uint_le(count, FGV_ARRAY_LEN(mates));
	for (unsigned i = 0; i < count; i++) {
		mates[i].len = i % 3 ? 100 + i : 3 * MIB + i;
		mates[i].rounds = i % 3 ? 40 : 2;
		mates[i].address = allocate(mates[i].len);
	}
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(pthread_create(&mates[i].thread, NULL, copy_around, &mates[i]), 0);
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(pthread_join(mates[i].thread, NULL), 0);
}
END_TEST

/* No chunk is lost, and no answer is left behind, by what went wrong before. */
static void expect_health(void)
{
	struct mate mate = {.address = allocate(4 * MIB), .len = 4 * MIB, .rounds = 2};
	struct fgv_chunk chunks[FGV_STAGING_CHUNKS_MAX];
	unsigned count = 0;

	copy_around(&mate);
	while (count < FGV_STAGING_CHUNKS_MAX)
		ck_assert(fgv_staging_get(lane, true, &chunks[count++]));
	while (count)
		fgv_staging_put(&chunks[--count]);
}

/* In the middle of both: the device's memory ends there. */
START_TEST(failures)
{
	uint64_t address = allocate(3 * MIB), len = 8 * MIB;
	uint8_t *data = filled(len, 3);

	ck_assert_int_eq(fgv_copy_in(lane, address, data, len, 0), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_call_device_sync(lane), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(fgv_copy_out(lane, data, address, len, 0), CUDA_ERROR_INVALID_VALUE);
	expect_health();
	free(data);
}
END_TEST

static uint64_t round_trips(uint16_t op)
{
	return lane->counts[op].round_trips;
}

/* In however many pieces, on the way out a transfer is waited for once, on the way in never. */
START_TEST(counts)
{
	uint64_t len = 7 * MIB, address = allocate(len);
	uint8_t *data = filled(len, 3);

	ck_assert_int_eq(fgv_copy_in(lane, address, data, len, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(round_trips(FGV_OP_COPY_IN_BULK), 0);
	ck_assert_uint_gt(lane->counts[FGV_OP_COPY_IN_BULK].requests, 6);
	ck_assert_int_eq(fgv_copy_out(lane, data, address, len, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(round_trips(FGV_OP_COPY_OUT), 1);
	ck_assert_uint_gt(lane->counts[FGV_OP_COPY_OUT].requests, 6);
	free(data);
}
END_TEST

/* A host that gives nothing back is waited for where there is no chunk left, until it ends. */
START_TEST(lent_chunks)
{
	struct fgv_chunk chunks[FGV_STAGING_CHUNKS_MAX], more;

	for (unsigned i = 0; i < FGV_STAGING_CHUNKS_MAX; i++) {
		ck_assert(fgv_staging_get(lane, true, &chunks[i]));
		fgv_staging_lend(&chunks[i]);
	}
	ck_assert(!fgv_staging_get(lane, false, &more));
	host_give_back(chunks[5].index, chunks[5].number);
	ck_assert(fgv_staging_get(lane, true, &more));
	ck_assert_uint_eq(more.index, chunks[5].index);
	fgv_staging_lend(&more);
	ck_assert_uint_ne(more.number, chunks[5].number);
	fgv_staging_put(&more);
	ck_assert(fgv_staging_get(lane, true, &more));
	ck_assert(fgv_session_end(lane->client, CUDA_ERROR_ILLEGAL_ADDRESS));
	ck_assert(!fgv_staging_get(lane, true, &more));
}
END_TEST

static CUresult forbid(void)
{
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static void *get_chunk(void *chunk)
{
	struct fgv_lane *own;

	ck_assert_int_eq(fgv_lane_enter(&own), CUDA_SUCCESS);
	ck_assert(fgv_staging_get(own, true, chunk));
	fgv_lane_leave(own);
	return NULL;
}

/* A wait for a chunk to be put gets one that was lent instead. */
START_TEST(lent_while_one_waits)
{
	struct fgv_chunk chunks[FGV_STAGING_CHUNKS_MAX], got;
	pthread_t thread;

	for (unsigned i = 0; i < FGV_STAGING_CHUNKS_MAX; i++)
		ck_assert(fgv_staging_get(lane, true, &chunks[i]));
	ck_assert_int_eq(pthread_create(&thread, NULL, get_chunk, &got), 0);
	usleep(20000); /* most likely it waits by then */
	for (unsigned i = 0; i < FGV_STAGING_CHUNKS_MAX; i++)
		fgv_staging_lend(&chunks[i]);
	host_give_back(chunks[7].index, chunks[7].number);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(got.index, chunks[7].index);
}
END_TEST

/* Of what has to be waited for. */
START_TEST(refusals)
{
	uint64_t address = allocate(8 * MIB), len = 8 * MIB;
	uint8_t *data = filled(len, 3);

	fgv_record_forbid(forbid);
	ck_assert_int_eq(fgv_copy_out(lane, data, address, len, 0),
			 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	fgv_record_forbid(NULL);
	expect_health();
	free(data);
}
END_TEST

START_TEST(the_end_of_the_session)
{
	uint64_t address = allocate(8 * MIB), len = 8 * MIB;
	uint8_t *data = filled(len, 3);

	ck_assert(fgv_session_end(lane->client, CUDA_ERROR_ILLEGAL_ADDRESS));
	ck_assert_int_eq(fgv_copy_in(lane, address, data, len, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fgv_copy_out(lane, data, address, len, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
	free(data);
}
END_TEST

struct cancelled {
	pthread_t thread;
	uint64_t address;
	uint8_t *data;
	uint32_t copies; /* atomic */
};

static void *copy_for_ever(void *arg)
{
	struct cancelled *cancelled = arg;
	struct fgv_lane *own;

	/* No assertion, which would be cancelled as well. */
	if (fgv_lane_enter(&own))
		return NULL;
	while (true) {
		fgv_copy_in(own, cancelled->address, cancelled->data, 4 * MIB, 0);
		fgv_copy_out(own, cancelled->data, cancelled->address, 4 * MIB, 0);
		__atomic_fetch_add(&cancelled->copies, 1, __ATOMIC_RELAXED);
		pthread_testcancel();
	}
	return NULL;
}

/* Most likely in a copy, which is finished nevertheless. */
START_TEST(cancelled_threads)
{
	struct cancelled cancelled = {.data = filled(4 * MIB, 5), .address = allocate(4 * MIB)};

	for (int i = 0; i < 5; i++) {
		cancelled.copies = 0;
		ck_assert_int_eq(pthread_create(&cancelled.thread, NULL, copy_for_ever, &cancelled),
				 0);
		while (!__atomic_load_n(&cancelled.copies, __ATOMIC_RELAXED))
			sched_yield();
		ck_assert_int_eq(pthread_cancel(cancelled.thread), 0);
		ck_assert_int_eq(pthread_join(cancelled.thread, NULL), 0);
		expect_health();
	}
	free(cancelled.data);
}
END_TEST

static void add_tests(Suite *suite, const char *name, void (*setup)(void))
{
	TCase *tests = tcase_create(name);

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, rows, 0, FGV_ARRAY_LEN(lengths));
	tcase_add_loop_test(tests, boxes, 0, FGV_ARRAY_LEN(shapes));
	tcase_add_test(tests, the_order_of_a_thread);
	tcase_add_test(tests, threads_share);
	tcase_add_test(tests, failures);
	tcase_add_test(tests, counts);
	tcase_add_test(tests, lent_chunks);
	tcase_add_test(tests, lent_while_one_waits);
	tcase_add_test(tests, refusals);
	tcase_add_test(tests, the_end_of_the_session);
	tcase_add_test(tests, cancelled_threads);
	suite_add_tcase(suite, tests);
}

int main(void)
{
	Suite *suite = suite_create("client: transfers");
	SRunner *runner;
	int failed;

	add_tests(suite, "alone", setup_alone);
	add_tests(suite, "helped", setup_helped);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
