/*
 * Modules of the soft GPU: it takes the PTX of a fat binary, and no machine code.
 */
#include "backend/gpu/soft_internal.h"

#include "backend/gpu/image_cost.h"
#include "backend/gpu/placed.h"
#include "backend/gpu/sliced.h"

/* Loads @texts, which then are gone. */
static CUresult load(struct fgv_gpu *gpu, struct fgv_fatbin_texts *texts, char *log, size_t log_len,
		     struct fgv_gpu_module **module)
{
	struct softgpu_module *made = NULL;
	CUresult status = CUDA_ERROR_NO_BINARY_FOR_GPU;

	if (texts->count > 0)
		status = softgpu_module_load(gpu_of(gpu), (const char *const *)texts->texts,
					     texts->count, log, log_len, &made);
	fgv_fatbin_texts_free(texts);
	*module = (struct fgv_gpu_module *)made;
	return status;
}

/* A NUL ends it. */
static CUresult load_text(struct fgv_gpu *gpu, const char *text, char *log, size_t log_len,
			  struct fgv_gpu_module **module)
{
	struct softgpu_module *made = NULL;
	CUresult status = softgpu_module_load(gpu_of(gpu), &text, 1, log, log_len, &made);

	*module = (struct fgv_gpu_module *)made;
	return status;
}

CUresult fgv_soft_module_cost(struct fgv_gpu *gpu, const void *image, size_t len,
			      const struct fgv_gpu_placed *placed, size_t count, char *log,
			      size_t log_len, struct fgv_gpu_module_cost *cost)
{
	(void)gpu;
	fgv_fatbin_unwrap(&image, &len);
	return fgv_image_cost(image, len, FGV_FATBIN_ANY_SM, placed, count, log, log_len, cost);
}

CUresult fgv_soft_module_load(struct fgv_gpu *gpu, const void *image, size_t len, char *log,
			      size_t log_len, struct fgv_gpu_module **module)
{
	struct fgv_fatbin_texts texts;
	enum fgv_fatbin_form form;
	int err;

	fgv_fatbin_unwrap(&image, &len);
	form = fgv_fatbin_form(image, len);
	if (form == FGV_FATBIN_BARE_PTX)
		return load_text(gpu, image, log, log_len, module);
	if (form == FGV_FATBIN_BARE_CUBIN)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	err = fgv_fatbin_ptx(image, len, FGV_FATBIN_ANY_SM, &texts);
	return err < 0 ? fgv_placed_status(err, log, log_len)
		       : load(gpu, &texts, log, log_len, module);
}

CUresult fgv_soft_module_load_placed(struct fgv_gpu *gpu, const void *image, size_t len,
				     const struct fgv_gpu_placed *placed, size_t count, char *log,
				     size_t log_len, struct fgv_gpu_module **module)
{
	struct fgv_fatbin_texts texts;
	CUresult status;

	fgv_fatbin_unwrap(&image, &len);
	status = fgv_placed_texts(image, len, FGV_FATBIN_ANY_SM, placed, count, log, log_len,
				  &texts);
	return status != CUDA_SUCCESS ? status : load(gpu, &texts, log, log_len, module);
}

CUresult fgv_soft_module_slice(struct fgv_gpu *gpu, const struct fgv_gpu_slicing *what,
			       char **text, char *why, size_t why_len)
{
	struct fgv_gpu_slicing unwrapped = *what;

	fgv_fatbin_unwrap(&unwrapped.image, &unwrapped.len);
	return fgv_sliced_text(gpu, &unwrapped, FGV_FATBIN_ANY_SM, text, why, why_len);
}

CUresult fgv_soft_module_managed(struct fgv_gpu *gpu, const void *image, size_t len,
				 fgv_gpu_each_managed *each, void *arg, char *log, size_t log_len)
{
	(void)gpu;
	fgv_fatbin_unwrap(&image, &len);
	return fgv_placed_list(image, len, FGV_FATBIN_ANY_SM, each, arg, log, log_len);
}
