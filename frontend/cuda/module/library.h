/*
 * Libraries: code that the program has at run time, as PTX, as machine code or as a fat binary,
 * and loads by itself. Each is a module of which a copy is kept, so that the program need not.
 *
 * CUDA_ERROR_INVALID_HANDLE for what is no library, CUDA_ERROR_INVALID_VALUE for what is missing
 * among the arguments, CUDA_ERROR_NOT_FOUND for a name that it does not have.
 *
 * A CUmodule is a library by another name, and a CUfunction a kernel.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_LIBRARY_H
#define FGV_CUDA_LIBRARY_H

#include <cuda.h>

struct fgv_kernel;

/* @code: PTX with a NUL, a cubin, or a fat binary or its wrapper. CUDA_ERROR_INVALID_IMAGE. */
CUresult fgv_library_load_data(CUlibrary *library, const void *code);
CUresult fgv_library_load_file(CUlibrary *library, const char *name);
/* Its kernels are none any more. */
CUresult fgv_library_unload(CUlibrary library);

CUresult fgv_library_get_kernel(CUkernel *kernel, CUlibrary library, const char *name);
/* Of a variable; one of the results may be NULL. */
CUresult fgv_library_get_global(CUdeviceptr *address, size_t *bytes, CUlibrary library,
				const char *name);
CUresult fgv_library_get_managed(CUdeviceptr *address, size_t *bytes, CUlibrary library,
				 const char *name);

CUresult fgv_library_count_kernels(unsigned *count, CUlibrary library);
/* As many as there are, but @room at most. */
CUresult fgv_library_list_kernels(CUkernel *kernels, unsigned room, CUlibrary library);

/* CUDA_SUCCESS if it is one. */
CUresult fgv_library_check(CUlibrary library);

/* The library that @kernel is of; that of the program's own kernels is not for it to unload. */
CUresult fgv_library_of(struct fgv_kernel *kernel, CUlibrary *library);

#endif
