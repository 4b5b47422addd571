/*
 * Clusters of blocks. How many there can be, and of how many blocks, is for the GPU's driver to
 * say: it is asked once for each shape of a kernel's clusters, and posted launches follow.
 * Its answer depends on what a block takes and on the clusters, not on how many blocks there are.
 */
#include "frontend/cuda/module/cluster.h"

#include <stddef.h>
#include <stdlib.h>
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

/* What is no answer of @fit. */
#define FIT_SHAPE offsetof(struct fgv_fit, answer)

static struct fgv_fit *find_locked(struct fgv_fits *fits, const struct fgv_fit *shape)
{
	for (uint32_t i = 0; fits && i < FGV_FITS && i < fits->count; i++) {
		if (!memcmp(&fits->last[i], shape, FIT_SHAPE))
			return &fits->last[i];
	}
	return NULL;
}

/* Completes @shape with what the host has said of it, if it has. */
static bool recall(struct fgv_kernel *kernel, struct fgv_fit *shape)
{
	const struct fgv_fit *known;

	pthread_mutex_lock(&kernel->module->mutex);
	known = find_locked(kernel->fits, shape);
	if (known)
		shape->answer = known->answer;
	pthread_mutex_unlock(&kernel->module->mutex);
	return known;
}

/* In the place of the oldest. Without memory the host is asked again. */
static void remember(struct fgv_kernel *kernel, const struct fgv_fit *shape)
{
	pthread_mutex_lock(&kernel->module->mutex);
	if (!kernel->fits)
		kernel->fits = calloc(1, sizeof(*kernel->fits));
	if (kernel->fits && !find_locked(kernel->fits, shape))
		kernel->fits->last[kernel->fits->count++ % FGV_FITS] = *shape;
	pthread_mutex_unlock(&kernel->module->mutex);
}

/* Completes @shape with what the host says; the code is CUDA's for what does not fit. */
static CUresult ask(struct fgv_lane *lane, struct fgv_kernel *kernel,
		    const struct fgv_launch *launch, struct fgv_fit *shape)
{
	CUresult res = fgv_call_clusters_active(lane, kernel->function, launch->grid, shape->block,
						shape->shared_bytes, shape->size, shape->any_size,
						shape->policy, &shape->answer);

	if (!res && shape->answer > 0)
		remember(kernel, shape);
	return res;
}

static CUresult ask_largest(struct fgv_lane *lane, struct fgv_kernel *kernel,
			    const struct fgv_launch *launch, struct fgv_fit *shape)
{
	CUresult res =
		fgv_call_clusters_largest(lane, kernel->function, launch->grid, shape->block,
					  shape->shared_bytes, shape->any_size, &shape->answer);

	if (!res)
		remember(kernel, shape);
	return res;
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
	if (!recall(kernel, &shape)) {
		res = ask(lane, kernel, launch, &shape);
		if (res)
			return res;
		if (shape.answer <= 0)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	}
	clusters = blocks / ((uint64_t)shape.size[0] * shape.size[1] * shape.size[2]);
	return launch->cooperative && clusters > (uint64_t)shape.answer
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
	/* What is wrong with a grid is for the host to say. */
	if (!divides(shape.size, launch.grid) || !recall(kernel, &shape))
		res = ask(lane, kernel, &launch, &shape);
	fgv_lane_leave(lane);
	if (!res)
		*count = shape.answer;
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
	memset(shape.size, 0, sizeof(shape.size));
	shape.policy = 0;
	if (!recall(kernel, &shape))
		res = ask_largest(lane, kernel, &launch, &shape);
	fgv_lane_leave(lane);
	if (!res)
		*size = shape.answer;
	return res;
}
