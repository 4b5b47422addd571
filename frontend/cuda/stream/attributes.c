/*
 * Which attributes there are, where they are kept, and what they may be. The values of a union
 * all begin where it begins, so one table says everything but what is allowed.
 */
#include "frontend/cuda/stream/attributes.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/cuda/context/errlog.h"

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
	[CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW] = PLACE(window, EVERYWHERE),
	[CU_LAUNCH_ATTRIBUTE_COOPERATIVE] = PLACE(cooperative, KERNELS),
	[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY] = PLACE(sync_policy, FGV_ATTRIBUTE_STREAM),
	[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] = PLACE(cluster, KERNELS),
	[CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] = PLACE(cluster_policy, KERNELS),
	[CU_LAUNCH_ATTRIBUTE_PRIORITY] = PLACE(priority, EVERYWHERE),
	[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP] = PLACE(domain_map, EVERYWHERE),
	[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN] = PLACE(domain, EVERYWHERE),
	[CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = PLACE(carveout, KERNELS),
	[CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING] = PLACE(nvlink_centric, EVERYWHERE),
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

static bool is_property(CUaccessProperty property)
{
	return property == CU_ACCESS_PROPERTY_NORMAL || property == CU_ACCESS_PROPERTY_STREAMING ||
	       property == CU_ACCESS_PROPERTY_PERSISTING;
}

/* One of more bytes than the device has room for is one of as many as it has. */
static bool is_window(const CUaccessPolicyWindow *window)
{
	return window->hitRatio >= 0 && window->hitRatio <= 1 && is_property(window->hitProp) &&
	       is_property(window->missProp) && window->missProp != CU_ACCESS_PROPERTY_PERSISTING;
}

static bool is_allowed(CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return is_window(&value->accessPolicyWindow);
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return value->syncPolicy >= CU_SYNC_POLICY_AUTO &&
		       value->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return (unsigned)value->clusterSchedulingPolicyPreference <=
		       CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return (unsigned)value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value->sharedMemCarveout <= CARVEOUT_MAX ||
		       (int)value->sharedMemCarveout == CU_SHAREDMEM_CARVEOUT_DEFAULT;
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return value->nvlinkUtilCentricScheduling <= 1;
	default:
		return true;
	}
}

/* Streams have fewer, and CUDA refuses them the rest. */
static CUresult find(enum fgv_attribute_owner owner, CUlaunchAttributeID id,
		     const struct place **place)
{
	if ((unsigned)id < FGV_ARRAY_LEN(places) && (places[id].owners & owner)) {
		*place = &places[id];
		return CUDA_SUCCESS;
	}
	if (owner == FGV_ATTRIBUTE_STREAM || id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		return CUDA_ERROR_INVALID_VALUE;
	return FGV_UNSUPPORTED("attributes of kernels of this kind");
}

CUresult fgv_attribute_get(const struct fgv_attributes *attributes, enum fgv_attribute_owner owner,
			   CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
	const struct place *place;
	CUresult res = value ? find(owner, id, &place) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		memcpy(value, (const char *)attributes + place->offset, place->bytes);
	return res;
}

CUresult fgv_attribute_set(struct fgv_attributes *attributes, enum fgv_attribute_owner owner,
			   CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
	const struct place *place;
	CUresult res = value ? find(owner, id, &place) : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	if (!is_allowed(id, value))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy((char *)attributes + place->offset, value, place->bytes);
	return CUDA_SUCCESS;
}
