/*
 * Making what nodes do. The parameters of a node are those of a call that does the same in a
 * stream: that call is made while a recorder stands in for all streams, and what it would have
 * posted is the node's work. So nodes can do what streams can, and are as strict.
 */
#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/graph/capture_priv.h"
#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/memory/box.h"
#include "frontend/cuda/memory/fill.h"
#include "frontend/cuda/module/launch.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/host_func.h"

/* With those of a node's attributes that say what is launched. */
static CUresult launch(const CUDA_KERNEL_NODE_PARAMS_v3 *p, const struct fgv_attributes *attributes)
{
	CUlaunchAttribute list[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
		 .value.cooperative = attributes->cooperative},
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
		 .value.clusterSchedulingPolicyPreference = attributes->cluster_policy},
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		 .value.clusterDim = {attributes->cluster.x, attributes->cluster.y,
				      attributes->cluster.z}},
	};
	const CUlaunchConfig config = {
		.gridDimX = p->gridDimX,
		.gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX,
		.blockDimY = p->blockDimY,
		.blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes,
		.attrs = list,
		.numAttrs = FGV_ARRAY_LEN(list),
	};
	struct fgv_kernel *kernel =
		fgv_registry_kernel(p->func ? (void *)p->func : (void *)p->kern);

	return kernel ? fgv_launch_extended(kernel, &config, p->kernelParams, p->extra)
		      : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult fill(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	const struct fgv_fill rows = {
		.address = p->dst,
		.pitch = p->height > 1 ? p->pitch : p->width * p->elementSize,
		.value = p->value,
		.element = p->elementSize,
		.count = p->width,
		.rows = p->height,
	};

	if (!p->dst || !p->width || !p->height)
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_fill_run(&rows, NULL, false);
}

/* Into the recorder that stands in for the stream. */
static CUresult act(const CUgraphNodeParams *params, const struct fgv_attributes *attributes)
{
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return launch(&params->kernel, attributes);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return fgv_box_copy(&params->memcpy.copyParams, (struct fgv_when){NULL, false});
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill(&params->memset);
	case CU_GRAPH_NODE_TYPE_HOST:
		return fgv_host_func_launch(NULL, params->host.fn, params->host.userData);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return fgv_event_record(params->eventRecord.event, NULL, CU_EVENT_RECORD_EXTERNAL);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return fgv_event_wait(NULL, params->eventWait.event, CU_EVENT_WAIT_EXTERNAL);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	default:
		return FGV_UNSUPPORTED("graph nodes of this kind");
	}
}

static CUresult record(const CUgraphNodeParams *params, const struct fgv_attributes *attributes,
		       struct fgv_record **records)
{
	struct fgv_recorder recorder;
	CUresult res;

	fgv_recorder_init(&recorder);
	fgv_capture_divert(&recorder, (uint32_t)fgv_context_get_device());
	res = act(params, attributes);
	fgv_capture_divert(NULL, 0);
	if (!res)
		res = recorder.failed;
	if (res)
		fgv_records_free(recorder.first);
	else
		*records = recorder.first;
	return res;
}

/* The node gets a copy of the graph, or the graph itself. */
static CUresult make_child(const CUDA_CHILD_GRAPH_NODE_PARAMS *params, struct fgv_work *work)
{
	struct fgv_graph *found = fgv_graph_of(params->graph);

	if (!found || (unsigned)params->ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
		return fgv_graph_has_memory(found) || fgv_graph_has_choices(found)
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : fgv_work_copy_child(found, &work->child);
	if (fgv_graph_has_choices(found))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (found->is_child || found->executables)
		return CUDA_ERROR_INVALID_VALUE;
	found->is_child = found->is_moved = true;
	work->child = found;
	return CUDA_SUCCESS;
}

/* What is kept of a kernel: its name as a CUfunction; its arguments are in what was recorded. */
static void keep_kernel(CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
	if (!p->func)
		p->func = (CUfunction)p->kern;
	p->kernelParams = p->extra = NULL;
}

CUresult fgv_work_make(const CUgraphNodeParams *params, const struct fgv_attributes *attributes,
		       struct fgv_work *work)
{
	CUresult res = fgv_work_start(params, attributes, NULL, work);

	if (res)
		return res;
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		keep_kernel(&work->task->params.kernel);
	if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		res = make_child(&params->graph, work);
	else
		res = record(params, attributes, &work->task->records);
	if (res)
		fgv_work_free(work);
	return res;
}
