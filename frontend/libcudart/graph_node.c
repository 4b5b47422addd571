/*
 * Making nodes, and their parameters. All kinds go one way, as struct cudaGraphNodeParams; the
 * functions for one kind put what they are given into one.
 */
#include <stdlib.h>
#include <string.h>

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_alloc.h"
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
static bool is_circle(const struct fgv_graph *graph, const struct cudaGraphNodeParams *params)
{
	const struct fgv_graph *child;

	if (params->type != cudaGraphNodeTypeGraph ||
	    params->graph.ownership != cudaGraphChildGraphOwnershipMove)
		return false;
	child = fgv_graph_of(params->graph.graph);
	return child && contains(child, graph);
}

static cudaError_t make(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
			const struct cudaGraphNodeParams *params, struct fgv_work *work)
{
	const struct fgv_attributes attributes = FGV_ATTRIBUTES_DEFAULT;
	bool is_alloc = params->type == cudaGraphNodeTypeMemAlloc;

	if (!is_alloc && params->type != cudaGraphNodeTypeMemFree)
		return is_circle(graph, params) ? cudaErrorInvalidValue
						: fgv_work_make(params, &attributes, work);
	if (graph->is_child)
		return cudaErrorInvalidValue;
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

static cudaError_t add_after(struct fgv_graph *graph, struct fgv_node *const *before, size_t count,
			     const struct cudaGraphNodeParams *params, cudaGraphNode_t *name)
{
	struct fgv_node *node;
	struct fgv_work work;
	cudaError_t error = make(graph, before, count, params, &work);

	if (error)
		return error;
	error = fgv_graph_add(graph, before, NULL, count, &work, &node);
	if (error) {
		unmake(&work);
		return error;
	}
	fgv_graph_memory_note(node);
	*name = node->name;
	return cudaSuccess;
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

cudaError_t fgv_node_remake(struct fgv_node *node, const struct cudaGraphNodeParams *params,
			    const struct fgv_attributes *attributes)
{
	struct fgv_work work;
	cudaError_t error = fgv_work_make(params, attributes, &work);

	if (error)
		return error;
	fgv_work_free(&node->work);
	node->work = work;
	return cudaSuccess;
}

cudaError_t fgv_node_set(struct fgv_node *node, const struct cudaGraphNodeParams *params)
{
	const struct fgv_attributes attributes =
		node ? node->work.attributes : (struct fgv_attributes){0};

	if (!node || !params || node->work.params.type != params->type)
		return cudaErrorInvalidValue;
	return fgv_node_remake(node, params, &attributes);
}

const struct cudaGraphNodeParams *fgv_node_params(cudaGraphNode_t name, enum cudaGraphNodeType type)
{
	const struct fgv_node *node = fgv_node_of(name);

	return node && node->work.params.type == type ? &node->work.params : NULL;
}

static bool are_edges_good(const cudaGraphNode_t *before, const cudaGraphEdgeData *edges,
			   size_t count, enum cudaGraphNodeType type)
{
	for (size_t i = 0; before && edges && i < count; i++) {
		const struct fgv_node *from = fgv_node_of(before[i]);

		if (from && !fgv_edge_is_good(&edges[i], from->work.params.type, type))
			return false;
	}
	return true;
}

FGV_EXPORT cudaError_t cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					const cudaGraphNode_t *pDependencies,
					const cudaGraphEdgeData *dependencyData,
					size_t numDependencies,
					struct cudaGraphNodeParams *nodeParams)
{
	struct fgv_node *node;
	cudaError_t error;

	if (nodeParams &&
	    !are_edges_good(pDependencies, dependencyData, numDependencies, nodeParams->type))
		return fgv_error_set(cudaErrorInvalidValue);
	error = fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies, nodeParams);
	if (error)
		return fgv_error_set(error);
	node = fgv_node_of(*pGraphNode);
	if (dependencyData && numDependencies)
		memcpy(node->edges, dependencyData, numDependencies * sizeof(*dependencyData));
	if (nodeParams->type == cudaGraphNodeTypeMemAlloc)
		nodeParams->alloc.dptr = node->work.params.alloc.dptr;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node,
					      struct cudaGraphNodeParams *nodeParams)
{
	return fgv_error_set(fgv_node_set(fgv_node_of(node), nodeParams));
}

FGV_EXPORT cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
						  struct cudaGraphNodeParams *nodeParams)
{
	return fgv_error_set(fgv_exec_set(graphExec, node, nodeParams));
}

FGV_EXPORT cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
	const struct fgv_node *found = fgv_node_of(node);

	if (!found || !pType)
		return fgv_error_set(cudaErrorInvalidValue);
	*pType = found->work.params.type;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
					     const cudaGraphNode_t *pDependencies,
					     size_t numDependencies)
{
	const struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeEmpty};

	return fgv_error_set(
		fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies, &params));
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

	return fgv_error_set(
		fgv_graph_add_node(pGraphNode, graph, pDependencies, numDependencies, &params));
}

FGV_EXPORT cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *pGraph)
{
	if (!fgv_node_params(node, cudaGraphNodeTypeGraph) || !pGraph)
		return fgv_error_set(cudaErrorInvalidValue);
	*pGraph = fgv_node_of(node)->work.child->name;
	return cudaSuccess;
}
