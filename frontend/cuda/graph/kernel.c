/*
 * What only nodes that launch a kernel have: arguments that the program may ask for, and
 * attributes.
 */
#include <stdlib.h>
#include <string.h>

#include "api/gpu_wire.h"
#include "common/util.h"
#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/graph/node.h"
#include "frontend/cuda/module/registry.h"

/* A copy, as copies of the node have the same task: what a program writes there is not theirs. */
CUresult fgv_node_list_args(struct fgv_node *node)
{
	const struct fgv_task *task = node->work.task;
	struct fgv_kernel *kernel = fgv_registry_kernel(task->params.kernel.func);
	const struct fgv_record *record = task->records;
	size_t head = record->op == FGV_OP_LAUNCH_CLUSTERS
			      ? sizeof(struct fgv_launch_clusters_request)
			      : sizeof(struct fgv_launch_request);
	size_t pointers;
	uint8_t *arg;
	void **args;

	if (!kernel || fgv_registry_kernel_on(task->device, &kernel) || !kernel->info)
		return CUDA_ERROR_INVALID_HANDLE;
	pointers = (kernel->info->param_count + 1) * sizeof(void *);
	args = realloc(node->args, pointers + record->len - head);
	if (!args)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->args = args;
	arg = (uint8_t *)args + pointers;
	memcpy(arg, (const uint8_t *)record->message + head, record->len - head);
	for (uint32_t i = 0; i < kernel->info->param_count; i++) {
		args[i] = arg;
		arg += fgv_align_up(kernel->info->param_sizes[i], 8);
	}
	return CUDA_SUCCESS;
}

/* Whether the same is launched with either. */
static bool launches_alike(const struct fgv_attributes *a, const struct fgv_attributes *b)
{
	return !a->cooperative == !b->cooperative && a->cluster_policy == b->cluster_policy &&
	       !memcmp(&a->cluster, &b->cluster, sizeof(a->cluster));
}

/* With other attributes, of which the host is told nothing. */
static CUresult note(struct fgv_node *node, const struct fgv_attributes *attributes)
{
	const struct fgv_task *task = node->work.task;
	struct fgv_record *records;
	struct fgv_work work;
	CUresult res;

	if (fgv_records_copy(task->records, &records))
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = fgv_work_start(&task->params, attributes, records, &work);
	if (res) {
		fgv_records_free(records);
		return res;
	}
	work.task->device = task->device;
	fgv_work_free(&node->work);
	node->work = work;
	return CUDA_SUCCESS;
}

/* With other attributes, and the arguments that it has. */
static CUresult apply(struct fgv_node *node, const struct fgv_attributes *attributes)
{
	CUgraphNodeParams params = node->work.task->params;
	CUresult res;

	if (launches_alike(attributes, &node->work.task->attributes))
		return note(node, attributes);
	res = fgv_node_list_args(node);
	params.kernel.kernelParams = node->args;
	return res ? res : fgv_node_remake(node, &params, attributes);
}

CUresult fgv_node_set_attribute(CUgraphNode name, CUkernelNodeAttrID id,
				const CUkernelNodeAttrValue *value)
{
	struct fgv_node *node = fgv_node_of_type(name, CU_GRAPH_NODE_TYPE_KERNEL);
	struct fgv_attributes attributes;
	CUresult res;

	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	attributes = node->work.task->attributes;
	res = fgv_attribute_set(&attributes, FGV_ATTRIBUTE_NODE, id, value);
	return res ? res : apply(node, &attributes);
}

CUresult fgv_node_get_attribute(CUgraphNode name, CUkernelNodeAttrID id,
				CUkernelNodeAttrValue *value)
{
	const struct fgv_node *node = fgv_node_of_type(name, CU_GRAPH_NODE_TYPE_KERNEL);

	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_attribute_get(&node->work.task->attributes, FGV_ATTRIBUTE_NODE, id, value);
}

CUresult fgv_node_copy_attributes(CUgraphNode to, CUgraphNode from)
{
	struct fgv_node *target = fgv_node_of_type(to, CU_GRAPH_NODE_TYPE_KERNEL);
	const struct fgv_node *source = fgv_node_of_type(from, CU_GRAPH_NODE_TYPE_KERNEL);

	if (!target || !source)
		return CUDA_ERROR_INVALID_VALUE;
	return apply(target, &source->work.task->attributes);
}
