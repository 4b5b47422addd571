/*
 * A vGPU process charges what takes the GPU's memory, whatever it is: before it is taken, as much
 * as it takes, and gives back just that.
 */
#include <check.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "softgpu/softgpu.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define MIB (1024ull * 1024)

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static uint64_t used_bytes(void)
{
	return __atomic_load_n(&vgpu.accounts->sessions[2].memory_bytes, __ATOMIC_SEQ_CST);
}

static void set_quota(uint64_t bytes)
{
	__atomic_store_n(&vgpu.allowance->memory_bytes, bytes, __ATOMIC_SEQ_CST);
}

/* --- Limits of the context ----------------------------------------------------- */

static uint32_t set_limit(CUlimit limit, uint64_t value)
{
	struct fgv_limit_set_request request = {.limit = limit, .value = value};

	return vgpu_call(&vgpu, 0, FGV_OP_LIMIT_SET, &request, sizeof(request), NULL);
}

/* In steps of a byte, of which each was once given back as 512. */
START_TEST(limits_give_back_what_they_took)
{
	struct fgv_limit_get_request request = {.limit = CU_LIMIT_MALLOC_HEAP_SIZE};
	struct fgv_limit_get_reply first;
	uint64_t memory = vgpu_must_alloc(&vgpu, MIB), before = used_bytes();

	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_LIMIT_GET, &request, sizeof(request), &first),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, first.value + 2 * MIB),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + 2 * MIB);
	for (uint64_t step = 1; step <= 1000; step++)
		ck_assert_uint_eq(
			set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, first.value + 2 * MIB - step),
			CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + 2 * MIB - 1000);
	ck_assert_uint_eq(set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, first.value), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
	ck_assert_uint_eq(set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, first.value + VGPU_QUOTA),
			  CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(used_bytes(), before);
	vgpu_mem_free(&vgpu, memory);
}
END_TEST

/* --- Streams and events -------------------------------------------------------- */

/* Creates of @op until one is refused, which must be for want of memory; how many there were. */
static unsigned create_many(uint16_t op, uint32_t len, uint32_t *last)
{
	uint8_t request[64] = {0};
	union {
		struct fgv_stream_create_reply stream;
		struct fgv_event_create_reply event;
	} reply;
	unsigned count = 0;
	uint32_t status;

	for (;;) {
		status = vgpu_call(&vgpu, 0, op, request, len, &reply);
		if (status != CUDA_SUCCESS)
			break;
		*last = op == FGV_OP_STREAM_CREATE ? reply.stream.stream : reply.event.event;
		ck_assert_uint_lt(++count, 4096);
	}
	ck_assert_uint_eq(status, CUDA_ERROR_OUT_OF_MEMORY);
	return count;
}

/* As many as fit into @room, and one that goes is given back. */
static void expect_charged(uint16_t create, uint32_t len, uint16_t destroy, uint64_t room)
{
	uint64_t before = used_bytes(), full;
	uint32_t last = 0;
	unsigned count;

	set_quota(before + room);
	count = create_many(create, len, &last);
	ck_assert_uint_gt(count, 0);
	full = used_bytes();
	ck_assert_uint_le(full, before + room);
	vgpu_must_post(&vgpu, 0, destroy, &last, sizeof(last));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before + (full - before) / count * (count - 1));
}

START_TEST(streams_are_charged)
{
	_Static_assert(sizeof(struct fgv_stream_destroy_request) == 4, "a handle");
	expect_charged(FGV_OP_STREAM_CREATE, sizeof(struct fgv_stream_create_request),
		       FGV_OP_STREAM_DESTROY, 64 * 1024);
}
END_TEST

START_TEST(events_are_charged)
{
	_Static_assert(sizeof(struct fgv_event_destroy_request) == 4, "a handle");
	expect_charged(FGV_OP_EVENT_CREATE, sizeof(struct fgv_event_create_request),
		       FGV_OP_EVENT_DESTROY, 32 * 1024);
}
END_TEST

/* --- Modules ------------------------------------------------------------------- */

static const char *ptx_with(const char *declarations, const char *body)
{
	static char text[2048];

	snprintf(text, sizeof(text),
		 ".version 8.0\n.target sm_70\n.address_size 64\n%s\n.visible .entry run()\n{\n%s\n"
		 "ret;\n}\n",
		 declarations, body);
	return text;
}

