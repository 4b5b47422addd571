/*
 * Attributes of launches.
 */
#include "frontend/cuda/module/launch_config.h"

#include "frontend/cuda/stream/attributes.h"
#include "frontend/cuda/stream/event.h"

/*
 * To allow a kernel to begin before the one before it ends is not to demand it, and an event that
 * may be recorded early is recorded at the end: it tells a graph how what waits for it may begin.
 */
static CUresult apply(const CUlaunchAttribute *attribute, struct fgv_attributes *attributes,
		      struct fgv_launch *launch)
{
	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		launch->early = attribute->value.programmaticStreamSerializationAllowed;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		launch->event = attribute->value.programmaticEvent.event;
		launch->event_edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
		launch->event_edge.from_port =
			attribute->value.programmaticEvent.triggerAtBlockStart
				? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
				: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
		return fgv_event_check(launch->event, attribute->value.programmaticEvent.flags);
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		launch->event = attribute->value.launchCompletionEvent.event;
		launch->event_edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
		return fgv_event_check(launch->event, attribute->value.launchCompletionEvent.flags);
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		launch->has_priority = true;
		launch->priority = attribute->value.priority;
		return CUDA_SUCCESS;
	default:
		return fgv_attribute_set(attributes, FGV_ATTRIBUTE_LAUNCH, attribute->id,
					 &attribute->value);
	}
}

CUresult fgv_launch_read(const CUlaunchConfig *config, struct fgv_launch *launch)
{
	struct fgv_attributes attributes = {0};
	CUresult res = CUDA_SUCCESS;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	*launch = (struct fgv_launch){
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.shared_bytes = config->sharedMemBytes,
		.stream = config->hStream,
	};
	for (unsigned i = 0; i < config->numAttrs && !res; i++)
		res = apply(&config->attrs[i], &attributes, launch);
	if (res)
		return res;
	launch->cooperative = attributes.cooperative;
	launch->in_clusters = fgv_attributes_have_clusters(&attributes);
	launch->cluster[0] = attributes.cluster.x;
	launch->cluster[1] = attributes.cluster.y;
	launch->cluster[2] = attributes.cluster.z;
	launch->policy = attributes.cluster_policy;
	return CUDA_SUCCESS;
}
