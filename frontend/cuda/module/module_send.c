/*
 * Sending a module to the host, through the arena: of its fat binaries what the GPU can use, and
 * nothing at all where the host has kept that from an earlier program of this VM.
 *
 * Locks: the module's mutex is held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/module/image.h"
#include "frontend/cuda/module/image_digest.h"
#include "frontend/cuda/module/module.h"
#include "frontend/cuda/module/snapshot.h"

/* Room for what the host says of a module that it loads. */
#define SNAPSHOT_ROOM 8192u

/* What the host says of one that it has loaded. */
struct answer {
	uint32_t count; /* of kernels */
	uint64_t bytes;
};

/* Gives the module's managed variables their memory, where they do not have it yet. */
static CUresult place_managed(struct fgv_lane *lane, struct fgv_module *module)
{
	CUresult res = CUDA_SUCCESS;

	for (struct fgv_variable *each = module->variables; each && !res; each = each->next) {
		if (each->managed && !each->address)
			res = fgv_hostmem_alloc(lane, each->size, FGV_RANGE_MANAGED_VARIABLE,
						CU_MEM_ATTACH_GLOBAL, &each->address);
	}
	return res;
}

static uint64_t record_len(const struct fgv_variable *variable)
{
	return 2 * sizeof(uint64_t) + strlen(variable->name) + 1;
}

/* What the host is told of them: of each its address, its size and its name. */
static uint64_t describe_managed(const struct fgv_module *module, uint8_t *to)
{
	uint64_t len = 0;

	for (const struct fgv_variable *each = module->variables; each; each = each->next) {
		if (!each->managed)
			continue;
		if (to) {
			memcpy(to + len, &each->address, sizeof(uint64_t));
			memcpy(to + len + sizeof(uint64_t), &each->size, sizeof(uint64_t));
			strcpy((char *)to + len + 2 * sizeof(uint64_t), each->name);
		}
		len += record_len(each);
	}
	return len;
}

static CUresult call_placed(struct fgv_lane *lane, struct fgv_module *module, uint64_t off,
			    uint64_t len)
{
	uint64_t variables_len = describe_managed(module, NULL);
	uint8_t *variables;
	CUresult res = CUDA_ERROR_NOT_SUPPORTED;

	if (lane->client->device)
		return FGV_UNSUPPORTED("managed variables on another device than the first");
	if (variables_len > FGV_DATA_MAX)
		return res;
	variables = malloc(variables_len);
	if (!variables)
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = place_managed(lane, module);
	describe_managed(module, variables);
	if (!res)
		res = fgv_call_module_load_placed(lane, off, len, variables,
						  (uint32_t)variables_len, &module->handle);
	free(variables);
	return res;
}

/*
 * The variables that the host has found; where they are not at @list, they are asked for. What is
 * kept already stays, as another thread may be at it.
 */
static CUresult keep_found(struct fgv_module *module, const void *list, uint64_t bytes)
{
	if (!bytes || !fgv_module_may_have_managed(module))
		return CUDA_ERROR_UNKNOWN;
	if (module->found)
		return FGV_FOUND_MANAGED;
	module->found_bytes = bytes;
	if (bytes <= SNAPSHOT_ROOM) {
		module->found = malloc(bytes);
		if (!module->found)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(module->found, list, bytes);
	}
	return FGV_FOUND_MANAGED;
}

/* @written: where the host has described the module, or listed managed variables. */
static CUresult take_answer(struct fgv_module *module, const struct answer *answer,
			    const void *written)
{
	if (!module->handle)
		return keep_found(module, written, answer->bytes);
	if (answer->count != FGV_KERNELS_UNKNOWN && answer->bytes <= SNAPSHOT_ROOM)
		module->snapshot = fgv_snapshot_copy(written, answer->bytes, answer->count);
	return CUDA_SUCCESS;
}

