/*
 * The nodes of a graph and what they wait for; making, copying and destroying them.
 */
#include "frontend/cuda/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/client/lane.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/graph/home.h"
#include "frontend/cuda/memory/graph_memory.h"

struct fgv_graph *fgv_graph_make(bool named)
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
	if (!node->has_pooled_lists) {
		free(node->before);
		free(node->edges);
	}
	free(node->args);
	if (!node->is_pooled)
		free(node);
}

void fgv_graph_free(struct fgv_graph *graph)
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
	fgv_home_put(graph->home);
	free(graph->pool);
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

void fgv_node_free(struct fgv_node *node)
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

const CUgraphEdgeData *fgv_node_edge(const struct fgv_node *node, const struct fgv_node *before)
{
	for (uint32_t i = 0; i < node->before_count; i++) {
		if (node->before[i] == before)
			return &node->edges[i];
	}
	return NULL;
}

/* Lists of its own in the place of those in the pool. */
static bool leave_pool(struct fgv_node *node)
{
	size_t before_len = node->before_count * sizeof(struct fgv_node *);
	size_t edges_len = node->before_count * sizeof(*node->edges);
	struct fgv_node **before = malloc(before_len + 1);
	CUgraphEdgeData *edges = malloc(edges_len + 1);

	if (!before || !edges) {
		free(before);
		free(edges);
		return false;
	}
	memcpy(before, node->before, before_len);
	memcpy(edges, node->edges, edges_len);
	node->before = before;
	node->edges = edges;
	node->has_pooled_lists = false;
	return true;
}

/* Room for one more that it waits for. */
static bool make_room_before(struct fgv_node *node)
{
	size_t count = node->before_count + 1;
	struct fgv_node **before;
	CUgraphEdgeData *edges;

	if (node->has_pooled_lists && !leave_pool(node))
		return false;
	before = realloc(node->before, count * sizeof(struct fgv_node *));
	edges = realloc(node->edges, count * sizeof(*edges));

	if (before)
		node->before = before;
	if (edges)
		node->edges = edges;
	return before && edges;
}

CUresult fgv_node_add_before(struct fgv_node *node, struct fgv_node *before,
			     const CUgraphEdgeData *edge)
{
	const CUgraphEdgeData ordinary = {0};

	if (node == before || node->graph != before->graph || fgv_node_edge(node, before))
		return CUDA_ERROR_INVALID_VALUE;
	if (!make_room_before(node))
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->edges[node->before_count] = edge ? *edge : ordinary;
	node->before[node->before_count++] = before;
	return CUDA_SUCCESS;
}

static CUresult add_all_before(struct fgv_node *node, struct fgv_node *const *before,
			       const CUgraphEdgeData *edges, size_t count)
{
	CUresult res = CUDA_SUCCESS;

	for (size_t i = 0; i < count && !res; i++)
		res = fgv_node_add_before(node, before[i], edges ? &edges[i] : NULL);
	return res;
}

/* Behind the nodes that @graph has. */
static void put_last(struct fgv_graph *graph, struct fgv_node *node)
{
	*graph->end = node;
	graph->end = &node->next;
	graph->count++;
}

