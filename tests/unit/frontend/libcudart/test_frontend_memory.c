/*
 * Memory, copies and symbols: what arrives where, what is posted and what waited for,
 * and the codes of wrong arguments, which are those that the runtime gave on an H200.
 */
#include "tests/unit/frontend/libcudart/test_frontend.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

static char *device_alloc(size_t size)
{
	void *p = NULL;

	ck_assert_int_eq(cudaMalloc(&p, size), cudaSuccess);
	ck_assert_ptr_ne(p, NULL);
	return p;
}

START_TEST(allocation)
{
	void *p = (void *)1;
	char host_memory[16];
	char *q;
	size_t free_bytes, total;

	EXPECT(cudaMalloc(&p, 0), cudaSuccess);
	ck_assert_ptr_eq(p, NULL);
	EXPECT(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
	EXPECT(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
	EXPECT(cudaMalloc(&p, SIZE_MAX), cudaErrorMemoryAllocation);
	q = device_alloc(4096);
	EXPECT(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
	ck_assert_uint_eq(total, HOST_MEMORY);
	EXPECT(cudaMemGetInfo(NULL, NULL), cudaSuccess);
	EXPECT(cudaFree(NULL), cudaSuccess);
	EXPECT(cudaFree(host_memory), cudaErrorInvalidValue);
	EXPECT(cudaFree(q + 256), cudaErrorInvalidValue);
	EXPECT(cudaFree((void *)5), cudaErrorInvalidValue);
	EXPECT(cudaFree(q), cudaSuccess);
	EXPECT(cudaFree(q), cudaErrorInvalidValue);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.freed_count, 1);
	ck_assert_uint_eq(host.freed[0], (uint64_t)(uintptr_t)q);
}
END_TEST

/* A device that gives addresses where the program has memory is asked again. */
START_TEST(allocation_apart)
{
	char *own = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p;

	ck_assert_ptr_ne(own, MAP_FAILED);
	host_seen();
	for (int i = 0; i < 20; i++)
		host.misfits[i] = (uint64_t)(uintptr_t)own + 256u * (unsigned)i;
	host.misfit_count = 2;
	host_seen();
	p = device_alloc(4096);
	ck_assert_uint_ge((uint64_t)(uintptr_t)p, HOST_VA_BASE);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.freed_count, 2);
	ck_assert_uint_eq(host.freed[1], (uint64_t)(uintptr_t)own + 256);
	/* It is not asked for ever. */
	host.misfit_count = 20;
	host_seen();
	EXPECT(cudaMalloc(&p, 4096), cudaErrorMemoryAllocation);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.freed_count, 18);
	host_seen();
	EXPECT(cudaMemcpy(device_alloc(4096), own, 4096, cudaMemcpyHostToDevice), cudaSuccess);
}
END_TEST

