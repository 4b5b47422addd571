/*
 * What the files of the driver facade share. A symbol of the driver is marked FGV_EXPORT at the
 * start of its definition: that makes it visible, and tablegen.py, which gives every other symbol
 * of the real library a stub, finds it by that.
 *
 * The name of a symbol is written out (cuMemAlloc_v2): with __CUDA_API_VERSION_INTERNAL, which the
 * Makefile defines, cuda.h declares all of them so and gives none another name.
 *
 * Each function checks what it can without the GPU, in the driver's order and with its codes, then
 * hands over to the core (frontend/cuda/). tablegen.py makes the forms for programs with a default
 * stream per thread whose name ends in _ptsz; those in _ptds stand beside the others.
 */
#ifndef FGV_LIBCUDA_DRIVER_H
#define FGV_LIBCUDA_DRIVER_H

#include <cuda.h>
#include <cudaProfiler.h>

#include "frontend/cuda/context/ctx.h"
#include "frontend/cuda/context/errlog.h"

#define FGV_EXPORT __attribute__((visibility("default")))

/* What cuDriverGetVersion() says: the version of CUDA whose functions are here. */
#define FGV_DRIVER_VERSION 13000

/*
 * What @call, of the core, ends with, if the thread has a context to work in; else why not: 3, 201
 * or 709. A failure is logged as the function's at hand.
 */
#define FGV_CALL(call)                                                                             \
	({                                                                                         \
		CUresult ready_res = fgv_driver_ready();                                           \
                                                                                                   \
		fgv_driver_note(ready_res ? ready_res : (call), __func__);                         \
	})

/* The same for what needs no context, but cuInit(). */
#define FGV_CALL_ANYWHERE(call)                                                                    \
	({                                                                                         \
		CUresult ready_res = fgv_ctx_status();                                             \
                                                                                                   \
		fgv_driver_note(ready_res ? ready_res : (call), __func__);                         \
	})

/* What a stream is asked: only a default one needs a context to be the default of. */
#define FGV_CALL_ON(stream, call)                                                                  \
	(fgv_driver_is_default(stream) ? FGV_CALL(call) : FGV_CALL_ANYWHERE(call))

struct fgv_device_info;

/* For fgv_driver_note(); @call stays. */
void fgv_driver_log(CUresult res, const char *call);

/* Logs what the function @call returns, unless all is well. Returns it. */
static inline CUresult fgv_driver_note(CUresult res, const char *call)
{
	if (__builtin_expect(res != CUDA_SUCCESS, 0) && res != CUDA_ERROR_NOT_READY)
		fgv_driver_log(res, call);
	return res;
}

static inline CUresult fgv_driver_ready(void)
{
	struct fgv_ctx *context;

	return fgv_ctx_current(&context);
}

static inline bool fgv_driver_is_default(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/* The description of @device. 3, 101. */
CUresult fgv_driver_device(CUdevice device, const struct fgv_device_info **info);

/* The stream that @stream is for a program with a default stream per thread. */
static inline CUstream fgv_driver_per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* The address of the function for @name; why there is none, as cuGetProcAddress() says it. */
void *fgv_driver_symbol(const char *name, int version, bool per_thread,
			CUdriverProcAddressQueryResult *status);

#endif
