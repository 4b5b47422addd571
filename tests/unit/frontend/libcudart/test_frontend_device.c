/*
 * Devices, properties, kernels' attributes and occupancy, against what the runtime itself
 * said on an H200; and the codes of wrong questions, which are its codes too.
 */
#include "tests/unit/frontend/libcudart/test_frontend.h"

#include <stddef.h>

#include "tests/unit/frontend/client/test_client_h200.h"

START_TEST(properties_are_those_of_the_runtime)
{
	struct cudaDeviceProp prop;

	memset(&prop, 0xaa, sizeof(prop));
	ck_assert_int_eq(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
	ck_assert_str_eq(prop.name, "test device");
	ck_assert_uint_eq(prop.totalGlobalMem, HOST_MEMORY);
	ck_assert_uint_eq(sizeof(h200_properties),
			  offsetof(struct cudaDeviceProp, reserved) -
				  offsetof(struct cudaDeviceProp, sharedMemPerBlock));
	ck_assert_mem_eq(&prop.sharedMemPerBlock, h200_properties, sizeof(h200_properties));
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_DEVICE_INFO]), 1);
}
END_TEST

START_TEST(attributes_are_those_of_the_runtime)
{
	int value;

	for (int i = 1; i < H200_ATTRIBUTES; i++) {
		ck_assert_int_eq(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)i, 0), 0);
		ck_assert_int_eq(value, h200_attributes[i]);
	}
	EXPECT(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)0, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)148, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr) - 1, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 9), cudaErrorInvalidDevice);
	EXPECT(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0), cudaErrorInvalidValue);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_DEVICE_INFO]), 1);
}
END_TEST

START_TEST(devices)
{
	struct cudaDeviceProp prop;
	int n = -1;

	EXPECT(cudaGetDeviceCount(&n), cudaSuccess);
	ck_assert_int_eq(n, 1);
	EXPECT(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
	EXPECT(cudaGetDevice(&n), cudaSuccess);
	ck_assert_int_eq(n, 0);
	EXPECT(cudaGetDevice(NULL), cudaErrorInvalidValue);
	EXPECT(cudaSetDevice(-1), cudaErrorInvalidDevice);
	EXPECT(cudaSetDevice(1), cudaErrorInvalidDevice);
	EXPECT(cudaSetDevice(0), cudaSuccess);
	EXPECT(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
	EXPECT(cudaGetDeviceProperties(&prop, 99), cudaErrorInvalidDevice);
	EXPECT(cudaInitDevice(0, 0, 0), cudaSuccess);
	EXPECT(cudaInitDevice(99, 0, 0), cudaErrorInvalidDevice);
	EXPECT(cudaInitDevice(0, 3, cudaInitDeviceFlagsAreValid), cudaErrorInvalidValue);
	EXPECT(cudaDriverGetVersion(&n), cudaSuccess);
	ck_assert_int_eq(n, 13000);
	EXPECT(cudaDriverGetVersion(NULL), cudaErrorInvalidValue);
	EXPECT(cudaRuntimeGetVersion(&n), cudaSuccess);
	ck_assert_int_eq(n, CUDART_VERSION);
	EXPECT(cudaRuntimeGetVersion(NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(bus_id)
{
	char text[32];

	EXPECT(cudaDeviceGetPCIBusId(text, 13, 0), cudaSuccess);
	ck_assert_str_eq(text, "0000:06:00.0");
	EXPECT(cudaDeviceGetPCIBusId(text, 12, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetPCIBusId(text, 0, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetPCIBusId(NULL, 13, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetPCIBusId(text, 32, 9), cudaErrorInvalidDevice);
}
END_TEST

START_TEST(device_flags)
{
	unsigned flags = 77;

	EXPECT(cudaGetDeviceFlags(&flags), cudaSuccess);
	ck_assert_uint_eq(flags, 8);
	EXPECT(cudaSetDeviceFlags(1), cudaSuccess);
	cudaGetDeviceFlags(&flags);
	ck_assert_uint_eq(flags, 9);
	EXPECT(cudaSetDeviceFlags(3), cudaErrorInvalidValue);
	EXPECT(cudaSetDeviceFlags(256), cudaErrorInvalidValue);
	EXPECT(cudaSetDeviceFlags(16), cudaSuccess);
	cudaGetDeviceFlags(&flags);
	ck_assert_uint_eq(flags, 24);
	EXPECT(cudaGetDeviceFlags(NULL), cudaErrorInvalidValue);
}
END_TEST

static size_t heap_limit(void)
{
	size_t value = 0;

	EXPECT(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize), cudaSuccess);
	return value;
}

/* The host is asked for a limit once, and again when it may have changed. */
START_TEST(limits_are_asked_for_once)
{
	host.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 800;
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(heap_limit(), 800);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_LIMIT_GET]), 1);
	EXPECT(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1001), cudaSuccess);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(heap_limit(), 1008);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_LIMIT_GET]), 2);
	HOST_SET(status[FGV_OP_LIMIT_SET], CUDA_ERROR_INVALID_VALUE);
	EXPECT(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 48), cudaErrorInvalidValue);
	HOST_SET(status[FGV_OP_LIMIT_SET], CUDA_SUCCESS);
	ck_assert_uint_eq(heap_limit(), 48);
	EXPECT(cudaDeviceReset(), cudaSuccess);
	ck_assert_uint_eq(heap_limit(), 800);
}
END_TEST

