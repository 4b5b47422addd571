/*
 * What waits for what: asking for the nodes and edges of a graph, and changing edges. An edge
 * that lets a kernel begin before the one before it ends does not demand that: it is kept, told
 * and done as any other.
 */
#include <string.h>

#include "frontend/cuda/graph/graph.h"
#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/graph/node.h"

static bool is_zero(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

bool fgv_edge_is_good(const CUgraphEdgeData *edge, CUgraphNodeType from, CUgraphNodeType to)
{
	if (edge->to_port || !is_zero(edge->reserved, sizeof(edge->reserved)))
		return false;
	if (edge->from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT)
		return edge->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
	if (from != CU_GRAPH_NODE_TYPE_KERNEL || to != CU_GRAPH_NODE_TYPE_KERNEL)
		return false;
	if (edge->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC)
		return edge->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
	return edge->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
	       (edge->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT ||
		edge->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
}

bool fgv_edges_are_alike(const CUgraphEdgeData *a, const CUgraphEdgeData *b)
{
	const CUgraphEdgeData ordinary = {0};

	return !memcmp(a ? a : &ordinary, b ? b : &ordinary, sizeof(ordinary));
}

bool fgv_edges_are_plain(const CUgraphEdgeData *edges, size_t count)
{
	for (size_t i = 0; edges && i < count; i++) {
		if (edges[i].from_port || edges[i].to_port || edges[i].type)
			return false;
	}
	return true;
}

/* Lists that the program gives room for; without room it only wants to know how long. */
struct listing {
	CUgraphNode *nodes;
	CUgraphNode *ends; /* of edges */
	CUgraphEdgeData *edges;
	size_t *count;
	size_t room;
	size_t found;
	bool is_lossy; /* data of an edge that the program does not ask for */
};

/* @edge NULL: only a node. */
static void list(struct listing *listing, CUgraphNode node, CUgraphNode end,
		 const CUgraphEdgeData *edge)
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

static struct listing start(CUgraphNode *nodes, CUgraphNode *ends, CUgraphEdgeData *edges,
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
static CUresult finish(struct listing *listing)
{
	if (listing->is_lossy)
		return CUDA_ERROR_LOSSY_QUERY;
	for (size_t at = listing->found; at < listing->room; at++) {
		listing->nodes[at] = NULL;
		if (listing->ends)
			listing->ends[at] = NULL;
	}
	if (!listing->nodes || listing->found < listing->room)
		*listing->count = listing->found;
	return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph name, CUgraphNode *nodes, size_t *count, bool only_roots)
{
	const struct fgv_graph *graph = fgv_graph_of(name);
	struct listing listing;

	if (!graph || !count)
		return CUDA_ERROR_INVALID_VALUE;
	listing = start(nodes, NULL, NULL, count);
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (!only_roots || !each->before_count)
			list(&listing, each->name, NULL, NULL);
	}
	return finish(&listing);
}

CUresult fgv_graph_get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return list_nodes(graph, nodes, count, false);
}

CUresult fgv_graph_get_roots(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return list_nodes(graph, nodes, count, true);
}

CUresult fgv_graph_get_edges(CUgraph name, CUgraphNode *from, CUgraphNode *to,
			     CUgraphEdgeData *edges, size_t *count)
{
	const struct fgv_graph *graph = fgv_graph_of(name);
	struct listing listing;

	if (!graph || !count || !from != !to || (edges && !from))
		return CUDA_ERROR_INVALID_VALUE;
	listing = start(from, to, edges, count);
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		for (uint32_t i = 0; i < each->before_count; i++)
			list(&listing, each->before[i]->name, each->name, &each->edges[i]);
	}
	return finish(&listing);
}

CUresult fgv_node_get_before(CUgraphNode name, CUgraphNode *nodes, CUgraphEdgeData *edges,
			     size_t *count)
{
	const struct fgv_node *node = fgv_node_of(name);
	struct listing listing;

	if (!node || !count || (edges && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	listing = start(nodes, NULL, edges, count);
	for (uint32_t i = 0; i < node->before_count; i++)
		list(&listing, node->before[i]->name, NULL, &node->edges[i]);
	return finish(&listing);
}

CUresult fgv_node_get_after(CUgraphNode name, CUgraphNode *nodes, CUgraphEdgeData *edges,
			    size_t *count)
{
	const struct fgv_node *node = fgv_node_of(name);
	struct listing listing;

	if (!node || !count || (edges && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	listing = start(nodes, NULL, edges, count);
	for (const struct fgv_node *each = node->graph->first; each; each = each->next) {
		const CUgraphEdgeData *edge = fgv_node_edge(each, node);

		if (edge)
			list(&listing, each->name, NULL, edge);
	}
	return finish(&listing);
}

/*
 * One that is there must be removable, one that is not, addable. Two nodes have one edge at
 * most, so its data is not needed to find it, and CUDA does not look at it.
 */
static CUresult change_edge(const struct fgv_graph *graph, CUgraphNode from_name,
			    CUgraphNode to_name, const CUgraphEdgeData *data, bool add)
{
	struct fgv_node *from = fgv_node_of(from_name), *to = fgv_node_of(to_name);

	if (!from || !to || from->graph != graph || to->graph != graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (add && data && !fgv_edge_is_good(data, fgv_node_type(from), fgv_node_type(to)))
		return CUDA_ERROR_INVALID_VALUE;
	if (add)
		return fgv_node_add_before(to, from, data);
	if (fgv_graph_has_memory(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!fgv_node_edge(to, from))
		return CUDA_ERROR_INVALID_VALUE;
	fgv_node_remove_before(to, from);
	return CUDA_SUCCESS;
}

static CUresult change_edges(CUgraph name, const CUgraphNode *from, const CUgraphNode *to,
			     const CUgraphEdgeData *edges, size_t count, bool add)
{
	const struct fgv_graph *graph = fgv_graph_of(name);
	CUresult res = CUDA_SUCCESS;

	if (!graph || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !res; i++)
		res = change_edge(graph, from[i], to[i], edges ? &edges[i] : NULL, add);
	return res;
}

CUresult fgv_graph_add_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
			     const CUgraphEdgeData *edges, size_t count)
{
	return change_edges(graph, from, to, edges, count, true);
}

CUresult fgv_graph_remove_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t count)
{
	return change_edges(graph, from, to, NULL, count, false);
}
