/*
 * Attributes of streams, of kernel nodes and of launches. Most are hints of how fast
 * something shall be, or promises of the program's that allow more than is done here: they are
 * checked and remembered, and the program sees of them what it asks for. The others are
 * `cooperative` and those of clusters, which their owner obeys.
 */
#ifndef FGV_CUDA_ATTRIBUTES_H
#define FGV_CUDA_ATTRIBUTES_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* What an attribute is asked for. */
enum fgv_attribute_owner {
	FGV_ATTRIBUTE_STREAM = 1,
	FGV_ATTRIBUTE_NODE = 2,
	FGV_ATTRIBUTE_LAUNCH = 4,
};

struct fgv_attributes {
	CUaccessPolicyWindow window;
	struct {
		uint32_t x, y, z;
	} cluster;
	int32_t cooperative;
	int32_t priority;
	CUsynchronizationPolicy sync_policy;
	CUclusterSchedulingPolicy cluster_policy;
	CUlaunchMemSyncDomainMap domain_map;
	CUlaunchMemSyncDomain domain;
	uint32_t carveout;
	uint32_t nvlink_centric;
};

/* As they are where nobody has set any. */
#define FGV_ATTRIBUTES_DEFAULT                                                                     \
	{                                                                                          \
		.sync_policy = CU_SYNC_POLICY_AUTO, .domain_map = {.default_ = 0, .remote = 1},    \
		.carveout = (uint32_t)CU_SHAREDMEM_CARVEOUT_DEFAULT                                \
	}

/* Whether blocks are to be in clusters; a block alone needs none. */
static inline bool fgv_attributes_have_clusters(const struct fgv_attributes *attributes)
{
	return attributes->cluster.x > 1 || attributes->cluster.y > 1 || attributes->cluster.z > 1;
}

/* Those of a new stream, for free(). NULL: no memory. */
struct fgv_attributes *fgv_attributes_create(int priority);

/*
 * CUDA_ERROR_INVALID_VALUE for what @owner has not, or can't be set to; CUDA_ERROR_NOT_SUPPORTED,
 * counted, for what CUDA has and FairGV does not.
 */
CUresult fgv_attribute_get(const struct fgv_attributes *attributes, enum fgv_attribute_owner owner,
			   CUlaunchAttributeID id, CUlaunchAttributeValue *value);
CUresult fgv_attribute_set(struct fgv_attributes *attributes, enum fgv_attribute_owner owner,
			   CUlaunchAttributeID id, const CUlaunchAttributeValue *value);

#endif
