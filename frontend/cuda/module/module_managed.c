/*
 * The managed variables of an image that the program loads by itself. Nothing in the program
 * names them, so the host, which reads PTX, looks for them before it loads such a module.
 */
#define _GNU_SOURCE
#include <errno.h>
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

/* The list is the host's word: each entry is to end where the list does at the latest. */
static CUresult add_all(struct fgv_module *module)
{
	const char *at = module->found, *end = at + module->found_bytes;

	while (at < end) {
		const char *name = at + sizeof(uint64_t);
		uint64_t size;
		int err;

		if ((size_t)(end - at) <= sizeof(size) || !memchr(name, '\0', (size_t)(end - name)))
			return CUDA_ERROR_UNKNOWN;
		memcpy(&size, at, sizeof(size));
		err = fgv_registry_add_managed_named(module, name, size);
		if (err)
			return err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
		at = name + strlen(name) + 1;
	}
	return CUDA_SUCCESS;
}

/* Only what is copied out of the window stays as it was when it is checked. */
static CUresult keep_list(struct fgv_module *module, const void *list, uint64_t bytes)
{
	if (bytes != module->found_bytes)
		return CUDA_ERROR_UNKNOWN;
	module->found = malloc(bytes);
	if (!module->found)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(module->found, list, bytes);
	return CUDA_SUCCESS;
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
		if (!res)
			res = keep_list(module, client->window.base + off, bytes);
		fgv_arena_free(client->arena, off);
	}
	fgv_arena_free(client->arena, image_off);
	return res;
}

CUresult fgv_module_add_managed(struct fgv_lane *lane, struct fgv_module *module)
{
	CUresult res = module->found ? CUDA_SUCCESS : ask(lane, module);

	return res ? res : add_all(module);
}
