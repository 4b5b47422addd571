/*
 * A vGPU process and streams that wait for values in memory: what waits and what does not, that the
 * grant is not kept for it, and values that are none. The first lane does the work, the second
 * waits for it.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define DATA_OFF (1 << 20)
#define DATA_LEN (64u << 10)

static struct vgpu vgpu;
static volatile uint32_t *data; /* what the GPU has at VGPU_SHARED_ADDRESS */
static uint32_t first, second;

static void setup(void)
{
	vgpu_start(&vgpu);
	data = vgpu_arena(&vgpu, DATA_OFF);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, DATA_OFF, DATA_LEN),
			  CUDA_SUCCESS);
	first = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	second = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static struct fgv_value_wait_request right_wait(uint32_t at, uint64_t value)
{
	return (struct fgv_value_wait_request){
		.address = VGPU_SHARED_ADDRESS + 4ull * at,
		.value = value,
		.width = 4,
		.flags = CU_STREAM_WAIT_VALUE_EQ,
		.stream = first,
	};
}

static void post_wait(const struct fgv_value_wait_request *request)
{
	vgpu_must_post(&vgpu, 0, FGV_OP_VALUE_WAIT, request, sizeof(*request));
}

static void write_value(uint32_t stream, uint32_t at, uint64_t value, uint32_t width)
{
	struct fgv_value_write_request request = {
		.address = VGPU_SHARED_ADDRESS + 4ull * at,
		.value = value,
		.width = width,
		.stream = stream,
	};

	vgpu_must_post(&vgpu, 0, FGV_OP_VALUE_WRITE, &request, sizeof(request));
}

static uint32_t sync_stream(uint32_t stream)
{
	struct fgv_stream_sync_request request = {.stream = stream};

	return vgpu_call(&vgpu, 1, FGV_OP_STREAM_SYNC, &request, sizeof(request), NULL);
}

/* The value is looked at when the work before it is done, and only its stream waits. */
START_TEST(waits_in_its_stream)
{
	struct fgv_value_wait_request wait = right_wait(0, 7);

	data[0] = 7;
	write_value(first, 0, 6, 4);
	post_wait(&wait);
	write_value(first, 1, 1, 4);
	write_value(second, 2, 0x500000004ull, 8);
	ck_assert_uint_eq(sync_stream(second), CUDA_SUCCESS);
	ck_assert(data[2] == 4 && data[3] == 5);
	ck_assert(data[0] == 6 && data[1] == 0);
	/* Another stream brings it. */
	write_value(second, 0, 7, 4);
	ck_assert_uint_eq(sync_stream(first), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 1);
}
END_TEST

/* A value that does not come keeps the GPU from nobody, and what comes is seen without a bell. */
START_TEST(gives_the_grant_back)
{
	struct fgv_value_wait_request wait = right_wait(0, 7);
	struct fgv_stream_sync_request sync = {.stream = first};

	post_wait(&wait);
	write_value(first, 1, 1, 4);
	vgpu_must_post(&vgpu, 1, FGV_OP_STREAM_SYNC, &sync, sizeof(sync));
	vgpu_await_grant(&vgpu, FGV_GRANT_IDLE);
	vgpu_grant(&vgpu, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	data[0] = 7;
	vgpu_await_wants(&vgpu);
	ck_assert_uint_eq(data[1], 0);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 1);
}
END_TEST

