/*
 * Libraries: code that the program loads for all its contexts.
 */
#include "frontend/cuda/module/library.h"

#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/jit.h"

/* Neither changes anything here: the program's own table of functions that run on both sides, and
 * that the code may be read until the library goes, which has no value. */
static CUresult check_options(const CUlibraryOption *options, void *const *values, unsigned count)
{
	if (count && !options)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if ((unsigned)options[i] >= CU_LIBRARY_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
		if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED && !values)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult load_data(CUlibrary *library, const void *code, const struct fgv_jit *jit)
{
	CUresult res = fgv_jit_check(jit);

	return res ? res : fgv_jit_finish(jit, fgv_library_load_data(library, code));
}

FGV_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code,
				      CUjit_option *jitOptions, void **jitOptionsValues,
				      unsigned int numJitOptions, CUlibraryOption *libraryOptions,
				      void **libraryOptionValues, unsigned int numLibraryOptions)
{
	const struct fgv_jit jit = {numJitOptions, jitOptions, jitOptionsValues};
	CUresult res = check_options(libraryOptions, libraryOptionValues, numLibraryOptions);

	return FGV_CALL_ANYWHERE(res ? res : load_data(library, code, &jit));
}

static CUresult load_file(CUlibrary *library, const char *name, const struct fgv_jit *jit)
{
	CUresult res = fgv_jit_check(jit);

	return res ? res : fgv_jit_finish(jit, fgv_library_load_file(library, name));
}

FGV_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
					  CUjit_option *jitOptions, void **jitOptionsValues,
					  unsigned int numJitOptions,
					  CUlibraryOption *libraryOptions,
					  void **libraryOptionValues,
					  unsigned int numLibraryOptions)
{
	const struct fgv_jit jit = {numJitOptions, jitOptions, jitOptionsValues};
	CUresult res = check_options(libraryOptions, libraryOptionValues, numLibraryOptions);

	return FGV_CALL_ANYWHERE(res ? res : load_file(library, fileName, &jit));
}

FGV_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
	return FGV_CALL_ANYWHERE(fgv_library_unload(library));
}

FGV_EXPORT CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	return FGV_CALL_ANYWHERE(fgv_library_get_kernel(pKernel, library, name));
}

FGV_EXPORT CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	return FGV_CALL_ANYWHERE(fgv_library_count_kernels(count, lib));
}

FGV_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels,
					      CUlibrary lib)
{
	return FGV_CALL_ANYWHERE(fgv_library_list_kernels(kernels, numKernels, lib));
}

/* The same by another name. */
static CUresult get_module(CUmodule *module, CUlibrary library)
{
	CUresult res = module ? fgv_library_check(library) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*module = (CUmodule)library;
	return res;
}

FGV_EXPORT CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	return FGV_CALL(get_module(pMod, library));
}

FGV_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
				       const char *name)
{
	return FGV_CALL(fgv_library_get_global(dptr, bytes, library, name));
}

FGV_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
					const char *name)
{
	return FGV_CALL_ANYWHERE(fgv_library_get_managed(dptr, bytes, library, name));
}

/* Functions that run on both sides are of GPUs that read the program's own memory. */
static CUresult get_unified(void **function, CUlibrary library, const char *symbol)
{
	if (function && symbol && fgv_library_check(library))
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_ERROR_INVALID_VALUE;
}

FGV_EXPORT CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	return FGV_CALL_ANYWHERE(get_unified(fptr, library, symbol));
}
