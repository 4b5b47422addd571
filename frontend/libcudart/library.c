/*
 * Libraries, and the runtime's options for loading them.
 */
#include "frontend/cuda/module/library.h"

#include "frontend/libcudart/cudart.h"

/* That the code is kept unchanged is no more than a promise; what else there is says what to do. */
static cudaError_t check(const cudaLibrary_t *library, const void *source, unsigned jit_count,
			 const enum cudaLibraryOption *options, unsigned count)
{
	if (!library || !source)
		return cudaErrorInvalidValue;
	if (jit_count)
		return FGV_NOT_SUPPORTED("options of the compiler in cudaLibraryLoadData");
	if (count && !options)
		return cudaErrorInvalidValue;
	for (unsigned i = 0; i < count; i++) {
		if (options[i] != cudaLibraryBinaryIsPreserved)
			return FGV_NOT_SUPPORTED("options of cudaLibraryLoadData");
	}
	return cudaSuccess;
}

/* A library and a kernel of the runtime are the driver's. */
static CUlibrary *as_library(cudaLibrary_t *library)
{
	return (CUlibrary *)library;
}

FGV_EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
					   enum cudaJitOption *jitOptions, void **jitOptionsValues,
					   unsigned int numJitOptions,
					   enum cudaLibraryOption *libraryOptions,
					   void **libraryOptionValues,
					   unsigned int numLibraryOptions)
{
	cudaError_t error = check(library, code, numJitOptions, libraryOptions, numLibraryOptions);

	(void)jitOptions, (void)jitOptionsValues, (void)libraryOptionValues;
	if (!error)
		error = fgv_error_from(fgv_library_load_data(as_library(library), code));
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
					       enum cudaJitOption *jitOptions,
					       void **jitOptionsValues, unsigned int numJitOptions,
					       enum cudaLibraryOption *libraryOptions,
					       void **libraryOptionValues,
					       unsigned int numLibraryOptions)
{
	cudaError_t error =
		check(library, fileName, numJitOptions, libraryOptions, numLibraryOptions);

	(void)jitOptions, (void)jitOptionsValues, (void)libraryOptionValues;
	if (!error)
		error = fgv_error_from(fgv_library_load_file(as_library(library), fileName));
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	return FGV_RESULT(fgv_library_unload((CUlibrary)library));
}

FGV_EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library,
					    const char *name)
{
	return FGV_RESULT(fgv_library_get_kernel((CUkernel *)pKernel, (CUlibrary)library, name));
}

FGV_EXPORT cudaError_t cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library,
					    const char *name)
{
	return FGV_RESULT(fgv_library_get_global((CUdeviceptr *)(void *)dptr, bytes,
						 (CUlibrary)library, name));
}

FGV_EXPORT cudaError_t cudaLibraryGetManaged(void **dptr, size_t *bytes, cudaLibrary_t library,
					     const char *name)
{
	return FGV_RESULT(fgv_library_get_managed((CUdeviceptr *)(void *)dptr, bytes,
						  (CUlibrary)library, name));
}

FGV_EXPORT cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
	return FGV_RESULT(fgv_library_count_kernels(count, (CUlibrary)lib));
}

FGV_EXPORT cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels,
						   cudaLibrary_t lib)
{
	return FGV_RESULT(
		fgv_library_list_kernels((CUkernel *)kernels, numKernels, (CUlibrary)lib));
}

/* Functions that run on both sides are of GPUs that read the program's own memory. */
FGV_EXPORT cudaError_t cudaLibraryGetUnifiedFunction(void **fptr, cudaLibrary_t library,
						     const char *symbol)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (fptr && symbol && fgv_library_check((CUlibrary)library))
		res = CUDA_ERROR_INVALID_HANDLE;
	return FGV_RESULT(res);
}
