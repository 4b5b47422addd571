/*
 * Changing what is ready to be launched: nodes of it, or all of them to what another graph does.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_exec.h"

/* What was made from node @origin, in @graph or its child graphs. */
static struct fgv_node *find_copy(const struct fgv_graph *graph, cudaGraphNode_t origin)
{
	struct fgv_node *found = NULL;

	for (struct fgv_node *each = graph->first; each && !found; each = each->next) {
		if (each->origin == origin)
			return each;
		if (each->work.child)
			found = find_copy(each->work.child, origin);
	}
	return found;
}

static bool have_same_shape(struct fgv_graph *mine, struct fgv_graph *other,
			    cudaGraphExecUpdateResultInfo *info);

static bool refuse(cudaGraphExecUpdateResultInfo *info, enum cudaGraphExecUpdateResult result,
		   const struct fgv_node *node)
{
	info->result = result;
	info->errorNode = node ? node->name : NULL;
	return false;
}

/* @other's twin is the node that takes its place. */
static bool are_alike(const struct fgv_node *mine, const struct fgv_node *other,
		      cudaGraphExecUpdateResultInfo *info)
{
	if (mine->work.params.type != other->work.params.type)
		return refuse(info, cudaGraphExecUpdateErrorNodeTypeChanged, other);
	if (mine->before_count != other->before_count)
		return refuse(info, cudaGraphExecUpdateErrorTopologyChanged, other);
	for (uint32_t i = 0; i < other->before_count; i++) {
		const cudaGraphEdgeData *edge = fgv_node_edge(mine, other->before[i]->twin);

		if (!edge || !fgv_edges_are_alike(edge, &other->edges[i]))
			return refuse(info, cudaGraphExecUpdateErrorTopologyChanged, other);
	}
	if (mine->work.memory != other->work.memory)
		return refuse(info, cudaGraphExecUpdateErrorNotSupported, other);
	return !mine->work.child || have_same_shape(mine->work.child, other->work.child, info);
}

/* Nodes are paired in the order in which they were made. */
static bool have_same_shape(struct fgv_graph *mine, struct fgv_graph *other,
			    cudaGraphExecUpdateResultInfo *info)
{
	struct fgv_node *node = mine->first;

	if (mine->count != other->count)
		return refuse(info, cudaGraphExecUpdateErrorTopologyChanged, NULL);
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

/* Child graphs stay, as the order has their nodes. */
static cudaError_t take_work(const struct fgv_graph *other)
{
	struct fgv_work work;
	cudaError_t error = cudaSuccess;

	for (const struct fgv_node *each = other->first; each && !error; each = each->next) {
		if (each->work.child) {
			error = take_work(each->work.child);
			continue;
		}
		error = fgv_work_copy(&each->work, &work);
		if (error)
			break;
		fgv_work_free(&each->twin->work);
		each->twin->work = work;
	}
	return error;
}

static cudaError_t update(struct fgv_exec *exec, struct fgv_graph *mine, struct fgv_graph *other,
			  cudaGraphExecUpdateResultInfo *info)
{
	cudaError_t error = cudaErrorGraphExecUpdateFailure;

	pthread_mutex_lock(&exec->mutex);
	if (have_same_shape(mine, other, info)) {
		error = take_work(other);
		info->result = error ? cudaGraphExecUpdateError : cudaGraphExecUpdateSuccess;
	}
	pthread_mutex_unlock(&exec->mutex);
	return error;
}

FGV_EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
					   cudaGraphExecUpdateResultInfo *resultInfo)
{
	struct fgv_exec *exec = fgv_exec_of(hGraphExec);
	struct fgv_graph *graph = fgv_graph_of(hGraph);

	if (!exec || !graph || graph->is_moved || !resultInfo)
		return fgv_error_set(cudaErrorInvalidValue);
	*resultInfo = (cudaGraphExecUpdateResultInfo){0};
	return fgv_error_set(update(exec, exec->graph, graph, resultInfo));
}

cudaError_t fgv_exec_set(cudaGraphExec_t name, cudaGraphNode_t node,
			 const struct cudaGraphNodeParams *params)
{
	struct fgv_exec *exec = fgv_exec_of(name);
	cudaError_t error;

	if (!exec || !params || params->type == cudaGraphNodeTypeGraph)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&exec->mutex);
	error = fgv_node_set(find_copy(exec->graph, node), params);
	pthread_mutex_unlock(&exec->mutex);
	return error;
}

static cudaError_t set_child(struct fgv_exec *exec, cudaGraphNode_t node, struct fgv_graph *graph)
{
	cudaGraphExecUpdateResultInfo info = {0};
	struct fgv_node *found;

	if (!exec || !graph)
		return cudaErrorInvalidValue;
	found = find_copy(exec->graph, node);
	if (!found || !found->work.child)
		return cudaErrorInvalidValue;
	return update(exec, found->work.child, graph, &info);
}

FGV_EXPORT cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec,
							    cudaGraphNode_t node,
							    cudaGraph_t childGraph)
{
	return fgv_error_set(set_child(fgv_exec_of(hGraphExec), node, fgv_graph_of(childGraph)));
}

/* Kernels, copies and fills may be left out. */
static struct fgv_node *find_optional(const struct fgv_exec *exec, cudaGraphNode_t name)
{
	struct fgv_node *node = exec ? find_copy(exec->graph, name) : NULL;

	return node && node->work.params.type <= cudaGraphNodeTypeMemset ? node : NULL;
}

FGV_EXPORT cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
					       unsigned int isEnabled)
{
	struct fgv_node *node = find_optional(fgv_exec_of(hGraphExec), hNode);

	if (!node)
		return fgv_error_set(cudaErrorInvalidValue);
	node->disabled = !isEnabled;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
					       unsigned int *isEnabled)
{
	const struct fgv_node *node = find_optional(fgv_exec_of(hGraphExec), hNode);

	if (!node || !isEnabled)
		return fgv_error_set(cudaErrorInvalidValue);
	*isEnabled = !node->disabled;
	return cudaSuccess;
}
