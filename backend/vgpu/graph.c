/*
 * Graphs: their nodes, and the GPU's graph that is made of them.
 */
#include "backend/vgpu/graph.h"

#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"
#include "common/util.h"

/* --- Nodes --------------------------------------------------------------------- */

static bool fits(const struct fgv_graphs *graphs, uint64_t len, uint32_t count)
{
	return count <= FGV_GRAPH_NODES_MAX && count <= FGV_GRAPHS_NODES_MAX - graphs->nodes &&
	       len <= FGV_GRAPH_TEXT_MAX - fgv_min_u64(graphs->kept_bytes, FGV_GRAPH_TEXT_MAX);
}

static bool copies_host_memory(const struct fgv_gpu_node *node)
{
	return node->kind == FGV_GPU_NODE_COPY && (node->copy.srcMemoryType == CU_MEMORYTYPE_HOST ||
						   node->copy.dstMemoryType == CU_MEMORYTYPE_HOST);
}

/* FGV_GRAPH_MOVED_MAX + 1 for any more, so that sums do not wrap. */
static uint64_t moved_by(const struct fgv_gpu_node *node, const struct fgv_graph_kept *kept)
{
	if (node->kind != FGV_GPU_NODE_COPY && node->kind != FGV_GPU_NODE_FILL)
		return 0;
	return fgv_min_u64(kept->amount, FGV_GRAPH_MOVED_MAX + 1);
}

static bool is_event(const struct fgv_gpu_node *node)
{
	return node->kind == FGV_GPU_NODE_RECORD || node->kind == FGV_GPU_NODE_WAIT;
}

static void keep_bytes(struct fgv_session *session, struct fgv_graph *graph, uint64_t bytes)
{
	session->graphs.kept_bytes += bytes;
	graph->bytes += bytes;
}

static void count_node(struct fgv_graph *graph, uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];

	graph->moved += moved_by(node, &graph->kept[number]);
	graph->kernels += node->kind == FGV_GPU_NODE_KERNEL;
	graph->events += is_event(node);
	graph->uses_host |= copies_host_memory(node);
}

/* Before another takes its place. */
static void uncount_node(struct fgv_graph *graph, uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];

	graph->moved -= moved_by(node, &graph->kept[number]);
	graph->kernels -= node->kind == FGV_GPU_NODE_KERNEL;
	graph->events -= is_event(node);
}

/* In one of the bodies of a choice, where what it waits for is, too. */
static bool is_in_its_place(const struct fgv_graph *graph, const struct fgv_gpu_node *node)
{
	const struct fgv_gpu_node *choice = node->inside ? &graph->nodes[node->inside - 1] : NULL;

	if (choice && (choice->kind != FGV_GPU_NODE_CHOICE || node->body >= choice->choice.bodies))
		return false;
	for (uint32_t i = 0; i < node->before_count; i++) {
		const struct fgv_gpu_node *before = &graph->nodes[node->before[i]];

		if (before->inside != node->inside || before->body != node->body)
			return false;
	}
	return true;
}

/* A loop is a piece of work of any length, which can only be in turns where it can be held. */
static bool may_choose(const struct fgv_session *session, const struct fgv_graph *graph,
		       const struct fgv_gpu_node *node)
{
	return graph->home &&
	       (node->choice.type != CU_GRAPH_COND_TYPE_WHILE ||
		__atomic_load_n(&session->gate.grant->is_holdable, __ATOMIC_RELAXED));
}

