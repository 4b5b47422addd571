/*
 * Attributes of kernels: what the host has told of them, and what the program has set, which is
 * kept here and heeded at launch. The host allows a kernel as much shared memory as a launch asks
 * for. The carveout is a hint, which is only remembered.
 */
#include "frontend/cuda/module/function.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/module/module.h"

#define CARVEOUT_DEFAULT (-1)
#define CARVEOUT_MAX	 100 /* percent */

CUresult fgv_function_need(struct fgv_kernel **kernel)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_registry_kernel_on(lane->client->device, kernel);
	if (!res)
		res = fgv_kernel_need(lane, *kernel);
	fgv_lane_leave(lane);
	return res;
}

/* What can be set, where it is kept. NULL: it can't. */
static uint32_t *place_of(struct fgv_kernel *kernel, CUfunction_attribute attribute)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return &kernel->max_dynamic_shared;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return (uint32_t *)&kernel->carveout;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return &kernel->any_cluster;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return &kernel->cluster_policy;
	default:
		return NULL;
	}
}

CUresult fgv_function_get_attribute(struct fgv_kernel *kernel, CUfunction_attribute attribute,
				    int *value)
{
	CUresult res = value && (unsigned)attribute < CU_FUNC_ATTRIBUTE_MAX
			       ? fgv_function_need(&kernel)
			       : CUDA_ERROR_INVALID_VALUE;
	const uint32_t *place;

	if (res)
		return res;
	place = place_of(kernel, attribute);
	*value = place ? (int)__atomic_load_n(place, __ATOMIC_RELAXED)
		       : kernel->info->attributes[attribute];
	return CUDA_SUCCESS;
}

/* The most that a kernel may be allowed: what an opt-in gives, less what it has anyway. */
static int dynamic_shared_limit(const struct fgv_kernel *kernel)
{
	const struct fgv_device_info *info = fgv_device_info();
	int all = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

	if (!all)
		all = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	return all - kernel->info->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
}

/* What @attribute may be set to; CUDA_ERROR_NOT_SUPPORTED: to nothing here. */
static CUresult find_limits(const struct fgv_kernel *kernel, CUfunction_attribute attribute,
			    int *least, int *most)
{
	*least = 0;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*most = dynamic_shared_limit(kernel);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*least = CARVEOUT_DEFAULT;
		*most = CARVEOUT_MAX;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		if (!fgv_device_attribute(fgv_device_info(), CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
			return FGV_UNSUPPORTED("clusters of blocks");
		*most = attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
				? 1
				: CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		return FGV_UNSUPPORTED("attributes of required clusters");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult fgv_function_set_attribute(struct fgv_kernel *kernel, CUfunction_attribute attribute,
				    int value)
{
	CUresult res = fgv_function_need(&kernel);
	int least, most;

	if (!res)
		res = find_limits(kernel, attribute, &least, &most);
	if (res)
		return res;
	if (value < least || value > most)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(place_of(kernel, attribute), (uint32_t)value, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

/* The sizes are followed by the offsets. */
CUresult fgv_function_get_param(struct fgv_kernel *kernel, size_t index, size_t *offset,
				size_t *size)
{
	CUresult res = offset ? fgv_function_need(&kernel) : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	if (index >= kernel->info->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = kernel->info->param_sizes[kernel->info->param_count + index];
	if (size)
		*size = kernel->info->param_sizes[index];
	return CUDA_SUCCESS;
}
