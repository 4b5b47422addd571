/*
 * Graphs of the soft GPU: it does one thing at a time, so a launch queues what the nodes do in the
 * order of their numbers, in which none comes before what it waits for; those of a choice's bodies
 * as one with the choice.
 */
#include "backend/gpu/soft_internal.h"

#include <stdlib.h>
#include <string.h>

#define NO_NODE UINT32_MAX

struct condition {
	uint64_t number;
	uint32_t value; /* at the beginning of a launch, if: */
	bool is_assigned;
};

struct fgv_gpu_home {
	struct condition *conditions;
	uint32_t count;
};

/* Of a node: how it was made, which no change changes, and where it is. */
struct made_node {
	enum fgv_gpu_node_kind kind;
	uint32_t next;	 /* in the same body */
	uint32_t *first; /* of a choice, of each of its bodies */
};

struct fgv_gpu_graph {
	const struct fgv_gpu_home *home;
	const struct fgv_gpu_node *nodes;
	uint32_t *firsts; /* of all bodies, and of what is in none before these */
	uint32_t count;
	struct made_node made[];
};

/* --- Making ---------------------------------------------------------------------- */

/* Each condition by one choice, each choice by a condition. */
static bool are_conditions_right(const struct fgv_gpu_graph *graph)
{
	uint32_t choices = 0;

	for (uint32_t i = 0; i < graph->count; i++)
		choices += graph->nodes[i].kind == FGV_GPU_NODE_CHOICE;
	if (choices != (graph->home ? graph->home->count : 0))
		return false;
	for (uint32_t at = 0; at < choices; at++) {
		uint32_t found = 0;

		for (uint32_t i = 0; i < graph->count; i++)
			found += graph->nodes[i].kind == FGV_GPU_NODE_CHOICE &&
				 graph->nodes[i].choice.condition ==
					 graph->home->conditions[at].number;
		if (found != 1)
			return false;
	}
	return true;
}

static bool make_firsts(struct fgv_gpu_graph *graph)
{
	size_t count = 1, at = 1;

	for (uint32_t i = 0; i < graph->count; i++) {
		if (graph->nodes[i].kind == FGV_GPU_NODE_CHOICE)
			count += graph->nodes[i].choice.bodies;
	}
	graph->firsts = malloc(count * sizeof(*graph->firsts));
	if (!graph->firsts)
		return false;
	memset(graph->firsts, 0xff, count * sizeof(*graph->firsts));
	for (uint32_t i = 0; i < graph->count; i++) {
		if (graph->nodes[i].kind != FGV_GPU_NODE_CHOICE)
			continue;
		graph->made[i].first = graph->firsts + at;
		at += graph->nodes[i].choice.bodies;
	}
	return true;
}

/* From the last to the first, so that each list is in the order of numbers. */
static void list_nodes(struct fgv_gpu_graph *graph)
{
	for (uint32_t i = graph->count; i > 0; i--) {
		const struct fgv_gpu_node *node = &graph->nodes[i - 1];
		uint32_t *first = node->inside ? &graph->made[node->inside - 1].first[node->body]
					       : graph->firsts;

		graph->made[i - 1].kind = node->kind;
		graph->made[i - 1].next = *first;
		*first = i - 1;
	}
}