CUresult fgv_graph_add(struct fgv_graph *graph, struct fgv_node *const *before,
		       const CUgraphEdgeData *edges, size_t before_count,
		       const struct fgv_work *work, struct fgv_node **node)
{
	struct fgv_node *made = calloc(1, sizeof(*made));
	CUresult res;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->graph = graph;
	res = add_all_before(made, before, edges, before_count);
	if (!res && graph->name) {
		made->name = fgv_object_create_for(FGV_OBJECT_NODE, made);
		if (!made->name)
			res = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (res) {
		free_node(made);
		return res;
	}
	made->work = *work;
	put_last(graph, made);
	*node = made;
	return CUDA_SUCCESS;
}

/* --- Copies ---------------------------------------------------------------------- */

/* The names that @node's copies know it by. */
static CUgraphNode origin_of(const struct fgv_node *node)
{
	return node->name ? node->name : node->origin;
}

/* @copy, of the pool, becomes a copy of @node that waits for nothing. */
static CUresult copy_node(struct fgv_graph *to, struct fgv_node *node, struct fgv_node *copy)
{
	CUresult res = fgv_work_copy(&node->work, &copy->work);

	if (res)
		return res;
	copy->graph = to;
	copy->is_pooled = true;
	copy->origin = origin_of(node);
	copy->disabled = node->disabled;
	node->twin = copy;
	put_last(to, copy);
	if (to->name)
		copy->name = fgv_object_create_for(FGV_OBJECT_NODE, copy);
	return to->name && !copy->name ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* What the copy of @node waits for, in lists of the pool. */
static void copy_edges(const struct fgv_node *node, struct fgv_node **before,
		       CUgraphEdgeData *edges)
{
	struct fgv_node *copy = node->twin;

	copy->before = before;
	copy->edges = edges;
	copy->before_count = node->before_count;
	copy->has_pooled_lists = true;
	for (uint32_t i = 0; i < node->before_count; i++) {
		before[i] = node->before[i]->twin;
		edges[i] = node->edges[i];
	}
}

static size_t count_edges(const struct fgv_graph *graph)
{
	size_t count = 0;

	for (const struct fgv_node *each = graph->first; each; each = each->next)
		count += each->before_count;
	return count;
}

/* All in one piece of memory. All nodes first: what is waited for may have been made later. */
static CUresult copy_into(struct fgv_graph *to, struct fgv_graph *graph)
{
	size_t count = graph->count, edge_count = count_edges(graph);
	struct fgv_node *nodes = calloc(
		1, count * sizeof(*nodes) +
			   edge_count * (sizeof(struct fgv_node *) + sizeof(CUgraphEdgeData)) + 1);
	struct fgv_node **before;
	CUgraphEdgeData *edges;
	CUresult res = CUDA_SUCCESS;

	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	before = (struct fgv_node **)(nodes + count);
	edges = (CUgraphEdgeData *)(before + edge_count);
	to->pool = nodes;
	for (struct fgv_node *each = graph->first; each && !res; each = each->next)
		res = copy_node(to, each, nodes++);
	for (struct fgv_node *each = graph->first; each && !res; each = each->next) {
		copy_edges(each, before, edges);
		before += each->before_count;
		edges += each->before_count;
	}
	return res;
}

CUresult fgv_graph_copy(struct fgv_graph *graph, bool named, struct fgv_graph **copy)
{
	struct fgv_graph *made = fgv_graph_make(named);
	CUresult res = made ? copy_into(made, graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!res)
		res = fgv_held_copy(graph->held, &made->held);
	if (res)
		fgv_graph_free(made);
	else
		*copy = made;
	return res;
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
CUresult fgv_graph_sort(struct fgv_graph *graph, struct fgv_node ***nodes)
{
	struct fgv_node **sorted = calloc(graph->count + 1, sizeof(struct fgv_node *));
	uint32_t count = 0, earlier;

	if (!sorted)
		return CUDA_ERROR_OUT_OF_MEMORY;
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
		return CUDA_ERROR_INVALID_VALUE;
	}
	*nodes = sorted;
	return CUDA_SUCCESS;
}

static void mark(struct fgv_node *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i]->marked = true;
}

CUresult fgv_graph_mark_before(struct fgv_graph *graph, struct fgv_node *const *last, size_t count)
{
	struct fgv_node **sorted;
	CUresult res = fgv_graph_sort(graph, &sorted);

	if (res)
		return res;
	for (uint32_t i = 0; i < graph->count; i++)
		sorted[i]->marked = false;
	mark(last, count);
	for (uint32_t i = graph->count; i > 0; i--) {
		if (sorted[i - 1]->marked)
			mark(sorted[i - 1]->before, sorted[i - 1]->before_count);
	}
	free(sorted);
	return CUDA_SUCCESS;
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

bool fgv_graph_has_choices(const struct fgv_graph *graph)
{
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (each->work.bodies)
			return true;
	}
	return graph->home;
}

/* NULL: there is none yet. */
static CUresult look_for_devices(const struct fgv_graph *graph, const struct fgv_task **first)
{
	CUresult res = CUDA_SUCCESS;

	for (const struct fgv_node *each = graph->first; each && !res; each = each->next) {
		const struct fgv_work *work = &each->work;

		if (work->task->records || work->memory || work->bodies) {
			if (*first && (*first)->device != work->task->device)
				return FGV_UNSUPPORTED("graphs of several devices");
			*first = work->task;
		}
		if (work->child)
			res = look_for_devices(work->child, first);
		for (uint32_t i = 0; work->bodies && i < work->bodies->count && !res; i++)
			res = look_for_devices(work->bodies->graphs[i], first);
	}
	return res;
}

CUresult fgv_graph_find_device(const struct fgv_graph *graph, uint32_t *device)
{
	const struct fgv_task *first = NULL;
	CUresult res = look_for_devices(graph, &first);

	if (!res && first)
		*device = first->device;
	return res;
}

uint32_t fgv_graph_count_all(const struct fgv_graph *graph)
{
	uint32_t count = graph->count;

	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		const struct fgv_bodies *bodies = each->work.bodies;

		if (each->work.child)
			count += fgv_graph_count_all(each->work.child);
		for (uint32_t i = 0; bodies && i < bodies->count; i++)
			count += fgv_graph_count_all(bodies->graphs[i]);
	}
	return count;
}

