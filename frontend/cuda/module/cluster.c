/*
 * Clusters of blocks. How many there can be, and of how many blocks, is for the GPU's driver to
 * say: it is asked once for each shape of a kernel's clusters, and posted launches follow.
 * Its answer depends on what a block takes and on the clusters, not on how many blocks there are.
 *
 * What a block takes counts by how many of them a multiprocessor has room for. So what was said of
 * one kernel holds for all kernels of which it has room for as many, unless a kernel is made for
 * clusters of one size. cuBLAS asks about each of its kernels.
 */
#include "frontend/cuda/module/cluster.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/module/occupancy.h"

static bool divides(const uint32_t cluster[3], const uint32_t grid[3])
{
	return cluster[0] && cluster[1] && cluster[2] && grid[0] % cluster[0] == 0 &&
	       grid[1] % cluster[1] == 0 && grid[2] % cluster[2] == 0;
}

static struct fgv_fit shape_of(const struct fgv_kernel *kernel, const struct fgv_launch *launch)
{
	return (struct fgv_fit){
		.size = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
		.block = {launch->block[0], launch->block[1], launch->block[2]},
		.shared_bytes = (uint32_t)launch->shared_bytes,
		.any_size = fgv_cluster_any_size(kernel),
		.policy = fgv_cluster_policy(kernel, launch),
		.uneven = !divides(launch->cluster, launch->grid),
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

/* What holds for kernels of all modules. */
#define SHARED 64
static struct {
	pthread_mutex_t mutex;
	uint32_t count; /* that were ever kept */
	struct shared_fit {
		uint32_t size[3];
		uint32_t any_size;
		uint32_t policy;
		uint32_t uneven;
		int32_t blocks; /* that a multiprocessor has room for */
		int32_t answer;
	} last[SHARED];
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

#define SHARED_SHAPE offsetof(struct shared_fit, answer)

/* A compiler's choice, about which a launch can be wrong. */
static bool has_own_size(const struct fgv_kernel *kernel)
{
	const int32_t *of = kernel->info->attributes;

	return of[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] ||
	       of[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] ||
	       of[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] ||
	       of[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH];
}

/* What @shape is to other kernels; false: nothing, or it is not one that runs. */
static bool share_of(const struct fgv_kernel *kernel, const struct fgv_fit *shape,
		     struct shared_fit *share)
{
	uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
	int blocks = 0;

	if (has_own_size(kernel) || !shape->size[0] || !threads ||
	    threads > (uint64_t)kernel->info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] ||
	    fgv_occupancy_of(kernel, (int)threads, shape->shared_bytes, &blocks) || blocks <= 0)
		return false;
	*share = (struct shared_fit){
		.size = {shape->size[0], shape->size[1], shape->size[2]},
		.any_size = shape->any_size,
		.policy = shape->policy,
		.uneven = shape->uneven,
		.blocks = blocks,
		.answer = shape->answer,
	};
	return true;
}

static struct shared_fit *find_shared_locked(const struct shared_fit *share)
{
	for (uint32_t i = 0; i < SHARED && i < shared.count; i++) {
		if (!memcmp(&shared.last[i], share, SHARED_SHAPE))
			return &shared.last[i];
	}
	return NULL;
}

static bool recall_shared(const struct fgv_kernel *kernel, struct fgv_fit *shape)
{
	struct shared_fit share, *known;

	if (!share_of(kernel, shape, &share))
		return false;
	pthread_mutex_lock(&shared.mutex);
	known = find_shared_locked(&share);
	if (known)
		shape->answer = known->answer;
	pthread_mutex_unlock(&shared.mutex);
	return known;
}

static void remember_shared(const struct fgv_kernel *kernel, const struct fgv_fit *shape)
{
	struct shared_fit share;

	if (!share_of(kernel, shape, &share))
		return;
	pthread_mutex_lock(&shared.mutex);
	if (!find_shared_locked(&share))
		shared.last[shared.count++ % SHARED] = share;
	pthread_mutex_unlock(&shared.mutex);
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
	if (known)
		return true;
	if (!recall_shared(kernel, shape))
		return false;
	remember(kernel, shape);
	return true;
}

/* Completes @shape with what the host says; the code is CUDA's for what does not fit. */
static CUresult ask(struct fgv_lane *lane, struct fgv_kernel *kernel,
		    const struct fgv_launch *launch, struct fgv_fit *shape)
{
	CUresult res = fgv_call_clusters_active(lane, kernel->function, launch->grid, shape->block,
						shape->shared_bytes, shape->size, shape->any_size,
						shape->policy, &shape->answer);

	if (!res && shape->answer > 0) {
		remember(kernel, shape);
		remember_shared(kernel, shape);
	}
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

CUresult fgv_cluster_check(struct fgv_lane *lane, struct fgv_kernel *kernel,
			   const struct fgv_launch *launch, const struct fgv_device_info *info)
{
	struct fgv_fit shape = shape_of(kernel, launch);
	uint64_t clusters, blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	CUresult res;

	if (!fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
		return FGV_UNSUPPORTED("clusters of blocks");
	if (shape.uneven)
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
		res = fgv_context_enter_any(lane);
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
	/* What is wrong with a grid is for the host to say; what it refuses is not kept. */
	if (!recall(kernel, &shape))
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
	shape.policy = shape.uneven = 0;
	if (!recall(kernel, &shape))
		res = ask_largest(lane, kernel, &launch, &shape);
	fgv_lane_leave(lane);
	if (!res)
		*size = shape.answer;
	return res;
}
