/*
 * Changing what is ready to be launched: nodes of it, or all of them to what another graph does.
 */
#include "frontend/cuda/graph/exec.h"

#include <string.h>

#include "frontend/cuda/graph/exec_host.h"

static bool have_same_shape(struct fgv_graph *mine, struct fgv_graph *other,
			    CUgraphExecUpdateResultInfo *info);

static bool refuse(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult result,
		   const struct fgv_node *node)
{
	info->result = result;
	info->errorNode = node ? node->name : NULL;
	return false;
}

/* By the same conditions: arguments of kernels have their numbers. */
static bool choose_alike(const struct fgv_node *mine, const struct fgv_node *other,
			 CUgraphExecUpdateResultInfo *info)
{
	const CUDA_CONDITIONAL_NODE_PARAMS *a = &mine->work.task->params.conditional;
	const CUDA_CONDITIONAL_NODE_PARAMS *b = &other->work.task->params.conditional;

	if (a->handle != b->handle || a->type != b->type || a->size != b->size)
		return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, other);
	for (uint32_t i = 0; i < mine->work.bodies->count; i++) {
		if (!have_same_shape(mine->work.bodies->graphs[i], other->work.bodies->graphs[i],
				     info))
			return false;
	}
	return true;
}

/* @other's twin is the node that takes its place. */
static bool are_alike(const struct fgv_node *mine, const struct fgv_node *other,
		      CUgraphExecUpdateResultInfo *info)
{
	if (fgv_node_type(mine) != fgv_node_type(other))
		return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other);
	if (mine->before_count != other->before_count)
		return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other);
	for (uint32_t i = 0; i < other->before_count; i++) {
		const CUgraphEdgeData *edge = fgv_node_edge(mine, other->before[i]->twin);

		if (!edge || !fgv_edges_are_alike(edge, &other->edges[i]))
			return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other);
	}
	if (mine->work.task->device != other->work.task->device && other->work.task->records)
		return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, other);
	if (mine->work.memory != other->work.memory)
		return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, other);
	if (mine->work.bodies)
		return choose_alike(mine, other, info);
	return !mine->work.child || have_same_shape(mine->work.child, other->work.child, info);
}

/* Nodes are paired in the order in which they were made. */
static bool have_same_shape(struct fgv_graph *mine, struct fgv_graph *other,
			    CUgraphExecUpdateResultInfo *info)
{
	struct fgv_node *node = mine->first;

	if (mine->count != other->count)
		return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL);
	for (struct fgv_node *each = other->first; each; each = each->next) {
		each->twin = node;
		node = node->next;
	}
	for (const struct fgv_node *each = other->first; each; each = each->next) {
		if (!are_alike(each->twin, each, info))
			return false;
	}
	return true;
}

/* Whether the same is asked of the host by both. */
static bool do_alike(const struct fgv_record *mine, const struct fgv_record *other)
{
	while (mine && other && mine->run == other->run && mine->op == other->op &&
	       mine->len == other->len && !memcmp(mine->message, other->message, mine->len)) {
		mine = mine->next;
		other = other->next;
	}
	return !mine && !other;
}

/* Whether the program was told the same of both as well. */
static bool are_same(const struct fgv_task *mine, const struct fgv_task *other)
{
	return mine == other ||
	       (do_alike(mine->records, other->records) &&
		!memcmp(&mine->params, &other->params, sizeof(mine->params)) &&
		!memcmp(&mine->attributes, &other->attributes, sizeof(mine->attributes)));
}

