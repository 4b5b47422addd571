/*
 * Sending a module, and asking for its kernels and variables. What the host must read,
 * the fat binary, and where it writes a kernel's layout travel through the arena.
 *
 * Locks: the module's mutex, over the host's answer: threads that need the same module
 * wait for the first.
 */
#include "frontend/client/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "frontend/client/addrmap.h"
#include "frontend/client/image.h"
#include "frontend/client/lane.h"

static uint64_t sum_parts(const struct fgv_image_part *parts, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += parts[i].len;
	return sum;
}

/* They follow each other without a gap. */
static void copy_parts(uint8_t *to, const struct fgv_image_part *parts, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		memcpy(to, parts[i].data, parts[i].len);
		to += parts[i].len;
	}
}

static CUresult send_parts(struct fgv_lane *lane, const struct fgv_image_part *parts,
			   uint32_t count, uint32_t *handle)
{
	struct fgv_client *client = lane->client;
	uint64_t len = sum_parts(parts, count);
	uint64_t off;
	CUresult res;

	if (fgv_arena_alloc(client->arena, len, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy_parts(client->window.base + off, parts, count);
	res = fgv_call_module_load(lane, off, len, handle);
	fgv_arena_free(client->arena, off);
	return res;
}

static CUresult load_module_locked(struct fgv_lane *lane, struct fgv_module *module)
{
	struct fgv_image_part *parts;
	uint32_t count;
	int err;

	if (module->tried)
		return module->result;
	err = fgv_image_read(module->wrapper, &parts, &count);
	if (err) {
		module->result =
			err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
	} else {
		module->result = send_parts(lane, parts, count, &module->handle);
		free(parts);
	}
	/* What is wrong with a module stays wrong, but memory may be there next time. */
	module->tried = module->result != CUDA_ERROR_OUT_OF_MEMORY;
	return module->result;
}

/* What the host wrote at @written, @len bytes, as a copy that makes sense; or NULL. */
static struct fgv_function_info *copy_info(const void *written, uint32_t len, uint32_t *args_len)
{
	struct fgv_function_info *info;
	uint64_t sum = 0;

	if (len < sizeof(*info) || len > sizeof(*info) + FGV_PARAMS_MAX * sizeof(uint32_t))
		return NULL;
	info = malloc(len);
	if (!info)
		return NULL;
	memcpy(info, written, len);
	if (info->param_count != (len - sizeof(*info)) / sizeof(uint32_t)) {
		free(info);
		return NULL;
	}
	for (uint32_t i = 0; i < info->param_count; i++)
		sum += fgv_align_up((uint64_t)info->param_sizes[i], 8);
	if (sum > FGV_DATA_MAX) {
		free(info);
		return NULL;
	}
	*args_len = (uint32_t)sum;
	return info;
}

static CUresult ask_for_kernel(struct fgv_lane *lane, struct fgv_kernel *kernel)
{
	const uint64_t room = sizeof(*kernel->info) + FGV_PARAMS_MAX * sizeof(uint32_t);
	struct fgv_client *client = lane->client;
	uint64_t off;
	uint32_t len;
	CUresult res;

	if (fgv_arena_alloc(client->arena, room, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = fgv_call_function_get(lane, kernel->module->handle, off, room, kernel->name,
				    (uint32_t)strlen(kernel->name), &kernel->function, &len);
	if (!res) {
		kernel->info = copy_info(client->window.base + off, len, &kernel->args_len);
		if (!kernel->info)
			res = CUDA_ERROR_UNKNOWN;
	}
	fgv_arena_free(client->arena, off);
	return res;
}

CUresult fgv_kernel_load(struct fgv_lane *lane, struct fgv_kernel *kernel)
{
	struct fgv_module *module = kernel->module;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&module->mutex);
	if (!kernel->ready) {
		res = load_module_locked(lane, module);
		if (!res)
			res = ask_for_kernel(lane, kernel);
		if (!res) {
			kernel->max_dynamic_shared =
				(uint32_t)kernel->info->attributes
					[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
			kernel->carveout = -1;
			__atomic_store_n(&kernel->ready, 1, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&module->mutex);
	return res;
}

static CUresult ask_for_variable(struct fgv_lane *lane, struct fgv_variable *variable)
{
	uint64_t address, size;
	CUresult res;

	res = fgv_call_global_get(lane, variable->module->handle, variable->name,
				  (uint32_t)strlen(variable->name), &address, &size);
	if (res)
		return res;
	variable->address = address;
	variable->size = size;
	return fgv_addrmap_add(address, size, FGV_RANGE_VARIABLE) == -ENOMEM
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : CUDA_SUCCESS;
}

CUresult fgv_variable_load(struct fgv_lane *lane, struct fgv_variable *variable)
{
	struct fgv_module *module = variable->module;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&module->mutex);
	if (!variable->ready) {
		res = load_module_locked(lane, module);
		if (!res)
			res = ask_for_variable(lane, variable);
		if (!res)
			__atomic_store_n(&variable->ready, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&module->mutex);
	return res;
}
