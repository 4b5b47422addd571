/*
 * cuGetProcAddress(): by name, version and default stream.
 */
#include "driver.h"

#include <dlfcn.h>

static void *get(const char *name, int version, cuuint64_t flags,
		 CUdriverProcAddressQueryResult wanted)
{
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)99;
	void *found = &status;

	CUDA(cuGetProcAddress(name, &found, version, flags, &status));
	if (status != wanted)
		FAIL("%s %d: status %d, not %d", name, version, status, wanted);
	EXPECT(!found == (wanted != CU_GET_PROC_ADDRESS_SUCCESS));
	return found;
}

static void *have(const char *name, int version, cuuint64_t flags)
{
	return get(name, version, flags, CU_GET_PROC_ADDRESS_SUCCESS);
}

static void *symbol(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!found)
		FAIL("there is no symbol %s", name);
	return found;
}

/* The newest form that the version knows. */
static void versions(void)
{
	EXPECT(have("cuMemAlloc", 12000, 0) == symbol("cuMemAlloc_v2"));
	EXPECT(have("cuCtxGetDevice", 12000, 0) == symbol("cuCtxGetDevice"));
	EXPECT(have("cuCtxGetDevice", 13000, 0) == symbol("cuCtxGetDevice_v2"));
	EXPECT(have("cuEventElapsedTime", 12070, 0) == symbol("cuEventElapsedTime"));
	EXPECT(have("cuEventElapsedTime", 12080, 0) == symbol("cuEventElapsedTime_v2"));
	EXPECT(have("cuDeviceGetUuid", 11000, 0) == symbol("cuDeviceGetUuid"));
	EXPECT(have("cuDeviceGetUuid", 13000, 0) == symbol("cuDeviceGetUuid_v2"));
	EXPECT(have("cuGetProcAddress", 11030, 0) == symbol("cuGetProcAddress"));
	EXPECT(have("cuGetProcAddress", 12000, 0) == symbol("cuGetProcAddress_v2"));
	get("cuCtxGetId", 11080, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

static void streams(void)
{
	const cuuint64_t legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
	const cuuint64_t thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	EXPECT(have("cuStreamSynchronize", 13000, legacy) == symbol("cuStreamSynchronize"));
	EXPECT(have("cuStreamSynchronize", 13000, 0) == symbol("cuStreamSynchronize"));
	EXPECT(have("cuStreamSynchronize", 13000, thread) == symbol("cuStreamSynchronize_ptsz"));
	get("cuStreamSynchronize", 5000, thread, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	EXPECT(have("cuDeviceGet", 13000, thread) == symbol("cuDeviceGet"));
}

/* Drivers have these, whether or not their system has what they are for. */
static void interop(void)
{
	const cuuint64_t thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	EXPECT(have("cuIpcGetMemHandle", 13000, 0) == symbol("cuIpcGetMemHandle"));
	EXPECT(have("cuIpcOpenMemHandle", 13000, 0) == symbol("cuIpcOpenMemHandle_v2"));
	EXPECT(have("cuGraphicsMapResources", 13000, thread) ==
	       symbol("cuGraphicsMapResources_ptsz"));
}

static void mistakes(void)
{
	CUdriverProcAddressQueryResult status;
	void *found;

	get("", 0, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	get("cuNoSuchFunction", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	get("cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	get("cuzzz", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuGetProcAddress("cuInit", &found, 99000, 0, &status));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuGetProcAddress("cuInit", &found, 12000, 8, &status));
}

/* The form of CUDA 11, which tells an unknown name by its code. */
static void old_form(void)
{
	CUresult (*lookup)(const char *, void **, int, cuuint64_t) =
		(CUresult(*)(const char *, void **, int, cuuint64_t))symbol("cuGetProcAddress");
	void *found = &lookup;

	EXPECT_CODE(CUDA_ERROR_NOT_FOUND, lookup("cuNoSuchFunction", &found, 11030, 0));
	EXPECT(found == &lookup);
	CUDA(lookup("cuMemAlloc", &found, 11030, 0));
	EXPECT(found == symbol("cuMemAlloc_v2"));
}

/* All of this works without cuInit(). */
int main(void)
{
	versions();
	streams();
	interop();
	mistakes();
	old_form();
	return 0;
}