static CUresult make(struct fgv_gpu_graph *graph)
{
	if (!are_conditions_right(graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (!make_firsts(graph))
		return CUDA_ERROR_OUT_OF_MEMORY;
	list_nodes(graph);
	return CUDA_SUCCESS;
}

CUresult fgv_soft_graph_create_in(struct fgv_gpu *gpu, struct fgv_gpu_home *home,
				  const struct fgv_gpu_node *nodes, uint32_t count,
				  struct fgv_gpu_graph **graph)
{
	struct fgv_gpu_graph *made =
		calloc(1, sizeof(*made) + (size_t)count * sizeof(struct made_node));
	CUresult status;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->home = home;
	made->nodes = nodes;
	made->count = count;
	status = make(made);
	if (status == CUDA_SUCCESS)
		*graph = made;
	else
		fgv_soft_graph_destroy(gpu, made);
	return status;
}

CUresult fgv_soft_graph_create(struct fgv_gpu *gpu, const struct fgv_gpu_node *nodes,
			       uint32_t count, struct fgv_gpu_graph **graph)
{
	return fgv_soft_graph_create_in(gpu, NULL, nodes, count, graph);
}

CUresult fgv_soft_home_create(struct fgv_gpu *gpu, struct fgv_gpu_home **home)
{
	(void)gpu;
	*home = calloc(1, sizeof(**home));
	return *home ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_soft_home_condition(struct fgv_gpu *gpu, struct fgv_gpu_home *home, uint32_t value,
				 uint32_t flags, uint64_t *condition)
{
	struct condition *grown =
		realloc(home->conditions, ((size_t)home->count + 1) * sizeof(*grown));
	CUresult status;

	if (!grown)
		return CUDA_ERROR_OUT_OF_MEMORY;
	home->conditions = grown;
	status = softgpu_condition_create(gpu_of(gpu), condition);
	if (status != CUDA_SUCCESS)
		return status;
	grown[home->count++] =
		(struct condition){*condition, value, flags & CU_GRAPH_COND_ASSIGN_DEFAULT};
	return CUDA_SUCCESS;
}

CUresult fgv_soft_home_destroy(struct fgv_gpu *gpu, struct fgv_gpu_home *home)
{
	for (uint32_t i = 0; i < home->count; i++)
		softgpu_condition_destroy(gpu_of(gpu), home->conditions[i].number);
	free(home->conditions);
	free(home);
	return CUDA_SUCCESS;
}

/* Launches look at the nodes themselves; but what the driver does not do is not done here either.
 */
CUresult fgv_soft_graph_update(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number)
{
	(void)gpu;
	return graph->made[number].kind == graph->nodes[number].kind ? CUDA_SUCCESS
								     : CUDA_ERROR_NOT_SUPPORTED;
}

/* --- Launching ------------------------------------------------------------------- */

static CUresult run_kernel(struct fgv_gpu *gpu, const struct fgv_gpu_node *node,
			   struct fgv_gpu_stream *stream)
{
	__typeof__(fgv_gpu_soft.launch) launch = node->kernel.how.cooperative
							 ? fgv_gpu_soft.launch_cooperative
							 : fgv_gpu_soft.launch;

	return launch(gpu, node->kernel.function, node->kernel.grid, node->kernel.block,
		      node->kernel.shared_bytes, stream, node->kernel.params);
}

static CUresult run_list(struct fgv_gpu *gpu, const struct fgv_gpu_graph *graph, uint32_t first,
			 struct fgv_gpu_stream *stream);

/* Once begun it is ended, whatever fails. */
static CUresult run_choice(struct fgv_gpu *gpu, const struct fgv_gpu_graph *graph, uint32_t number,
			   struct fgv_gpu_stream *stream)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];
	CUresult ended, status = softgpu_choice_begin(gpu_of(gpu), node->choice.condition,
						      node->choice.type, node->choice.bodies);

	if (status != CUDA_SUCCESS)
		return status;
	for (uint32_t i = 0; i < node->choice.bodies && status == CUDA_SUCCESS; i++) {
		softgpu_choice_body(gpu_of(gpu), i);
		status = run_list(gpu, graph, graph->made[number].first[i], stream);
	}
	ended = softgpu_choice_end(gpu_of(gpu), stream_of(stream));
	return status != CUDA_SUCCESS ? status : ended;
}

static CUresult run(struct fgv_gpu *gpu, const struct fgv_gpu_graph *graph, uint32_t number,
		    struct fgv_gpu_stream *stream)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];

	switch (node->kind) {
	case FGV_GPU_NODE_NOTHING:
		return CUDA_SUCCESS;
	case FGV_GPU_NODE_KERNEL:
		return run_kernel(gpu, node, stream);
	case FGV_GPU_NODE_COPY:
		return fgv_soft_copy_box(gpu, &node->copy, stream);
	case FGV_GPU_NODE_FILL:
		return softgpu_fill(gpu_of(gpu), node->fill.address, node->fill.pitch,
				    node->fill.value, node->fill.width, node->fill.count,
				    node->fill.rows, stream_of(stream));
	case FGV_GPU_NODE_CHOICE:
		return run_choice(gpu, graph, number, stream);
	case FGV_GPU_NODE_RECORD:
		return fgv_gpu_soft.event_record(gpu, node->event, stream);
	case FGV_GPU_NODE_WAIT:
		return fgv_gpu_soft.stream_wait_event(gpu, stream, node->event);
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult run_list(struct fgv_gpu *gpu, const struct fgv_gpu_graph *graph, uint32_t first,
			 struct fgv_gpu_stream *stream)
{
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = first; i != NO_NODE && status == CUDA_SUCCESS; i = graph->made[i].next) {
		if (!graph->nodes[i].is_disabled)
			status = run(gpu, graph, i, stream);
	}
	return status;
}

static CUresult assign(struct fgv_gpu *gpu, const struct fgv_gpu_home *home,
		       struct fgv_gpu_stream *stream)
{
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = 0; i < home->count && status == CUDA_SUCCESS; i++) {
		const struct condition *each = &home->conditions[i];

		if (each->is_assigned)
			status = softgpu_condition_set(gpu_of(gpu), each->number, each->value,
						       stream_of(stream));
	}
	return status;
}

CUresult fgv_soft_graph_launch(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
			       struct fgv_gpu_stream *stream)
{
	CUresult status = graph->home ? assign(gpu, graph->home, stream) : CUDA_SUCCESS;

	return status == CUDA_SUCCESS ? run_list(gpu, graph, graph->firsts[0], stream) : status;
}

CUresult fgv_soft_graph_destroy(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph)
{
	(void)gpu;
	free(graph->firsts);
	free(graph);
	return CUDA_SUCCESS;
}
