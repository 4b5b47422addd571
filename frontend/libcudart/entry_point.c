/*
 * The driver's functions by their names. They are libcuda's, which a program that has this library
 * may not have loaded: it lies in the same folder, unless it was left out when FairGV was built.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "frontend/cuda/context/ctx.h"
#include "frontend/libcudart/cudart.h"

/* Not declared by the header, or only for programs with a default stream per thread. */
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
					 unsigned long long flags,
					 enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
						  unsigned version, unsigned long long flags,
						  enum cudaDriverEntryPointQueryResult *status);

typedef CUresult get_proc_address(const char *symbol, void **function, int version,
				  cuuint64_t flags, CUdriverProcAddressQueryResult *status);

static struct {
	pthread_once_t once;
	get_proc_address *get; /* NULL: there is no such library */
} driver = {.once = PTHREAD_ONCE_INIT};

/*
 * Beside this library, so that it is never NVIDIA's. As the runtime initializes the driver, there
 * need be no cuInit(); where that fails, the driver's functions say so.
 */
static void load(void)
{
	char path[4096];
	const char *slash;
	void *library, *address;
	Dl_info own;

	if (!dladdr(&driver, &own) || !(slash = strrchr(own.dli_fname, '/')))
		return;
	if (snprintf(path, sizeof(path), "%.*s/libcuda.so.1", (int)(slash - own.dli_fname),
		     own.dli_fname) >= (int)sizeof(path))
		return;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	address = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	/* A conversion that POSIX allows, not ISO C. */
	memcpy(&driver.get, &address, sizeof(address));
	if (driver.get)
		fgv_ctx_init();
}

_Static_assert((int)cudaEnablePerThreadDefaultStream ==
		       (int)CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
	       "flags are the driver's");
_Static_assert((int)cudaDriverEntryPointVersionNotSufficent ==
		       (int)CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
	       "and so are the answers");

/* Where the program does not ask how its question ended, an answer that is none is an error. */
static cudaError_t find(const char *symbol, void **function, unsigned version,
			unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CUresult res = CUDA_SUCCESS;

	if (!symbol || !*symbol || !function)
		return cudaErrorInvalidValue;
	*function = NULL;
	pthread_once(&driver.once, load);
	if (driver.get)
		res = driver.get(symbol, function, (int)version, flags, &found);
	if (res == CUDA_ERROR_INVALID_VALUE)
		return cudaErrorInvalidValue;
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	return found == CU_GET_PROC_ADDRESS_SUCCESS || status ? cudaSuccess
							      : cudaErrorSymbolNotFound;
}

FGV_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(
	const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return fgv_error_set(find(symbol, funcPtr, cudaVersion, flags, driverStatus));
}

FGV_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(
	const char *symbol, void **function, unsigned version, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *status)
{
	if (flags == cudaEnableDefault)
		flags = cudaEnablePerThreadDefaultStream;
	return cudaGetDriverEntryPointByVersion(symbol, function, version, flags, status);
}

FGV_EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function,
					       unsigned long long flags,
					       enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

FGV_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
						    unsigned long long flags,
						    enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion_ptsz(symbol, function, CUDART_VERSION, flags,
						     status);
}