/* Sends the image; the host's answer is to lie at @said. */
static CUresult call_plain(struct fgv_lane *lane, struct fgv_module *module,
			   const struct fgv_image_pieces *image, uint64_t said,
			   struct answer *answer)
{
	struct fgv_client *client = lane->client;
	uint64_t off;
	CUresult res;

	if (fgv_arena_alloc(client->arena, image->len, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	fgv_image_pieces_copy(image, client->window.base + off);
	res = fgv_call_module_load(lane, off, image->len, said, SNAPSHOT_ROOM,
				   fgv_module_may_have_managed(module), &module->handle,
				   &answer->count, &answer->bytes);
	fgv_arena_free(client->arena, off);
	return res;
}

/* Has the host load what it may have kept; false: it has to be sent. */
static bool call_known(struct fgv_lane *lane, struct fgv_module *module,
		       const struct fgv_image_pieces *image, uint64_t said, struct answer *answer,
		       CUresult *res)
{
	uint64_t digest[FGV_DIGEST_BYTES / sizeof(uint64_t)];
	uint32_t known = 0;

	if (image->len < FGV_IMAGE_KEPT_MIN || image->len > FGV_IMAGE_MAX)
		return false;
	*res = fgv_call_image_known(
		lane, image->len, fgv_digest_sample(image->list, image->count, image->len), &known);
	if (*res || !known || fgv_image_digest(image, digest))
		return *res;
	*res = fgv_call_module_load_known(lane, image->len, digest, said, SNAPSHOT_ROOM,
					  fgv_module_may_have_managed(module), &module->handle,
					  &answer->count, &answer->bytes, &known);
	return *res || known;
}

static CUresult load(struct fgv_lane *lane, struct fgv_module *module,
		     const struct fgv_image_pieces *image)
{
	struct fgv_client *client = lane->client;
	struct answer answer;
	uint64_t said;
	CUresult res;

	if (fgv_arena_alloc(client->arena, SNAPSHOT_ROOM, &said))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!call_known(lane, module, image, said, &answer, &res))
		res = call_plain(lane, module, image, said, &answer);
	if (!res)
		res = take_answer(module, &answer, client->window.base + said);
	fgv_arena_free(client->arena, said);
	return res;
}

static CUresult load_placed(struct fgv_lane *lane, struct fgv_module *module,
			    const struct fgv_image_pieces *image)
{
	static struct fgv_unsupported unsupported = {.name = "__managed__ (of such a module)"};
	struct fgv_client *client = lane->client;
	uint64_t off;
	CUresult res;

	if (fgv_arena_alloc(client->arena, image->len, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	fgv_image_pieces_copy(image, client->window.base + off);
	res = call_placed(lane, module, off, image->len);
	fgv_arena_free(client->arena, off);
	if (res == CUDA_ERROR_NOT_SUPPORTED)
		fgv_errlog_unsupported(&unsupported);
	return res;
}

static CUresult send_parts(struct fgv_lane *lane, struct fgv_module *module,
			   const struct fgv_image_part *parts, uint32_t count)
{
	unsigned sm = fgv_device_sm(fgv_device_info());
	struct fgv_image_pieces image = {.count = 0};
	CUresult res = CUDA_ERROR_OUT_OF_MEMORY;
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++)
		err = fgv_image_trim(&parts[i], sm, &image);
	if (!err && fgv_registry_has_managed(module))
		res = load_placed(lane, module, &image);
	else if (!err)
		res = load(lane, module, &image);
	fgv_image_pieces_fini(&image);
	return res;
}

CUresult fgv_module_send(struct fgv_lane *lane, struct fgv_module *module)
{
	struct fgv_image_part own = {module->image, module->image_len}, *parts;
	uint32_t count;
	CUresult res;
	int err;

	if (module->image)
		return send_parts(lane, module, &own, 1);
	err = fgv_image_read(module->wrapper, &parts, &count);
	if (err)
		return err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
	res = send_parts(lane, module, parts, count);
	free(parts);
	return res;
}
