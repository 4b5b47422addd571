/*
 * Host memory that the GPU sees, and pools: what is waited for, what happens where the host
 * has no room at an address, and that nothing is lost where it fails.
 */
#define _GNU_SOURCE
#include "tests/unit/frontend/libcudart/test_frontend.h"

#include <sys/mman.h>
#include <unistd.h>

#define ARENA_PART (30u << 20) /* of the test's window no two fit in */

static void *pinned(size_t bytes)
{
	void *p = NULL;

	ck_assert_int_eq(cudaMallocHost(&p, bytes), cudaSuccess);
	ck_assert_ptr_ne(p, NULL);
	return p;
}

/* Bytes that differ, and whether they are still there. */
static void write_bytes(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 251);
}

static bool has_bytes(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != (uint8_t)(i * 31 + i / 251))
			return false;
	}
	return true;
}

START_TEST(copies_are_posted)
{
	uint8_t *in = pinned(300000), *out = pinned(300000), *device;
	uint64_t before;

	ck_assert_int_eq(cudaMalloc((void **)&device, 300000), cudaSuccess);
	write_bytes(in, 300000);
	memset(out, 0, 300000);
	host_seen();
	before = round_trips();
	EXPECT(cudaMemcpyAsync(device, in, 300000, cudaMemcpyHostToDevice, NULL), cudaSuccess);
	EXPECT(cudaMemcpyAsync(out, device, 300000, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
	ck_assert_uint_eq(round_trips() - before, 0);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	host_seen();
	ck_assert(has_bytes(out, 300000));
	/* What a call without Async has copied is there. */
	memset(out, 0, 300000);
	host_seen();
	before = round_trips();
	EXPECT(cudaMemcpy(out, device, 300000, cudaMemcpyDefault), cudaSuccess);
	ck_assert_uint_eq(round_trips() - before, 1);
	host_seen();
	ck_assert(has_bytes(out, 300000));
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_COPY_OUT]), 0);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_COPY_IN_BULK]), 0);
}
END_TEST

/* Whatever the arena was used for before. */
START_TEST(new_memory_is_zero)
{
	struct cudaDeviceProp properties;
	uint8_t *memory;

	EXPECT(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
	for (int i = 0; i < 3; i++) {
		EXPECT(cudaMallocManaged((void **)&memory, 5000, cudaMemAttachGlobal), cudaSuccess);
		for (int j = 0; j < 5000; j++)
			ck_assert_uint_eq(memory[j], 0);
		write_bytes(memory, 5000);
		EXPECT(cudaFree(memory), cudaSuccess);
		memory = pinned(5000);
		for (int j = 0; j < 5000; j++)
			ck_assert_uint_eq(memory[j], 0);
		write_bytes(memory, 5000);
		EXPECT(cudaFreeHost(memory), cudaSuccess);
	}
}
END_TEST

START_TEST(addresses_that_the_host_lacks)
{
	void *p;

	HOST_SET(status[FGV_OP_HOST_MAP], CUDA_ERROR_ALREADY_MAPPED);
	EXPECT(cudaMallocHost(&p, 4096), cudaErrorMemoryAllocation);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_HOST_MAP]), 16);
	EXPECT(cudaMallocManaged(&p, 4096, cudaMemAttachGlobal), cudaErrorMemoryAllocation);
	HOST_SET(status[FGV_OP_HOST_MAP], CUDA_SUCCESS);
	EXPECT(cudaMallocHost(&p, 4096), cudaSuccess);
	EXPECT(cudaFreeHost(p), cudaSuccess);
}
END_TEST

