/*
 * The nodes of a graph and what they wait for; making, copying and destroying them.
 */
#include "frontend/libcudart/graph.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_memory.h"

struct fgv_graph *fgv_graph_create(bool named)
{
	struct fgv_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	graph->end = &graph->first;
	if (named) {
		graph->name = fgv_object_create_for(FGV_OBJECT_GRAPH, graph);
		if (!graph->name) {
			free(graph);
			return NULL;
		}
	}
	return graph;
}

static void free_node(struct fgv_node *node)
{
	struct fgv_object_info info;

	if (node->name)
		fgv_object_destroy(FGV_OBJECT_NODE, node->name, &info);
	fgv_work_free(&node->work);
	free(node->before);
	free(node->edges);
	free(node->args);
	free(node);
}

void fgv_graph_destroy(struct fgv_graph *graph)
{
	struct fgv_object_info info;

	if (!graph)
		return;
	if (graph->name)
		fgv_object_destroy(FGV_OBJECT_GRAPH, graph->name, &info);
	while (graph->first) {
		struct fgv_node *node = graph->first;

		graph->first = node->next;
		free_node(node);
	}
	fgv_held_release(graph->held);
	free(graph);
}

void fgv_node_remove_before(struct fgv_node *node, const struct fgv_node *before)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < node->before_count; i++) {
		if (node->before[i] == before)
			continue;
		node->before[kept] = node->before[i];
		node->edges[kept++] = node->edges[i];
	}
	node->before_count = kept;
}

void fgv_node_destroy(struct fgv_node *node)
{
	struct fgv_graph *graph = node->graph;
	struct fgv_node **link = &graph->first;

	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	if (graph->end == &node->next)
		graph->end = link;
	graph->count--;
	for (struct fgv_node *each = graph->first; each; each = each->next)
		fgv_node_remove_before(each, node);
	free_node(node);
}

const cudaGraphEdgeData *fgv_node_edge(const struct fgv_node *node, const struct fgv_node *before)
{
	for (uint32_t i = 0; i < node->before_count; i++) {
		if (node->before[i] == before)
			return &node->edges[i];
	}
	return NULL;
}

/* Room for one more that it waits for. */
static bool make_room_before(struct fgv_node *node)
{
	size_t count = node->before_count + 1;
	struct fgv_node **before = realloc(node->before, count * sizeof(struct fgv_node *));
	cudaGraphEdgeData *edges = realloc(node->edges, count * sizeof(*edges));

	if (before)
		node->before = before;
	if (edges)
		node->edges = edges;
	return before && edges;
}

cudaError_t fgv_node_add_before(struct fgv_node *node, struct fgv_node *before,
				const cudaGraphEdgeData *edge)
{
	const cudaGraphEdgeData ordinary = {0};

	if (node == before || node->graph != before->graph || fgv_node_edge(node, before))
		return cudaErrorInvalidValue;
	if (!make_room_before(node))
		return cudaErrorMemoryAllocation;
	node->edges[node->before_count] = edge ? *edge : ordinary;
	node->before[node->before_count++] = before;
	return cudaSuccess;
}

static cudaError_t add_all_before(struct fgv_node *node, struct fgv_node *const *before,
				  const cudaGraphEdgeData *edges, size_t count)
{
	cudaError_t error = cudaSuccess;

	for (size_t i = 0; i < count && !error; i++)
		error = fgv_node_add_before(node, before[i], edges ? &edges[i] : NULL);
	return error;
}

cudaError_t fgv_graph_add(struct fgv_graph *graph, struct fgv_node *const *before,
			  const cudaGraphEdgeData *edges, size_t before_count,
			  const struct fgv_work *work, struct fgv_node **node)
{
	struct fgv_node *made = calloc(1, sizeof(*made));
	cudaError_t error;

	if (!made)
		return cudaErrorMemoryAllocation;
	made->graph = graph;
	error = add_all_before(made, before, edges, before_count);
	if (!error && graph->name) {
		made->name = fgv_object_create_for(FGV_OBJECT_NODE, made);
		if (!made->name)
			error = cudaErrorMemoryAllocation;
	}
	if (error) {
		free_node(made);
		return error;
	}
	made->work = *work;
	*graph->end = made;
	graph->end = &made->next;
	graph->count++;
	*node = made;
	return cudaSuccess;
}

/* The names that @node's copies know it by. */
static cudaGraphNode_t origin_of(const struct fgv_node *node)
{
	return node->name ? node->name : node->origin;
}

static cudaError_t copy_node(struct fgv_graph *to, struct fgv_node *node)
{
	struct fgv_work work;
	cudaError_t error = fgv_work_copy(&node->work, &work);

	if (error)
		return error;
	error = fgv_graph_add(to, NULL, NULL, 0, &work, &node->twin);
	if (error) {
		fgv_work_free(&work);
		return error;
	}
	node->twin->origin = origin_of(node);
	node->twin->disabled = node->disabled;
	return cudaSuccess;
}

