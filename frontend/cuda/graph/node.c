/*
 * Making nodes, changing them, and telling what they do.
 */
#include "frontend/cuda/graph/node.h"

#include <stdlib.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/graph/alloc.h"
#include "frontend/cuda/graph/choice.h"
#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/memory/graph_memory.h"

static CUresult find_all(const CUgraphNode *names, size_t count, struct fgv_node ***nodes)
{
	struct fgv_node **found;

	if (count && !names)
		return CUDA_ERROR_INVALID_VALUE;
	found = calloc(count + 1, sizeof(struct fgv_node *));
	if (!found)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++) {
		found[i] = fgv_node_of(names[i]);
		if (!found[i]) {
			free(found);
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	*nodes = found;
	return CUDA_SUCCESS;
}

/* Whether @inner is @graph, or a graph in it. */
static bool contains(const struct fgv_graph *graph, const struct fgv_graph *inner)
{
	if (graph == inner)
		return true;
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (each->work.child && contains(each->work.child, inner))
			return true;
	}
	return false;
}

/* A graph can't be moved into itself. */
static bool is_circle(const struct fgv_graph *graph, const CUgraphNodeParams *params)
{
	const struct fgv_graph *child;

	if (params->type != CU_GRAPH_NODE_TYPE_GRAPH ||
	    params->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return false;
	child = fgv_graph_of(params->graph.graph);
	return child && contains(child, graph);
}

static CUresult make(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
		     const CUgraphNodeParams *params, struct fgv_work *work)
{
	const struct fgv_attributes attributes = FGV_ATTRIBUTES_DEFAULT;
	bool is_alloc = params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;

	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return fgv_choice_make(graph, params, work);
	if (!is_alloc && params->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
		return is_circle(graph, params) ? CUDA_ERROR_INVALID_VALUE
						: fgv_work_make(params, &attributes, work);
	if (graph->is_child)
		return CUDA_ERROR_INVALID_VALUE;
	return is_alloc ? fgv_alloc_make(graph, before, count, &params->alloc, work)
			: fgv_alloc_make_free(graph, params->free.dptr, work);
}

/* A graph that was moved into a node that there is not stays the program's. */
static void unmake(struct fgv_work *work)
{
	if (work->child && work->child->is_moved) {
		work->child->is_child = work->child->is_moved = false;
		work->child = NULL;
	}
	fgv_work_free(work);
}

void fgv_node_note_memory(const struct fgv_node *node)
{
	struct fgv_graph_memory *memory = node->work.memory;

	if (!memory)
		return;
	if (fgv_node_type(node) == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		fgv_graph_memory_note_alloc(memory, node->graph->name);
	else
		fgv_graph_memory_note_free(memory, node->graph->name, node);
}

static bool are_edges_good(struct fgv_node *const *before, const CUgraphEdgeData *edges,
			   size_t count, CUgraphNodeType type)
{
	for (size_t i = 0; edges && i < count; i++) {
		if (!fgv_edge_is_good(&edges[i], fgv_node_type(before[i]), type))
			return false;
	}
	return true;
}

static CUresult add_after(struct fgv_graph *graph, struct fgv_node *const *before,
			  const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params,
			  CUgraphNode *name)
{
	struct fgv_node *node;
	struct fgv_work work;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (are_edges_good(before, edges, count, params->type))
		res = make(graph, before, count, params, &work);
	if (res)
		return res;
	res = fgv_graph_add(graph, before, edges, count, &work, &node);
	if (res) {
		unmake(&work);
		return res;
	}
	fgv_node_note_memory(node);
	if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		params->alloc.dptr = node->work.task->params.alloc.dptr;
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		params->conditional.phGraph_out = node->work.task->params.conditional.phGraph_out;
	*name = node->name;
	return CUDA_SUCCESS;
}

CUresult fgv_node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
		      const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
	struct fgv_graph *found = fgv_graph_of(graph);
	struct fgv_node **nodes;
	CUresult res;

	if (!node || !found || !params)
		return CUDA_ERROR_INVALID_VALUE;
	res = find_all(before, count, &nodes);
	if (res)
		return res;
	res = add_after(found, nodes, edges, count, params, node);
	free(nodes);
	return res;
}

CUresult fgv_node_remake(struct fgv_node *node, const CUgraphNodeParams *params,
			 const struct fgv_attributes *attributes)
{
	const struct fgv_task *task = node->work.task;
	struct fgv_work work;
	CUresult res;

	/* It stays on its device, for which handles are found while the thread works on that. */
	if (task->records && task->device != (uint32_t)fgv_context_get_device())
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_work_make(params, attributes, &work);
	if (res)
		return res;
	fgv_work_free(&node->work);
	node->work = work;
	return CUDA_SUCCESS;
}

CUresult fgv_node_change(struct fgv_node *node, const CUgraphNodeParams *params)
{
	const struct fgv_attributes attributes =
		node ? node->work.task->attributes : (struct fgv_attributes){0};

	if (!node || !params || fgv_node_type(node) != params->type)
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_node_remake(node, params, &attributes);
}

CUresult fgv_node_set_params(CUgraphNode node, const CUgraphNodeParams *params)
{
	return fgv_node_change(fgv_node_of(node), params);
}

struct fgv_node *fgv_node_of_type(CUgraphNode name, CUgraphNodeType type)
{
	struct fgv_node *node = fgv_node_of(name);

	return node && fgv_node_type(node) == type ? node : NULL;
}

CUresult fgv_node_get_params(CUgraphNode name, CUgraphNodeType type, CUgraphNodeParams *params)
{
	struct fgv_node *node = fgv_node_of_type(name, type);
	CUresult res = CUDA_SUCCESS;

	if (!node || !params)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_GRAPH_NODE_TYPE_KERNEL)
		res = fgv_node_list_args(node);
	if (res)
		return res;
	*params = node->work.task->params;
	if (type == CU_GRAPH_NODE_TYPE_KERNEL)
		params->kernel.kernelParams = node->args;
	else if (type == CU_GRAPH_NODE_TYPE_GRAPH)
		params->graph.graph = node->work.child->name;
	return CUDA_SUCCESS;
}

CUresult fgv_node_get_type(CUgraphNode name, CUgraphNodeType *type)
{
	const struct fgv_node *node = fgv_node_of(name);

	if (!node || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = fgv_node_type(node);
	return CUDA_SUCCESS;
}

CUresult fgv_node_find_in_clone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
	struct fgv_graph *graph = fgv_graph_of(clone);

	if (!node || !fgv_node_of(original) || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (each->origin == original) {
			*node = each->name;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_node_destroy(CUgraphNode node)
{
	struct fgv_node *found = fgv_node_of(node);

	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	if (fgv_graph_has_memory(found->graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	fgv_node_free(found);
	return CUDA_SUCCESS;
}
