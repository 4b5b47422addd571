/*
 * What the tests of the driver API share. Each is an ordinary program with one scenario, linked
 * with libcuda alone; it must pass on a real GPU with NVIDIA's driver as well as under FairGV. It
 * ends with 0, or prints one line that says what was wrong and ends with 1.
 */
#ifndef FGV_TESTS_CUDA_DRIVER_H
#define FGV_TESTS_CUDA_DRIVER_H

#include <cuda.h>
#include <stdint.h>
#include <string.h>

#include "../expect.h"

static inline const char *test_name(CUresult code)
{
	const char *name;

	return cuGetErrorName(code, &name) ? "no error of CUDA's" : name;
}

static inline void test_code(const char *file, int line, const char *call, CUresult got,
			     CUresult wanted)
{
	if (got != wanted)
		test_fail(file, line, "%s: %s (%d), not %s (%d)", call, test_name(got), got,
			  test_name(wanted), wanted);
}

/* The call must return exactly this code. */
#define EXPECT_CODE(wanted, call) test_code(__FILE__, __LINE__, #call, (call), (wanted))

#define CUDA(call) EXPECT_CODE(CUDA_SUCCESS, call)

/* The first device, and a context of it for this thread. */
static inline CUcontext test_begin(void)
{
	CUcontext context;

	CUDA(cuInit(0));
	CUDA(cuDevicePrimaryCtxRetain(&context, 0));
	CUDA(cuCtxSetCurrent(context));
	return context;
}

#endif
