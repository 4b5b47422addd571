/*
 * Memory that leaves while a kernel keeps the work behind it waiting: mappings and what is
 * registered of the host. What was queued before still finds it, what comes later does not.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/unit/softgpu/softgpu_kernel.h"

#define MEMORY	(32ull << 20)
#define GRANULE SOFTGPU_CHUNK_GRANULE
#define PAGE	4096

/* Waits until the first word is not 0, then writes 7 to the second one. */
#define WAIT_KERNEL                                                                                \
	HEAD ".visible .entry k(.param .u64 flag, .param .u64 out)\n"                              \
	     "{ .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p1;\n"                              \
	     "ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];\n"                              \
	     "$l: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;\n"                  \
	     "@%p1 bra $l; mov.u32 %r2, 7; st.global.u32 [%rd2], %r2; ret; }\n"

static uint32_t *flag;
static struct softgpu_function *waiter;
static struct softgpu_stream *first, *other;

static void setup(void)
{
	struct softgpu_config config = {
		.va_base = BASE, .memory_bytes = MEMORY, .va_bytes = 2 * MEMORY, .workers = 2};

	ck_assert_int_eq(softgpu_create(&config, &gpu), CUDA_SUCCESS);
	flag = aligned_alloc(PAGE, PAGE);
	memset(flag, 0, PAGE);
	ck_assert_int_eq(softgpu_host_register(gpu, flag, PAGE), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_stream_create(gpu, false, &first), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_stream_create(gpu, false, &other), CUDA_SUCCESS);
	waiter = kernel_load(WAIT_KERNEL);
}

static void teardown(void)
{
	softgpu_stream_destroy(gpu, first);
	softgpu_stream_destroy(gpu, other);
	kernel_teardown();
	free(flag);
}

static uint64_t address_of(const void *at)
{
	return (uint64_t)(uintptr_t)at;
}

static void launch(struct softgpu_stream *stream, uint64_t out)
{
	static const uint32_t one[3] = {1, 1, 1};
	uint64_t in = address_of(flag);
	void *args[] = {&in, &out};

	ck_assert_int_eq(softgpu_launch(gpu, waiter, one, one, 0, stream, args), CUDA_SUCCESS);
}

/* What waits goes on. */
static void let_go(void)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static CUresult fill(uint64_t address, size_t words, struct softgpu_stream *stream)
{
	return softgpu_fill(gpu, address, 4 * words, 5, 4, words, 1, stream);
}

static void map(uint64_t address, uint64_t offset, struct softgpu_chunk *chunk)
{
	ck_assert_int_eq(softgpu_map(gpu, address, GRANULE, offset, chunk), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_show(gpu, address, GRANULE), CUDA_SUCCESS);
}

/* Every way to name an address says that nothing is there. */
static void expect_gone(uint64_t address, size_t bytes)
{
	static char host[2 * PAGE];
	uint64_t device = kernel_alloc(2 * PAGE);
	CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			     .srcHost = host,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstDevice = address,
			     .WidthInBytes = bytes,
			     .Height = 1,
			     .Depth = 1};
	const CUresult says[] = {
		fill(address, bytes / 4, other),
		softgpu_copy_htod(gpu, address, host, bytes, other),
		softgpu_copy_htod_inline(gpu, address, host, bytes, other),
		softgpu_copy_dtoh(gpu, host, address, bytes, other),
		softgpu_copy_dtod(gpu, address, device, bytes, other),
		softgpu_copy_dtod(gpu, device, address, bytes, other),
		softgpu_copy_box(gpu, &box, 0, other),
	};

	for (unsigned i = 0; i < FGV_ARRAY_LEN(says); i++)
		ck_assert_msg(says[i] == CUDA_ERROR_INVALID_VALUE, "%u: %d", i, says[i]);
}

/* Of two mappings that are one, the second leaves. */
START_TEST(a_mapping)
{
	uint64_t address, again, end;
	struct softgpu_chunk *chunk;

	ck_assert_int_eq(softgpu_reserve(gpu, 2 * GRANULE, 0, 0, &address), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_reserve(gpu, GRANULE, 0, 0, &again), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_chunk_create(gpu, 2 * GRANULE, &chunk), CUDA_SUCCESS);
	map(address, 0, chunk);
	map(address + GRANULE, GRANULE, chunk);
	map(again, GRANULE, chunk);
	end = address + 2 * GRANULE;

	launch(first, end - 4);
	ck_assert_int_eq(fill(address + GRANULE - 8, 4, first), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_retire(gpu, address + GRANULE), CUDA_SUCCESS);
	expect_gone(address + GRANULE, 8);
	expect_gone(end - 8, 8);
	expect_gone(address + GRANULE - 8, 16);
	ck_assert_int_eq(fill(address + GRANULE - 16, 4, other), CUDA_SUCCESS);
	let_go();
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);

	ck_assert_uint_eq(*(uint32_t *)(uintptr_t)(again + GRANULE - 4), 7);
	ck_assert_uint_eq(*(uint32_t *)(uintptr_t)(again + 4), 5);
	ck_assert_uint_eq(*(uint32_t *)(uintptr_t)(again + 8), 0);
	softgpu_unmap(gpu, address + GRANULE);
	/* The addresses are free for something else. */
	map(address + GRANULE, 0, chunk);
	ck_assert_int_eq(fill(address + GRANULE - 8, 4, first), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(*(uint32_t *)(uintptr_t)(address + 4), 5);
	softgpu_chunk_destroy(gpu, chunk);
}
END_TEST

/* Kernels that were launched before reach it, those that are launched afterwards don't. */
START_TEST(host_memory)
{
	uint32_t *host = aligned_alloc(PAGE, PAGE);

	memset(host, 0, PAGE);
	ck_assert_int_eq(softgpu_host_retire(gpu, host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	ck_assert_int_eq(softgpu_host_register(gpu, host, PAGE), CUDA_SUCCESS);
	launch(first, address_of(host));
	ck_assert_int_eq(fill(address_of(host + 1), 1, first), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_host_retire(gpu, host), CUDA_SUCCESS);
	expect_gone(address_of(host), 8);
	ck_assert_int_eq(softgpu_host_register(gpu, host, PAGE),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	let_go();
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(host[0], 7);
	ck_assert_uint_eq(host[1], 5);

	launch(other, address_of(host));
	ck_assert_int_eq(kernel_drain(), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(softgpu_host_unregister(gpu, host), CUDA_SUCCESS);
	free(host);
}
END_TEST

/* One that is launched while the memory leaves does not run before that. */
START_TEST(host_memory_under_a_kernel)
{
	uint32_t *host = aligned_alloc(PAGE, PAGE);
	struct softgpu_point before;

	memset(host, 0, PAGE);
	ck_assert_int_eq(softgpu_host_register(gpu, host, PAGE), CUDA_SUCCESS);
	launch(first, address_of(flag + 1));
	ck_assert_int_eq(softgpu_host_retire(gpu, host), CUDA_SUCCESS);
	before = softgpu_point_of_all(gpu);
	launch(other, address_of(host));
	let_go();
	while (softgpu_point_query(gpu, &before) == CUDA_ERROR_NOT_READY)
		usleep(100);
	ck_assert_int_eq(softgpu_host_unregister(gpu, host), CUDA_SUCCESS);
	free(host);
	ck_assert_int_eq(kernel_drain(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("softgpu_leaving");
	TCase *tests = tcase_create("leaving");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_mapping);
	tcase_add_test(tests, host_memory);
	tcase_add_test(tests, host_memory_under_a_kernel);
	suite_add_tcase(suite, tests);
	return kernel_run_suite(suite);
}
