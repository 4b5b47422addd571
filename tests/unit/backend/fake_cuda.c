/*
 * Plays libcuda.so.1 for tests of the daemon, which asks it for its devices: there are two,
 * or none where FAKE_CUDA says "none"; where it says "pageable", their kernels reach all memory
 * of the process. A program that could meet somebody else's MPS server
 * finds that there is no driver to speak to.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/cuda_driver.h"

/* Expands the names of cuda.h, as cuda_driver.c does. */
#define TEXT_OF(symbol) #symbol
#define NAME_OF(symbol) TEXT_OF(symbol)

static CUresult start(void)
{
	const char *mps = getenv("CUDA_MPS_PIPE_DIRECTORY");
	const char *mode = getenv("FAKE_CUDA");

	if (!mps || strcmp(mps, "/dev/null") != 0)
		return CUDA_ERROR_MPS_CONNECTION_FAILED;
	return mode && !strcmp(mode, "none") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

/* @second is a number, as the call has it. */
static CUresult tell_attribute(int *value, const void *second)
{
	const char *mode = getenv("FAKE_CUDA");

	*value = mode && !strcmp(mode, "pageable") &&
		 (uintptr_t)second == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
	return CUDA_SUCCESS;
}

static CUresult answer(const char *name, void *first, void *second)
{
	if (!strcmp(name, "cuInit"))
		return start();
	if (!strcmp(name, "cuDeviceGetCount"))
		*(int *)first = 2;
	else if (!strcmp(name, "cuDeviceGet"))
		*(CUdevice *)first = (CUdevice)(intptr_t)second;
	else if (!strcmp(name, "cuDeviceGetPCIBusId"))
		strcpy(first, "0000:1b:00.0");
	else if (!strcmp(name, "cuDeviceGetAttribute"))
		return tell_attribute(first, second);
	else if (!strcmp(name, "cuGetErrorName"))
		*(const char **)second = "an error of the test's";
	else
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

/* One for each name, by which alone it is found: cuda.h declares those otherwise. */
#define FAKE_AS(field, name)                                                                       \
	__attribute__((visibility("default")))                                                     \
	CUresult fake_##field(void *first, void *second) __asm__(name);                            \
	CUresult fake_##field(void *first, void *second)                                           \
	{                                                                                          \
		return answer(name, first, second);                                                \
	}
#define FAKE(field, symbol) FAKE_AS(field, NAME_OF(symbol))

FGV_CUDA_SYMBOLS(FAKE)
FAKE_AS(event_elapsed, "cuEventElapsedTime")