/* What can't be a value, or lies where the guest has shown the GPU nothing. */
START_TEST(knows_no_other_memory)
{
	const struct fgv_value_wait_request right = right_wait(0, 0);
	struct fgv_value_wait_request wrong[8];
	unsigned count = 0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		wrong[i] = right;
	wrong[count++].width = 0;
	wrong[count++].width = 16;
	wrong[count++].address += 2;
	wrong[count++].flags = CU_STREAM_WAIT_VALUE_NOR + 1;
	wrong[count++].address = VGPU_SHARED_ADDRESS + DATA_LEN;
	wrong[count++].address = 0;
	wrong[count++].address = UINT64_MAX - 3;
	wrong[count++].address = vgpu_must_alloc(&vgpu, 64) + (64u << 20);
	for (unsigned i = 0; i < count; i++) {
		post_wait(&wrong[i]);
		ck_assert_msg(vgpu_device_sync(&vgpu) == CUDA_ERROR_INVALID_VALUE, "wait %u", i);
	}
	write_value(first, 0, 1, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	write_value(first, 1, 1, 8);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	write_value(first, DATA_LEN / 4, 1, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	post_wait(&right);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* --- Values in the GPU's own memory -------------------------------------------- */

static uint64_t word; /* there */

static void put_word(uint32_t stream, uint32_t value)
{
	struct fgv_value_write_request request = {
		.address = word, .value = value, .width = 4, .stream = stream};

	vgpu_must_post(&vgpu, 0, FGV_OP_VALUE_WRITE, &request, sizeof(request));
}

static struct fgv_value_wait_request wait_for_word(uint64_t value, uint32_t stream)
{
	return (struct fgv_value_wait_request){
		.address = word,
		.value = value,
		.width = 4,
		.flags = CU_STREAM_WAIT_VALUE_EQ,
		.stream = stream,
	};
}

/* A word of the GPU's memory that holds 0. */
static void make_word(void)
{
	word = vgpu_must_alloc(&vgpu, 64);
	put_word(first, 0);
	ck_assert_uint_eq(sync_stream(first), CUDA_SUCCESS);
}

START_TEST(waits_for_the_gpus_memory)
{
	struct fgv_value_wait_request wait;

	make_word();
	wait = wait_for_word(7, first);
	post_wait(&wait);
	write_value(first, 1, 1, 4);
	put_word(second, 6);
	ck_assert_uint_eq(sync_stream(second), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 0);
	put_word(second, 7);
	ck_assert_uint_eq(sync_stream(first), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 1);
	/* One that is there, of 8 bytes. */
	wait.width = 8;
	wait.flags = CU_STREAM_WAIT_VALUE_AND;
	post_wait(&wait);
	ck_assert_uint_eq(sync_stream(first), CUDA_SUCCESS);
}
END_TEST

/* Many that never come, and one that does: none waits behind another. */
START_TEST(many_words)
{
	struct fgv_value_wait_request wait;

	make_word();
	for (unsigned i = 0; i < 100; i++) {
		wait = wait_for_word(100 + i,
				     vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING));
		post_wait(&wait);
	}
	wait = wait_for_word(7, first);
	post_wait(&wait);
	put_word(second, 7);
	ck_assert_uint_eq(sync_stream(first), CUDA_SUCCESS);
}
END_TEST

/*
 * A value that does not come is looked at while there is work, and then asks for the GPU no more;
 * nor is anything looked at without the grant.
 */
START_TEST(a_word_that_never_comes)
{
	struct fgv_stream_sync_request sync = {.stream = first};
	struct fgv_value_wait_request wait;
	unsigned turns = 0;

	make_word();
	wait = wait_for_word(7, first);
	post_wait(&wait);
	put_word(second, 6);
	vgpu_must_post(&vgpu, 1, FGV_OP_STREAM_SYNC, &sync, sizeof(sync));
	/* A look may have been due when the grant was taken; then it is done in the next turn. */
	do {
		ck_assert_uint_lt(turns++, 100);
		vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
		vgpu_await_grant(&vgpu, FGV_GRANT_IDLE);
		vgpu_grant(&vgpu, 0);
		vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
		poll(NULL, 0, 5);
	} while (__atomic_load_n(&vgpu.grant->wants, __ATOMIC_ACQUIRE));
	/* Work that brings it wants the grant, and then the look has it. */
	put_word(second, 7);
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, NULL), CUDA_SUCCESS);
}
END_TEST

/* An address that was freed, or never was: the wait ends, and the program hears of it. */
START_TEST(a_word_that_is_none)
{
	const uint64_t places[] = {4, 0x123456789000, UINT64_MAX - 3};
	struct fgv_value_wait_request wait;

	make_word();
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		wait = wait_for_word(0, first);
		wait.address = places[i];
		post_wait(&wait);
		write_value(first, 1 + (uint32_t)i, 1, 4);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
		ck_assert_uint_eq(data[1 + i], 1);
	}
	wait = wait_for_word(0, first);
	post_wait(&wait);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* The end comes while a look is on its way. */
START_TEST(ends_while_looking)
{
	struct fgv_value_wait_request wait;

	make_word();
	for (unsigned i = 0; i < 50; i++) {
		wait = wait_for_word(7 + i, i % 2 ? first : second);
		post_wait(&wait);
		put_word(0, i % 7);
	}
}
END_TEST

/* The end comes while streams wait, one of them for two values. */
START_TEST(ends_while_waiting)
{
	struct fgv_value_wait_request wait = right_wait(0, 7);

	post_wait(&wait);
	post_wait(&wait);
	wait.stream = second;
	post_wait(&wait);
	write_value(second, 1, 1, 4);
	vgpu_post(&vgpu, 1, FGV_OP_DEVICE_SYNC, NULL, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_values");
	TCase *tests = tcase_create("vgpu_values");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, waits_in_its_stream);
	tcase_add_test(tests, gives_the_grant_back);
	tcase_add_test(tests, knows_no_other_memory);
	tcase_add_test(tests, ends_while_waiting);
	tcase_add_test(tests, waits_for_the_gpus_memory);
	tcase_add_test(tests, many_words);
	tcase_add_test(tests, a_word_that_never_comes);
	tcase_add_test(tests, a_word_that_is_none);
	tcase_add_test(tests, ends_while_looking);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
