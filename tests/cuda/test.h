/*
 * What the CUDA conformance tests share. Each test is an ordinary CUDA program with
 * one scenario; it must pass on a real GPU with NVIDIA's runtime as well as under
 * FairGV, and says only what CUDA promises. It ends with 0, or prints one line that
 * says what was wrong and ends with 1. All of this may be used from any host thread.
 */
#ifndef FGV_TESTS_CUDA_TEST_H
#define FGV_TESTS_CUDA_TEST_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

#include "expect.h"

static inline void test_code(const char *file, int line, const char *call, cudaError_t got,
			     cudaError_t wanted)
{
	if (got != wanted)
		test_fail(file, line, "%s: %s (%d), not %s (%d)", call, cudaGetErrorName(got), got,
			  cudaGetErrorName(wanted), wanted);
}

/* The call must return exactly this code. */
#define EXPECT_CODE(wanted, call) test_code(__FILE__, __LINE__, #call, (call), (wanted))

#define CUDA(call) EXPECT_CODE(cudaSuccess, call)

/* A launch as a statement, and its configuration must have been accepted. */
#define LAUNCH(...)                                                                                \
	do {                                                                                       \
		__VA_ARGS__;                                                                       \
		EXPECT_CODE(cudaSuccess, cudaGetLastError());                                      \
	} while (0)

/* Bytes that differ from place to place and from seed to seed. */
static inline unsigned char test_byte(size_t index, unsigned seed)
{
	return (unsigned char)((index * 2654435761u + seed * 40503u) >> 7);
}

static inline void test_fill(void *memory, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)memory)[i] = test_byte(i, seed);
}

/* The index of the first byte that is not as test_fill() made it, or @bytes. */
static inline size_t test_compare(const void *memory, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (((const unsigned char *)memory)[i] != test_byte(i, seed))
			return i;
	return bytes;
}

/*
 * A kernel that takes a while: one thread, @rounds dependent steps. It ends by itself
 * however slow the device, and writes the result so that it cannot be left out.
 */
static __global__ void test_work(unsigned *result, unsigned rounds)
{
	unsigned value = *result;

	for (unsigned i = 0; i < rounds; i++)
		value = value * 1664525u + 1013904223u;
	*result = value;
}

#endif
