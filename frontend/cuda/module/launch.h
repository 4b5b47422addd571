/*
 * Launching kernels. CUDA_ERROR_INVALID_VALUE for what a configuration can't be, and the more
 * special codes that CUDA has; CUDA_ERROR_NOT_FOUND where the module does not have the kernel.
 *
 * A launch is posted; what goes wrong on the GPU is told later.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_LAUNCH_H
#define FGV_CUDA_LAUNCH_H

#include "frontend/cuda/module/launch_config.h"

struct fgv_kernel;

/* Everything but its event. @kernel is one (fgv_registry_kernel()). */
CUresult fgv_launch_run(struct fgv_kernel *kernel, const struct fgv_launch *launch);

/* As cuLaunchKernelEx(), of @args and @extra one. */
CUresult fgv_launch_extended(struct fgv_kernel *kernel, const CUlaunchConfig *config, void **args,
			     void **extra);

#endif