void fgv_graph_sweep(void)
{
	struct fgv_lane *lane;

	for (uint32_t device = 0; device < FGV_DEVICES_MAX; device++) {
		if (!fgv_graph_memory_is_idle(device) || !fgv_session_existing() ||
		    fgv_lane_enter_on(device, &lane))
			continue;
		fgv_graph_memory_sweep(lane);
		fgv_lane_leave(lane);
	}
}

/* --- As the program asks -------------------------------------------------------- */

CUresult fgv_graph_create(CUgraph *name, unsigned flags)
{
	struct fgv_graph *graph;

	if (!name || flags)
		return CUDA_ERROR_INVALID_VALUE;
	graph = fgv_graph_make(true);
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*name = graph->name;
	return CUDA_SUCCESS;
}

CUresult fgv_graph_destroy(CUgraph graph)
{
	struct fgv_graph *found = fgv_graph_of(graph);
	bool has_memory;

	if (!found || found->is_child)
		return CUDA_ERROR_INVALID_VALUE;
	has_memory = fgv_graph_has_memory(found);
	fgv_graph_free(found);
	if (has_memory)
		fgv_graph_sweep();
	return CUDA_SUCCESS;
}

CUresult fgv_graph_clone(CUgraph *clone, CUgraph original)
{
	struct fgv_graph *graph = fgv_graph_of(original), *copy;
	CUresult res;

	if (!clone || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (fgv_graph_has_memory(graph) || fgv_graph_has_choices(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	res = fgv_graph_copy(graph, true, &copy);
	if (!res)
		*clone = copy->name;
	return res;
}

CUresult fgv_graph_retain_object(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
	struct fgv_graph *holder = fgv_graph_of(graph);

	if (!holder || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_held_add(&holder->held, object, count, flags & CU_GRAPH_USER_OBJECT_MOVE);
}

CUresult fgv_graph_release_object(CUgraph graph, CUuserObject object, unsigned count)
{
	struct fgv_graph *holder = fgv_graph_of(graph);

	return holder ? fgv_held_drop(&holder->held, object, count) : CUDA_ERROR_INVALID_VALUE;
}
