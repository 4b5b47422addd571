/*
 * Loading a module once, and asking for its kernels and variables. Where the host writes a kernel's
 * layout is in the arena.
 *
 * Locks: the module's mutex, over the host's answer: threads that need the same module
 * wait for the first.
 */
#include "frontend/cuda/module/module.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/module/snapshot.h"

/* Of a kernel's description: with the sizes and the offsets of its parameters. */
#define INFO_MAX (sizeof(struct fgv_function_info) + 2 * FGV_PARAMS_MAX * sizeof(uint32_t))

/* Room for names of kernels, at first. */
#define NAMES_ROOM 4096u

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

static CUresult load_module_locked(struct fgv_lane *lane, struct fgv_module *module)
{
	if (module->tried)
		return module->result;
	module->result = fgv_module_send(lane, module);
	if (!module->result)
		tell_managed(module);
	/* What is wrong with a module stays wrong, but memory may be there next time. */
	module->tried =
		module->result != CUDA_ERROR_OUT_OF_MEMORY && module->result != FGV_FOUND_MANAGED;
	return module->result;
}

/*
 * The same where its managed variables are known, if it has any: fgv_module_need() comes first. A
 * host that finds them again does not load the module.
 */
static CUresult load_known_locked(struct fgv_lane *lane, struct fgv_module *module)
{
	CUresult res = load_module_locked(lane, module);

	return res == FGV_FOUND_MANAGED ? CUDA_ERROR_UNKNOWN : res;
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
		res = load_known_locked(lane, module);
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
		res = load_known_locked(lane, module);
		/* A managed one is ready with its module. */
		if (!res && !variable->managed)
			res = ask_for_variable(lane, variable);
		if (!res)
			__atomic_store_n(&variable->ready, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&module->mutex);
	return res;
}

static CUresult load_module(struct fgv_lane *lane, struct fgv_module *module,
			    CUresult (*load_locked)(struct fgv_lane *lane,
						    struct fgv_module *module))
{
	CUresult res;

	pthread_mutex_lock(&module->mutex);
	res = load_locked(lane, module);
	pthread_mutex_unlock(&module->mutex);
	return res;
}

/* A library is loaded before anybody can ask for its kernels, so it is here that they are found. */
CUresult fgv_module_need(struct fgv_lane *lane, struct fgv_module *module)
{
	CUresult res = load_module(lane, module, load_module_locked);

	if (res != FGV_FOUND_MANAGED)
		return res;
	res = fgv_module_add_managed(lane, module);
	return res ? res : load_module(lane, module, load_known_locked);
}

CUresult fgv_module_enter(struct fgv_module *module)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_registry_module_on(lane->client->device, &module);
	if (!res)
		res = fgv_module_need(lane, module);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_variable_enter(struct fgv_variable **variable)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_registry_variable_on(lane->client->device, variable);
	if (!res)
		res = fgv_variable_need(lane, *variable);
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
