/*
 * Clusters of blocks: whether those of a launch fit, and what fits.
 *
 * Threads: any; the lane is the caller's.
 */
#ifndef FGV_CUDA_CLUSTER_H
#define FGV_CUDA_CLUSTER_H

#include "frontend/cuda/module/launch_config.h"
#include "frontend/cuda/module/module.h"

struct fgv_device_info;

/*
 * Whether the clusters of a launch that fits otherwise do so, too. The host is asked where it has
 * not been for clusters of this shape, and then is the one that knows what does not fit.
 */
CUresult fgv_cluster_check(struct fgv_lane *lane, struct fgv_kernel *kernel,
			   const struct fgv_launch *launch, const struct fgv_device_info *info);

/* How many clusters of @config run at once; of how many blocks they may be at most. */
CUresult fgv_cluster_count_active(struct fgv_kernel *kernel, const CUlaunchConfig *config,
				  int *count);
CUresult fgv_cluster_find_largest(struct fgv_kernel *kernel, const CUlaunchConfig *config,
				  int *size);

static inline uint32_t fgv_cluster_any_size(const struct fgv_kernel *kernel)
{
	return __atomic_load_n(&kernel->any_cluster, __ATOMIC_RELAXED);
}

/* The launch's, else the kernel's. */
static inline uint32_t fgv_cluster_policy(const struct fgv_kernel *kernel,
					  const struct fgv_launch *launch)
{
	return launch->policy ? launch->policy
			      : __atomic_load_n(&kernel->cluster_policy, __ATOMIC_RELAXED);
}

#endif
