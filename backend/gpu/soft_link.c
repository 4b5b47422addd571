/*
 * Linking on the soft GPU, which links texts when it loads them: so they are put into one image,
 * and no more is done. It takes PTX, by itself or in fat binaries, and no machine code.
 */
#include "backend/gpu/soft_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/fatbin.h"

/* Writes @input to @to, or nowhere where that is NULL; its length as containers, 0: it is none. */
static size_t put(uint8_t *to, const struct fgv_gpu_link_input *input)
{
	const void *data = input->data;
	size_t len = input->len;
	unsigned containers;

	if (fgv_fatbin_form(data, len) == FGV_FATBIN_BARE_PTX)
		return fgv_fatbin_wrap(to, FGV_FATBIN_PTX, 0, data, strlen(data));
	fgv_fatbin_unwrap(&data, &len);
	if (fgv_fatbin_form(data, len) != FGV_FATBIN_CONTAINER ||
	    fgv_fatbin_check(data, len, &containers) < 0)
		return 0;
	if (to)
		memcpy(to, data, len);
	return len;
}

static CUresult measure(const struct fgv_gpu_link *what, size_t *bytes)
{
	*bytes = 0;
	for (size_t i = 0; i < what->inputs_count; i++) {
		size_t len = put(NULL, &what->inputs[i]);

		if (!len) {
			snprintf(what->errors, what->log_len,
				 "%s: the soft GPU links PTX and fat binaries of it alone",
				 what->inputs[i].name);
			return CUDA_ERROR_NO_BINARY_FOR_GPU;
		}
		*bytes += len;
	}
	return CUDA_SUCCESS;
}

CUresult fgv_soft_link(struct fgv_gpu *gpu, const struct fgv_gpu_link *what, void **image,
		       size_t *len)
{
	size_t bytes, at = 0;
	uint8_t *all, *made;
	CUresult status = measure(what, &bytes);

	(void)gpu;
	if (status != CUDA_SUCCESS)
		return status;
	all = malloc(bytes);
	made = malloc(fgv_fatbin_wrap(NULL, FGV_FATBIN_LINKED, 0, NULL, bytes));
	if (all && made) {
		for (size_t i = 0; i < what->inputs_count; i++)
			at += put(all + at, &what->inputs[i]);
		*len = fgv_fatbin_wrap(made, FGV_FATBIN_LINKED, 0, all, bytes);
		*image = made;
	} else {
		free(made);
		status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	free(all);
	return status;
}
