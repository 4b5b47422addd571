/*
 * Building, changing and dropping the host's graphs.
 */
#include "frontend/cuda/graph/exec_host.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "api/gpu_guest.h"
#include "api/wire.h"
#include "common/log.h"
#include "frontend/cuda/graph/exec_text.h"

/* Changes are sent in such pieces, so that the host is at the first while more are written. */
#define PIECE_BYTES (8u * 1024)

/* All that have a graph of the host's. */
static struct {
	pthread_mutex_t mutex;
	LIST_HEAD(, fgv_exec) list;
} hosted = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void keep(struct fgv_exec *exec, uint32_t graph)
{
	exec->host.graph = graph;
	pthread_mutex_lock(&hosted.mutex);
	LIST_INSERT_HEAD(&hosted.list, exec, hosted);
	pthread_mutex_unlock(&hosted.mutex);
}

void fgv_exec_host_drop(struct fgv_lane *lane, struct fgv_exec *exec)
{
	if (!exec->host.graph)
		return;
	pthread_mutex_lock(&hosted.mutex);
	LIST_REMOVE(exec, hosted);
	pthread_mutex_unlock(&hosted.mutex);
	if (lane)
		fgv_post_graph_destroy(lane, exec->host.graph);
	exec->host.graph = 0;
}

/* As of streams and events, what a program does with one after that is not worth a thought. */
void fgv_exec_host_drain(struct fgv_lane *lane)
{
	struct fgv_exec *exec;

	pthread_mutex_lock(&hosted.mutex);
	while ((exec = LIST_FIRST(&hosted.list))) {
		LIST_REMOVE(exec, hosted);
		fgv_post_graph_destroy(lane, exec->host.graph);
		exec->host.graph = 0;
	}
	pthread_mutex_unlock(&hosted.mutex);
}

static struct fgv_node *take_changed(struct fgv_exec *exec)
{
	struct fgv_node *node = exec->host.changed;

	if (!node)
		return NULL;
	exec->host.changed = node->next_changed;
	node->is_changed = false;
	return node;
}

/* Parts that fit into a message, of which the last is the call. */
static CUresult send(struct fgv_lane *lane, const struct fgv_exec_text *text, uint32_t *graph)
{
	uint32_t refused = 0;
	CUresult res = CUDA_SUCCESS;
	size_t at = 0;

	for (; text->len - at > FGV_DATA_MAX && !res; at += FGV_DATA_MAX)
		res = fgv_post_graph_part(lane, at, text->bytes + at, FGV_DATA_MAX);
	if (res)
		return res;
	res = fgv_call_graph_build(lane, at, text->count, text->bytes + at,
				   (uint32_t)(text->len - at), graph, &refused);
	if (!res && refused)
		fgv_debug("a graph of %u nodes is launched node by node: the host refuses it, %u",
			  text->count, refused);
	return res;
}

CUresult fgv_exec_host_build(struct fgv_lane *lane, struct fgv_exec *exec)
{
	struct fgv_exec_text text = {0};
	enum fgv_stats_graph way;
	uint32_t graph = 0;
	CUresult res = fgv_exec_text_write(&text, exec->graph, &way);

	while (take_changed(exec))
		continue;
	if (!res && way == FGV_STATS_GRAPH_HOST) {
		res = send(lane, &text, &graph);
		if (!graph)
			way = FGV_STATS_GRAPH_REFUSED;
	}
	fgv_exec_text_free(&text);
	if (res)
		return res;
	exec->host.moved = text.moved;
	if (graph)
		keep(exec, graph);
	fgv_stats_graph(way);
	return CUDA_SUCCESS;
}

static CUresult post_changes(struct fgv_lane *lane, uint32_t graph, struct fgv_exec_text *text)
{
	CUresult res = CUDA_SUCCESS;

	if (text->len > FGV_DATA_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (text->len)
		res = fgv_post_graph_update(lane, graph, text->bytes, (uint32_t)text->len);
	text->len = 0;
	return res;
}

static CUresult send_changes(struct fgv_lane *lane, struct fgv_exec *exec,
			     struct fgv_exec_text *text)
{
	struct fgv_node *node;
	CUresult res = CUDA_SUCCESS;

	while (!res && (node = take_changed(exec))) {
		size_t before = text->len;

		res = fgv_exec_text_change(text, node, &exec->host.moved);
		if (!res && text->len > FGV_DATA_MAX && before) {
			text->len = before;
			res = post_changes(lane, exec->host.graph, text);
			if (!res)
				res = fgv_exec_text_change(text, node, &exec->host.moved);
		}
		if (!res && text->len >= PIECE_BYTES)
			res = post_changes(lane, exec->host.graph, text);
	}
	return res ? res : post_changes(lane, exec->host.graph, text);
}

CUresult fgv_exec_host_refresh(struct fgv_lane *lane, struct fgv_exec *exec)
{
	struct fgv_exec_text text = {0};
	CUresult res = CUDA_ERROR_NOT_SUPPORTED;

	if (exec->host.graph)
		res = send_changes(lane, exec, &text);
	fgv_exec_text_free(&text);
	if (res != CUDA_ERROR_NOT_SUPPORTED)
		return res;
	/* It has become another one: for the host, or no longer. */
	fgv_exec_host_drop(lane, exec);
	return fgv_exec_host_build(lane, exec);
}