/* All nodes first: what is waited for may have been made later. */
static cudaError_t copy_into(struct fgv_graph *to, struct fgv_graph *graph)
{
	cudaError_t error = cudaSuccess;

	for (struct fgv_node *each = graph->first; each && !error; each = each->next)
		error = copy_node(to, each);
	for (struct fgv_node *each = graph->first; each && !error; each = each->next) {
		for (uint32_t i = 0; i < each->before_count && !error; i++)
			error = fgv_node_add_before(each->twin, each->before[i]->twin,
						    &each->edges[i]);
	}
	return error;
}

cudaError_t fgv_graph_copy(struct fgv_graph *graph, bool named, struct fgv_graph **copy)
{
	struct fgv_graph *made = fgv_graph_create(named);
	cudaError_t error = made ? copy_into(made, graph) : cudaErrorMemoryAllocation;

	if (!error)
		error = fgv_held_copy(graph->held, &made->held);
	if (error)
		fgv_graph_destroy(made);
	else
		*copy = made;
	return error;
}

static bool is_ready(const struct fgv_node *node)
{
	for (uint32_t i = 0; i < node->before_count; i++) {
		if (!node->before[i]->marked)
			return false;
	}
	return true;
}

/* Nodes are mostly made after those that they wait for: then one pass is enough. */
cudaError_t fgv_graph_sort(struct fgv_graph *graph, struct fgv_node ***nodes)
{
	struct fgv_node **sorted = calloc(graph->count + 1, sizeof(struct fgv_node *));
	uint32_t count = 0, earlier;

	if (!sorted)
		return cudaErrorMemoryAllocation;
	for (struct fgv_node *each = graph->first; each; each = each->next)
		each->marked = false;
	do {
		earlier = count;
		for (struct fgv_node *each = graph->first; each; each = each->next) {
			if (!each->marked && is_ready(each)) {
				each->marked = true;
				sorted[count++] = each;
			}
		}
	} while (count > earlier && count < graph->count);
	if (count < graph->count) {
		free(sorted);
		return cudaErrorInvalidValue;
	}
	*nodes = sorted;
	return cudaSuccess;
}

static void mark(struct fgv_node *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i]->marked = true;
}

cudaError_t fgv_graph_mark_before(struct fgv_graph *graph, struct fgv_node *const *last,
				  size_t count)
{
	struct fgv_node **sorted;
	cudaError_t error = fgv_graph_sort(graph, &sorted);

	if (error)
		return error;
	for (uint32_t i = 0; i < graph->count; i++)
		sorted[i]->marked = false;
	mark(last, count);
	for (uint32_t i = graph->count; i > 0; i--) {
		if (sorted[i - 1]->marked)
			mark(sorted[i - 1]->before, sorted[i - 1]->before_count);
	}
	free(sorted);
	return cudaSuccess;
}

bool fgv_graph_has_memory(const struct fgv_graph *graph)
{
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (each->work.memory ||
		    (each->work.child && fgv_graph_has_memory(each->work.child)))
			return true;
	}
	return false;
}

FGV_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
	struct fgv_graph *graph;

	if (!pGraph || flags)
		return fgv_error_set(cudaErrorInvalidValue);
	graph = fgv_graph_create(true);
	if (!graph)
		return fgv_error_set(cudaErrorMemoryAllocation);
	*pGraph = graph->name;
	return cudaSuccess;
}

void fgv_graph_sweep(void)
{
	struct fgv_lane *lane;

	if (!fgv_session_existing() || fgv_lane_enter(&lane))
		return;
	fgv_graph_memory_sweep(lane);
	fgv_lane_leave(lane);
}

FGV_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	struct fgv_graph *found = fgv_graph_of(graph);
	bool has_memory;

	if (!found || found->is_child)
		return fgv_error_set(cudaErrorInvalidValue);
	has_memory = fgv_graph_has_memory(found);
	fgv_graph_destroy(found);
	if (has_memory)
		fgv_graph_sweep();
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
	struct fgv_graph *graph = fgv_graph_of(originalGraph), *copy;
	cudaError_t error;

	if (!pGraphClone || !graph)
		return fgv_error_set(cudaErrorInvalidValue);
	error = fgv_graph_has_memory(graph) ? cudaErrorNotSupported
					    : fgv_graph_copy(graph, true, &copy);
	if (!error)
		*pGraphClone = copy->name;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *pNode,
						cudaGraphNode_t originalNode,
						cudaGraph_t clonedGraph)
{
	struct fgv_graph *graph = fgv_graph_of(clonedGraph);

	if (!pNode || !fgv_node_of(originalNode) || !graph)
		return fgv_error_set(cudaErrorInvalidValue);
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (each->origin == originalNode) {
			*pNode = each->name;
			return cudaSuccess;
		}
	}
	return fgv_error_set(cudaErrorInvalidValue);
}

FGV_EXPORT cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	struct fgv_node *found = fgv_node_of(node);

	if (!found)
		return fgv_error_set(cudaErrorInvalidValue);
	if (fgv_graph_has_memory(found->graph))
		return fgv_error_set(cudaErrorNotSupported);
	fgv_node_destroy(found);
	return cudaSuccess;
}
