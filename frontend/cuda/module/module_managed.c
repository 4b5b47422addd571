/*
 * The managed variables of an image that the program loads by itself. Nothing in the program
 * names them, so the host, which reads PTX, looks for them before it loads such a module.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/module/image.h"
#include "frontend/cuda/module/module.h"

/* Text may be searched for them; what is in a container may be packed. Machine code has none. */
bool fgv_module_may_have_managed(const struct fgv_module *module)
{
	static const char word[] = ".managed";

	if (!module->image || module->image_len < sizeof(word))
		return false;
	switch (fgv_image_kind(module->image)) {
	case FGV_IMAGE_CONTAINER:
		return true;
	case FGV_IMAGE_TEXT:
		return memmem(module->image, module->image_len, word, sizeof(word) - 1);
	default:
		return false;
	}
}

static int add_all(struct fgv_module *module, const char *list, uint64_t bytes)
{
	int err = 0;

	for (uint64_t at = 0; at < bytes && !err; at += strlen(list + at) + 1) {
		uint64_t size;

		memcpy(&size, list + at, sizeof(size));
		at += sizeof(size);
		err = fgv_registry_add_managed_named(module, list + at, size);
	}
	return err;
}

/* There was no room for the list with the answer of the load. */
static CUresult ask(struct fgv_lane *lane, struct fgv_module *module)
{
	uint64_t image_off, off, bytes = module->found_bytes;
	struct fgv_client *client = lane->client;
	CUresult res = CUDA_ERROR_OUT_OF_MEMORY;

	if (fgv_arena_alloc(client->arena, module->image_len, &image_off))
		return res;
	if (!fgv_arena_alloc(client->arena, bytes, &off)) {
		memcpy(client->window.base + image_off, module->image, module->image_len);
		res = fgv_call_module_managed(lane, image_off, module->image_len, off, bytes,
					      &bytes);
		if (!res && (bytes != module->found_bytes ||
			     add_all(module, (char *)client->window.base + off, bytes)))
			res = CUDA_ERROR_OUT_OF_MEMORY;
		fgv_arena_free(client->arena, off);
	}
	fgv_arena_free(client->arena, image_off);
	return res;
}

CUresult fgv_module_add_managed(struct fgv_lane *lane, struct fgv_module *module)
{
	if (!module->found)
		return ask(lane, module);
	return add_all(module, module->found, module->found_bytes) ? CUDA_ERROR_OUT_OF_MEMORY
								   : CUDA_SUCCESS;
}