START_TEST(function_attributes)
{
	struct cudaFuncAttributes attr;

	host.function_attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = 16384;
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 32768;
	EXPECT(cudaFuncGetAttributes(&attr, NULL), cudaErrorInvalidDeviceFunction);
	EXPECT(cudaFuncGetAttributes(&attr, not_a_kernel), cudaErrorInvalidResourceHandle);
	EXPECT(cudaFuncGetAttributes(&attr, kernel_absent), cudaErrorInvalidDeviceFunction);
	EXPECT(cudaFuncGetAttributes(NULL, kernel_empty), cudaErrorInvalidValue);
	EXPECT(cudaFuncGetAttributes(&attr, kernel_empty), cudaSuccess);
	ck_assert_uint_eq(attr.sharedSizeBytes, 16384);
	ck_assert_int_eq(attr.maxThreadsPerBlock, 1024);
	ck_assert_int_eq(attr.numRegs, 8);
	ck_assert_int_eq(attr.maxDynamicSharedSizeBytes, 32768);
	ck_assert_int_eq(attr.preferredShmemCarveout, -1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_FUNCTION_GET]), 2);
}
END_TEST

#define SHARED_LIMIT (232448 - 16384)

START_TEST(dynamic_shared_memory_opt_in)
{
	const enum cudaFuncAttribute limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
	const enum cudaFuncAttribute carveout = cudaFuncAttributePreferredSharedMemoryCarveout;

	host.function_attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = 16384;
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 32768;
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(32, 1, 1), 32768), cudaSuccess);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(32, 1, 1), 32769), cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(NULL, limit, 1), cudaErrorInvalidDeviceFunction);
	EXPECT(cudaFuncSetAttribute(kernel_empty, (enum cudaFuncAttribute)99, 1),
	       cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(kernel_empty, limit, -1), cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(kernel_empty, limit, SHARED_LIMIT + 1), cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(kernel_empty, limit, SHARED_LIMIT), cudaSuccess);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(32, 1, 1), SHARED_LIMIT), cudaSuccess);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(32, 1, 1), SHARED_LIMIT + 1),
	       cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(kernel_empty, limit, 1000), cudaSuccess);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(32, 1, 1), 1001), cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(kernel_empty, carveout, 101), cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(kernel_empty, carveout, 50), cudaSuccess);
	EXPECT(cudaFuncSetAttribute(kernel_empty, carveout, -1), cudaSuccess);
}
END_TEST

START_TEST(occupancy_is_that_of_the_runtime)
{
	int blocks;

	host.function_attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = h200_occupancy[_i].registers;
	host.function_attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] =
		h200_occupancy[_i].shared_bytes;
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] =
		h200_occupancy[_i].max_threads;
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] =
		h200_occupancy[_i].max_dynamic_shared;
	for (int size = 0; size < H200_SIZES; size++) {
		for (int shared = 0; shared < H200_SHARED; shared++) {
			blocks = -1;
			ck_assert_int_eq(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
						 &blocks, kernel_empty, h200_block_sizes[size],
						 (size_t)h200_shared_bytes[shared]),
					 cudaSuccess);
			ck_assert_msg(blocks == h200_occupancy[_i].blocks[size][shared],
				      "%d threads, %d bytes: %d blocks, not %d",
				      h200_block_sizes[size], h200_shared_bytes[shared], blocks,
				      h200_occupancy[_i].blocks[size][shared]);
		}
	}
}
END_TEST

START_TEST(occupancy_codes)
{
	int blocks = -1;

	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, kernel_add, 256, 0),
	       cudaErrorInvalidValue);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, not_a_kernel, 256, 0),
	       cudaErrorInvalidResourceHandle);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_add, 0, 0),
	       cudaErrorInvalidValue);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_add, 2048, 0),
	       cudaSuccess);
	ck_assert_int_eq(blocks, 0);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_add, 32, 100000),
	       cudaSuccess);
	ck_assert_int_eq(blocks, 0);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kernel_add, 32, 0,
								      9),
	       cudaErrorInvalidValue);
}
END_TEST

START_TEST(names_and_texts)
{
	ck_assert_str_eq(cudaGetErrorName(cudaSuccess), "cudaSuccess");
	ck_assert_str_eq(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
	ck_assert_str_eq(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
	ck_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
	ck_assert_str_eq(cudaGetErrorName(cudaErrorStreamCaptureMerge),
			 "cudaErrorStreamCaptureMerge");
	ck_assert_str_eq(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
	ck_assert_str_eq(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: devices");
	TCase *tests = tcase_create("devices");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, properties_are_those_of_the_runtime);
	tcase_add_test(tests, attributes_are_those_of_the_runtime);
	tcase_add_test(tests, devices);
	tcase_add_test(tests, bus_id);
	tcase_add_test(tests, device_flags);
	tcase_add_test(tests, limits_are_asked_for_once);
	tcase_add_test(tests, function_attributes);
	tcase_add_test(tests, dynamic_shared_memory_opt_in);
	tcase_add_loop_test(tests, occupancy_is_that_of_the_runtime, 0,
			    (int)(sizeof(h200_occupancy) / sizeof(h200_occupancy[0])));
	tcase_add_test(tests, occupancy_codes);
	tcase_add_test(tests, names_and_texts);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