static CUresult check_node(const struct fgv_session *session, struct fgv_graph *graph,
			   uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];
	struct fgv_graph_kept *kept = &graph->kept[number];

	if (!is_in_its_place(graph, node) || (node->inside && is_event(node)))
		return CUDA_ERROR_INVALID_VALUE;
	kept->depth = node->inside ? graph->kept[node->inside - 1].depth + 1 : 0;
	if (kept->depth > FGV_GRAPH_DEPTH_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	return node->kind != FGV_GPU_NODE_CHOICE || may_choose(session, graph, node)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult read_all(struct fgv_session *session, struct fgv_graph *graph,
			 struct fgv_graph_text text)
{
	uint32_t edges = 0;

	for (uint32_t i = 0; i < graph->count; i++) {
		uint32_t number;
		CUresult status = fgv_graph_text_next(session, &text, i + 1, &number,
						      &graph->nodes[i], &graph->kept[i]);

		if (status == CUDA_SUCCESS)
			status = number == i ? check_node(session, graph, i)
					     : CUDA_ERROR_INVALID_VALUE;
		if (status != CUDA_SUCCESS)
			return status;
		count_node(graph, i);
		edges += graph->nodes[i].before_count;
		if (edges > FGV_GRAPH_EDGES_MAX)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (graph->moved > FGV_GRAPH_MOVED_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	return text.left ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult create(struct fgv_session *session, struct fgv_graph *graph)
{
	struct fgv_gpu *gpu = session->gpu;

	if (graph->home)
		return gpu->ops->graph_create_in(gpu, graph->home->graph->conditions, graph->nodes,
						 graph->count, &graph->gpu);
	return gpu->ops->graph_create(gpu, graph->nodes, graph->count, &graph->gpu);
}

/* A copy, which the guest can't change behind the checks. Each argument is in 8 bytes of it. */
static bool own_text(struct fgv_session *session, struct fgv_graph *graph,
		     struct fgv_graph_text *text)
{
	uint64_t count = text->left / 8;
	uint8_t *copy;

	graph->text = malloc(count * sizeof(void *) + text->left + 1);
	if (!graph->text)
		return false;
	keep_bytes(session, graph, text->left);
	copy = (uint8_t *)((void **)graph->text + count);
	text->at = memcpy(copy, text->at, text->left);
	text->pointers = graph->text;
	text->pointers_left = count;
	return true;
}

static CUresult make(struct fgv_session *session, struct fgv_graph *graph,
		     struct fgv_graph_text text)
{
	CUresult status;

	graph->nodes = calloc((size_t)graph->count + 1, sizeof(*graph->nodes));
	graph->kept = calloc((size_t)graph->count + 1, sizeof(*graph->kept));
	if (!graph->nodes || !graph->kept || !own_text(session, graph, &text))
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->mapped_taken = session->mapped.taken;
	status = read_all(session, graph, text);
	return status == CUDA_SUCCESS ? create(session, graph) : status;
}

static void move_in(struct fgv_graph *graph, struct fgv_object *home)
{
	graph->home = home;
	home->graph->is_inhabited = true;
	fgv_object_get(home);
}

static void move_out(struct fgv_session *session, struct fgv_graph *graph)
{
	graph->home->graph->is_inhabited = false;
	fgv_session_put(session, graph->home);
}

CUresult fgv_graph_make(struct fgv_session *session, struct fgv_object *home, const void *text,
			uint64_t len, uint32_t count, struct fgv_graph **graph)
{
	struct fgv_graph *made;
	CUresult status;

	if (home && !home->graph->conditions)
		return CUDA_ERROR_INVALID_VALUE;
	if (home && home->graph->is_inhabited)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (count > len / sizeof(struct fgv_graph_node))
		return CUDA_ERROR_INVALID_VALUE;
	if (!fits(&session->graphs, len, count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->count = count;
	if (home)
		move_in(made, home);
	session->graphs.nodes += count;
	status = make(session, made, (struct fgv_graph_text){.at = text, .left = len});
	if (status == CUDA_SUCCESS)
		*graph = made;
	else
		fgv_graph_destroy(session, made);
	return status;
}

CUresult fgv_graph_destroy(struct fgv_session *session, struct fgv_graph *graph)
{
	CUresult status = CUDA_SUCCESS;

	if (graph->gpu)
		status = session->gpu->ops->graph_destroy(session->gpu, graph->gpu);
	if (graph->conditions)
		status = session->gpu->ops->home_destroy(session->gpu, graph->conditions);
	for (uint32_t i = 0; graph->nodes && graph->kept && i < graph->count; i++)
		fgv_graph_text_drop(session, &graph->kept[i]);
	session->graphs.nodes -= graph->count;
	session->graphs.kept_bytes -= graph->bytes;
	if (graph->home)
		move_out(session, graph);
	free(graph->nodes);
	free(graph->kept);
	free(graph->text);
	free(graph);
	return status;
}

CUresult fgv_graph_make_home(struct fgv_session *session, struct fgv_graph **home)
{
	struct fgv_graph *made = calloc(1, sizeof(*made));
	CUresult status;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = session->gpu->ops->home_create(session->gpu, &made->conditions);
	if (status == CUDA_SUCCESS)
		*home = made;
	else
		free(made);
	return status;
}

CUresult fgv_graph_add_condition(struct fgv_session *session, struct fgv_graph *home,
				 uint32_t value, uint32_t flags, uint64_t *condition)
{
	CUresult status;

	if (!home->conditions || (flags & ~(uint32_t)CU_GRAPH_COND_ASSIGN_DEFAULT))
		return CUDA_ERROR_INVALID_VALUE;
	if (home->conditions_count >= FGV_GRAPH_CONDITIONS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = session->gpu->ops->home_condition(session->gpu, home->conditions, value, flags,
						   condition);
	home->conditions_count += status == CUDA_SUCCESS;
	return status;
}

/* --- Changes ------------------------------------------------------------------- */

static CUresult drop_gpu(struct fgv_session *session, struct fgv_graph *graph)
{
	struct fgv_gpu_graph *gpu = graph->gpu;

	graph->gpu = NULL;
	return gpu ? session->gpu->ops->graph_destroy(session->gpu, gpu) : CUDA_SUCCESS;
}

/* The GPU's graph follows, or goes, before what the node was made of does. */
static void follow(struct fgv_session *session, struct fgv_graph *graph, uint32_t number)
{
	if (graph->gpu && session->gpu->ops->graph_update(session->gpu, graph->gpu, number))
		drop_gpu(session, graph);
}

/* While launches wait for functions (stall.h), they are judged by the events that there are. */
static bool is_fixed(const struct fgv_gpu_node *node)
{
	return node->kind == FGV_GPU_NODE_CHOICE || is_event(node);
}

static CUresult judge_change(const struct fgv_graph *graph, uint32_t number,
			     const struct fgv_graphs *graphs, const struct fgv_gpu_node *node,
			     const struct fgv_graph_kept *kept)
{
	bool is_longer = kept->message != graph->kept[number].message;

	if (node->before_count || node->inside || is_fixed(node) || is_fixed(&graph->nodes[number]))
		return CUDA_ERROR_INVALID_VALUE;
	return !is_longer || fits(graphs, kept->bytes, 0) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What waits for what stays, and in which body it is. */
static void put_in_place(struct fgv_graph *graph, uint32_t number, struct fgv_gpu_node *node,
			 struct fgv_graph_kept *kept)
{
	const struct fgv_gpu_node *old = &graph->nodes[number];

	node->inside = old->inside;
	node->body = old->body;
	node->before = old->before;
	node->before_count = old->before_count;
	kept->depth = graph->kept[number].depth;
	uncount_node(graph, number);
	graph->nodes[number] = *node;
	graph->kept[number] = *kept;
	count_node(graph, number);
}

/* One node of an update. */
static CUresult change_node(struct fgv_session *session, struct fgv_graph *graph,
			    struct fgv_graph_text *text)
{
	struct fgv_graph_kept kept = {0}, old_kept;
	struct fgv_gpu_node node = {0};
	uint32_t number;
	CUresult status = fgv_graph_text_next(session, text, graph->count, &number, &node, &kept);

	if (status != CUDA_SUCCESS)
		return status;
	status = judge_change(graph, number, &session->graphs, &node, &kept);
	if (status != CUDA_SUCCESS) {
		fgv_graph_text_drop(session, &kept);
		return status;
	}
	old_kept = graph->kept[number];
	put_in_place(graph, number, &node, &kept);
	keep_bytes(session, graph, kept.bytes - old_kept.bytes);
	follow(session, graph, number);
	fgv_graph_text_drop(session, &old_kept);
	return CUDA_SUCCESS;
}

CUresult fgv_graph_update(struct fgv_session *session, struct fgv_graph *graph, const void *text,
			  uint64_t len, bool may_grow)
{
	struct fgv_graph_text left = {
		.at = text, .left = len, .old = graph->kept, .may_grow = may_grow};
	CUresult status = CUDA_SUCCESS;

	if (!graph->gpu)
		return CUDA_ERROR_INVALID_VALUE;
	while (left.left > 0 && status == CUDA_SUCCESS)
		status = change_node(session, graph, &left);
	if (status == CUDA_SUCCESS && graph->moved > FGV_GRAPH_MOVED_MAX)
		status = CUDA_ERROR_NOT_SUPPORTED;
	/* What the GPU does not change in place is made anew. */
	if (status == CUDA_SUCCESS && !graph->gpu)
		return create(session, graph);
	if (status != CUDA_SUCCESS)
		drop_gpu(session, graph);
	return status;
}

/* --- Launches ------------------------------------------------------------------ */

/* Memory that was taken away may be somebody else's in this process by now. */
static bool has_its_memory(const struct fgv_session *session, struct fgv_graph *graph)
{
	if (!graph->uses_host || graph->mapped_taken == session->mapped.taken)
		return true;
	for (uint32_t i = 0; i < graph->count; i++) {
		if (!fgv_graph_text_is_mapped(session, &graph->nodes[i]))
			return false;
	}
	graph->mapped_taken = session->mapped.taken;
	return true;
}

CUresult fgv_graph_launch(struct fgv_session *session, struct fgv_graph *graph,
			  struct fgv_gpu_stream *stream)
{
	if (!graph->gpu || !has_its_memory(session, graph))
		return CUDA_ERROR_INVALID_VALUE;
	return session->gpu->ops->graph_launch(session->gpu, graph->gpu, stream);
}

struct fgv_object *fgv_graph_event(const struct fgv_graph *graph, uint32_t number, uint16_t *op)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];

	if (!is_event(node))
		return NULL;
	*op = node->kind == FGV_GPU_NODE_RECORD ? FGV_OP_EVENT_RECORD : FGV_OP_STREAM_WAIT_EVENT;
	return graph->kept[number].needs[0];
}

bool fgv_graph_launch_records(const struct fgv_session *session, const uint8_t *message,
			      uint32_t len, uint32_t event)
{
	uint32_t handle =
		fgv_held_handle_at(message, len, offsetof(struct fgv_graph_launch_request, graph));
	const struct fgv_object *object =
		fgv_handles_find(&session->handles, FGV_KIND_GRAPH, handle);
	const struct fgv_graph *graph = object ? object->graph : NULL;
	uint16_t op;

	for (uint32_t i = 0; graph && graph->events && i < graph->count; i++) {
		const struct fgv_object *found = fgv_graph_event(graph, i, &op);

		if (found && op == FGV_OP_EVENT_RECORD && found->handle == event)
			return true;
	}
	return false;
}

/* Graphs have costs of their own beside those of functions, whose handles are other numbers. */
void fgv_graph_tell(const struct fgv_object *object, struct fgv_request *request)
{
	request->subject = ~object->handle;
	request->amount = object->graph->count;
}

/* --- What it will take --------------------------------------------------------- */

/* Without a kind, or while it is disabled. Choices and events take no time. */
static bool does_nothing(const struct fgv_graph *graph, uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];

	return node->kind == FGV_GPU_NODE_NOTHING || is_fixed(node) || node->is_disabled;
}

static uint64_t begin_of(const struct fgv_graph *graph, uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];
	uint64_t begin_ns = node->inside ? graph->kept[node->inside - 1].begins_ns : 0;

	for (uint32_t i = 0; i < node->before_count; i++)
		begin_ns = fgv_max_u64(begin_ns, graph->kept[node->before[i]].ends_ns);
	return begin_ns;
}

static uint32_t share_of(const struct fgv_forecast *forecast, const struct fgv_gpu_node *node)
{
	if (node->kind != FGV_GPU_NODE_KERNEL)
		return FGV_SHARE_ALL;
	return fgv_forecast_share(forecast, node->kernel.grid, node->kernel.block);
}

/* A choice ends with the last of its bodies, as if each were done once. */
static void end_choices(struct fgv_graph *graph, uint32_t number)
{
	uint64_t ends_ns = graph->kept[number].ends_ns;

	for (uint32_t at = graph->nodes[number].inside; at; at = graph->nodes[at - 1].inside)
		graph->kept[at - 1].ends_ns = fgv_max_u64(graph->kept[at - 1].ends_ns, ends_ns);
}

uint64_t fgv_graph_predict_ns(struct fgv_graph *graph, const struct fgv_forecast *forecast)
{
	uint64_t all_ns = 1, longest_ns = 0;

	for (uint32_t i = 0; i < graph->count; i++) {
		struct fgv_graph_kept *kept = &graph->kept[i];
		uint64_t ns = 0;

		if (!does_nothing(graph, i)) {
			ns = forecast->costs.ns[fgv_cost_place(kept->kind, kept->amount)];
			if (!ns)
				return 0;
		}
		kept->begins_ns = begin_of(graph, i);
		kept->ends_ns = kept->begins_ns + ns;
		end_choices(graph, i);
		longest_ns = fgv_max_u64(longest_ns, kept->ends_ns);
		all_ns += forecast->overlap.is_serial
				  ? ns
				  : ns * share_of(forecast, &graph->nodes[i]) / FGV_SHARE_ALL;
	}
	return fgv_max_u64(all_ns, longest_ns);
}
