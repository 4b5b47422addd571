/*
 * Choices, their bodies, and conditions as the program asks for them.
 */
#include "frontend/cuda/graph/choice.h"

#include <stdlib.h>

#include "api/wire.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/graph/condition.h"
#include "frontend/cuda/graph/exec_way.h"
#include "frontend/cuda/graph/home.h"

/* --- Conditions ------------------------------------------------------------------ */

/* Whose home the conditions of bodies are in. */
static struct fgv_graph *root_of(struct fgv_graph *graph)
{
	while (graph->within)
		graph = graph->within;
	return graph;
}

CUresult fgv_condition_create(CUgraphConditionalHandle *condition, CUgraph name, unsigned value,
			      unsigned flags)
{
	struct fgv_graph *graph = fgv_graph_of(name);
	struct fgv_lane *lane;
	uint64_t number;
	CUresult res;

	if (!condition || !graph || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT))
		return CUDA_ERROR_INVALID_VALUE;
	graph = root_of(graph);
	if (graph->is_child)
		return FGV_UNSUPPORTED("conditions in child graphs");
	res = fgv_context_enter_on(graph->home ? fgv_home_device(graph->home)
					       : (uint32_t)fgv_context_get_device(),
				   &lane);
	if (res)
		return res;
	if (!graph->home)
		res = fgv_home_create(lane, &graph->home);
	if (!res)
		res = fgv_home_add(lane, graph->home, value, flags, &number);
	fgv_lane_leave(lane);
	if (!res)
		*condition = number;
	return res;
}

/* --- Bodies ---------------------------------------------------------------------- */

static struct fgv_bodies *make_bodies(uint32_t count)
{
	struct fgv_bodies *made =
		calloc(1, sizeof(*made) + count * (sizeof(CUgraph) + sizeof(struct fgv_graph *)));

	if (!made)
		return NULL;
	made->graphs = (struct fgv_graph **)(made + 1);
	made->names = (CUgraph *)(made->graphs + count);
	made->count = count;
	return made;
}

void fgv_bodies_free(struct fgv_bodies *bodies)
{
	struct fgv_condition *condition;

	if (!bodies)
		return;
	condition = bodies->home ? fgv_home_find(bodies->home, bodies->condition) : NULL;
	if (condition)
		condition->is_used = false;
	for (uint32_t i = 0; i < bodies->count; i++)
		fgv_graph_free(bodies->graphs[i]);
	fgv_home_put(bodies->home);
	free(bodies);
}

CUresult fgv_bodies_copy(const struct fgv_bodies *bodies, struct fgv_bodies **copy)
{
	struct fgv_bodies *made = make_bodies(bodies->count);
	CUresult res = made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (uint32_t i = 0; i < bodies->count && !res; i++)
		res = fgv_graph_copy(bodies->graphs[i], false, &made->graphs[i]);
	if (res)
		fgv_bodies_free(made);
	else
		*copy = made;
	return res;
}

/* Empty ones, of a choice in @graph. */
static CUresult fill(struct fgv_bodies *bodies, struct fgv_graph *graph)
{
	for (uint32_t i = 0; i < bodies->count; i++) {
		struct fgv_graph *made = fgv_graph_make(true);

		if (!made)
			return CUDA_ERROR_OUT_OF_MEMORY;
		made->is_child = true;
		made->within = graph;
		bodies->graphs[i] = made;
		bodies->names[i] = made->name;
	}
	return CUDA_SUCCESS;
}

static bool is_good(const CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	switch (params->type) {
	case CU_GRAPH_COND_TYPE_IF:
		return params->size == 1 || params->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return params->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return params->size > 0;
	default:
		return false;
	}
}

CUresult fgv_choice_make(struct fgv_graph *graph, const CUgraphNodeParams *params,
			 struct fgv_work *work)
{
	const CUDA_CONDITIONAL_NODE_PARAMS *wanted = &params->conditional;
	struct fgv_home *home = root_of(graph)->home;
	struct fgv_condition *condition = fgv_home_find(home, wanted->handle);
	const struct fgv_attributes attributes = FGV_ATTRIBUTES_DEFAULT;
	struct fgv_bodies *bodies;
	CUresult res;

	if (!condition || condition->is_used || !is_good(wanted))
		return CUDA_ERROR_INVALID_VALUE;
	if (wanted->size > FGV_GRAPH_BODIES_MAX)
		return FGV_UNSUPPORTED("conditional nodes with more than 1024 bodies");
	bodies = make_bodies(wanted->size);
	res = bodies ? fill(bodies, graph) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!res)
		res = fgv_work_start(params, &attributes, NULL, work);
	if (res) {
		fgv_bodies_free(bodies);
		return res;
	}
	condition->is_used = true;
	work->task->device = fgv_home_device(home);
	bodies->home = fgv_home_get(home);
	bodies->condition = wanted->handle;
	work->task->params.conditional.phGraph_out = bodies->names;
	work->bodies = bodies;
	return CUDA_SUCCESS;
}

/* --- What can be instantiated ------------------------------------------------------ */

static CUresult check_bodies(struct fgv_graph *graph);

static bool has_events(const struct fgv_graph *graph)
{
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		CUgraphNodeType type = fgv_node_type(each);

		if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
		    type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ||
		    (each->work.child && has_events(each->work.child)))
			return true;
	}
	return false;
}

static CUresult check_body(struct fgv_graph *body)
{
	if (has_events(body))
		return CUDA_ERROR_INVALID_VALUE;
	switch (fgv_exec_way_of(body)) {
	case FGV_STATS_GRAPH_HOST:
		return check_bodies(body);
	case FGV_STATS_GRAPH_MOVES:
		return FGV_UNSUPPORTED("copies of more than 256 MiB in bodies");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult check_bodies(struct fgv_graph *graph)
{
	CUresult res = CUDA_SUCCESS;

	for (struct fgv_node *each = graph->first; each && !res; each = each->next) {
		const struct fgv_bodies *bodies = each->work.bodies;

		for (uint32_t i = 0; bodies && i < bodies->count && !res; i++)
			res = check_body(bodies->graphs[i]);
		if (!res && each->work.child)
			res = check_bodies(each->work.child);
	}
	return res;
}

CUresult fgv_choice_check(struct fgv_graph *graph)
{
	if (!fgv_home_is_used(graph->home))
		return CUDA_ERROR_INVALID_VALUE;
	return graph->home ? check_bodies(graph) : CUDA_SUCCESS;
}