/* Child graphs and choices stay, as the order has their nodes. */
static CUresult take_work(struct fgv_exec *exec, const struct fgv_graph *other)
{
	struct fgv_work work;
	CUresult res = CUDA_SUCCESS;

	for (const struct fgv_node *each = other->first; each && !res; each = each->next) {
		const struct fgv_bodies *bodies = each->work.bodies;

		if (each->work.child)
			res = take_work(exec, each->work.child);
		for (uint32_t i = 0; bodies && i < bodies->count && !res; i++)
			res = take_work(exec, bodies->graphs[i]);
		if (each->work.child || bodies)
			continue;
		if (are_same(each->twin->work.task, each->work.task))
			continue;
		res = fgv_work_copy(&each->work, &work);
		if (res)
			break;
		if (!do_alike(each->twin->work.task->records, work.task->records) ||
		    each->twin->work.task->attributes.priority != work.task->attributes.priority)
			fgv_exec_host_note(exec, each->twin);
		fgv_work_free(&each->twin->work);
		each->twin->work = work;
	}
	return res;
}

static CUresult update(struct fgv_exec *exec, struct fgv_graph *mine, struct fgv_graph *other,
		       CUgraphExecUpdateResultInfo *info)
{
	CUresult res = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;

	pthread_mutex_lock(&exec->mutex);
	if (have_same_shape(mine, other, info)) {
		res = take_work(exec, other);
		info->result = res ? CU_GRAPH_EXEC_UPDATE_ERROR : CU_GRAPH_EXEC_UPDATE_SUCCESS;
	}
	pthread_mutex_unlock(&exec->mutex);
	return res;
}

CUresult fgv_exec_update(CUgraphExec name, CUgraph other, CUgraphExecUpdateResultInfo *info)
{
	struct fgv_exec *exec = fgv_exec_of(name);
	struct fgv_graph *graph = fgv_graph_of(other);

	if (!exec || !graph || graph->is_moved || !info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (CUgraphExecUpdateResultInfo){0};
	return update(exec, exec->graph, graph, info);
}

CUresult fgv_exec_set_params(CUgraphExec name, CUgraphNode node, const CUgraphNodeParams *params)
{
	struct fgv_exec *exec = fgv_exec_of(name);
	struct fgv_node *found;
	CUresult res;

	if (!exec || !params || params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&exec->mutex);
	found = fgv_exec_find(exec, node);
	res = fgv_node_change(found, params);
	if (!res)
		fgv_exec_host_note(exec, found);
	pthread_mutex_unlock(&exec->mutex);
	return res;
}

CUresult fgv_exec_set_child(CUgraphExec name, CUgraphNode node, CUgraph child)
{
	CUgraphExecUpdateResultInfo info = {0};
	struct fgv_exec *exec = fgv_exec_of(name);
	struct fgv_graph *graph = fgv_graph_of(child);
	struct fgv_node *found;

	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	found = fgv_exec_find(exec, node);
	if (!found || !found->work.child)
		return CUDA_ERROR_INVALID_VALUE;
	return update(exec, found->work.child, graph, &info);
}

/* Kernels, copies and fills may be left out. */
static struct fgv_node *find_optional(struct fgv_exec *exec, CUgraphNode name)
{
	struct fgv_node *node = exec ? fgv_exec_find(exec, name) : NULL;

	return node && fgv_node_type(node) <= CU_GRAPH_NODE_TYPE_MEMSET ? node : NULL;
}

CUresult fgv_exec_set_enabled(CUgraphExec name, CUgraphNode node_name, unsigned enabled)
{
	struct fgv_exec *exec = fgv_exec_of(name);
	struct fgv_node *node = find_optional(exec, node_name);

	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&exec->mutex);
	node->disabled = !enabled;
	fgv_exec_host_note(exec, node);
	pthread_mutex_unlock(&exec->mutex);
	return CUDA_SUCCESS;
}

CUresult fgv_exec_get_enabled(CUgraphExec exec, CUgraphNode name, unsigned *enabled)
{
	const struct fgv_node *node = find_optional(fgv_exec_of(exec), name);

	if (!node || !enabled)
		return CUDA_ERROR_INVALID_VALUE;
	*enabled = !node->disabled;
	return CUDA_SUCCESS;
}
