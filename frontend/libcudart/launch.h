/*
 * What a launch is, for the files that check, post and ask about launches.
 */
#ifndef FGV_LIBCUDART_LAUNCH_H
#define FGV_LIBCUDART_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "frontend/cuda/module/registry.h"

struct fgv_device_info;
struct fgv_lane;

struct fgv_launch {
	dim3 grid;
	dim3 block;
	size_t shared_bytes;
	cudaStream_t stream;
	void **args;
	bool cooperative; /* all blocks run at once */
	bool in_clusters; /* of so many blocks, placed so: */
	uint32_t cluster[3];
	enum cudaClusterSchedulingPolicy policy;
	bool early;		      /* need not wait for the end of the kernel before it */
	cudaEvent_t event;	      /* to be recorded once it has come so far; NULL: none */
	cudaGraphEdgeData event_edge; /* of who waits for that in a capture */
};

/* What @config asks for; without arguments. */
cudaError_t fgv_launch_read(const cudaLaunchConfig_t *config, struct fgv_launch *launch);

/*
 * Whether the clusters of a launch that fits otherwise do so, too. The host is asked where it has
 * not been for clusters of this shape, and then is the one who knows what does not fit.
 */
cudaError_t fgv_cluster_check(struct fgv_lane *lane, struct fgv_kernel *kernel,
			      const struct fgv_launch *launch, const struct fgv_device_info *info);

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
