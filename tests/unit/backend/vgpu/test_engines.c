/*
 * Engines that are granted by themselves, in a vGPU process: each piece of work needs the grant of
 * its own engine, and where others want that, only when its stream has reached it. The test is the
 * schedulers of all three.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define BYTES (1u << 20)

/* In the arena, pinned: data, and behind it the word that ends a kernel. */
#define DATA_OFF (1u << 20)
#define FLAG_OFF (DATA_OFF + BYTES)
#define PINNED	 VGPU_SHARED_ADDRESS

/* Long enough for a process that would do something to do it; nothing fails if it is not. */
#define MOMENT_MS 50

static const char until_ptx[] =
	".version 9.0\n.target sm_75\n.address_size 64\n"
	".visible .entry until(.param .u64 flag)\n{ .reg .b32 %r1; .reg .b64 %rd1;\n"
	".reg .pred %p1; ld.param.u64 %rd1, [flag];\n"
	"$l: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;\n"
	"@%p1 bra $l; ret; }\n";

static struct vgpu vgpu;
static struct vgpu in, out; /* the same process, with these grants */
static uint64_t memory;
static uint32_t *flag;

static void setup(void)
{
	vgpu_spawn(&vgpu);
	vgpu.has_engines = true;
	vgpu_begin(&vgpu);
	in = vgpu_copying(&vgpu, 0);
	out = vgpu_copying(&vgpu, 1);
	memory = vgpu_must_alloc(&vgpu, BYTES);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, PINNED, DATA_OFF, BYTES + 4096), CUDA_SUCCESS);
	flag = vgpu_arena(&vgpu, FLAG_OFF);
	*flag = 0;
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static void copy(uint64_t to, uint64_t from, uint64_t size, uint32_t stream)
{
	struct fgv_copy_device_request request = {
		.to = to, .from = from, .size = size, .stream = stream};

	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_DEVICE, &request, sizeof(request));
}

static void copy_in(uint32_t stream)
{
	copy(memory, PINNED, BYTES, stream);
}

static void copy_out(uint32_t stream)
{
	copy(PINNED, memory, BYTES, stream);
}

static uint32_t sync_stream(uint32_t stream)
{
	struct fgv_stream_sync_request request = {.stream = stream};

	return vgpu_call(&vgpu, 0, FGV_OP_STREAM_SYNC, &request, sizeof(request), NULL);
}

/* A kernel in the legacy stream, until end_kernel(). */
static void start_kernel(void)
{
	const uint64_t args[] = {PINNED + BYTES};

	vgpu_launch(&vgpu, vgpu_must_get(&vgpu, until_ptx, "until"), 1, args, 1);
}

static void end_kernel(void)
{
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
}

static bool asks(const struct vgpu *with)
{
	return __atomic_load_n(&with->grant->wants, __ATOMIC_ACQUIRE);
}

/* That comes after the reply which the copy was waited for with. */
static void await_use(const struct vgpu *with)
{
	for (int ms = 0; !__atomic_load_n(&with->grant->used_ns, __ATOMIC_RELAXED); ms++) {
		ck_assert_int_lt(ms, VGPU_PATIENCE_MS);
		poll(NULL, 0, 1);
	}
}

static uint32_t *data(void)
{
	return vgpu_arena(&vgpu, DATA_OFF);
}

START_TEST(copies_need_their_own_grants)
{
	vgpu_take_grant(&vgpu);
	data()[7] = 77;
	copy_in(0);
	vgpu_await_wants(&in);
	ck_assert(!asks(&vgpu) && !asks(&out));
	vgpu_grant(&in, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(sync_stream(0), CUDA_SUCCESS);
	data()[7] = 0;
	copy_out(0);
	vgpu_await_wants(&out);
	vgpu_grant(&out, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(sync_stream(0), CUDA_SUCCESS);
	ck_assert_uint_eq(data()[7], 77);
	ck_assert(!asks(&vgpu));
	await_use(&in);
	await_use(&out);
}
END_TEST

/* Fills and small copies; as many small ones as the allowance has. */
START_TEST(what_belongs_to_computing)
{
	uint32_t words[2] = {1, 2};

	vgpu_fill(&vgpu, memory, BYTES / 4, 3, 4);
	vgpu_copy_in(&vgpu, memory, words, sizeof(words));
	copy(PINNED, memory, sizeof(words), 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_mem_eq(data(), words, sizeof(words));
	ck_assert(!asks(&in) && !asks(&out));
	for (unsigned i = 0; i < 100000 && !asks(&out); i++)
		copy(PINNED, memory, sizeof(words), 0);
	vgpu_await_wants(&out);
	vgpu_grant(&out, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* A copy behind a kernel is no reason to have an engine; one in another stream is. */
START_TEST(asks_when_its_stream_is_there)
{
	uint32_t other = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);

	start_kernel();
	copy_out(other);
	vgpu_await_wants(&out);
	vgpu_grant(&out, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(sync_stream(other), CUDA_SUCCESS);
	copy_in(0);
	poll(NULL, 0, MOMENT_MS);
	ck_assert(!asks(&in));
	end_kernel();
	vgpu_await_wants(&in);
	vgpu_grant(&in, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* The order goes from one stream to another by events, too. */
START_TEST(events_carry_the_order)
{
	uint32_t other = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	uint32_t event = vgpu_must_create_event(&vgpu);
	struct fgv_stream_wait_event_request wait = {.stream = other, .event = event};

	start_kernel();
	vgpu_record(&vgpu, event, 0);
	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_WAIT_EVENT, &wait, sizeof(wait));
	copy_in(other);
	poll(NULL, 0, MOMENT_MS);
	ck_assert(!asks(&in));
	end_kernel();
	vgpu_await_wants(&in);
	vgpu_grant(&in, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(sync_stream(other), CUDA_SUCCESS);
}
END_TEST

/* What was put behind a kernel while nobody else copied is left there when somebody does. */
START_TEST(gives_back_what_its_streams_have_not_reached)
{
	vgpu_grant(&in, FGV_GRANT_NO_LIMIT);
	start_kernel();
	data()[3] = 33;
	copy_in(0);
	vgpu_await_grant(&in, FGV_GRANT_BUSY);
	poll(NULL, 0, MOMENT_MS);
	vgpu_grant(&in, 0);
	vgpu_await_grant(&in, FGV_GRANT_NONE);
	end_kernel();
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_grant(&out, FGV_GRANT_NO_LIMIT);
	data()[3] = 0;
	copy_out(0);
	ck_assert_uint_eq(sync_stream(0), CUDA_SUCCESS);
	ck_assert_uint_eq(data()[3], 33);
}
END_TEST

/* A stream that is gone before its copies are known to be done. */
START_TEST(streams_may_go)
{
	vgpu_grant(&in, FGV_GRANT_NO_LIMIT);
	for (unsigned i = 0; i < 200; i++) {
		struct fgv_stream_destroy_request destroy = {
			vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING)};

		copy_in(destroy.stream);
		vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	}
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_await_grant(&in, FGV_GRANT_IDLE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engines");
	TCase *tests = tcase_create("grants");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, copies_need_their_own_grants);
	tcase_add_test(tests, what_belongs_to_computing);
	tcase_add_test(tests, asks_when_its_stream_is_there);
	tcase_add_test(tests, events_carry_the_order);
	tcase_add_test(tests, gives_back_what_its_streams_have_not_reached);
	tcase_add_test(tests, streams_may_go);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
