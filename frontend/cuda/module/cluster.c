/*
 * Clusters of blocks. How many there can be, and of how many blocks, is for the GPU's driver to
 * say: it is asked for a kernel's first launch of a shape, and posted launches follow.
 */
#include "frontend/cuda/module/cluster.h"

#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/errlog.h"

static struct fgv_fit shape_of(const struct fgv_kernel *kernel, const struct fgv_launch *launch)
{
	return (struct fgv_fit){
		.size = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
		.block = {launch->block[0], launch->block[1], launch->block[2]},
		.shared_bytes = (uint32_t)launch->shared_bytes,
		.any_size = fgv_cluster_any_size(kernel),
		.policy = fgv_cluster_policy(kernel, launch),
	};
}

/* Completes @shape with what the host says; the code is CUDA's for what does not fit. */
static CUresult ask(struct fgv_lane *lane, const struct fgv_kernel *kernel,
		    const struct fgv_launch *launch, struct fgv_fit *shape)
{
	return fgv_call_clusters_active(lane, kernel->function, launch->grid, shape->block,
					shape->shared_bytes, shape->size, shape->any_size,
					shape->policy, &shape->active);
}

static bool is_known(struct fgv_kernel *kernel, struct fgv_fit *shape)
{
	bool same;

	pthread_mutex_lock(&kernel->module->mutex);
	shape->active = kernel->fit.active;
	same = shape->active && !memcmp(shape, &kernel->fit, sizeof(*shape));
	pthread_mutex_unlock(&kernel->module->mutex);
	return same;
}

static void remember(struct fgv_kernel *kernel, const struct fgv_fit *shape)
{
	pthread_mutex_lock(&kernel->module->mutex);
	kernel->fit = *shape;
	pthread_mutex_unlock(&kernel->module->mutex);
}

static bool divides(const uint32_t cluster[3], const uint32_t grid[3])
{
	return cluster[0] && cluster[1] && cluster[2] && grid[0] % cluster[0] == 0 &&
	       grid[1] % cluster[1] == 0 && grid[2] % cluster[2] == 0;
}

CUresult fgv_cluster_check(struct fgv_lane *lane, struct fgv_kernel *kernel,
			   const struct fgv_launch *launch, const struct fgv_device_info *info)
{
	struct fgv_fit shape = shape_of(kernel, launch);
	uint64_t clusters, blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	CUresult res;

	if (!fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
		return FGV_UNSUPPORTED("clusters of blocks");
	if (!divides(shape.size, launch->grid))
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_known(kernel, &shape)) {
		res = ask(lane, kernel, launch, &shape);
		if (res)
			return res;
		if (shape.active <= 0)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		remember(kernel, &shape);
	}
	clusters = blocks / ((uint64_t)shape.size[0] * shape.size[1] * shape.size[2]);
	return launch->cooperative && clusters > (uint64_t)shape.active
		       ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
		       : CUDA_SUCCESS;
}

/* A lane to ask about @kernel, on a device that has clusters. */
static CUresult begin(struct fgv_kernel *kernel, const CUlaunchConfig *config,
		      struct fgv_lane **lane, struct fgv_launch *launch)
{
	CUresult res = fgv_launch_read(config, launch);

	if (!res)
		res = fgv_context_enter(lane);
	if (res)
		return res;
	res = fgv_kernel_need(*lane, kernel);
	if (!res && !fgv_device_attribute(fgv_device_info(), CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
		res = FGV_UNSUPPORTED("clusters of blocks");
	if (!res &&
	    launch->shared_bytes > __atomic_load_n(&kernel->max_dynamic_shared, __ATOMIC_RELAXED))
		res = CUDA_ERROR_INVALID_VALUE;
	if (res)
		fgv_lane_leave(*lane);
	return res;
}

CUresult fgv_cluster_count_active(struct fgv_kernel *kernel, const CUlaunchConfig *config,
				  int *count)
{
	struct fgv_launch launch;
	struct fgv_lane *lane;
	struct fgv_fit shape;
	CUresult res = count ? begin(kernel, config, &lane, &launch) : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	shape = shape_of(kernel, &launch);
	res = ask(lane, kernel, &launch, &shape);
	fgv_lane_leave(lane);
	if (!res)
		*count = shape.active;
	return res;
}

CUresult fgv_cluster_find_largest(struct fgv_kernel *kernel, const CUlaunchConfig *config,
				  int *size)
{
	struct fgv_launch launch;
	struct fgv_lane *lane;
	struct fgv_fit shape;
	CUresult res = size ? begin(kernel, config, &lane, &launch) : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	shape = shape_of(kernel, &launch);
	res = fgv_call_clusters_largest(lane, kernel->function, launch.grid, shape.block,
					shape.shared_bytes, shape.any_size, size);
	fgv_lane_leave(lane);
	return res;
}
