/*
 * The PTX of an image with managed variables where the program has them. What names one
 * gets its address as a number, so no GPU needs to know that it is a variable.
 */
#ifndef FGV_BACKEND_GPU_PLACED_H
#define FGV_BACKEND_GPU_PLACED_H

#include "backend/gpu/fatbin.h"
#include "backend/gpu/gpu_ops.h"

/*
 * For a GPU of @sm, or FGV_FATBIN_ANY_SM. Writes the variables' initial values. What is wrong
 * with the PTX goes to @log. Give the texts back with fgv_fatbin_texts_free().
 */
CUresult fgv_placed_texts(const void *image, size_t len, unsigned sm,
			  const struct fgv_gpu_placed *placed, size_t count, char *log,
			  size_t log_len, struct fgv_fatbin_texts *texts);

/* Calls @each with the managed variables of that PTX. Without any PTX there are none. */
CUresult fgv_placed_list(const void *image, size_t len, unsigned sm, fgv_gpu_each_managed *each,
			 void *arg, char *log, size_t log_len);

/* A negative errno of fgv_fatbin_ptx() as CUDA says it; in @log, what was too much. */
CUresult fgv_placed_status(int err, char *log, size_t log_len);

#endif
