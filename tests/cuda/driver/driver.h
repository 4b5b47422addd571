/*
 * What the tests of the driver API share. Each is an ordinary program with one scenario, linked
 * with libcuda alone; it must pass on a real GPU with NVIDIA's driver as well as under FairGV. It
 * ends with 0, or prints one line that says what was wrong and ends with 1.
 */
#ifndef FGV_TESTS_CUDA_DRIVER_H
#define FGV_TESTS_CUDA_DRIVER_H

#include <cuda.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program; other threads may be in CUDA, so no destructor runs. */
__attribute__((noreturn, format(printf, 3, 4))) static inline void
test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%s:%d: ", file, line);
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
	_Exit(1);
}

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

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

/* The call must return exactly this code. */
#define EXPECT_CODE(wanted, call) test_code(__FILE__, __LINE__, #call, (call), (wanted))

#define CUDA(call) EXPECT_CODE(CUDA_SUCCESS, call)

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			FAIL("not so: %s", #condition);                                            \
	} while (0)

/* Both are compared and shown as long long. */
#define EXPECT_EQ(wanted, value)                                                                   \
	do {                                                                                       \
		long long test_wanted = (long long)(wanted), test_value = (long long)(value);      \
                                                                                                   \
		if (test_wanted != test_value)                                                     \
			FAIL("%s is %lld, not %lld", #value, test_value, test_wanted);             \
	} while (0)

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
