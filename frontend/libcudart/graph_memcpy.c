/*
 * Nodes that copy and fill.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_params.h"
#include "frontend/libcudart/memcpy.h"

static struct cudaGraphNodeParams *of_memcpy(const struct cudaMemcpy3DParms *p,
					     struct cudaGraphNodeParams *params)
{
	if (!p)
		return NULL;
	*params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemcpy};
	params->memcpy.copyParams = *p;
	return params;
}

static struct cudaGraphNodeParams *of_memcpy_1d(void *dst, const void *src, size_t count,
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

	return fgv_error_set(fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies,
					    of_memcpy(pCopyParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
						const cudaGraphNode_t *pDependencies,
						size_t numDependencies, void *dst, const void *src,
						size_t count, enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies,
					    of_memcpy_1d(dst, src, count, kind, &params)));
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
						    const struct cudaMemcpy3DParms *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_set(node, of_memcpy(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst,
						      const void *src, size_t count,
						      enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_set(node, of_memcpy_1d(dst, src, count, kind, &params)));
}

FGV_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec,
							cudaGraphNode_t node,
							const struct cudaMemcpy3DParms *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(
		fgv_params_set_exec(hGraphExec, node, of_memcpy(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec,
							  cudaGraphNode_t node, void *dst,
							  const void *src, size_t count,
							  enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_set_exec(hGraphExec, node,
						 of_memcpy_1d(dst, src, count, kind, &params)));
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
						    struct cudaMemcpy3DParms *pNodeParams)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = pNodeParams ? fgv_params_get(node, cudaGraphNodeTypeMemcpy, &params)
					: cudaErrorInvalidValue;

	if (!error)
		*pNodeParams = params.memcpy.copyParams;
	return fgv_error_set(error);
}

/* A variable's part is where it is for good, so these are copies as any other. */
static cudaError_t of_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
				enum cudaMemcpyKind kind, struct cudaGraphNodeParams *params)
{
	void *part;
	cudaError_t error = fgv_symbol_target(symbol, count, offset, kind, &part);

	if (!error)
		of_memcpy_1d(part, src, count, kind, params);
	return error;
}

static cudaError_t of_from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
				  enum cudaMemcpyKind kind, struct cudaGraphNodeParams *params)
{
	void *part;
	cudaError_t error = fgv_symbol_source(symbol, count, offset, kind, &part);

	if (!error)
		of_memcpy_1d(dst, part, count, kind, params);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode,
						      cudaGraph_t graph,
						      const cudaGraphNode_t *pDependencies,
						      size_t numDependencies, const void *symbol,
						      const void *src, size_t count, size_t offset,
						      enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = of_to_symbol(symbol, src, count, offset, kind, &params);

	if (!error)
		error = fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies,
				       &params);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node,
							    const void *symbol, const void *src,
							    size_t count, size_t offset,
							    enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = of_to_symbol(symbol, src, count, offset, kind, &params);

	if (!error)
		error = fgv_params_set(node, &params);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec,
								cudaGraphNode_t node,
								const void *symbol, const void *src,
								size_t count, size_t offset,
								enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = of_to_symbol(symbol, src, count, offset, kind, &params);

	if (!error)
		error = fgv_params_set_exec(hGraphExec, node, &params);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode,
							cudaGraph_t graph,
							const cudaGraphNode_t *pDependencies,
							size_t numDependencies, void *dst,
							const void *symbol, size_t count,
							size_t offset, enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = of_from_symbol(dst, symbol, count, offset, kind, &params);

	if (!error)
		error = fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies,
				       &params);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
							      const void *symbol, size_t count,
							      size_t offset,
							      enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = of_from_symbol(dst, symbol, count, offset, kind, &params);

	if (!error)
		error = fgv_params_set(node, &params);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec,
								  cudaGraphNode_t node, void *dst,
								  const void *symbol, size_t count,
								  size_t offset,
								  enum cudaMemcpyKind kind)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = of_from_symbol(dst, symbol, count, offset, kind, &params);

	if (!error)
		error = fgv_params_set_exec(hGraphExec, node, &params);
	return fgv_error_set(error);
}

static struct cudaGraphNodeParams *of_memset(const struct cudaMemsetParams *p,
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

	return fgv_error_set(fgv_params_add(pGraphNode, graph, pDependencies, NULL, numDependencies,
					    of_memset(pMemsetParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
						    const struct cudaMemsetParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_params_set(node, of_memset(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec,
							cudaGraphNode_t node,
							const struct cudaMemsetParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(
		fgv_params_set_exec(hGraphExec, node, of_memset(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
						    struct cudaMemsetParams *pNodeParams)
{
	struct cudaGraphNodeParams params;
	cudaError_t error = pNodeParams ? fgv_params_get(node, cudaGraphNodeTypeMemset, &params)
					: cudaErrorInvalidValue;

	if (!error)
		*pNodeParams = (struct cudaMemsetParams){
			.dst = params.memset.dst,
			.pitch = params.memset.pitch,
			.value = params.memset.value,
			.elementSize = params.memset.elementSize,
			.width = params.memset.width,
			.height = params.memset.height,
		};
	return fgv_error_set(error);
}
