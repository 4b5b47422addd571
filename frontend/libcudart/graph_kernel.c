/*
 * Nodes that launch a kernel.
 */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/cuda/module/module.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_exec.h"
#include "frontend/libcudart/registration.h"

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

	return fgv_error_set(fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies,
						of_kernel(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
						    const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_node_set(fgv_node_of(node), of_kernel(pNodeParams, &params)));
}

FGV_EXPORT cudaError_t
cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
				 const struct cudaKernelNodeParams *pNodeParams)
{
	struct cudaGraphNodeParams params;

	return fgv_error_set(fgv_exec_set(hGraphExec, node, of_kernel(pNodeParams, &params)));
}

/* Pointers to the arguments where the launch that was recorded has them; the node's. */
static cudaError_t list_args(struct fgv_node *node)
{
	const struct fgv_kernel *kernel = fgv_registration_find(node->work.params.kernel.func);
	const struct fgv_record *record = node->work.records;
	uint8_t *arg =
		(uint8_t *)record->message + (record->op == FGV_OP_LAUNCH_CLUSTERS
						      ? sizeof(struct fgv_launch_clusters_request)
						      : sizeof(struct fgv_launch_request));
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
	const struct cudaGraphNodeParams *params = fgv_node_params(name, cudaGraphNodeTypeKernel);
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

/* Whether the same is launched with either. */
static bool launches_alike(const struct fgv_attributes *a, const struct fgv_attributes *b)
{
	return !a->cooperative == !b->cooperative && a->cluster_policy == b->cluster_policy &&
	       !memcmp(&a->cluster, &b->cluster, sizeof(a->cluster));
}

/* With other attributes, and the arguments that it has. */
static cudaError_t apply(struct fgv_node *node, const struct fgv_attributes *attributes)
{
	struct cudaGraphNodeParams params = node->work.params;
	cudaError_t error;

	if (launches_alike(attributes, &node->work.attributes)) {
		node->work.attributes = *attributes;
		return cudaSuccess;
	}
	error = list_args(node);
	params.kernel.kernelParams = node->args;
	return error ? error : fgv_node_remake(node, &params, attributes);
}

static cudaError_t set_attribute(cudaGraphNode_t name, cudaKernelNodeAttrID id,
				 const cudaKernelNodeAttrValue *value)
{
	struct fgv_attributes attributes;
	cudaError_t error;

	if (!fgv_node_params(name, cudaGraphNodeTypeKernel))
		return cudaErrorInvalidValue;
	attributes = fgv_node_of(name)->work.attributes;
	error = fgv_error_from(fgv_attribute_set(&attributes, FGV_ATTRIBUTE_NODE,
						 (CUlaunchAttributeID)id,
						 (const CUlaunchAttributeValue *)value));
	return error ? error : apply(fgv_node_of(name), &attributes);
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode,
						       cudaKernelNodeAttrID attr,
						       const cudaKernelNodeAttrValue *value)
{
	return fgv_error_set(set_attribute(hNode, attr, value));
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode,
						       cudaKernelNodeAttrID attr,
						       cudaKernelNodeAttrValue *value_out)
{
	if (!fgv_node_params(hNode, cudaGraphNodeTypeKernel))
		return fgv_error_set(cudaErrorInvalidValue);
	return FGV_RESULT(fgv_attribute_get(&fgv_node_of(hNode)->work.attributes,
					    FGV_ATTRIBUTE_NODE, (CUlaunchAttributeID)attr,
					    (CUlaunchAttributeValue *)value_out));
}

static cudaError_t copy_attributes(cudaGraphNode_t dst, cudaGraphNode_t src)
{
	if (!fgv_node_params(dst, cudaGraphNodeTypeKernel) ||
	    !fgv_node_params(src, cudaGraphNodeTypeKernel))
		return cudaErrorInvalidValue;
	return apply(fgv_node_of(dst), &fgv_node_of(src)->work.attributes);
}

FGV_EXPORT cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc)
{
	return fgv_error_set(copy_attributes(hDst, hSrc));
}
