/*
 * What the tests of the facade share: a program's registrations, made by hand, and the
 * host to run against. They are linked with the library as programs are.
 */
#ifndef TEST_FRONTEND_H
#define TEST_FRONTEND_H

#include <check.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/frontend/client/test_client_host.h"

/* What nvcc's start-up code calls. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, void *tid, void *bid, void *block, void *grid,
			    int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
		       size_t size, int constant, int global);

/* A container with a few bytes in it. */
struct test_container {
	uint32_t magic;
	uint16_t version, header_len;
	uint64_t len;
	uint8_t bytes[32];
};
#define TEST_CONTAINER(fill)                                                                       \
	{                                                                                          \
		0xba55ed50, 1, 16, 32,                                                             \
		{                                                                                  \
			[0 ... 31] = (fill)                                                        \
		}                                                                                  \
	}

struct test_wrapper {
	uint32_t magic, version;
	const void *data;
	const void *more;
};

static struct test_container test_container = TEST_CONTAINER(7);
static struct test_wrapper test_wrapper = {0x466243b1, 1, &test_container, NULL};

/* What stands for kernels and a variable in a program. */
static char kernel_empty[1], kernel_add[1], kernel_big[1], kernel_absent[1];
static char not_a_kernel[1] __attribute__((unused));
static char variable_table[64] __attribute__((unused));
static void **test_module;

static inline void register_program(void)
{
	char *const hosts[] = {kernel_empty, kernel_add, kernel_big, kernel_absent};
	const char *const names[] = {"empty", "add", "big", "absent"};

	test_module = __cudaRegisterFatBinary(&test_wrapper);
	for (int i = 0; i < 4; i++)
		__cudaRegisterFunction(test_module, hosts[i], NULL, names[i], -1, NULL, NULL, NULL,
				       NULL, NULL);
	__cudaRegisterVar(test_module, variable_table, NULL, "table", 0, 64, 0, 0);
	__cudaRegisterFatBinaryEnd(test_module);
}

/* Requests so far that the client has waited for. */
static inline uint64_t round_trips(void)
{
	uint64_t sum = 0;

	for (int op = 0; op <= FGV_OP_MAX; op++) {
		if (fgv_op_infos[op].call)
			sum += HOST_GET(requests[op]);
	}
	return sum;
}

static inline void setup(void)
{
	host_init();
	host_be_h200();
	host_start();
	register_program();
}

static inline void teardown(void)
{
	ck_assert_uint_eq(host.violations, 0);
	host_stop();
}

static inline cudaError_t launch(const char *kernel, dim3 grid, dim3 block, size_t shared)
{
	void *p = NULL;
	int n = 0;
	char c = 0;
	void *args[] = {&p, &n, &c};

	return cudaLaunchKernel(kernel, grid, block, args, shared, NULL);
}

static inline dim3 of(unsigned x, unsigned y, unsigned z)
{
	return (dim3){x, y, z};
}

/* The call's code, which must also be the thread's last error, then taken from it. */
#define EXPECT(call, code)                                                                         \
	do {                                                                                       \
		ck_assert_int_eq((call), (code));                                                  \
		ck_assert_int_eq(cudaPeekAtLastError(), (code));                                   \
		ck_assert_int_eq(cudaGetLastError(), (code));                                      \
		ck_assert_int_eq(cudaGetLastError(), cudaSuccess);                                 \
	} while (0)

static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
