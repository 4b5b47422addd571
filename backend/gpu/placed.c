/*
 * Each text is read, changed and printed again; what is printed takes its place.
 */
#include "backend/gpu/placed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/ptx.h"

CUresult fgv_placed_status(int err)
{
	return err == -EINVAL ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_OUT_OF_MEMORY;
}

static int place(const struct ptx_placement *placements, size_t count, char **text,
		 struct ptx_error *error)
{
	struct ptx_module *module;
	size_t printed_len;
	char *printed;
	int err = fgv_ptx_parse(*text, strlen(*text), &module, error);

	if (err < 0)
		return err;
	err = fgv_ptx_place(module, placements, count, error);
	if (!err)
		err = fgv_ptx_print(module, &printed, &printed_len);
	fgv_ptx_destroy(module);
	if (err < 0)
		return err;
	free(*text);
	*text = printed;
	return 0;
}

static CUresult place_all(const struct ptx_placement *placements, size_t count, char *log,
			  size_t log_len, struct fgv_fatbin_texts *texts)
{
	struct ptx_error error = {0};

	for (size_t i = 0; i < texts->count; i++) {
		int err = place(placements, count, &texts->texts[i], &error);

		if (err == -ENOMEM)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (err < 0) {
			snprintf(log, log_len, "line %u: %s", error.line, error.reason);
			return CUDA_ERROR_INVALID_PTX;
		}
	}
	return CUDA_SUCCESS;
}

CUresult fgv_placed_texts(const void *image, size_t len, unsigned sm,
			  const struct fgv_gpu_placed *placed, size_t count, char *log,
			  size_t log_len, struct fgv_fatbin_texts *texts)
{
	struct ptx_placement *placements = calloc(count + 1, sizeof(*placements));
	CUresult status;
	int err;

	if (!placements)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++)
		placements[i] =
			(struct ptx_placement){placed[i].name, placed[i].memory, placed[i].bytes};
	err = fgv_fatbin_ptx(image, len, sm, texts);
	if (err < 0) {
		free(placements);
		return fgv_placed_status(err);
	}
	if (texts->count > 0) {
		status = place_all(placements, count, log, log_len, texts);
	} else {
		snprintf(log, log_len,
			 "managed variables need PTX, and there is none for this GPU");
		status = CUDA_ERROR_NOT_SUPPORTED;
	}
	free(placements);
	if (status != CUDA_SUCCESS)
		fgv_fatbin_texts_free(texts);
	return status;
}
