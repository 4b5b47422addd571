/*
 * Finding nodes of executable graphs by what they were made from. Programs that change nodes change
 * many of them, so the first that is looked for has all of them put in order.
 */
#include <stdlib.h>

#include "frontend/cuda/graph/exec_priv.h"

static int compare(const void *a, const void *b)
{
	uintptr_t first = (uintptr_t)(*(struct fgv_node *const *)a)->origin;
	uintptr_t second = (uintptr_t)(*(struct fgv_node *const *)b)->origin;

	return (first > second) - (first < second);
}

static uint32_t list(struct fgv_graph *graph, struct fgv_node **nodes)
{
	uint32_t count = 0;

	for (struct fgv_node *each = graph->first; each; each = each->next) {
		nodes[count++] = each;
		if (each->work.child)
			count += list(each->work.child, nodes + count);
		for (uint32_t i = 0; each->work.bodies && i < each->work.bodies->count; i++)
			count += list(each->work.bodies->graphs[i], nodes + count);
	}
	return count;
}

static bool put_in_order(struct fgv_exec *exec)
{
	uint32_t count = fgv_graph_count_all(exec->graph);

	exec->by_origin = calloc(count + 1, sizeof(struct fgv_node *));
	if (!exec->by_origin)
		return false;
	exec->by_origin_count = list(exec->graph, exec->by_origin);
	qsort(exec->by_origin, exec->by_origin_count, sizeof(struct fgv_node *), compare);
	return true;
}

struct fgv_node *fgv_exec_find(struct fgv_exec *exec, CUgraphNode origin)
{
	const struct fgv_node key = {.origin = origin}, *wanted = &key;
	struct fgv_node **found;

	if (!exec->by_origin && !put_in_order(exec))
		return NULL;
	found = bsearch(&wanted, exec->by_origin, exec->by_origin_count, sizeof(struct fgv_node *),
			compare);
	return found ? *found : NULL;
}
