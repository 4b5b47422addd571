/*
 * Sending a module, and asking for its kernels and variables. What the host must read,
 * the fat binary, and where it writes a kernel's layout travel through the arena.
 *
 * Locks: the module's mutex, over the host's answer: threads that need the same module
 * wait for the first.
 */
#include "frontend/cuda/module/module.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/module/image.h"
#include "frontend/cuda/module/snapshot.h"

/* Of a kernel's description: with the sizes and the offsets of its parameters. */
#define INFO_MAX (sizeof(struct fgv_function_info) + 2 * FGV_PARAMS_MAX * sizeof(uint32_t))

/* Room for names of kernels, at first. */
#define NAMES_ROOM 4096u

/* Room for what the host says of a module that it loads. */
#define SNAPSHOT_ROOM 8192u

/* What loading ends with where the host has found managed variables first; no code of CUDA's. */
#define FOUND_MANAGED ((CUresult)-1)

/* Copies what the GPU can use of them to @to, without gaps; how many bytes, also where it is NULL.
 */
static uint64_t trim_parts(const struct fgv_image_part *parts, uint32_t count, uint8_t *to)
{
	unsigned sm = fgv_device_sm(fgv_device_info());
	uint64_t len = 0;

	for (uint32_t i = 0; i < count; i++)
		len += fgv_image_trim(&parts[i], sm, to ? to + len : NULL);
	return len;
}

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

/* The variables that the host has found; where they are not at @list, they are asked for. */
static CUresult keep_found(struct fgv_module *module, const void *list, uint64_t bytes)
{
	module->found_bytes = bytes;
	if (bytes <= SNAPSHOT_ROOM) {
		module->found = malloc(bytes);
		if (!module->found)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(module->found, list, bytes);
	}
	return FOUND_MANAGED;
}

/* The image lies at @off; what the host says of it is to lie at @said. */
static CUresult call_plain(struct fgv_lane *lane, struct fgv_module *module, uint64_t off,
			   uint64_t len, uint64_t said)
{
	const void *written = lane->client->window.base + said;
	uint32_t count;
	uint64_t bytes;
	CUresult res = fgv_call_module_load(lane, off, len, said, SNAPSHOT_ROOM,
					    fgv_module_may_have_managed(module), &module->handle,
					    &count, &bytes);

	if (res)
		return res;
	if (!module->handle)
		return keep_found(module, written, bytes);
	if (count != FGV_KERNELS_UNKNOWN && bytes <= SNAPSHOT_ROOM)
		module->snapshot = fgv_snapshot_copy(written, bytes, count);
	return CUDA_SUCCESS;
}

static CUresult call(struct fgv_lane *lane, struct fgv_module *module, uint64_t off, uint64_t len)
{
	static struct fgv_unsupported unsupported = {.name = "__managed__ (of such a module)"};
	struct fgv_arena *arena = lane->client->arena;
	uint64_t said;
	CUresult res;

	if (fgv_registry_has_managed(module)) {
		res = call_placed(lane, module, off, len);
		if (res == CUDA_ERROR_NOT_SUPPORTED)
			fgv_errlog_unsupported(&unsupported);
		return res;
	}
	if (fgv_arena_alloc(arena, SNAPSHOT_ROOM, &said))
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = call_plain(lane, module, off, len, said);
	fgv_arena_free(arena, said);
	return res;
}

