/*
 * Nodes that allocate and free memory (graph_memory.h), made by hand or of what is captured, and
 * what CUDA tells of such memory. They have nothing to post: what a launch of them changes is
 * known here.
 */
#include "frontend/libcudart/graph_alloc.h"

#include <string.h>

#include "frontend/libcudart/capture.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_exec.h"
#include "frontend/libcudart/graph_memory.h"

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(struct cudaMemAllocNodeParamsV2),
	       "both are the same");

/* The device has its own memory always, so what is said of its access says nothing. */
static cudaError_t check(const struct cudaMemAllocNodeParamsV2 *params)
{
	cudaError_t error = fgv_pool_check_props(&params->poolProps);

	if (!error && (!params->bytesize || (params->accessDescCount && !params->accessDescs)))
		error = cudaErrorInvalidValue;
	return error ? error : fgv_pool_check_access(params->accessDescs, params->accessDescCount);
}

static struct fgv_work work_of_alloc(const struct cudaMemAllocNodeParamsV2 *params,
				     struct fgv_graph_memory *memory)
{
	struct fgv_work work = {.params = {.type = cudaGraphNodeTypeMemAlloc}, .memory = memory};

	work.params.alloc = *params;
	work.params.alloc.accessDescs = NULL;
	work.params.alloc.accessDescCount = 0;
	work.params.alloc.dptr = (void *)(uintptr_t)fgv_graph_memory_address(memory);
	return work;
}

static struct fgv_work work_of_free(uint64_t address, struct fgv_graph_memory *memory)
{
	struct fgv_work work = {.params = {.type = cudaGraphNodeTypeMemFree}, .memory = memory};

	work.params.free.dptr = (void *)(uintptr_t)address;
	return work;
}

static cudaError_t create(uint64_t bytes, struct fgv_graph_memory **memory)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_graph_memory_create(lane, bytes, memory);
	fgv_lane_leave(lane);
	return error;
}

cudaError_t fgv_alloc_make(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
			   const struct cudaMemAllocNodeParamsV2 *params, struct fgv_work *work)
{
	struct fgv_graph_memory *memory;
	cudaError_t error = check(params);

	if (error)
		return error;
	memory = fgv_graph_memory_reuse(graph, before, count, params->bytesize);
	if (!memory)
		error = create(params->bytesize, &memory);
	if (!error)
		*work = work_of_alloc(params, memory);
	return error;
}

cudaError_t fgv_alloc_make_free(const struct fgv_graph *graph, const void *address,
				struct fgv_work *work)
{
	struct fgv_graph_memory *memory;
	cudaError_t error = fgv_graph_memory_find(graph, (uint64_t)(uintptr_t)address, &memory);

	if (!error)
		*work = work_of_free((uint64_t)(uintptr_t)address, memory);
	return error;
}

/* --- Made by hand ------------------------------------------------------------------ */

static cudaError_t add_alloc(cudaGraphNode_t *node, cudaGraph_t graph,
			     const cudaGraphNode_t *before, size_t count,
			     struct cudaMemAllocNodeParams *wanted)
{
	struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeMemAlloc};
	cudaError_t error;

	if (!wanted)
		return cudaErrorInvalidValue;
	memcpy(&params.alloc, wanted, sizeof(*wanted));
	error = fgv_graph_add_node(node, graph, before, count, &params);
	if (!error)
		wanted->dptr = fgv_node_of(*node)->work.params.alloc.dptr;
	return error;
}

FGV_EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						const cudaGraphNode_t *pDependencies,
						size_t numDependencies,
						struct cudaMemAllocNodeParams *nodeParams)
{
	return fgv_error_set(
		add_alloc(pGraphNode, graph, pDependencies, numDependencies, nodeParams));
}

FGV_EXPORT cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
						      struct cudaMemAllocNodeParams *params_out)
{
	const struct cudaGraphNodeParams *params = fgv_node_params(node, cudaGraphNodeTypeMemAlloc);

	if (!params || !params_out)
		return fgv_error_set(cudaErrorInvalidValue);
	memcpy(params_out, &params->alloc, sizeof(*params_out));
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					       const cudaGraphNode_t *pDependencies,
					       size_t numDependencies, void *dptr)
{
	struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeMemFree};

	params.free.dptr = dptr;
	return fgv_error_set(
		fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies, &params));
}

