/*
 * What a module will take of the GPU's memory, read from its image before the driver sees it.
 * Which of the forms in an image the driver will take is the driver's to decide, so the largest
 * counts of those that it may take.
 *
 * Threads: no state.
 */
#ifndef FGV_BACKEND_GPU_IMAGE_COST_H
#define FGV_BACKEND_GPU_IMAGE_COST_H

#include "backend/gpu/gpu_ops.h"

/*
 * @image: as for module_load(); @sm: of the GPU, as 90, or FGV_FATBIN_ANY_SM where it takes PTX
 * alone. @log says what of a text was wrong or too much. CUDA_ERROR_INVALID_IMAGE where it is none,
 * CUDA_ERROR_INVALID_PTX where the size of a variable can't be told, CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult fgv_image_cost(const void *image, size_t len, unsigned sm,
			const struct fgv_gpu_placed *placed, size_t placed_count, char *log,
			size_t log_len, struct fgv_gpu_module_cost *cost);

#endif
