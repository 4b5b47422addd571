/*
 * What the tests of the core share: they call it as a face does, and load none, against the
 * tests' host.
 */
#ifndef TEST_CORE_H
#define TEST_CORE_H

#include <check.h>
#include <cuda.h>
#include <stdlib.h>

#include "tests/unit/frontend/client/test_client_host.h"

/* A fat binary with nothing of interest in it: the host has the kernels. */
static const struct {
	uint32_t magic;
	uint16_t version, header_len;
	uint64_t len;
	uint8_t bytes[32];
} container __attribute__((unused)) = {0xba55ed50, 1, 16, 32, {0}};

static inline void setup(void)
{
	host_init();
	host_be_h200();
	host_start();
}

static inline void teardown(void)
{
	ck_assert_uint_eq(host.violations, 0);
	host_stop();
}

#define EXPECT(call, code) ck_assert_int_eq((call), (code))

/* Two rows of 4 bytes, 8 apart, from the program's memory to 16 apart on the device. */
static inline CUDA_MEMCPY3D rows_in(CUdeviceptr to, const void *from)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = 8,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.dstPitch = 16,
		.WidthInBytes = 4,
		.Height = 2,
		.Depth = 1,
	};
}

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
