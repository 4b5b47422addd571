/*
 * What the files of the runtime facade share. A function of the runtime is marked
 * FGV_EXPORT at the start of its definition: that makes it visible, and stubgen.py,
 * which gives every other function of the real library a stub, finds it by that.
 *
 * Each checks what it can without the GPU, in CUDA's order and with CUDA's codes (as
 * seen with the real runtime 13.0), then sends operations, and notes an error as the
 * thread's last.
 */
#ifndef FGV_LIBCUDART_CUDART_H
#define FGV_LIBCUDART_CUDART_H

#include <cuda_runtime_api.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/libcudart/errors.h"

#define FGV_EXPORT __attribute__((visibility("default")))

/*
 * cudaErrorNotSupported, counted: for what a function does not have of what it is asked for.
 * @what names it, as a stub's name does a function.
 */
#define FGV_NOT_SUPPORTED(what)                                                                    \
	({                                                                                         \
		static struct fgv_unsupported unsupported_part = {.name = (what)};                 \
                                                                                                   \
		fgv_errlog_unsupported(&unsupported_part);                                         \
		cudaErrorNotSupported;                                                             \
	})

struct fgv_kernel;

/* cudaErrorInvalidDevice unless the session has device @device. */
cudaError_t fgv_device_check(int device);

/* The kernel that @func stands for; why there is none, as CUDA says it. */
cudaError_t fgv_kernel_of(const void *func, struct fgv_kernel **kernel);

/* What the loading of a kernel ended with, as CUDA says it. */
cudaError_t fgv_kernel_error(CUresult res);

/* Of the compiler's own, declared nowhere for C. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
			    int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
		       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
			      int external, size_t size, int constant, int global);
char __cudaInitModule(void **handle);

#endif
