/*
 * The managed variables of an image that the program loads by itself. Nothing in the program
 * names them, so the host, which reads PTX, is asked before such a module is loaded.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/module/image.h"
#include "frontend/cuda/module/module.h"

/* Room for sizes and names of variables, at first. */
#define LIST_ROOM 4096u

/* Text may be searched for them; what is in a container may be packed. Machine code has none. */
static bool may_have(const struct fgv_module *module)
{
	static const char word[] = ".managed";

	if (module->image_len < sizeof(word))
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

/* The list is @room bytes at @off of the window; *@bytes is what it takes. */
static CUresult ask(struct fgv_lane *lane, struct fgv_module *module, uint64_t image_off,
		    uint64_t room, uint64_t *bytes)
{
	struct fgv_client *client = lane->client;
	uint64_t off;
	char *list;
	CUresult res;

	if (fgv_arena_alloc(client->arena, room, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	list = (char *)client->window.base + off;
	res = fgv_call_module_managed(lane, image_off, module->image_len, off, room, bytes);
	if (!res && *bytes <= room && add_all(module, list, *bytes))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	fgv_arena_free(client->arena, off);
	return res;
}

CUresult fgv_module_find_managed(struct fgv_lane *lane, struct fgv_module *module)
{
	struct fgv_client *client = lane->client;
	uint64_t off, bytes = 0;
	CUresult res;

	if (!may_have(module))
		return CUDA_SUCCESS;
	if (fgv_arena_alloc(client->arena, module->image_len, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(client->window.base + off, module->image, module->image_len);
	res = ask(lane, module, off, LIST_ROOM, &bytes);
	if (!res && bytes > LIST_ROOM)
		res = ask(lane, module, off, bytes, &bytes);
	fgv_arena_free(client->arena, off);
	return res;
}