START_TEST(variables_are_charged)
{
	struct fgv_module_unload_request unload;
	uint64_t before = used_bytes();
	uint32_t module;

	ck_assert_uint_eq(
		vgpu_load_ptx(&vgpu, ptx_with(".visible .global .align 4 .b8 big[33554432];", ""),
			      &unload.module),
		CUDA_SUCCESS);
	ck_assert_uint_ge(used_bytes(), before + 32 * MIB);
	ck_assert_uint_lt(used_bytes(), before + 33 * MIB);
	ck_assert_uint_eq(
		vgpu_load_ptx(&vgpu, ptx_with(".global .b32 more[2][1966080];", ""), &module),
		CUDA_SUCCESS);
	ck_assert_uint_eq(
		vgpu_load_ptx(&vgpu, ptx_with(".global .b32 last[1048576];", ""), &module),
		CUDA_ERROR_OUT_OF_MEMORY);
	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_UNLOAD, &unload, sizeof(unload));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_lt(used_bytes(), before + 17 * MIB);
}
END_TEST

/* Whatever it is written as: none of these fits, and none is loaded. */
START_TEST(no_variable_passes_by)
{
	static const char *const declarations[] = {
		".global .b8 big[64424509440];",
		".const.b8 big[0x10000000];",
		".visible.global.align 4.v4.f32 big[4][4][1048576];",
		".global /* .extern */ .b64\nbig /* [1] */ [ 8388608U ] ;",
		".file 1 \"//\" .global .b8 big[67108864];",
		".global .b8 small[1], big[67108864];",
		".global .u32 part<100000000>;",
		".global .b8 big[18446744073709551615][18446744073709551615];",
		".global .align 134217728 .b8 far[1];",
	};
	uint64_t before = used_bytes();
	uint32_t module, status;

	for (size_t i = 0; i < sizeof(declarations) / sizeof(declarations[0]); i++) {
		status = vgpu_load_ptx(&vgpu, ptx_with(declarations[i], ""), &module);
		ck_assert_msg(status == CUDA_ERROR_OUT_OF_MEMORY, "%s: %u", declarations[i],
			      status);
	}
	ck_assert_uint_eq(used_bytes(), before);
}
END_TEST

/* What the GPU does for a module of much data waits for the grant and is paid for. */
START_TEST(much_data_waits_for_the_grant)
{
	struct fgv_module_load_request load = {.image_off = vgpu.window.arena_off,
					       .description_off = vgpu.window.arena_off};
	struct fgv_module_load_reply reply;
	uint32_t module;
	uint64_t used_ns;

	vgpu_grant(&vgpu, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	used_ns = __atomic_load_n(&vgpu.grant->used_ns, __ATOMIC_RELAXED);
	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, vgpu_add_ptx, &module), CUDA_SUCCESS);
	load.image_len = vgpu_put_image(&vgpu, ptx_with(".global .b8 big[33554432];", ""));
	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_LOAD, &load, sizeof(load));
	vgpu_await_wants(&vgpu);
	/* The lanes go on meanwhile, and it has not been loaded. */
	ck_assert_uint_eq(vgpu_call(&vgpu, 1, FGV_OP_STREAM_CREATE,
				    &(struct fgv_stream_create_request){0},
				    sizeof(struct fgv_stream_create_request),
				    &(struct fgv_stream_create_reply){0}),
			  CUDA_SUCCESS);
	ck_assert_ptr_null(fgv_ring_peek(&vgpu.lanes[0].replies));
	ck_assert_uint_lt(used_bytes(), MIB);
	ck_assert_uint_eq(__atomic_load_n(&vgpu.grant->used_ns, __ATOMIC_RELAXED), used_ns);
	vgpu_grant_until_reply(&vgpu, VGPU_SLICE, 0);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
	ck_assert_uint_gt(used_bytes(), 32 * MIB);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	ck_assert_uint_gt(__atomic_load_n(&vgpu.grant->used_ns, __ATOMIC_RELAXED), used_ns);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
}
END_TEST

