/*
 * Loading: a module is sent to the host when one of its kernels or variables is first used, once,
 * and the kernel or variable asked for, once.
 *
 * CUDA_ERROR_NOT_FOUND where the module lacks it, CUDA_ERROR_INVALID_IMAGE if the image is no good,
 * or the host's error.
 *
 * Threads: any; the lane is the caller's.
 */
#ifndef FGV_CUDA_MODULE_H
#define FGV_CUDA_MODULE_H

#include "frontend/cuda/module/registry.h"

/* What loading ends with where the host has found managed variables first; no code of CUDA's. */
#define FGV_FOUND_MANAGED ((CUresult)-1)

/* Has the host load @module (module_send.c), which it has not yet; the mutex is held. */
CUresult fgv_module_send(struct fgv_lane *lane, struct fgv_module *module);

/* Makes @kernel known to the host, in full. */
CUresult fgv_kernel_load(struct fgv_lane *lane, struct fgv_kernel *kernel);
CUresult fgv_variable_load(struct fgv_lane *lane, struct fgv_variable *variable);

/* The names of its kernels, each with a NUL and @bytes in all; for free(). */
CUresult fgv_module_kernel_names(struct fgv_lane *lane, struct fgv_module *module, char **names,
				 uint64_t *bytes);

/*
 * Of a module with an image (module_managed.c): whether it may have managed variables, of which
 * nobody has told; and registers those that the host has found. It must not be loaded yet.
 */
bool fgv_module_may_have_managed(const struct fgv_module *module);
CUresult fgv_module_add_managed(struct fgv_lane *lane, struct fgv_module *module);

/* Loads @module itself, so that its managed variables have addresses. */
CUresult fgv_module_need(struct fgv_lane *lane, struct fgv_module *module);

/*
 * The same with a lane of its own, on the device that the thread works on; *@variable becomes what
 * it is there.
 */
CUresult fgv_module_enter(struct fgv_module *module);
CUresult fgv_variable_enter(struct fgv_variable **variable);

/* The same, but cheap where it is known already. */
static inline CUresult fgv_kernel_need(struct fgv_lane *lane, struct fgv_kernel *kernel)
{
	/* Pairs with the release in fgv_kernel_load(). */
	if (__builtin_expect(__atomic_load_n(&kernel->ready, __ATOMIC_ACQUIRE) != 0, 1))
		return CUDA_SUCCESS;
	return fgv_kernel_load(lane, kernel);
}

static inline CUresult fgv_variable_need(struct fgv_lane *lane, struct fgv_variable *variable)
{
	/* Pairs with the release in fgv_variable_load(). */
	if (__atomic_load_n(&variable->ready, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	return fgv_variable_load(lane, variable);
}

#endif
