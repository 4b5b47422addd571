/*
 * Slicing; see sliced.h. What is launched in parts must be what would have been launched whole, so
 * the PTX has to be that which the loaded code was compiled from: the same for the same
 * architecture, since programs choose their grids by the architecture that they find.
 */
#include "backend/gpu/sliced.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/fatbin.h"
#include "ptx/ptx.h"

struct slicing {
	struct fgv_gpu *gpu;
	const struct fgv_gpu_slicing *what;
	char *why;
	size_t why_len;
};

static CUresult refuse(const struct slicing *s, int err, const char *reason)
{
	snprintf(s->why, s->why_len, "%s", err == -ENOMEM ? "out of memory" : reason);
	return err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
}

/* "sm_90a": 90 */
static int target_of(const struct ptx_module *tree)
{
	int sm = 0;

	return sscanf(tree->target, "sm_%d", &sm) == 1 ? sm : 0;
}

static CUresult check_target(const struct slicing *s, const struct ptx_module *tree)
{
	int loaded = 0;
	CUresult status = s->gpu->ops->function_attribute(s->gpu, s->what->function,
							  CU_FUNC_ATTRIBUTE_PTX_VERSION, &loaded);

	if (status == CUDA_SUCCESS && loaded == target_of(tree))
		return CUDA_SUCCESS;
	snprintf(s->why, s->why_len, "its PTX is for sm_%d, and its code was compiled for sm_%d",
		 target_of(tree), loaded);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static bool is_data(const struct ptx_item *item)
{
	return item->kind == PTX_ITEM_VAR &&
	       (item->var->space == PTX_GLOBAL || item->var->space == PTX_CONST);
}

/* Fills in where the loaded module has the variables; *@count of them. */
static CUresult find_variables(const struct slicing *s, const struct ptx_module *tree,
			       struct ptx_placement *places, size_t *count)
{
	const struct ptx_item *item;

	*count = 0;
	for (item = tree->items; item; item = item->next) {
		uint64_t address, bytes;

		if (!is_data(item))
			continue;
		if (s->gpu->ops->module_global(s->gpu, s->what->module, item->var->name, &address,
					       &bytes) != CUDA_SUCCESS) {
			snprintf(s->why, s->why_len, "where its variable '%.60s' lies is not known",
				 item->var->name);
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		places[(*count)++] = (struct ptx_placement){
			.name = item->var->name,
			.memory = (void *)(uintptr_t)address,
			.bytes = bytes,
			.is_loaded = true,
		};
	}
	return CUDA_SUCCESS;
}

static CUresult place_variables(const struct slicing *s, struct ptx_module *tree)
{
	struct ptx_placement *places;
	struct ptx_error error = {0};
	size_t count = 0;
	CUresult status;
	int err = 0;

	for (const struct ptx_item *item = tree->items; item; item = item->next)
		count += is_data(item);
	places = calloc(count + 1, sizeof(*places));
	if (!places)
		return refuse(s, -ENOMEM, "");
	status = find_variables(s, tree, places, &count);
	if (status == CUDA_SUCCESS)
		err = fgv_ptx_place(tree, places, count, &error);
	free(places);
	return err ? refuse(s, err, error.reason) : status;
}

static CUresult slice_tree(const struct slicing *s, struct ptx_module *tree, char **text)
{
	struct ptx_error error = {0};
	CUresult status = check_target(s, tree);
	size_t len;
	int err;

	if (status != CUDA_SUCCESS)
		return status;
	err = fgv_ptx_slice(tree, s->what->name, &error);
	if (err)
		return refuse(s, err, error.reason);
	status = place_variables(s, tree);
	if (status != CUDA_SUCCESS)
		return status;
	err = fgv_ptx_print(tree, text, &len);
	return err ? refuse(s, err, "") : CUDA_SUCCESS;
}

static CUresult slice(const struct slicing *s, const char *whole, char **text)
{
	struct ptx_error error = {0};
	struct ptx_module *tree;
	CUresult status;
	int err = fgv_ptx_parse(whole, strlen(whole), &tree, &error);

	if (err)
		return refuse(s, err, error.reason);
	status = slice_tree(s, tree, text);
	fgv_ptx_destroy(tree);
	return status;
}

CUresult fgv_sliced_text(struct fgv_gpu *gpu, const struct fgv_gpu_slicing *what, unsigned sm,
			 char **text, char *why, size_t why_len)
{
	const struct slicing s = {gpu, what, why, why_len};
	struct fgv_fatbin_texts texts;
	CUresult status;
	int err = fgv_fatbin_ptx(what->image, what->len, sm, &texts);

	if (err)
		return refuse(&s, err, "its PTX can't be read");
	if (texts.count == 1)
		status = slice(&s, texts.texts[0], text);
	else
		status = refuse(&s, 0,
				texts.count ? "it was compiled in several texts"
					    : "there is no PTX for this GPU");
	fgv_fatbin_texts_free(&texts);
	return status;
}
