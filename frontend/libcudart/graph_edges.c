/*
 * What waits for what: asking for the nodes and edges of a graph, and changing edges. An edge
 * that lets a kernel begin before the one before it ends does not demand that: it is kept, told
 * and done as any other.
 */
#include <string.h>

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph.h"

static bool is_zero(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

bool fgv_edge_is_good(const cudaGraphEdgeData *edge, enum cudaGraphNodeType from,
		      enum cudaGraphNodeType to)
{
	if (edge->to_port || !is_zero(edge->reserved, sizeof(edge->reserved)))
		return false;
	if (edge->from_port == cudaGraphKernelNodePortDefault)
		return edge->type == cudaGraphDependencyTypeDefault;
	if (from != cudaGraphNodeTypeKernel || to != cudaGraphNodeTypeKernel)
		return false;
	if (edge->from_port == cudaGraphKernelNodePortProgrammatic)
		return edge->type == cudaGraphDependencyTypeProgrammatic;
	return edge->from_port == cudaGraphKernelNodePortLaunchCompletion &&
	       (edge->type == cudaGraphDependencyTypeDefault ||
		edge->type == cudaGraphDependencyTypeProgrammatic);
}

bool fgv_edges_are_alike(const cudaGraphEdgeData *a, const cudaGraphEdgeData *b)
{
	const cudaGraphEdgeData ordinary = {0};

	return !memcmp(a ? a : &ordinary, b ? b : &ordinary, sizeof(ordinary));
}

bool fgv_edges_are_plain(const cudaGraphEdgeData *edges, size_t count)
{
	for (size_t i = 0; edges && i < count; i++) {
		if (edges[i].from_port || edges[i].to_port || edges[i].type)
			return false;
	}
	return true;
}

/* Lists that the program gives room for; without room it only wants to know how long. */
struct listing {
	cudaGraphNode_t *nodes;
	cudaGraphNode_t *ends; /* of edges */
	cudaGraphEdgeData *edges;
	size_t *count;
	size_t room;
	size_t found;
	bool is_lossy; /* data of an edge that the program does not ask for */
};

/* @edge NULL: only a node. */
static void list(struct listing *listing, cudaGraphNode_t node, cudaGraphNode_t end,
		 const cudaGraphEdgeData *edge)
{
	size_t at = listing->found++;

	if (listing->nodes && !listing->edges && !fgv_edges_are_alike(edge, NULL))
		listing->is_lossy = true;
	if (at >= listing->room)
		return;
	if (listing->nodes)
		listing->nodes[at] = node;
	if (listing->ends)
		listing->ends[at] = end;
	if (listing->edges)
		listing->edges[at] = *edge;
}

static struct listing start(cudaGraphNode_t *nodes, cudaGraphNode_t *ends, cudaGraphEdgeData *edges,
			    size_t *count)
{
	return (struct listing){
		.nodes = nodes,
		.ends = ends,
		.edges = edges,
		.count = count,
		.room = nodes ? *count : 0,
	};
}

/* What there was room for and is not used becomes NULL. */
static cudaError_t finish(struct listing *listing)
{
	if (listing->is_lossy)
		return cudaErrorLossyQuery;
	for (size_t at = listing->found; at < listing->room; at++) {
		listing->nodes[at] = NULL;
		if (listing->ends)
			listing->ends[at] = NULL;
	}
	if (!listing->nodes || listing->found < listing->room)
		*listing->count = listing->found;
	return cudaSuccess;
}

static cudaError_t list_nodes(cudaGraph_t name, cudaGraphNode_t *nodes, size_t *count,
			      bool only_roots)
{
	const struct fgv_graph *graph = fgv_graph_of(name);
	struct listing listing;

	if (!graph || !count)
		return cudaErrorInvalidValue;
	listing = start(nodes, NULL, NULL, count);
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (!only_roots || !each->before_count)
			list(&listing, each->name, NULL, NULL);
	}
	return finish(&listing);
}

FGV_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
					 size_t *numNodes)
{
	return fgv_error_set(list_nodes(graph, nodes, numNodes, false));
}

FGV_EXPORT cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes,
					     size_t *pNumRootNodes)
{
	return fgv_error_set(list_nodes(graph, pRootNodes, pNumRootNodes, true));
}

