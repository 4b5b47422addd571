/*
 * What nodes do. The parameters of a node are those of a call that does the same in a stream:
 * that call is made while a recorder stands in for all streams, and what it would have posted
 * is the node's work. So nodes can do what streams can, and are as strict.
 */
#include <stdlib.h>

#include "common/util.h"
#include "frontend/cuda/memory/copy.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/capture.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph.h"
#include "frontend/libcudart/graph_memory.h"
#include "frontend/cuda/stream/host_func.h"

/* With those of a node's attributes that say what is launched. */
static cudaError_t launch(const struct cudaKernelNodeParamsV2 *p,
			  const struct fgv_attributes *attributes)
{
	cudaLaunchAttribute list[] = {
		{.id = cudaLaunchAttributeCooperative, .val.cooperative = attributes->cooperative},
		{.id = cudaLaunchAttributeClusterSchedulingPolicyPreference,
		 .val.clusterSchedulingPolicyPreference =
			 (enum cudaClusterSchedulingPolicy)attributes->cluster_policy},
		{.id = cudaLaunchAttributeClusterDimension,
		 .val.clusterDim = {attributes->cluster.x, attributes->cluster.y,
				    attributes->cluster.z}},
	};
	const cudaLaunchConfig_t config = {
		.gridDim = p->gridDim,
		.blockDim = p->blockDim,
		.dynamicSmemBytes = p->sharedMemBytes,
		.attrs = list,
		.numAttrs = FGV_ARRAY_LEN(list),
	};

	if (p->extra)
		return FGV_NOT_SUPPORTED("kernel nodes with extra arguments");
	return cudaLaunchKernelExC(&config, p->func, p->kernelParams);
}

static bool is_flat(const struct cudaMemcpy3DParms *p)
{
	return !p->srcArray && !p->dstArray && p->extent.height <= 1 && p->extent.depth <= 1 &&
	       !p->srcPos.y && !p->srcPos.z && !p->dstPos.y && !p->dstPos.z;
}

static cudaError_t copy(const struct cudaMemcpy3DParms *p)
{
	if (!is_flat(p))
		return cudaMemcpy3DAsync(p, NULL);
	return cudaMemcpyAsync((char *)p->dstPtr.ptr + p->dstPos.x,
			       (const char *)p->srcPtr.ptr + p->srcPos.x, p->extent.width, p->kind,
			       NULL);
}

/* The runtime has no call for elements of more than a byte. */
static cudaError_t fill_wide(struct fgv_lane *lane, const struct cudaMemsetParamsV2 *p,
			     uint32_t stream)
{
	uint64_t address = (uint64_t)(uintptr_t)p->dst;
	CUresult res = CUDA_SUCCESS;

	for (size_t row = 0; row < p->height && !res; row++)
		res = fgv_post_fill(lane, address + row * p->pitch, p->width, p->value,
				    p->elementSize, stream);
	return fgv_error_from(res);
}

static cudaError_t fill(const struct cudaMemsetParamsV2 *p)
{
	struct fgv_lane *lane;
	uint32_t stream;
	cudaError_t error;

	if (!p->dst || !p->width || !p->height)
		return cudaErrorInvalidValue;
	if (p->elementSize == 1)
		return cudaMemset2DAsync(p->dst, p->height > 1 ? p->pitch : p->width, (int)p->value,
					 p->width, p->height, NULL);
	if (p->elementSize != 2 && p->elementSize != 4)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_error_from(fgv_stream_handle(lane, NULL, &stream));
	if (!error)
		error = fill_wide(lane, p, stream);
	fgv_lane_leave(lane);
	return error;
}