FGV_EXPORT cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr_out)
{
	const struct cudaGraphNodeParams *params = fgv_node_params(node, cudaGraphNodeTypeMemFree);

	if (!params || !dptr_out)
		return fgv_error_set(cudaErrorInvalidValue);
	*(void **)dptr_out = params->free.dptr;
	return cudaSuccess;
}

/* --- Captured ---------------------------------------------------------------------- */

/* What a node of the capture is made for, and its work. */
struct captured {
	uint64_t bytes;
	uint64_t address;
	struct fgv_graph_memory *memory;
};

static cudaError_t reuse(struct fgv_graph *graph, struct fgv_node *const *last, size_t count,
			 void *arg)
{
	struct captured *captured = arg;

	captured->memory = fgv_graph_memory_reuse(graph, last, count, captured->bytes);
	return cudaSuccess;
}

static cudaError_t find(struct fgv_graph *graph, struct fgv_node *const *last, size_t count,
			void *arg)
{
	struct captured *captured = arg;

	(void)last;
	(void)count;
	return fgv_graph_memory_find(graph, captured->address, &captured->memory);
}

static cudaError_t add_captured(struct fgv_lane *lane, const struct fgv_work *work)
{
	cudaError_t error = fgv_capture_add(lane, work);

	if (error)
		fgv_graph_memory_put(work->memory);
	return error;
}

/* Asking the device is no part of what is recorded. */
static cudaError_t create_beside(struct fgv_lane *lane, uint64_t bytes,
				 struct fgv_graph_memory **memory)
{
	struct fgv_recorder *recorder = lane->recorder;
	cudaError_t error;

	lane->recorder = NULL;
	error = fgv_graph_memory_create(lane, bytes, memory);
	lane->recorder = recorder;
	return error;
}

cudaError_t fgv_alloc_capture(struct fgv_lane *lane, uint64_t bytes, uint64_t *address)
{
	struct cudaMemAllocNodeParamsV2 params = {
		.poolProps = {.allocType = cudaMemAllocationTypePinned,
			      .location = {cudaMemLocationTypeDevice, fgv_context_get_device()}},
		.bytesize = bytes,
	};
	struct captured captured = {.bytes = bytes};
	struct fgv_work work;
	cudaError_t error = fgv_capture_visit(lane, reuse, &captured);

	if (!error && !captured.memory)
		error = create_beside(lane, bytes, &captured.memory);
	if (error)
		return error;
	work = work_of_alloc(&params, captured.memory);
	*address = fgv_graph_memory_address(captured.memory);
	return add_captured(lane, &work);
}

cudaError_t fgv_alloc_capture_free(struct fgv_lane *lane, uint64_t address)
{
	struct captured captured = {.address = address};
	struct fgv_work work;
	cudaError_t error = fgv_capture_visit(lane, find, &captured);

	if (error)
		return error;
	work = work_of_free(address, captured.memory);
	return add_captured(lane, &work);
}

/* --- How much there is --------------------------------------------------------------- */

/* What is not needed goes at once as it is; so there is nothing that could be kept for longer. */
static cudaError_t trim(int device)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_device_check(device);

	if (!error)
		error = fgv_enter(&lane);
	if (error)
		return error;
	fgv_graph_memory_trim();
	fgv_graph_memory_sweep(lane);
	fgv_lane_leave(lane);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaDeviceGraphMemTrim(int device)
{
	return fgv_error_set(trim(device));
}

static cudaError_t get_attribute(int device, enum cudaGraphMemAttributeType attribute,
				 uint64_t *value)
{
	cudaError_t error = fgv_device_check(device);

	if (!error && !value)
		error = cudaErrorInvalidValue;
	return error ? error : fgv_graph_memory_get_attribute(attribute, value);
}

FGV_EXPORT cudaError_t cudaDeviceGetGraphMemAttribute(int device,
						      enum cudaGraphMemAttributeType attr,
						      void *value)
{
	return fgv_error_set(get_attribute(device, attr, value));
}

static cudaError_t set_attribute(int device, enum cudaGraphMemAttributeType attribute,
				 const uint64_t *value)
{
	cudaError_t error = fgv_device_check(device);

	if (!error && (!value || *value))
		error = cudaErrorInvalidValue;
	return error ? error : fgv_graph_memory_reset_attribute(attribute);
}

FGV_EXPORT cudaError_t cudaDeviceSetGraphMemAttribute(int device,
						      enum cudaGraphMemAttributeType attr,
						      void *value)
{
	return fgv_error_set(set_attribute(device, attr, value));
}