static cudaError_t list_edges(cudaGraph_t name, cudaGraphNode_t *from, cudaGraphNode_t *to,
			      cudaGraphEdgeData *edges, size_t *count)
{
	const struct fgv_graph *graph = fgv_graph_of(name);
	struct listing listing;

	if (!graph || !count || !from != !to || (edges && !from))
		return cudaErrorInvalidValue;
	listing = start(from, to, edges, count);
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		for (uint32_t i = 0; i < each->before_count; i++)
			list(&listing, each->before[i]->name, each->name, &each->edges[i]);
	}
	return finish(&listing);
}

FGV_EXPORT cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
					 cudaGraphNode_t *to, cudaGraphEdgeData *edgeData,
					 size_t *numEdges)
{
	return fgv_error_set(list_edges(graph, from, to, edgeData, numEdges));
}

static cudaError_t list_before(cudaGraphNode_t name, cudaGraphNode_t *nodes,
			       cudaGraphEdgeData *edges, size_t *count)
{
	const struct fgv_node *node = fgv_node_of(name);
	struct listing listing;

	if (!node || !count || (edges && !nodes))
		return cudaErrorInvalidValue;
	listing = start(nodes, NULL, edges, count);
	for (uint32_t i = 0; i < node->before_count; i++)
		list(&listing, node->before[i]->name, NULL, &node->edges[i]);
	return finish(&listing);
}

FGV_EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
						    cudaGraphNode_t *pDependencies,
						    cudaGraphEdgeData *edgeData,
						    size_t *pNumDependencies)
{
	return fgv_error_set(list_before(node, pDependencies, edgeData, pNumDependencies));
}

static cudaError_t list_after(cudaGraphNode_t name, cudaGraphNode_t *nodes,
			      cudaGraphEdgeData *edges, size_t *count)
{
	const struct fgv_node *node = fgv_node_of(name);
	struct listing listing;

	if (!node || !count || (edges && !nodes))
		return cudaErrorInvalidValue;
	listing = start(nodes, NULL, edges, count);
	for (const struct fgv_node *each = node->graph->first; each; each = each->next) {
		const cudaGraphEdgeData *edge = fgv_node_edge(each, node);

		if (edge)
			list(&listing, each->name, NULL, edge);
	}
	return finish(&listing);
}

FGV_EXPORT cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
						      cudaGraphNode_t *pDependentNodes,
						      cudaGraphEdgeData *edgeData,
						      size_t *pNumDependentNodes)
{
	return fgv_error_set(list_after(node, pDependentNodes, edgeData, pNumDependentNodes));
}

/*
 * One that is there must be removable, one that is not, addable. Two nodes have one edge at
 * most, so its data is not needed to find it, and CUDA does not look at it.
 */
static cudaError_t change_edge(const struct fgv_graph *graph, cudaGraphNode_t from_name,
			       cudaGraphNode_t to_name, const cudaGraphEdgeData *data, bool add)
{
	struct fgv_node *from = fgv_node_of(from_name), *to = fgv_node_of(to_name);

	if (!from || !to || from->graph != graph || to->graph != graph)
		return cudaErrorInvalidValue;
	if (add && data && !fgv_edge_is_good(data, from->work.params.type, to->work.params.type))
		return cudaErrorInvalidValue;
	if (add)
		return fgv_node_add_before(to, from, data);
	if (fgv_graph_has_memory(graph))
		return cudaErrorNotSupported;
	if (!fgv_node_edge(to, from))
		return cudaErrorInvalidValue;
	fgv_node_remove_before(to, from);
	return cudaSuccess;
}

static cudaError_t change_edges(cudaGraph_t name, const cudaGraphNode_t *from,
				const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
				size_t count, bool add)
{
	const struct fgv_graph *graph = fgv_graph_of(name);
	cudaError_t error = cudaSuccess;

	if (!graph || (count && (!from || !to)))
		return cudaErrorInvalidValue;
	for (size_t i = 0; i < count && !error; i++)
		error = change_edge(graph, from[i], to[i], edges ? &edges[i] : NULL, add);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
						const cudaGraphNode_t *to,
						const cudaGraphEdgeData *edgeData,
						size_t numDependencies)
{
	return fgv_error_set(change_edges(graph, from, to, edgeData, numDependencies, true));
}

FGV_EXPORT cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
						   const cudaGraphNode_t *to,
						   const cudaGraphEdgeData *edgeData,
						   size_t numDependencies)
{
	return fgv_error_set(change_edges(graph, from, to, edgeData, numDependencies, false));
}
