/*
 * Which attributes there are, where they are kept, and what they may be. The values of a union
 * all begin where it begins, so one table says everything but what is allowed.
 */
#include "frontend/libcudart/attribute.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/libcudart/cudart.h"

#define EVERYWHERE (FGV_ATTRIBUTE_STREAM | FGV_ATTRIBUTE_NODE | FGV_ATTRIBUTE_LAUNCH)
#define KERNELS	   (FGV_ATTRIBUTE_NODE | FGV_ATTRIBUTE_LAUNCH)

/* In percent; -1, the runtime's choice, is the default. */
#define CARVEOUT_MAX 100

struct place {
	uint16_t offset;
	uint16_t bytes;
	uint32_t owners;
};

#define PLACE(member, whose)                                                                       \
	{                                                                                          \
		.offset = offsetof(struct fgv_attributes, member),                                 \
		.bytes = sizeof(((struct fgv_attributes *)0)->member), .owners = (whose)           \
	}

static const struct place places[] = {
	[cudaLaunchAttributeAccessPolicyWindow] = PLACE(window, EVERYWHERE),
	[cudaLaunchAttributeCooperative] = PLACE(cooperative, KERNELS),
	[cudaLaunchAttributeSynchronizationPolicy] = PLACE(sync_policy, FGV_ATTRIBUTE_STREAM),
	[cudaLaunchAttributeClusterDimension] = PLACE(cluster, KERNELS),
	[cudaLaunchAttributeClusterSchedulingPolicyPreference] = PLACE(cluster_policy, KERNELS),
	[cudaLaunchAttributePriority] = PLACE(priority, EVERYWHERE),
	[cudaLaunchAttributeMemSyncDomainMap] = PLACE(domain_map, EVERYWHERE),
	[cudaLaunchAttributeMemSyncDomain] = PLACE(domain, EVERYWHERE),
	[cudaLaunchAttributePreferredSharedMemoryCarveout] = PLACE(carveout, KERNELS),
	[cudaLaunchAttributeNvlinkUtilCentricScheduling] = PLACE(nvlink_centric, EVERYWHERE),
};

struct fgv_attributes *fgv_attributes_create(int priority)
{
	struct fgv_attributes *attributes = malloc(sizeof(*attributes));

	if (attributes) {
		*attributes = (struct fgv_attributes)FGV_ATTRIBUTES_DEFAULT;
		attributes->priority = priority;
	}
	return attributes;
}

static bool is_property(enum cudaAccessProperty property)
{
	return property == cudaAccessPropertyNormal || property == cudaAccessPropertyStreaming ||
	       property == cudaAccessPropertyPersisting;
}

/* One of more bytes than the device has room for is one of as many as it has. */
static bool is_window(const struct cudaAccessPolicyWindow *window)
{
	return window->hitRatio >= 0 && window->hitRatio <= 1 && is_property(window->hitProp) &&
	       is_property(window->missProp) && window->missProp != cudaAccessPropertyPersisting;
}

static bool is_allowed(cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value)
{
	switch (id) {
	case cudaLaunchAttributeAccessPolicyWindow:
		return is_window(&value->accessPolicyWindow);
	case cudaLaunchAttributeSynchronizationPolicy:
		return value->syncPolicy >= cudaSyncPolicyAuto &&
		       value->syncPolicy <= cudaSyncPolicyBlockingSync;
	case cudaLaunchAttributeClusterSchedulingPolicyPreference:
		return (unsigned)value->clusterSchedulingPolicyPreference <=
		       cudaClusterSchedulingPolicyLoadBalancing;
	case cudaLaunchAttributeMemSyncDomain:
		return (unsigned)value->memSyncDomain <= cudaLaunchMemSyncDomainRemote;
	case cudaLaunchAttributePreferredSharedMemoryCarveout:
		return value->sharedMemCarveout <= CARVEOUT_MAX ||
		       (int)value->sharedMemCarveout == cudaSharedmemCarveoutDefault;
	case cudaLaunchAttributeNvlinkUtilCentricScheduling:
		return value->nvlinkUtilCentricScheduling <= 1;
	default:
		return true;
	}
}

/* Streams have fewer, and CUDA refuses them the rest. */
static cudaError_t find(enum fgv_attribute_owner owner, cudaLaunchAttributeID id,
			const struct place **place)
{
	if ((unsigned)id < FGV_ARRAY_LEN(places) && (places[id].owners & owner)) {
		*place = &places[id];
		return cudaSuccess;
	}
	if (owner == FGV_ATTRIBUTE_STREAM || id == cudaLaunchAttributeSynchronizationPolicy)
		return cudaErrorInvalidValue;
	return FGV_NOT_SUPPORTED("attributes of kernels of this kind");
}

cudaError_t fgv_attribute_get(const struct fgv_attributes *attributes,
			      enum fgv_attribute_owner owner, cudaLaunchAttributeID id,
			      cudaLaunchAttributeValue *value)
{
	const struct place *place;
	cudaError_t error = value ? find(owner, id, &place) : cudaErrorInvalidValue;

	if (!error)
		memcpy(value, (const char *)attributes + place->offset, place->bytes);
	return error;
}

cudaError_t fgv_attribute_set(struct fgv_attributes *attributes, enum fgv_attribute_owner owner,
			      cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value)
{
	const struct place *place;
	cudaError_t error = value ? find(owner, id, &place) : cudaErrorInvalidValue;

	if (error)
		return error;
	if (!is_allowed(id, value))
		return cudaErrorInvalidValue;
	memcpy((char *)attributes + place->offset, value, place->bytes);
	return cudaSuccess;
}
