/*
 * Each text is read, changed and printed again; what is printed takes its place.
 */
#include "backend/gpu/placed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/ptx.h"

/* What a text may be printed as: it says more than it did, but not much more. */
#define PRINTED_FACTOR 4
#define PRINTED_BASE   (1u << 20)

CUresult fgv_placed_status(int err, char *log, size_t log_len)
{
	if (err == -EINVAL)
		return CUDA_ERROR_INVALID_IMAGE;
	snprintf(log, log_len, "%s",
		 err == -E2BIG ? "the image's PTX unpacks to more than it may" : "out of memory");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult refuse(int err, const struct ptx_error *error, char *log, size_t log_len)
{
	snprintf(log, log_len, "line %u: %s", error->line, error->reason);
	return err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
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
	if (printed_len > PRINTED_BASE + strlen(*text) * PRINTED_FACTOR) {
		free(printed);
		snprintf(error->reason, sizeof(error->reason), "the text grows too much");
		return -ENOMEM;
	}
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

		if (err < 0)
			return refuse(err, &error, log, log_len);
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
		placements[i] = (struct ptx_placement){
			.name = placed[i].name,
			.memory = placed[i].memory,
			.bytes = placed[i].bytes,
		};
	err = fgv_fatbin_ptx(image, len, sm, texts);
	if (err < 0) {
		free(placements);
		return fgv_placed_status(err, log, log_len);
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

static CUresult list(const char *text, fgv_gpu_each_managed *each, void *arg, char *log,
		     size_t log_len)
{
	struct ptx_error error = {0};
	struct ptx_module *module;
	int err = fgv_ptx_parse(text, strlen(text), &module, &error);

	if (err < 0)
		return refuse(err, &error, log, log_len);
	for (const struct ptx_item *item = module->items; item; item = item->next) {
		if (item->kind == PTX_ITEM_VAR && item->var->managed &&
		    !(item->var->linkage & PTX_EXTERN))
			each(item->var->name, fgv_ptx_var_size(item->var), arg);
	}
	fgv_ptx_destroy(module);
	return CUDA_SUCCESS;
}

CUresult fgv_placed_list(const void *image, size_t len, unsigned sm, fgv_gpu_each_managed *each,
			 void *arg, char *log, size_t log_len)
{
	struct fgv_fatbin_texts texts;
	CUresult status = CUDA_SUCCESS;
	int err = fgv_fatbin_ptx(image, len, sm, &texts);

	if (err < 0)
		return fgv_placed_status(err, log, log_len);
	for (size_t i = 0; i < texts.count && status == CUDA_SUCCESS; i++) {
		if (strstr(texts.texts[i], ".managed"))
			status = list(texts.texts[i], each, arg, log, log_len);
	}
	fgv_fatbin_texts_free(&texts);
	return status;
}
