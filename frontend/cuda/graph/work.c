/*
 * What nodes do: copying and freeing it, and what of it a stream's capture has recorded.
 */
#include <stddef.h>
#include <stdlib.h>

#include "api/gpu_wire.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/graph/choice.h"
#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/memory/copy.h"
#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/cuda/stream/host_func.h"

CUresult fgv_work_copy_child(struct fgv_graph *graph, struct fgv_graph **child)
{
	CUresult res = fgv_graph_copy(graph, true, child);

	if (!res)
		(*child)->is_child = true;
	return res;
}

CUresult fgv_work_start(const CUgraphNodeParams *params, const struct fgv_attributes *attributes,
			struct fgv_record *records, struct fgv_work *work)
{
	struct fgv_task *task = malloc(sizeof(*task));

	if (!task)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*task = (struct fgv_task){
		.params = *params,
		.records = records,
		.attributes = *attributes,
		.device = (uint32_t)fgv_context_get_device(),
		.owners = 1,
	};
	*work = (struct fgv_work){.task = task};
	return CUDA_SUCCESS;
}

/* The last owner frees it behind what the others did with it: the decrement acquires their own. */
static void put_task(struct fgv_task *task)
{
	if (!task || __atomic_sub_fetch(&task->owners, 1, __ATOMIC_ACQ_REL))
		return;
	fgv_records_free(task->records);
	free(task);
}

CUresult fgv_work_copy(const struct fgv_work *work, struct fgv_work *copy)
{
	CUresult res = CUDA_SUCCESS;

	__atomic_add_fetch(&work->task->owners, 1, __ATOMIC_RELAXED);
	*copy = (struct fgv_work){
		.task = work->task,
		.memory = fgv_graph_memory_get(work->memory),
	};
	if (work->child)
		res = fgv_work_copy_child(work->child, &copy->child);
	else if (work->bodies)
		res = fgv_bodies_copy(work->bodies, &copy->bodies);
	if (res)
		fgv_work_free(copy);
	return res;
}

void fgv_work_free(struct fgv_work *work)
{
	put_task(work->task);
	fgv_graph_free(work->child);
	fgv_bodies_free(work->bodies);
	fgv_graph_memory_put(work->memory);
}

/* --- What a capture has recorded --------------------------------------------- */

_Static_assert(sizeof(struct fgv_launch_request) == sizeof(struct fgv_launch_cooperative_request) &&
		       offsetof(struct fgv_launch_request, grid) ==
			       offsetof(struct fgv_launch_cooperative_request, grid) &&
		       offsetof(struct fgv_launch_request, param_count) ==
			       offsetof(struct fgv_launch_clusters_request, param_count),
	       "all launches are described alike");

static void describe_launch(const struct fgv_recorder *recorder, CUgraphNodeParams *params)
{
	const struct fgv_launch_request *request = (const void *)recorder->first->message;
	const struct fgv_kernel *kernel = recorder->subject;

	params->type = CU_GRAPH_NODE_TYPE_KERNEL;
	params->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = (CUfunction)kernel,
		.gridDimX = request->grid[0],
		.gridDimY = request->grid[1],
		.gridDimZ = request->grid[2],
		.blockDimX = request->block[0],
		.blockDimY = request->block[1],
		.blockDimZ = request->block[2],
		.sharedMemBytes = request->shared_bytes,
	};
}

static void describe_fill(const struct fgv_record *record, CUgraphNodeParams *params)
{
	const struct fgv_fill_request *request = (const void *)record->message;

	params->type = CU_GRAPH_NODE_TYPE_MEMSET;
	params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		.dst = request->address,
		.value = request->value,
		.elementSize = request->width,
		.width = request->count,
		.height = 1,
	};
}

static void describe_fill_rows(const struct fgv_record *record, CUgraphNodeParams *params)
{
	const struct fgv_fill_rows_request *request = (const void *)record->message;

	params->type = CU_GRAPH_NODE_TYPE_MEMSET;
	params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		.dst = request->address,
		.pitch = request->pitch,
		.value = request->value,
		.elementSize = 1,
		.width = request->width,
		.height = request->height,
	};
}

/* Of a copy that is not from one address to another no more than that it is one is said. */
static void describe_copy(const struct fgv_record *record, CUgraphNodeParams *params)
{
	struct fgv_copy_sides sides;

	params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
	if (record->next || !fgv_copy_describe(record, &sides))
		return;
	params->memcpy.copyParams = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)sides.from,
		.srcPitch = sides.len,
		.srcHeight = 1,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)sides.to,
		.dstPitch = sides.len,
		.dstHeight = 1,
		.WidthInBytes = sides.len,
		.Height = 1,
		.Depth = 1,
	};
}

static void describe(const struct fgv_recorder *recorder, CUgraphNodeParams *params)
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
		params->type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
		params->eventRecord.event = (CUevent)recorder->subject;
		break;
	case FGV_OP_STREAM_WAIT_EVENT:
		params->type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
		params->eventWait.event = (CUevent)recorder->subject;
		break;
	default:
		params->type = CU_GRAPH_NODE_TYPE_HOST;
		if (!fgv_host_func_describe(first, &params->host.fn, &params->host.userData))
			describe_copy(first, params);
	}
}

static void describe_attributes(const struct fgv_recorder *recorder,
				struct fgv_attributes *attributes)
{
	const struct fgv_record *record = recorder->first;
	const struct fgv_launch_clusters_request *request = (const void *)record->message;

	attributes->priority = recorder->priority;
	attributes->cooperative = record->op == FGV_OP_LAUNCH_COOPERATIVE;
	if (record->op != FGV_OP_LAUNCH_CLUSTERS)
		return;
	attributes->cooperative = (int32_t)request->cooperative;
	attributes->cluster.x = request->cluster[0];
	attributes->cluster.y = request->cluster[1];
	attributes->cluster.z = request->cluster[2];
	attributes->cluster_policy = (CUclusterSchedulingPolicy)request->policy;
}

CUresult fgv_work_take(struct fgv_recorder *recorder, uint32_t device, struct fgv_work *work)
{
	const CUgraphNodeParams params = {0};
	const struct fgv_attributes attributes = FGV_ATTRIBUTES_DEFAULT;
	const struct fgv_record *first = recorder->first;
	CUresult res = fgv_work_start(&params, &attributes, recorder->first, work);

	if (res)
		return res;
	work->task->device = device;
	describe(recorder, &work->task->params);
	if (!first->run)
		describe_attributes(recorder, &work->task->attributes);
	fgv_recorder_init(recorder);
	return CUDA_SUCCESS;
}
