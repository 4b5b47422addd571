/*
 * Making nodes, and their parameters. All kinds go one way, as struct cudaGraphNodeParams; the
 * functions for one kind put what they are given into one.
 */
#include <stdlib.h>

#include "common/util.h"
#include "frontend/client/registry.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_exec.h"

static cudaError_t find_all(const cudaGraphNode_t *names, size_t count, struct fgv_node ***nodes)
{
	struct fgv_node **found;

	if (count && !names)
		return cudaErrorInvalidValue;
	found = calloc(count + 1, sizeof(struct fgv_node *));
	if (!found)
		return cudaErrorMemoryAllocation;
	for (size_t i = 0; i < count; i++) {
		found[i] = fgv_node_of(names[i]);
		if (!found[i]) {
			free(found);
			return cudaErrorInvalidValue;
		}
	}
	*nodes = found;
	return cudaSuccess;
}

static cudaError_t add_after(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
			     const struct cudaGraphNodeParams *params, cudaGraphNode_t *name)
{
	struct fgv_node *node;
	struct fgv_work work;
	cudaError_t error = fgv_work_make(params, &work);

	if (error)
		return error;
	error = fgv_graph_add(graph, before, count, &work, &node);
	if (error)
		fgv_work_free(&work);
	else
		*name = node->name;
	return error;
}

cudaError_t fgv_graph_add_node(cudaGraphNode_t *name, cudaGraph_t graph,
			       const cudaGraphNode_t *before, size_t count,
			       const struct cudaGraphNodeParams *params)
{
	struct fgv_graph *found = fgv_graph_of(graph);
	struct fgv_node **nodes;
	cudaError_t error;

	if (!name || !found || !params)
		return cudaErrorInvalidValue;
	error = find_all(before, count, &nodes);
	if (error)
		return error;
	error = add_after(found, nodes, count, params, name);
	free(nodes);
	return error;
}

static cudaError_t add(cudaGraphNode_t *name, cudaGraph_t graph, const cudaGraphNode_t *before,
		       size_t count, const struct cudaGraphNodeParams *params)
{
	return fgv_error_set(fgv_graph_add_node(name, graph, before, count, params));
}

cudaError_t fgv_node_set(struct fgv_node *node, const struct cudaGraphNodeParams *params)
{
	struct fgv_work work;
	cudaError_t error;

	if (!node || !params || node->work.params.type != params->type)
		return cudaErrorInvalidValue;
	error = fgv_work_make(params, &work);
	if (error)
		return error;
	fgv_work_free(&node->work);
	node->work = work;
	return cudaSuccess;
}

static cudaError_t set(cudaGraphNode_t node, const struct cudaGraphNodeParams *params)
{
	return fgv_error_set(fgv_node_set(fgv_node_of(node), params));
}

static cudaError_t set_exec(cudaGraphExec_t exec, cudaGraphNode_t node,
			    const struct cudaGraphNodeParams *params)
{
	return fgv_error_set(fgv_exec_set(exec, node, params));
}

/* The parameters of a node of this kind; NULL if it is none. */
static struct cudaGraphNodeParams *get(cudaGraphNode_t name, enum cudaGraphNodeType type)
{
	struct fgv_node *node = fgv_node_of(name);

	return node && node->work.params.type == type ? &node->work.params : NULL;
}

/* --- Kernels ----------------------------------------------------------------- */

static const struct cudaGraphNodeParams *of_kernel(const struct cudaKernelNodeParams *p,
						   struct cudaGraphNodeParams *params)
{
	if (!p)
		return NULL;
	*params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeKernel};
	params->kernel = (struct cudaKernelNodeParamsV2){
		.func = p->func,
		.gridDim = p->gridDim,
		.blockDim = p->blockDim,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
	return params;
}

FGV_EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					      const cudaGraphNode_t *pDependencies,
					      size_t numDependencies,
					      const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return add(pGraphNode, graph, pDependencies, numDependencies,
		   of_kernel(pNodeParams, &params));
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
						    const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return set(node, of_kernel(pNodeParams, &params));
}

FGV_EXPORT cudaError_t
cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
				 const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return set_exec(hGraphExec, node, of_kernel(pNodeParams, &params));
}

/* Pointers to the arguments where the launch that was recorded has them; the node's. */
static cudaError_t list_args(struct fgv_node *node)
{
	const struct fgv_kernel *kernel = fgv_registry_kernel(node->work.params.kernel.func);
	uint8_t *arg = (uint8_t *)node->work.records->message + sizeof(struct fgv_launch_request);
	void **args;

	if (!kernel || !kernel->info)
		return cudaErrorInvalidDeviceFunction;
	args = realloc(node->args, (kernel->info->param_count + 1) * sizeof(void *));
	if (!args)
		return cudaErrorMemoryAllocation;
	node->args = args;
	for (uint32_t i = 0; i < kernel->info->param_count; i++) {
		args[i] = arg;
		arg += fgv_align_up(kernel->info->param_sizes[i], 8);
	}
	return cudaSuccess;
}

