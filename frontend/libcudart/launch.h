/*
 * Launches as the runtime describes them.
 */
#ifndef FGV_LIBCUDART_LAUNCH_H
#define FGV_LIBCUDART_LAUNCH_H

#include <cuda.h>
#include <cuda_runtime_api.h>

/* @config as the core has it; its attributes stay. */
void fgv_launch_convert(const cudaLaunchConfig_t *config, CUlaunchConfig *converted);

#endif