/* A lane's calls are answered in their order, though one of them waits for the grant. */
START_TEST(load_waits_in_its_lane)
{
	struct fgv_module_load_request load = {.image_off = vgpu.window.arena_off,
					       .description_off = vgpu.window.arena_off};
	struct fgv_module_load_reply reply;
	struct fgv_mem_info_reply info;

	vgpu_grant(&vgpu, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	load.image_len = vgpu_put_image(&vgpu, ptx_with(".global .b8 big[1048576];", ""));
	for (int i = 0; i < 3; i++) {
		vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_LOAD, &load, sizeof(load));
		vgpu_must_post(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0);
	}
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	for (uint64_t i = 1; i <= 3; i++) {
		ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
		ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &info), CUDA_SUCCESS);
		ck_assert_uint_le(info.free, VGPU_QUOTA - i * MIB);
		ck_assert_uint_gt(info.free, VGPU_QUOTA - i * MIB - MIB / 2);
	}
}
END_TEST

/* --- Local memory --------------------------------------------------------------- */

static const char *ptx_with_local(unsigned bytes)
{
	static char body[256];

	snprintf(body, sizeof(body),
		 ".local .align 4 .b8 mine[%u];\n.reg .b64 %%rd<2>;\n.reg .b32 %%r<2>;\n"
		 "mov.u32 %%r1, 7;\nmov.u64 %%rd1, mine;\nst.local.u32 [%%rd1+%u], %%r1;",
		 bytes, bytes - 4);
	return ptx_with("", body);
}

START_TEST(local_memory_is_charged)
{
	uint32_t large = vgpu_must_get(&vgpu, ptx_with_local(256 * 1024), "run");
	uint32_t small = vgpu_must_get(&vgpu, ptx_with_local(4096), "run");
	uint64_t before = used_bytes(), after;

	/* Refused before it runs, which here no memory would keep it from. */
	vgpu_launch(&vgpu, large, 1, NULL, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(used_bytes(), before);
	/* A device of many multiprocessors has room for many threads. */
	set_quota(1ull << 40);
	vgpu_launch(&vgpu, small, 1, NULL, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	after = used_bytes();
	/* At least one multiprocessor's. */
	ck_assert_uint_ge(after - before, 2048 * 3072);
	vgpu_launch(&vgpu, small, 1, NULL, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), after);
	/* The limit of the stack is of the same memory; what was once needed stays. */
	ck_assert_uint_eq(set_limit(CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), after);
	ck_assert_uint_eq(set_limit(CU_LIMIT_STACK_SIZE, 1024), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), after);
}
END_TEST

/* --- Arrays, allocations, contexts ------------------------------------------------ */

START_TEST(small_things_take_a_unit)
{
	uint64_t before = used_bytes(), address = vgpu_must_alloc(&vgpu, 1);
	const uint64_t size[3] = {1, 1, 0};
	uint32_t array;

	ck_assert_uint_eq(used_bytes(), before + SOFTGPU_GRANULE);
	array = vgpu_must_create_array(&vgpu, size, 0, 0);
	ck_assert_uint_eq(used_bytes(), before + 2 * SOFTGPU_GRANULE);
	vgpu_destroy_array(&vgpu, array);
	vgpu_mem_free(&vgpu, address);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
}
END_TEST

/* As the session begins, and until it ends. */
static void start_with_context(uint64_t bytes)
{
	struct fgv_setup setup;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_right_setup(&vgpu, &setup);
	setup.context_bytes = bytes;
	vgpu_send_setup(&vgpu, &setup);
	vgpu_read_welcome(&vgpu);
}

START_TEST(context_is_charged)
{
	start_with_context(5 * MIB);
	ck_assert_uint_eq(vgpu.welcome.status, CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), 5 * MIB);
	vgpu_leave(&vgpu);
}
END_TEST

START_TEST(context_that_does_not_fit)
{
	unsigned lines;

	start_with_context(VGPU_QUOTA + 1);
	ck_assert_uint_eq(vgpu.welcome.status, CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(vgpu.welcome.text, "memory"));
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_charges");
	TCase *tests = tcase_create("vgpu_charges"), *starts = tcase_create("starts");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, limits_give_back_what_they_took);
	tcase_add_test(tests, streams_are_charged);
	tcase_add_test(tests, events_are_charged);
	tcase_add_test(tests, variables_are_charged);
	tcase_add_test(tests, no_variable_passes_by);
	tcase_add_test(tests, much_data_waits_for_the_grant);
	tcase_add_test(tests, load_waits_in_its_lane);
	tcase_add_test(tests, local_memory_is_charged);
	tcase_add_test(tests, small_things_take_a_unit);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(starts, 120);
	tcase_add_test(starts, context_is_charged);
	tcase_add_test(starts, context_that_does_not_fit);
	suite_add_tcase(suite, starts);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