static cudaError_t get_kernel(cudaGraphNode_t name, struct cudaKernelNodeParams *to)
{
	const struct cudaGraphNodeParams *params = get(name, cudaGraphNodeTypeKernel);
	cudaError_t error;

	if (!params || !to)
		return cudaErrorInvalidValue;
	error = list_args(fgv_node_of(name));
	if (error)
		return error;
	*to = (struct cudaKernelNodeParams){
		.func = params->kernel.func,
		.gridDim = params->kernel.gridDim,
		.blockDim = params->kernel.blockDim,
		.sharedMemBytes = params->kernel.sharedMemBytes,
		.kernelParams = fgv_node_of(name)->args,
	};
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
						    struct cudaKernelNodeParams *pNodeParams)
{
	return fgv_error_set(get_kernel(node, pNodeParams));
}

/* --- Memory ------------------------------------------------------------------ */

static const struct cudaGraphNodeParams *of_memcpy(const struct cudaMemcpy3DParms *p,
						   struct cudaGraphNodeParams *params)
{
	if (!p)
		return NULL;
	*params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemcpy};
	params->memcpy.copyParams = *p;
	return params;
}

static const struct cudaGraphNodeParams *of_memcpy_1d(void *dst, const void *src, size_t count,
						      enum cudaMemcpyKind kind,
						      struct cudaGraphNodeParams *params)
{
	const struct cudaMemcpy3DParms flat = {
		.srcPtr = {(void *)src, count, count, 1},
		.dstPtr = {dst, count, count, 1},
		.extent = {count, 1, 1},
		.kind = kind,
	};

	return of_memcpy(&flat, params);
}

FGV_EXPORT cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					      const cudaGraphNode_t *pDependencies,
					      size_t numDependencies,
					      const struct cudaMemcpy3DParms *pCopyParams)
{
	struct cudaGraphNodeParams params;

	return add(pGraphNode, graph, pDependencies, numDependencies,
		   of_memcpy(pCopyParams, &params));
}

FGV_EXPORT cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						const cudaGraphNode_t *pDependencies,
						size_t numDependencies, void *dst, const void *src,
						size_t count, enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;

	return add(pGraphNode, graph, pDependencies, numDependencies,
		   of_memcpy_1d(dst, src, count, kind, &params));
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
						    const struct cudaMemcpy3DParms *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return set(node, of_memcpy(pNodeParams, &params));
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst,
						      const void *src, size_t count,
						      enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;

	return set(node, of_memcpy_1d(dst, src, count, kind, &params));
}

FGV_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec,
							cudaGraphNode_t node,
							const struct cudaMemcpy3DParms *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return set_exec(hGraphExec, node, of_memcpy(pNodeParams, &params));
}

FGV_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec,
							  cudaGraphNode_t node, void *dst,
							  const void *src, size_t count,
							  enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;

	return set_exec(hGraphExec, node, of_memcpy_1d(dst, src, count, kind, &params));
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
						    struct cudaMemcpy3DParms *pNodeParams)
{
	const struct cudaGraphNodeParams *params = get(node, cudaGraphNodeTypeMemcpy);

	if (!params || !pNodeParams)
		return fgv_error_set(cudaErrorInvalidValue);
	*pNodeParams = params->memcpy.copyParams;
	return cudaSuccess;
}

static const struct cudaGraphNodeParams *of_memset(const struct cudaMemsetParams *p,
						   struct cudaGraphNodeParams *params)
{
	if (!p)
		return NULL;
	*params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemset};
	params->memset = (struct cudaMemsetParamsV2){
		.dst = p->dst,
		.pitch = p->pitch,
		.value = p->value,
		.elementSize = p->elementSize,
		.width = p->width,
		.height = p->height,
	};
	return params;
}

FGV_EXPORT cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					      const cudaGraphNode_t *pDependencies,
					      size_t numDependencies,
					      const struct cudaMemsetParams *pMemsetParams)
{
	struct cudaGraphNodeParams params;

	return add(pGraphNode, graph, pDependencies, numDependencies,
		   of_memset(pMemsetParams, &params));
}

FGV_EXPORT cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
						    const struct cudaMemsetParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return set(node, of_memset(pNodeParams, &params));
}

FGV_EXPORT cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec,
							cudaGraphNode_t node,
							const struct cudaMemsetParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return set_exec(hGraphExec, node, of_memset(pNodeParams, &params));
}

