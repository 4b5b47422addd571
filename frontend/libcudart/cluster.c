/*
 * Clusters of blocks. How many there can be, and of how many blocks, is for the GPU's driver to
 * say: it is asked for a kernel's first launch of a shape, and posted launches follow.
 */
#include <string.h>

#include "frontend/cuda/context/device.h"
#include "frontend/cuda/module/module.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/launch.h"

static struct fgv_fit shape_of(const struct fgv_kernel *kernel, const struct fgv_launch *launch)
{
	return (struct fgv_fit){
		.size = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
		.block = {launch->block.x, launch->block.y, launch->block.z},
		.shared_bytes = (uint32_t)launch->shared_bytes,
		.any_size = fgv_cluster_any_size(kernel),
		.policy = fgv_cluster_policy(kernel, launch),
	};
}

/* Completes @shape with what the host says; the code is CUDA's for what does not fit. */
static cudaError_t ask(struct fgv_lane *lane, const struct fgv_kernel *kernel,
		       const struct fgv_launch *launch, struct fgv_fit *shape)
{
	const uint32_t grid[3] = {launch->grid.x, launch->grid.y, launch->grid.z};

	return fgv_error_from(fgv_call_clusters_active(
		lane, kernel->function, grid, shape->block, shape->shared_bytes, shape->size,
		shape->any_size, shape->policy, &shape->active));
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

static bool divides(const uint32_t cluster[3], dim3 grid)
{
	return cluster[0] && cluster[1] && cluster[2] && grid.x % cluster[0] == 0 &&
	       grid.y % cluster[1] == 0 && grid.z % cluster[2] == 0;
}

cudaError_t fgv_cluster_check(struct fgv_lane *lane, struct fgv_kernel *kernel,
			      const struct fgv_launch *launch, const struct fgv_device_info *info)
{
	struct fgv_fit shape = shape_of(kernel, launch);
	uint64_t clusters, blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
	cudaError_t error;

	if (!fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
		return FGV_NOT_SUPPORTED("clusters of blocks");
	if (!divides(shape.size, launch->grid))
		return cudaErrorInvalidValue;
	if (!is_known(kernel, &shape)) {
		error = ask(lane, kernel, launch, &shape);
		if (error)
			return error;
		if (shape.active <= 0)
			return cudaErrorInvalidClusterSize;
		remember(kernel, &shape);
	}
	clusters = blocks / ((uint64_t)shape.size[0] * shape.size[1] * shape.size[2]);
	return launch->cooperative && clusters > (uint64_t)shape.active
		       ? cudaErrorCooperativeLaunchTooLarge
		       : cudaSuccess;
}

/* The kernel that is asked about, with a lane to ask, on a device that has clusters. */
static cudaError_t begin(const void *func, const cudaLaunchConfig_t *config, struct fgv_lane **lane,
			 struct fgv_kernel **kernel, struct fgv_launch *launch)
{
	const struct fgv_device_info *info;
	cudaError_t error = fgv_launch_read(config, launch);
	CUresult res;

	if (!error)
		error = fgv_kernel_of(func, kernel);
	if (!error)
		error = fgv_enter(lane);
	if (error)
		return error;
	info = fgv_device_info();
	res = fgv_kernel_need(*lane, *kernel);
	error = fgv_kernel_error(res);
	if (!error && !fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
		error = FGV_NOT_SUPPORTED("clusters of blocks");
	if (!error && launch->shared_bytes >
			      __atomic_load_n(&(*kernel)->max_dynamic_shared, __ATOMIC_RELAXED))
		error = cudaErrorInvalidValue;
	if (error)
		fgv_lane_leave(*lane);
	return error;
}

static cudaError_t count_active(int *count, const void *func, const cudaLaunchConfig_t *config)
{
	struct fgv_kernel *kernel;
	struct fgv_launch launch;
	struct fgv_lane *lane;
	struct fgv_fit shape;
	cudaError_t error =
		count ? begin(func, config, &lane, &kernel, &launch) : cudaErrorInvalidValue;

	if (error)
		return error;
	shape = shape_of(kernel, &launch);
	error = ask(lane, kernel, &launch, &shape);
	fgv_lane_leave(lane);
	if (!error)
		*count = shape.active;
	return error;
}

FGV_EXPORT cudaError_t cudaOccupancyMaxActiveClusters(int *numClusters, const void *func,
						      const cudaLaunchConfig_t *launchConfig)
{
	return fgv_error_set(count_active(numClusters, func, launchConfig));
}

static cudaError_t find_largest(int *size, const void *func, const cudaLaunchConfig_t *config)
{
	struct fgv_kernel *kernel;
	struct fgv_launch launch;
	struct fgv_lane *lane;
	struct fgv_fit shape;
	cudaError_t error =
		size ? begin(func, config, &lane, &kernel, &launch) : cudaErrorInvalidValue;

	if (error)
		return error;
	shape = shape_of(kernel, &launch);
	error = fgv_error_from(fgv_call_clusters_largest(
		lane, kernel->function,
		(const uint32_t[3]){launch.grid.x, launch.grid.y, launch.grid.z}, shape.block,
		shape.shared_bytes, shape.any_size, size));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func,
							    const cudaLaunchConfig_t *launchConfig)
{
	return fgv_error_set(find_largest(clusterSize, func, launchConfig));
}