/* Into the recorder that stands in for the stream. */
static cudaError_t act(const struct cudaGraphNodeParams *params,
		       const struct fgv_attributes *attributes)
{
	switch (params->type) {
	case cudaGraphNodeTypeKernel:
		return launch(&params->kernel, attributes);
	case cudaGraphNodeTypeMemcpy:
		return copy(&params->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		return fill(&params->memset);
	case cudaGraphNodeTypeHost:
		return cudaLaunchHostFunc(NULL, params->host.fn, params->host.userData);
	case cudaGraphNodeTypeEventRecord:
		return cudaEventRecordWithFlags(params->eventRecord.event, NULL,
						cudaEventRecordExternal);
	case cudaGraphNodeTypeWaitEvent:
		return cudaStreamWaitEvent(NULL, params->eventWait.event, cudaEventWaitExternal);
	case cudaGraphNodeTypeEmpty:
		return cudaSuccess;
	default:
		return FGV_NOT_SUPPORTED("graph nodes of this kind");
	}
}

static cudaError_t record(const struct cudaGraphNodeParams *params,
			  const struct fgv_attributes *attributes, struct fgv_record **records)
{
	struct fgv_recorder recorder;
	cudaError_t error;

	fgv_recorder_init(&recorder);
	fgv_capture_divert(&recorder);
	error = act(params, attributes);
	fgv_capture_divert(NULL);
	if (!error)
		error = fgv_error_from(recorder.failed);
	if (error)
		fgv_records_free(recorder.first);
	else
		*records = recorder.first;
	return error;
}

static cudaError_t copy_child(struct fgv_graph *graph, struct fgv_graph **child)
{
	cudaError_t error = fgv_graph_copy(graph, true, child);

	if (!error)
		(*child)->is_child = true;
	return error;
}

/* The node gets a copy of the graph, or the graph itself. */
static cudaError_t make_child(const struct cudaChildGraphNodeParams *params, struct fgv_work *work)
{
	struct fgv_graph *found = fgv_graph_of(params->graph);

	if (!found || (unsigned)params->ownership > cudaGraphChildGraphOwnershipMove)
		return cudaErrorInvalidValue;
	if (params->ownership == cudaGraphChildGraphOwnershipClone)
		return fgv_graph_has_memory(found) ? cudaErrorNotSupported
						   : copy_child(found, &work->child);
	if (found->is_child || found->executables)
		return cudaErrorInvalidValue;
	found->is_child = found->is_moved = true;
	work->child = found;
	return cudaSuccess;
}

cudaError_t fgv_work_make(const struct cudaGraphNodeParams *params,
			  const struct fgv_attributes *attributes, struct fgv_work *work)
{
	*work = (struct fgv_work){.params = *params, .attributes = *attributes};
	if (params->type == cudaGraphNodeTypeGraph)
		return make_child(&params->graph, work);
	return record(params, attributes, &work->records);
}

cudaError_t fgv_work_copy(const struct fgv_work *work, struct fgv_work *copy)
{
	*copy = (struct fgv_work){
		.params = work->params,
		.attributes = work->attributes,
		.memory = fgv_graph_memory_get(work->memory),
	};
	if (work->child)
		return copy_child(work->child, &copy->child);
	return fgv_records_copy(work->records, &copy->records) ? cudaErrorMemoryAllocation
							       : cudaSuccess;
}

void fgv_work_free(struct fgv_work *work)
{
	fgv_records_free(work->records);
	fgv_graph_destroy(work->child);
	fgv_graph_memory_put(work->memory);
}

/* --- What a capture has recorded --------------------------------------------- */

_Static_assert(sizeof(struct fgv_launch_request) == sizeof(struct fgv_launch_cooperative_request) &&
		       offsetof(struct fgv_launch_request, grid) ==
			       offsetof(struct fgv_launch_cooperative_request, grid) &&
		       offsetof(struct fgv_launch_request, param_count) ==
			       offsetof(struct fgv_launch_clusters_request, param_count),
	       "all launches are described alike");

static void describe_launch(const struct fgv_recorder *recorder, struct cudaGraphNodeParams *params)
{
	const struct fgv_launch_request *request = (const void *)recorder->first->message;
	const struct fgv_kernel *kernel = recorder->subject;

	params->type = cudaGraphNodeTypeKernel;
	params->kernel = (struct cudaKernelNodeParamsV2){
		.func = (void *)kernel->host,
		.gridDim = {request->grid[0], request->grid[1], request->grid[2]},
		.blockDim = {request->block[0], request->block[1], request->block[2]},
		.sharedMemBytes = request->shared_bytes,
	};
}

static void describe_fill(const struct fgv_record *record, struct cudaGraphNodeParams *params)
{
	const struct fgv_fill_request *request = (const void *)record->message;

	params->type = cudaGraphNodeTypeMemset;
	params->memset = (struct cudaMemsetParamsV2){
		.dst = (void *)(uintptr_t)request->address,
		.value = request->value,
		.elementSize = request->width,
		.width = request->count,
		.height = 1,
	};
}

static void describe_fill_rows(const struct fgv_record *record, struct cudaGraphNodeParams *params)
{
	const struct fgv_fill_rows_request *request = (const void *)record->message;

	params->type = cudaGraphNodeTypeMemset;
	params->memset = (struct cudaMemsetParamsV2){
		.dst = (void *)(uintptr_t)request->address,
		.pitch = request->pitch,
		.value = request->value,
		.elementSize = 1,
		.width = request->width,
		.height = request->height,
	};
}

/* Of a copy that is not from one address to another no more than that it is one is said. */
static void describe_copy(const struct fgv_record *record, struct cudaGraphNodeParams *params)
{
	struct fgv_copy_sides sides;

	params->type = cudaGraphNodeTypeMemcpy;
	if (record->next || !fgv_copy_describe(record, &sides))
		return;
	params->memcpy.copyParams = (struct cudaMemcpy3DParms){
		.srcPtr = {sides.from, sides.len, sides.len, 1},
		.dstPtr = {sides.to, sides.len, sides.len, 1},
		.extent = {sides.len, 1, 1},
		.kind = cudaMemcpyDefault,
	};
}

static void describe(const struct fgv_recorder *recorder, struct cudaGraphNodeParams *params)
{
	const struct fgv_record *first = recorder->first;

	switch (first->run ? 0 : first->op) {
	case FGV_OP_LAUNCH:
	case FGV_OP_LAUNCH_COOPERATIVE:
	case FGV_OP_LAUNCH_CLUSTERS:
		describe_launch(recorder, params);
		break;
	case FGV_OP_FILL:
		describe_fill(first, params);
		break;
	case FGV_OP_FILL_ROWS:
		describe_fill_rows(first, params);
		break;
	case FGV_OP_EVENT_RECORD:
		params->type = cudaGraphNodeTypeEventRecord;
		params->eventRecord.event = (cudaEvent_t)recorder->subject;
		break;
	case FGV_OP_STREAM_WAIT_EVENT:
		params->type = cudaGraphNodeTypeWaitEvent;
		params->eventWait.event = (cudaEvent_t)recorder->subject;
		break;
	default:
		params->type = cudaGraphNodeTypeHost;
		if (!fgv_host_func_describe(first, &params->host.fn, &params->host.userData))
			describe_copy(first, params);
	}
}

static void describe_attributes(const struct fgv_record *record, struct fgv_attributes *attributes)
{
	const struct fgv_launch_clusters_request *request = (const void *)record->message;

	attributes->cooperative = record->op == FGV_OP_LAUNCH_COOPERATIVE;
	if (record->op != FGV_OP_LAUNCH_CLUSTERS)
		return;
	attributes->cooperative = (int32_t)request->cooperative;
	attributes->cluster.x = request->cluster[0];
	attributes->cluster.y = request->cluster[1];
	attributes->cluster.z = request->cluster[2];
	attributes->cluster_policy = (CUclusterSchedulingPolicy)request->policy;
}

void fgv_work_take(struct fgv_recorder *recorder, struct fgv_work *work)
{
	const struct fgv_record *first = recorder->first;

	*work = (struct fgv_work){.records = recorder->first, .attributes = FGV_ATTRIBUTES_DEFAULT};
	describe(recorder, &work->params);
	if (!first->run)
		describe_attributes(first, &work->attributes);
	fgv_recorder_init(recorder);
}