static CUresult send_parts(struct fgv_lane *lane, struct fgv_module *module,
			   const struct fgv_image_part *parts, uint32_t count)
{
	struct fgv_client *client = lane->client;
	uint64_t len = trim_parts(parts, count, NULL);
	uint64_t off;
	CUresult res;

	if (fgv_arena_alloc(client->arena, len, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	trim_parts(parts, count, client->window.base + off);
	res = call(lane, module, off, len);
	fgv_arena_free(client->arena, off);
	return res;
}

/* The program, too, knows from now on where they are. */
static void tell_managed(struct fgv_module *module)
{
	for (struct fgv_variable *each = module->variables; each; each = each->next) {
		if (!each->managed)
			continue;
		*each->managed = (void *)(uintptr_t)each->address;
		__atomic_store_n(&each->ready, 1, __ATOMIC_RELEASE);
	}
}

static CUresult send_image(struct fgv_lane *lane, struct fgv_module *module)
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

static CUresult load_module_locked(struct fgv_lane *lane, struct fgv_module *module)
{
	if (module->tried)
		return module->result;
	module->result = send_image(lane, module);
	if (!module->result)
		tell_managed(module);
	/* What is wrong with a module stays wrong, but memory may be there next time. */
	module->tried =
		module->result != CUDA_ERROR_OUT_OF_MEMORY && module->result != FOUND_MANAGED;
	return module->result;
}

/* What the host wrote at @written, @len bytes, as a copy that makes sense; or NULL. */
static struct fgv_function_info *copy_info(const void *written, uint32_t len, uint32_t *args_len)
{
	struct fgv_function_info *info;
	uint64_t sum = 0;

	if (len < sizeof(*info) || len > INFO_MAX)
		return NULL;
	info = malloc(len);
	if (!info)
		return NULL;
	memcpy(info, written, len);
	if (info->param_count != (len - sizeof(*info)) / (2 * sizeof(uint32_t))) {
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
	struct fgv_client *client = lane->client;
	uint64_t off;
	uint32_t len;
	CUresult res;

	if (fgv_arena_alloc(client->arena, INFO_MAX, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = fgv_call_function_get(lane, kernel->module->handle, off, INFO_MAX, kernel->name,
				    (uint32_t)strlen(kernel->name), &kernel->function, &len);
	if (!res) {
		kernel->info = copy_info(client->window.base + off, len, &kernel->args_len);
		if (!kernel->info)
			res = CUDA_ERROR_UNKNOWN;
	}
	fgv_arena_free(client->arena, off);
	return res;
}

/* A module whose kernels the host has described has no others. */
static CUresult find_kernel(struct fgv_lane *lane, struct fgv_kernel *kernel)
{
	const struct fgv_kernel_record *record;

	if (!kernel->module->snapshot)
		return ask_for_kernel(lane, kernel);
	record = fgv_snapshot_find(kernel->module->snapshot, kernel->name);
	if (!record)
		return CUDA_ERROR_NOT_FOUND;
	kernel->function = record->function;
	kernel->info = copy_info(fgv_snapshot_info(record), record->info_len, &kernel->args_len);
	return kernel->info ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUresult fgv_kernel_load(struct fgv_lane *lane, struct fgv_kernel *kernel)
{
	struct fgv_module *module = kernel->module;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&module->mutex);
	if (!kernel->ready) {
		res = load_module_locked(lane, module);
		if (!res)
			res = find_kernel(lane, kernel);
		if (!res) {
			kernel->max_dynamic_shared =
				(uint32_t)kernel->info->attributes
					[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
			kernel->carveout = -1;
			kernel->any_cluster =
				(uint32_t)kernel->info->attributes
					[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED];
			kernel->cluster_policy =
				(uint32_t)kernel->info->attributes
					[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE];
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
		/* A managed one is ready with its module. */
		if (!res && !variable->managed)
			res = ask_for_variable(lane, variable);
		if (!res)
			__atomic_store_n(&variable->ready, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&module->mutex);
	return res;
}

static CUresult load_module(struct fgv_lane *lane, struct fgv_module *module)
{
	CUresult res;

	pthread_mutex_lock(&module->mutex);
	res = load_module_locked(lane, module);
	pthread_mutex_unlock(&module->mutex);
	return res;
}

/* A library is loaded before anybody can ask for its kernels, so it is here that they are found. */
CUresult fgv_module_need(struct fgv_lane *lane, struct fgv_module *module)
{
	CUresult res = load_module(lane, module);

	if (res != FOUND_MANAGED)
		return res;
	res = fgv_module_add_managed(lane, module);
	return res ? res : load_module(lane, module);
}

CUresult fgv_module_enter(struct fgv_module *module)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter(&lane);

	if (res)
		return res;
	res = fgv_module_need(lane, module);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_variable_enter(struct fgv_variable *variable)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter(&lane);

	if (res)
		return res;
	res = fgv_variable_need(lane, variable);
	fgv_lane_leave(lane);
	return res;
}

/* Room for @room bytes of names; *@bytes is what all of them are. */
static CUresult ask_for_names(struct fgv_lane *lane, const struct fgv_module *module, uint64_t room,
			      char **names, uint64_t *bytes)
{
	struct fgv_client *client = lane->client;
	uint64_t off;
	CUresult res;

	*names = NULL;
	if (fgv_arena_alloc(client->arena, room, &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = fgv_call_module_kernels(lane, module->handle, off, room, bytes);
	if (!res && *bytes <= room) {
		*names = malloc(*bytes + 1);
		if (*names) {
			memcpy(*names, client->window.base + off, *bytes);
			(*names)[*bytes] = '\0';
		} else {
			res = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	fgv_arena_free(client->arena, off);
	return res;
}

/* From the host's description. */
static CUresult copy_names(const struct fgv_snapshot *snapshot, char **names, uint64_t *bytes)
{
	const struct fgv_kernel_record *record = NULL;

	*bytes = 0;
	while ((record = fgv_snapshot_next(snapshot, record)))
		*bytes += record->name_len;
	*names = malloc(*bytes + 1);
	if (!*names)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*bytes = 0;
	while ((record = fgv_snapshot_next(snapshot, record))) {
		memcpy(*names + *bytes, fgv_snapshot_name(record), record->name_len);
		*bytes += record->name_len;
	}
	(*names)[*bytes] = '\0';
	return CUDA_SUCCESS;
}

CUresult fgv_module_kernel_names(struct fgv_lane *lane, struct fgv_module *module, char **names,
				 uint64_t *bytes)
{
	CUresult res = fgv_module_need(lane, module);

	if (!res && module->snapshot)
		return copy_names(module->snapshot, names, bytes);
	if (!res)
		res = ask_for_names(lane, module, NAMES_ROOM, names, bytes);
	if (!res && !*names)
		res = ask_for_names(lane, module, *bytes, names, bytes);
	return !res && !*names ? CUDA_ERROR_UNKNOWN : res;
}
