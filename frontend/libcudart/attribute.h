/*
 * Attributes of streams, of kernel nodes and of launches. Most are hints of how fast
 * something shall be, or promises of the program's that allow more than is done here: they are
 * checked and remembered, and the program sees of them what it asks for. The others are
 * `cooperative` and those of clusters, which their owner obeys.
 */
#ifndef FGV_LIBCUDART_ATTRIBUTE_H
#define FGV_LIBCUDART_ATTRIBUTE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

/* What an attribute is asked for. */
enum fgv_attribute_owner {
	FGV_ATTRIBUTE_STREAM = 1,
	FGV_ATTRIBUTE_NODE = 2,
	FGV_ATTRIBUTE_LAUNCH = 4,
};

struct fgv_attributes {
	struct cudaAccessPolicyWindow window;
	struct {
		uint32_t x, y, z;
	} cluster;
	int32_t cooperative;
	int32_t priority;
	enum cudaSynchronizationPolicy sync_policy;
	enum cudaClusterSchedulingPolicy cluster_policy;
	cudaLaunchMemSyncDomainMap domain_map;
	cudaLaunchMemSyncDomain domain;
	uint32_t carveout;
	uint32_t nvlink_centric;
};

/* As they are where nobody has set any. */
#define FGV_ATTRIBUTES_DEFAULT                                                                     \
	{                                                                                          \
		.sync_policy = cudaSyncPolicyAuto, .domain_map = {.default_ = 0, .remote = 1},     \
		.carveout = (uint32_t)cudaSharedmemCarveoutDefault                                 \
	}

/* Whether blocks are to be in clusters; a block alone needs none. */
static inline bool fgv_attributes_have_clusters(const struct fgv_attributes *attributes)
{
	return attributes->cluster.x > 1 || attributes->cluster.y > 1 || attributes->cluster.z > 1;
}

/* Those of a new stream, for free(). NULL: no memory. */
struct fgv_attributes *fgv_attributes_create(int priority);

/*
 * cudaErrorInvalidValue for what @owner has not, or can't be set to; cudaErrorNotSupported,
 * counted, for what CUDA has and FairGV does not.
 */
cudaError_t fgv_attribute_get(const struct fgv_attributes *attributes,
			      enum fgv_attribute_owner owner, cudaLaunchAttributeID id,
			      cudaLaunchAttributeValue *value);
cudaError_t fgv_attribute_set(struct fgv_attributes *attributes, enum fgv_attribute_owner owner,
			      cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value);

#endif
