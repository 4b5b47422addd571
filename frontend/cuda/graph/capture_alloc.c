/*
 * Allocating and freeing in a stream that is being captured: nodes, whose memory is the graph's.
 */
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/graph/alloc.h"
#include "frontend/cuda/graph/capture_priv.h"
#include "frontend/cuda/memory/graph_memory.h"

/* What a node of the capture is made for, and its work. */
struct captured {
	uint32_t device;
	uint64_t bytes;
	uint64_t address;
	struct fgv_graph_memory *memory;
};

static CUresult reuse(struct fgv_graph *graph, struct fgv_node *const *last, size_t count,
		      void *arg)
{
	struct captured *captured = arg;

	captured->memory = fgv_alloc_reuse(graph, last, count, captured->device, captured->bytes);
	return CUDA_SUCCESS;
}

static CUresult find(struct fgv_graph *graph, struct fgv_node *const *last, size_t count, void *arg)
{
	struct captured *captured = arg;

	(void)last;
	(void)count;
	return fgv_graph_memory_find(graph->name, captured->address, &captured->memory);
}

static CUresult add_captured(struct fgv_lane *lane, struct fgv_work *work)
{
	CUresult res = fgv_capture_add(lane, work);

	if (res)
		fgv_work_free(work);
	return res;
}

/* Asking the device is no part of what is recorded. */
static CUresult create_beside(struct fgv_lane *lane, uint64_t bytes,
			      struct fgv_graph_memory **memory)
{
	struct fgv_recorder *recorder = lane->recorder;
	CUresult res;

	lane->recorder = NULL;
	res = fgv_graph_memory_create(lane, bytes, memory);
	lane->recorder = recorder;
	return res;
}

CUresult fgv_capture_alloc(struct fgv_lane *lane, uint64_t bytes, uint64_t *address)
{
	CUDA_MEM_ALLOC_NODE_PARAMS_v2 params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)lane->client->device}},
		.bytesize = bytes,
	};
	struct captured captured = {.device = lane->client->device, .bytes = bytes};
	struct fgv_work work;
	CUresult res = fgv_capture_visit(lane, reuse, &captured);

	if (!res && !captured.memory)
		res = create_beside(lane, bytes, &captured.memory);
	if (res)
		return res;
	*address = fgv_graph_memory_address(captured.memory);
	res = fgv_alloc_work(&params, captured.memory, &work);
	return res ? res : add_captured(lane, &work);
}

CUresult fgv_capture_free(struct fgv_lane *lane, uint64_t address)
{
	struct captured captured = {.address = address};
	struct fgv_work work;
	CUresult res = fgv_capture_visit(lane, find, &captured);

	if (!res)
		res = fgv_alloc_work_free(address, captured.memory, &work);
	return res ? res : add_captured(lane, &work);
}
