/*
 * Lists of nodes that something captured waits for, each with how it waits: an edge.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/graph/capture_priv.h"

void fgv_nodes_fini(struct nodes *nodes)
{
	free(nodes->list);
	free(nodes->edges);
}

/* Room for @count of them. */
static int resize(struct nodes *nodes, size_t count)
{
	struct fgv_node **list = realloc(nodes->list, (count + 1) * sizeof(struct fgv_node *));
	CUgraphEdgeData *edges = realloc(nodes->edges, (count + 1) * sizeof(*edges));

	if (list)
		nodes->list = list;
	if (edges)
		nodes->edges = edges;
	return list && edges ? 0 : -ENOMEM;
}

static void append(struct nodes *nodes, struct fgv_node *node, const CUgraphEdgeData *edge)
{
	const CUgraphEdgeData ordinary = {0};

	nodes->edges[nodes->count] = edge ? *edge : ordinary;
	nodes->list[nodes->count++] = node;
}

int fgv_nodes_set(struct nodes *nodes, struct fgv_node *const *list, const CUgraphEdgeData *edges,
		  size_t count)
{
	if (resize(nodes, count))
		return -ENOMEM;
	nodes->count = 0;
	for (size_t i = 0; i < count; i++)
		append(nodes, list[i], edges ? &edges[i] : NULL);
	return 0;
}

/* How @node is waited for; NULL: not at all. */
static CUgraphEdgeData *find(const struct nodes *nodes, const struct fgv_node *node)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->list[i] == node)
			return &nodes->edges[i];
	}
	return NULL;
}

/* Of two ways to wait for a node, what comes later in it: ports are numbered from its end. */
static void merge(struct nodes *nodes, struct fgv_node *node, const CUgraphEdgeData *edge)
{
	CUgraphEdgeData *found = find(nodes, node);

	if (!found)
		append(nodes, node, edge);
	else if (edge->from_port < found->from_port)
		*found = *edge;
}

int fgv_nodes_merge(struct nodes *nodes, const struct nodes *more)
{
	if (resize(nodes, nodes->count + more->count))
		return -ENOMEM;
	for (size_t i = 0; i < more->count; i++)
		merge(nodes, more->list[i], &more->edges[i]);
	return 0;
}

void fgv_nodes_hasten(struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (fgv_node_type(nodes->list[i]) == CU_GRAPH_NODE_TYPE_KERNEL)
			nodes->edges[i] = (CUgraphEdgeData){
				.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
				.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
			};
	}
}