FGV_EXPORT cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
						    struct cudaMemsetParams *pNodeParams)
{
	const struct cudaGraphNodeParams *params = get(node, cudaGraphNodeTypeMemset);

	if (!params || !pNodeParams)
		return fgv_error_set(cudaErrorInvalidValue);
	*pNodeParams = (struct cudaMemsetParams){
		.dst = params->memset.dst,
		.pitch = params->memset.pitch,
		.value = params->memset.value,
		.elementSize = params->memset.elementSize,
		.width = params->memset.width,
		.height = params->memset.height,
	};
	return cudaSuccess;
}

/* --- All kinds ----------------------------------------------------------------- */

FGV_EXPORT cudaError_t cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					const cudaGraphNode_t *pDependencies,
					const cudaGraphEdgeData *dependencyData,
					size_t numDependencies,
					struct cudaGraphNodeParams *nodeParams)
{
	if (!fgv_edges_are_plain(dependencyData, numDependencies))
		return fgv_error_set(FGV_NOT_SUPPORTED("graph edges with data"));
	return add(pGraphNode, graph, pDependencies, numDependencies, nodeParams);
}

FGV_EXPORT cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node,
					      struct cudaGraphNodeParams *nodeParams)
{
	return set(node, nodeParams);
}

FGV_EXPORT cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
						  struct cudaGraphNodeParams *nodeParams)
{
	return set_exec(graphExec, node, nodeParams);
}

FGV_EXPORT cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
	const struct fgv_node *found = fgv_node_of(node);

	if (!found || !pType)
		return fgv_error_set(cudaErrorInvalidValue);
	*pType = found->work.params.type;
	return cudaSuccess;
}

/* --- Nodes of other kinds ------------------------------------------------------ */

FGV_EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					     const cudaGraphNode_t *pDependencies,
					     size_t numDependencies)
{
	const struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeEmpty};

	return add(pGraphNode, graph, pDependencies, numDependencies, &params);
}

static struct cudaGraphNodeParams of_event(enum cudaGraphNodeType type, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = {.type = type};

	if (type == cudaGraphNodeTypeEventRecord)
		params.eventRecord.event = event;
	else
		params.eventWait.event = event;
	return params;
}

FGV_EXPORT cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						   const cudaGraphNode_t *pDependencies,
						   size_t numDependencies, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeEventRecord, event);

	return add(pGraphNode, graph, pDependencies, numDependencies, &params);
}

FGV_EXPORT cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						 const cudaGraphNode_t *pDependencies,
						 size_t numDependencies, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return add(pGraphNode, graph, pDependencies, numDependencies, &params);
}

static cudaError_t get_event(cudaGraphNode_t node, enum cudaGraphNodeType type, cudaEvent_t *event)
{
	const struct cudaGraphNodeParams *params = get(node, type);

	if (!params || !event)
		return cudaErrorInvalidValue;
	*event = type == cudaGraphNodeTypeEventRecord ? params->eventRecord.event
						      : params->eventWait.event;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node,
							cudaEvent_t *event_out)
{
	return fgv_error_set(get_event(node, cudaGraphNodeTypeEventRecord, event_out));
}

FGV_EXPORT cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out)
{
	return fgv_error_set(get_event(node, cudaGraphNodeTypeWaitEvent, event_out));
}

FGV_EXPORT cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeEventRecord, event);

	return set(node, &params);
}

FGV_EXPORT cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return set(node, &params);
}

FGV_EXPORT cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec,
							    cudaGraphNode_t hNode,
							    cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeEventRecord, event);

	return set_exec(hGraphExec, hNode, &params);
}

FGV_EXPORT cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec,
							  cudaGraphNode_t hNode, cudaEvent_t event)
{
	struct cudaGraphNodeParams params = of_event(cudaGraphNodeTypeWaitEvent, event);

	return set_exec(hGraphExec, hNode, &params);
}

static struct cudaGraphNodeParams of_child(cudaGraph_t graph)
{
	struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeGraph};

	params.graph.graph = graph;
	return params;
}

FGV_EXPORT cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						  const cudaGraphNode_t *pDependencies,
						  size_t numDependencies, cudaGraph_t childGraph)
{
	struct cudaGraphNodeParams params = of_child(childGraph);

	return add(pGraphNode, graph, pDependencies, numDependencies, &params);
}

FGV_EXPORT cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *pGraph)
{
	if (!get(node, cudaGraphNodeTypeGraph) || !pGraph)
		return fgv_error_set(cudaErrorInvalidValue);
	*pGraph = fgv_node_of(node)->work.child->name;
	return cudaSuccess;
}