START_TEST(copy_codes)
{
	char h[2048] = {0}, h2[2048] = {0};
	char *p = device_alloc(1024), *q = device_alloc(1 << 22);

	EXPECT(cudaMemcpy(p, h, 1024, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaMemcpy(p, h, 1025, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(p + 1000, h, 25, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(p, h, 16, (enum cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaMemcpy(p, h, 16, (enum cudaMemcpyKind) - 1), cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaMemcpy(p, h, 0, (enum cudaMemcpyKind)5), cudaSuccess);
	EXPECT(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaMemcpy(NULL, h, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(p, NULL, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(NULL, p, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(h, NULL, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(h, p, 1025, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(h2, h, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(h2, h, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(h2, h, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(p, h, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(q, p, 16, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaMemcpy(q, p, 16, cudaMemcpyDeviceToHost), cudaSuccess);
	EXPECT(cudaMemcpy(p, q, 16, cudaMemcpyHostToHost), cudaSuccess);
	EXPECT(cudaMemcpy(q, p, 1025, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(p, h, 1025, cudaMemcpyDefault), cudaErrorInvalidValue);
	EXPECT(cudaMemcpyAsync(p, h, 16, cudaMemcpyHostToDevice, (cudaStream_t)5),
	       cudaErrorInvalidResourceHandle);
	EXPECT(cudaMemcpyAsync(p, h, 0, cudaMemcpyHostToDevice, (cudaStream_t)5), cudaSuccess);
	EXPECT(cudaFree(p), cudaSuccess);
	EXPECT(cudaMemcpy(q, p, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
}
END_TEST

START_TEST(set_codes)
{
	char h[16];
	char *p = device_alloc(1024);

	EXPECT(cudaMemset(p, 1, 1024), cudaSuccess);
	EXPECT(cudaMemset(p, 1, 1025), cudaErrorInvalidValue);
	EXPECT(cudaMemset(NULL, 1, 4), cudaErrorInvalidValue);
	EXPECT(cudaMemset(NULL, 1, 0), cudaSuccess);
	EXPECT(cudaMemset(h, 1, 4), cudaErrorInvalidValue);
	EXPECT(cudaMemsetAsync(p, 1, 4, (cudaStream_t)5), cudaErrorInvalidResourceHandle);
}
END_TEST

/* Around what goes in a slot's first cache line, in the slot, in one message, one piece, and many.
 */
static const size_t lengths[] = {1,	24,    25,     88,     89,	4096,		65535,
				 65536, 65537, 262143, 262145, 1000003, (4u << 20) - 1, 7777777};

START_TEST(bytes_arrive)
{
	size_t len = lengths[_i];
	unsigned char *from = malloc(len + 1), *to = malloc(len + 1);
	char *p = device_alloc(len + 3), *q = device_alloc(len + 3);

	for (size_t i = 0; i < len; i++)
		from[i] = (unsigned char)(i * 2654435761u >> 13);
	memset(to, 0, len + 1);
	to[len] = 0x5a;
	ck_assert_int_eq(cudaMemcpy(p + 1, from, len, cudaMemcpyHostToDevice), cudaSuccess);
	/* The source is the program's again. */
	from[0] ^= 0xff;
	ck_assert_int_eq(cudaMemcpy(q, p + 1, len, cudaMemcpyDeviceToDevice), cudaSuccess);
	ck_assert_int_eq(cudaMemcpy(to, q, len, cudaMemcpyDeviceToHost), cudaSuccess);
	from[0] ^= 0xff;
	ck_assert_mem_eq(from, to, len);
	ck_assert_uint_eq(to[len], 0x5a);
	memset(to, 0, len);
	ck_assert_int_eq(cudaMemcpy(p, from, len, cudaMemcpyDefault), cudaSuccess);
	ck_assert_int_eq(cudaMemcpy(to, p, len, cudaMemcpyDefault), cudaSuccess);
	ck_assert_mem_eq(from, to, len);
	free(from);
	free(to);
}
END_TEST

START_TEST(small_copies_are_posted)
{
	static char h[FGV_DATA_MAX];
	char *p = device_alloc(sizeof(h));
	uint64_t before;

	cudaDeviceSynchronize();
	before = round_trips();
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(cudaMemcpy(p, h, sizeof(h), cudaMemcpyHostToDevice), 0);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(cudaMemset(p, i, 64), 0);
		ck_assert_int_eq(cudaMemcpy(p, p + 64, 64, cudaMemcpyDeviceToDevice), 0);
	}
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	ck_assert_uint_eq(round_trips(), before + 1);
	ck_assert_int_eq(cudaMemcpy(h, p, 128, cudaMemcpyDeviceToHost), 0);
	ck_assert_uint_eq(round_trips(), before + 2);
	ck_assert_int_eq(h[0], 0);
	ck_assert_int_eq(h[64], 0);
}
END_TEST

static uint64_t device_syncs(void)
{
	return HOST_GET(requests[FGV_OP_DEVICE_SYNC]);
}

/* As by CUDA: the program may see what kernels have done, and whether they have. */
START_TEST(frees_wait_for_work)
{
	char *p = device_alloc(64), *q = device_alloc(64), *r = device_alloc(64), byte = 0;
	uint64_t before = device_syncs();

	EXPECT(cudaMemcpy(p, &byte, 1, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaFree(p), cudaSuccess);
	EXPECT(cudaMemset(q, 1, 64), cudaSuccess);
	EXPECT(cudaFree(q), cudaSuccess);
	ck_assert_uint_eq(device_syncs(), before + 1);
	/* Now all is known to be done, as it is when a copy has come out. */
	EXPECT(cudaFree(r), cudaSuccess);
	p = device_alloc(64);
	EXPECT(cudaMemset(p, 1, 64), cudaSuccess);
	EXPECT(cudaMemcpy(&byte, p, 1, cudaMemcpyDeviceToHost), cudaSuccess);
	EXPECT(cudaFree(p), cudaSuccess);
	ck_assert_uint_eq(device_syncs(), before + 1);
}
END_TEST

/* Where a stream is not waited for by the legacy one, that tells of its own work only. */
START_TEST(apart_streams_are_not_forgotten)
{
	char *p = device_alloc(64), byte;
	uint64_t before = device_syncs();
	cudaStream_t stream;

	EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	EXPECT(cudaMemsetAsync(p, 1, 64, stream), cudaSuccess);
	EXPECT(cudaMemcpy(&byte, p, 1, cudaMemcpyDeviceToHost), cudaSuccess);
	EXPECT(cudaFree(p), cudaSuccess);
	ck_assert_uint_eq(device_syncs(), before + 1);
}
END_TEST

START_TEST(copies_wait_for_work)
{
	char *p = device_alloc(64), byte = 1;
	uint64_t before = round_trips();

	EXPECT(cudaMemset(p, 1, 64), cudaSuccess);
	EXPECT(cudaMemcpyAsync(p, &byte, 1, cudaMemcpyHostToDevice, NULL), cudaSuccess);
	ck_assert_uint_eq(round_trips(), before);
	EXPECT(cudaMemcpy(p, &byte, 1, cudaMemcpyHostToDevice), cudaSuccess);
	ck_assert_uint_eq(round_trips(), before + 1);
	EXPECT(cudaMemcpy(p, &byte, 1, cudaMemcpyHostToDevice), cudaSuccess);
	ck_assert_uint_eq(round_trips(), before + 1);
}
END_TEST

static void *memory_of_all;

static void *fill_elsewhere(void *stream)
{
	EXPECT(cudaMemsetAsync(memory_of_all, 1, 4, stream), cudaSuccess);
	return NULL;
}

/* A result that was copied out has come after all that its stream had; until there is more. */
START_TEST(a_stream_that_was_just_waited_for)
{
	cudaStream_t streams[2];
	pthread_t thread;
	char h[4];
	void *p = memory_of_all = device_alloc(4);
	uint64_t asked;

	for (int i = 0; i < 2; i++)
		EXPECT(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
	EXPECT(cudaMemcpyAsync(h, p, 4, cudaMemcpyDeviceToHost, streams[0]), cudaSuccess);
	asked = HOST_GET(requests[FGV_OP_STREAM_SYNC]);
	for (int i = 0; i < 3; i++)
		EXPECT(cudaStreamSynchronize(streams[0]), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_SYNC]), asked);
	/* Of another nothing is known, and after that nothing of the first one. */
	EXPECT(cudaStreamSynchronize(streams[1]), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_SYNC]), asked + 1);
	EXPECT(cudaStreamSynchronize(streams[0]), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_SYNC]), asked + 2);
	EXPECT(cudaStreamSynchronize(streams[0]), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_SYNC]), asked + 2);
	/* Nor when another thread has given it work. */
	pthread_create(&thread, NULL, fill_elsewhere, streams[0]);
	pthread_join(thread, NULL);
	EXPECT(cudaStreamSynchronize(streams[0]), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_SYNC]), asked + 3);
}
END_TEST

START_TEST(host_to_host)
{
	char a[] = "something", b[sizeof(a)] = {0};

	EXPECT(cudaMemcpy(b, a, sizeof(a), cudaMemcpyHostToHost), cudaSuccess);
	ck_assert_str_eq(a, b);
	memset(b, 0, sizeof(b));
	EXPECT(cudaMemcpy(b, a, sizeof(a), cudaMemcpyDefault), cudaSuccess);
	ck_assert_str_eq(a, b);
}
END_TEST

START_TEST(an_address_of_the_gpu_alone)
{
	char h[4] = {1, 2, 3, 4};
	char *p = device_alloc(512);

	/* Inside what the device has, but nothing that was allocated by this process. */
	host_seen();
	host.allocated += 512;
	host_seen();
	EXPECT(cudaMemcpy(p + 512, h, 4, cudaMemcpyHostToDevice), cudaSuccess);
	memset(h, 0, sizeof(h));
	EXPECT(cudaMemcpy(h, p + 512, 4, cudaMemcpyDefault), cudaSuccess);
	ck_assert_int_eq(h[3], 4);
	EXPECT(cudaMemset(p + 1024, 0, 4), cudaErrorInvalidValue);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
}
END_TEST

/* Where the device had memory this program can't have any: such an address is the device's still.
 */
START_TEST(an_address_that_was_freed)
{
	void *place = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p;
	char h[16] = {0};

	ck_assert_ptr_ne(place, MAP_FAILED);
	munmap(place, 4096);
	host_seen();
	host.misfits[0] = (uint64_t)(uintptr_t)place;
	host.misfit_count = 1;
	host_seen();
	EXPECT(cudaMalloc(&p, sizeof(h)), cudaSuccess);
	ck_assert_ptr_eq(p, place);
	EXPECT(cudaFree(p), cudaSuccess);
	HOST_SET(status[FGV_OP_COPY_OUT], CUDA_ERROR_INVALID_VALUE);
	EXPECT(cudaMemcpy(h, p, sizeof(h), cudaMemcpyDefault), cudaErrorInvalidValue);
	HOST_SET(status[FGV_OP_COPY_IN], CUDA_ERROR_INVALID_VALUE);
	EXPECT(cudaMemcpy(p, h, sizeof(h), cudaMemcpyDefault), cudaErrorInvalidValue);
}
END_TEST

START_TEST(symbols)
{
	char h[65] = {0}, back[64], other[4];
	void *address = NULL;
	size_t size = 0;

	h[63] = 9;
	EXPECT(cudaMemcpyToSymbol(variable_table, h, 64, 0, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaMemcpyToSymbol(variable_table, h, 65, 0, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpyToSymbol(variable_table, h, 32, 33, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpyToSymbol(other, h, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
	EXPECT(cudaMemcpyToSymbol(NULL, h, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
	EXPECT(cudaMemcpyToSymbol(variable_table, h, 4, 0, cudaMemcpyDeviceToHost),
	       cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaMemcpyToSymbol(variable_table, h, 4, 0, cudaMemcpyHostToHost),
	       cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaMemcpyToSymbol(variable_table, h, 4, 0, (enum cudaMemcpyKind)5),
	       cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaMemcpyToSymbol(variable_table, h, 0, 0, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaMemcpyToSymbol(variable_table, NULL, 4, 0, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpyFromSymbol(back, variable_table, 64, 0, cudaMemcpyDeviceToHost),
	       cudaSuccess);
	ck_assert_int_eq(back[63], 9);
	EXPECT(cudaMemcpyFromSymbol(back, variable_table, 4, 0, cudaMemcpyHostToDevice),
	       cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaGetSymbolAddress(&address, variable_table), cudaSuccess);
	EXPECT(cudaGetSymbolAddress(&address, NULL), cudaErrorInvalidSymbol);
	EXPECT(cudaGetSymbolAddress(&address, other), cudaErrorInvalidSymbol);
	EXPECT(cudaGetSymbolSize(&size, variable_table), cudaSuccess);
	ck_assert_uint_eq(size, 64);
	EXPECT(cudaFree(address), cudaErrorInvalidValue);
	EXPECT(cudaMemset(address, 0, 64), cudaSuccess);
	EXPECT(cudaMemset(address, 0, 65), cudaErrorInvalidValue);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_GLOBAL_GET]), 1);
}
END_TEST

START_TEST(reset_gives_everything_back)
{
	char *p = device_alloc(1024);
	cudaStream_t stream;
	cudaEvent_t event;

	ck_assert_int_eq(cudaStreamCreate(&stream), 0);
	ck_assert_int_eq(cudaEventCreate(&event), 0);
	ck_assert_int_eq(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), 0);
	EXPECT(cudaDeviceReset(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.freed[0], (uint64_t)(uintptr_t)p);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_DESTROY]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_EVENT_DESTROY]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_UNLOAD]), 1);
	EXPECT(cudaFree(p), cudaErrorInvalidValue);
	EXPECT(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: memory");
	TCase *tests = tcase_create("memory");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, allocation);
	tcase_add_test(tests, allocation_apart);
	tcase_add_test(tests, copy_codes);
	tcase_add_test(tests, set_codes);
	tcase_add_loop_test(tests, bytes_arrive, 0, (int)(sizeof(lengths) / sizeof(lengths[0])));
	tcase_add_test(tests, small_copies_are_posted);
	tcase_add_test(tests, frees_wait_for_work);
	tcase_add_test(tests, apart_streams_are_not_forgotten);
	tcase_add_test(tests, copies_wait_for_work);
	tcase_add_test(tests, a_stream_that_was_just_waited_for);
	tcase_add_test(tests, host_to_host);
	tcase_add_test(tests, an_address_of_the_gpu_alone);
	tcase_add_test(tests, an_address_that_was_freed);
	tcase_add_test(tests, symbols);
	tcase_add_test(tests, reset_gives_everything_back);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
