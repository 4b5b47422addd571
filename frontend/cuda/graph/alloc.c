/*
 * Making nodes that allocate and free, and finding freed memory for them.
 */
#include "frontend/cuda/graph/alloc.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/mempool.h"

static CUresult check(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params)
{
	CUresult res = fgv_mempool_check_props(&params->poolProps);

	if (!res && (!params->bytesize || (params->accessDescCount && !params->accessDescs)))
		res = CUDA_ERROR_INVALID_VALUE;
	if (res)
		return res;
	return fgv_mempool_give_access((uint32_t)params->poolProps.location.id, params->accessDescs,
				       params->accessDescCount);
}

static CUresult start(const CUgraphNodeParams *params, struct fgv_graph_memory *memory,
		      struct fgv_work *work)
{
	const struct fgv_attributes attributes = FGV_ATTRIBUTES_DEFAULT;
	CUresult res = fgv_work_start(params, &attributes, NULL, work);

	if (res) {
		fgv_graph_memory_put(memory);
		return res;
	}
	work->memory = memory;
	work->task->device = fgv_graph_memory_device(memory);
	return CUDA_SUCCESS;
}

CUresult fgv_alloc_work(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params,
			struct fgv_graph_memory *memory, struct fgv_work *work)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};

	all.alloc = *params;
	all.alloc.accessDescs = NULL;
	all.alloc.accessDescCount = 0;
	all.alloc.dptr = fgv_graph_memory_address(memory);
	return start(&all, memory, work);
}

CUresult fgv_alloc_work_free(CUdeviceptr address, struct fgv_graph_memory *memory,
			     struct fgv_work *work)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};

	all.free.dptr = address;
	return start(&all, memory, work);
}

/* What a new node waits for; marked once it is known that there is memory that would fit. */
struct place {
	struct fgv_graph *graph;
	struct fgv_node *const *before;
	size_t count;
	bool is_marked;
	CUresult res;
};

static bool is_freed_before(const void *node, void *arg)
{
	struct place *place = arg;

	if (!place->is_marked)
		place->res = fgv_graph_mark_before(place->graph, place->before, place->count);
	place->is_marked = true;
	return !place->res && ((const struct fgv_node *)node)->marked;
}

struct fgv_graph_memory *fgv_alloc_reuse(struct fgv_graph *graph, struct fgv_node *const *before,
					 size_t count, uint32_t device, uint64_t bytes)
{
	struct place place = {.graph = graph, .before = before, .count = count};

	return fgv_graph_memory_reuse(graph->name, device, bytes, is_freed_before, &place);
}

static CUresult create(uint32_t device, uint64_t bytes, struct fgv_graph_memory **memory)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device, &lane);

	if (res)
		return res;
	res = fgv_graph_memory_create(lane, bytes, memory);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_alloc_make(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
			const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params, struct fgv_work *work)
{
	uint32_t device = (uint32_t)params->poolProps.location.id;
	struct fgv_graph_memory *memory;
	CUresult res = check(params);

	if (res)
		return res;
	memory = fgv_alloc_reuse(graph, before, count, device, params->bytesize);
	if (!memory)
		res = create(device, params->bytesize, &memory);
	return res ? res : fgv_alloc_work(params, memory, work);
}

CUresult fgv_alloc_make_free(const struct fgv_graph *graph, CUdeviceptr address,
			     struct fgv_work *work)
{
	struct fgv_graph_memory *memory;
	CUresult res = fgv_graph_memory_find(graph->name, address, &memory);

	return res ? res : fgv_alloc_work_free(address, memory, work);
}