START_TEST(memory_that_cannot_be_registered)
{
	uint8_t *own =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *shared =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *constant = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t on_stack[256];

	write_bytes(own, 65536);
	EXPECT(cudaHostRegister(shared, 65536, 0), cudaErrorNotSupported);
	EXPECT(cudaHostRegister(on_stack, 256, 0), cudaErrorNotSupported);
	EXPECT(cudaHostRegister(constant, 65536, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostRegister(own, 65536, cudaHostRegisterReadOnly), cudaErrorNotSupported);
	HOST_SET(status[FGV_OP_HOST_MAP], CUDA_ERROR_ALREADY_MAPPED);
	EXPECT(cudaHostRegister(own, 65536, 0), cudaErrorNotSupported);
	HOST_SET(status[FGV_OP_HOST_MAP], CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(cudaHostRegister(own, 65536, 0), cudaErrorMemoryAllocation);
	HOST_SET(status[FGV_OP_HOST_MAP], CUDA_SUCCESS);
	ck_assert(has_bytes(own, 65536));
	EXPECT(cudaHostRegister(own, 65536, 0), cudaSuccess);
	EXPECT(cudaHostRegister(own + 4096, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
	ck_assert(has_bytes(own, 65536));
	EXPECT(cudaHostUnregister(own + 4096), cudaErrorHostMemoryNotRegistered);
	EXPECT(cudaHostUnregister(own), cudaSuccess);
	ck_assert(has_bytes(own, 65536));
	/* It is the program's to give away. */
	ck_assert_int_eq(munmap(own, 65536), 0);
}
END_TEST

/* Of a program that allocates again and again nothing stays behind. */
/* "Out of memory" alone does not say of which. */
START_TEST(says_which_limit_it_was)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	void *first = pinned(ARENA_PART), *second;
	const char *line;
	char text[1024];

	dup2(fd, STDERR_FILENO);
	ck_assert_int_eq(cudaMallocHost(&second, ARENA_PART), cudaErrorMemoryAllocation);
	ck_assert_int_eq(cudaMallocHost(&second, ARENA_PART), cudaErrorMemoryAllocation);
	dup2(before, STDERR_FILENO);
	text[pread(fd, text, sizeof(text) - 1, 0)] = '\0';
	line = strstr(text, "fairgv: warning: no room for 31457280 bytes of pinned or mapped memory");
	ck_assert_msg(line && strstr(line, "key \"window\""), "%s", text);
	ck_assert_ptr_null(strstr(strchr(line, '\n'), "no room"));
	close(before);
	close(fd);
	ck_assert_int_eq(cudaFreeHost(first), cudaSuccess);
}
END_TEST

START_TEST(the_arena_comes_back)
{
	void *own = calloc(1, ARENA_PART), *p, *too_much;

	for (int i = 0; i < 3; i++) {
		EXPECT(cudaMallocHost(&p, ARENA_PART), cudaSuccess);
		EXPECT(cudaMallocHost(&too_much, ARENA_PART), cudaErrorMemoryAllocation);
		EXPECT(cudaFreeHost(p), cudaSuccess);
		EXPECT(cudaMallocManaged(&p, ARENA_PART, cudaMemAttachGlobal), cudaSuccess);
		EXPECT(cudaFree(p), cudaSuccess);
		EXPECT(cudaHostRegister(own, ARENA_PART, 0), cudaSuccess);
		EXPECT(cudaHostUnregister(own), cudaSuccess);
	}
	EXPECT(cudaHostRegister(own, ARENA_PART, 0), cudaSuccess);
	EXPECT(cudaDeviceReset(), cudaSuccess);
	EXPECT(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
	EXPECT(cudaMallocHost(&p, ARENA_PART), cudaSuccess);
	free(own);
}
END_TEST

/* While a stream is captured nothing may wait, and so nothing is freed that has to. */
START_TEST(captures_keep_memory)
{
	uint8_t *own = calloc(1, 10000), *p = pinned(10000);
	cudaStream_t stream;
	cudaGraph_t graph;

	write_bytes(own, 10000);
	write_bytes(p, 10000);
	EXPECT(cudaHostRegister(own, 10000, 0), cudaSuccess);
	ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
	EXPECT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
	EXPECT(cudaFreeHost(p), cudaErrorStreamCaptureUnsupported);
	EXPECT(cudaHostUnregister(own), cudaErrorStreamCaptureUnsupported);
	EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	ck_assert(has_bytes(own, 10000) && has_bytes(p, 10000));
	EXPECT(cudaFreeHost(p), cudaSuccess);
	EXPECT(cudaHostUnregister(own), cudaSuccess);
	ck_assert(has_bytes(own, 10000));
	free(own);
}
END_TEST

START_TEST(pools_keep_what_is_freed)
{
	uint64_t most = UINT64_MAX, before;
	cudaStream_t stream;
	cudaMemPool_t pool;
	void *first, *p;

	ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
	EXPECT(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
	EXPECT(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most), cudaSuccess);
	EXPECT(cudaMallocAsync(&first, 5000, stream), cudaSuccess);
	EXPECT(cudaFreeAsync(first, stream), cudaSuccess);
	before = round_trips();
	for (int i = 0; i < 10; i++) {
		EXPECT(cudaMallocAsync(&p, 4900, stream), cudaSuccess);
		ck_assert_ptr_eq(p, first);
		EXPECT(cudaMemsetAsync(p, 1, 4901, stream), cudaErrorInvalidValue);
		EXPECT(cudaFreeAsync(p, stream), cudaSuccess);
	}
	ck_assert_uint_eq(round_trips() - before, 0);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MEM_FREE]), 0);
	/* Another stream may be ahead of the one that freed it; and little is not worth much. */
	EXPECT(cudaMallocAsync(&p, 5000, NULL), cudaSuccess);
	ck_assert_ptr_ne(p, first);
	EXPECT(cudaFree(p), cudaSuccess);
	EXPECT(cudaMallocAsync(&p, 100, stream), cudaSuccess);
	ck_assert_ptr_ne(p, first);
	EXPECT(cudaFreeAsync(p, stream), cudaSuccess);
	EXPECT(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MEM_FREE]), 3);
	EXPECT(cudaMallocFromPoolAsync(&p, 16, (cudaMemPool_t)&p, stream), cudaErrorInvalidValue);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: host memory and pools");
	TCase *tests = tcase_create("hostmem");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, copies_are_posted);
	tcase_add_test(tests, new_memory_is_zero);
	tcase_add_test(tests, addresses_that_the_host_lacks);
	tcase_add_test(tests, memory_that_cannot_be_registered);
	tcase_add_test(tests, says_which_limit_it_was);
	tcase_add_test(tests, the_arena_comes_back);
	tcase_add_test(tests, captures_keep_memory);
	tcase_add_test(tests, pools_keep_what_is_freed);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
