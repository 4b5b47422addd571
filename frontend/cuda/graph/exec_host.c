/*
 * Building, changing and dropping the host's graphs.
 */
#include "frontend/cuda/graph/exec_host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/gpu_guest.h"
#include "api/wire.h"
#include "common/log.h"
#include "common/util.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/graph/exec_text.h"
#include "frontend/cuda/graph/exec_way.h"
#include "frontend/cuda/graph/home.h"

/*
 * Changes are sent in pieces, so that the host is at the first while more are written: it is to
 * begin early, and not to be given many.
 */
#define PIECE_BYTES	(8u * 1024)
#define PIECE_MIN_BYTES (1u * 1024)

/* Fewer nodes than that, between others that are not for the host, are launched as fast alone. */
#define WORTH_NODES 2

/* All that have a graph of the host's. */
static struct {
	pthread_mutex_t mutex;
	LIST_HEAD(, fgv_exec) list;
} hosted = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void keep(struct fgv_exec *exec, struct fgv_exec_launch *launch, uint32_t graph)
{
	launch->graph = graph;
	if (exec->host.is_there)
		return;
	exec->host.is_there = true;
	pthread_mutex_lock(&hosted.mutex);
	LIST_INSERT_HEAD(&hosted.list, exec, hosted);
	pthread_mutex_unlock(&hosted.mutex);
}

/* It may be wanted again, by one that is not to be launched beside it. */
static void leave(struct fgv_lane *lane, const struct fgv_exec *exec,
		  struct fgv_exec_launch *launch)
{
	if (exec->was_launched) {
		launch->source.was_launched = true;
		launch->source.stream = exec->last.handle;
	}
	fgv_exec_kept_put(lane, launch->graph, &launch->source);
}

/* @lane NULL: they have gone. It is in the list of those with graphs no more. */
static void destroy_graphs(struct fgv_lane *lane, struct fgv_exec *exec)
{
	for (uint32_t i = 0; i < exec->host.count; i++) {
		struct fgv_exec_launch *launch = &exec->host.launches[i];

		if (lane && launch->graph)
			leave(lane, exec, launch);
		launch->graph = 0;
	}
	exec->host.is_there = false;
}

void fgv_exec_host_drop(struct fgv_lane *lane, struct fgv_exec *exec)
{
	if (!exec->host.is_there)
		return;
	pthread_mutex_lock(&hosted.mutex);
	LIST_REMOVE(exec, hosted);
	pthread_mutex_unlock(&hosted.mutex);
	destroy_graphs(lane, exec);
}

/* As of streams and events, what a program does with one after that is not worth a thought. */
void fgv_exec_host_drain(struct fgv_lane *lane)
{
	struct fgv_exec *exec, *next;

	pthread_mutex_lock(&hosted.mutex);
	for (exec = LIST_FIRST(&hosted.list); exec; exec = next) {
		next = LIST_NEXT(exec, hosted);
		if (exec->device != lane->client->device)
			continue;
		LIST_REMOVE(exec, hosted);
		destroy_graphs(lane, exec);
	}
	pthread_mutex_unlock(&hosted.mutex);
	fgv_exec_kept_drop(lane);
}

void fgv_exec_host_free(struct fgv_exec *exec)
{
	for (uint32_t i = 0; i < exec->host.count; i++)
		fgv_exec_kept_forget(&exec->host.launches[i].source);
	free(exec->host.launches);
	exec->host.launches = NULL;
	exec->host.count = 0;
}

static bool has_priorities(const struct fgv_exec *exec)
{
	return exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
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

/* --- Changes ------------------------------------------------------------------- */

/* Changes of one of the host's graphs that are to be sent. */
struct changes {
	struct fgv_exec_launch *launch;
	struct fgv_exec_part text;
	size_t piece;	  /* bytes, of the next one */
	bool is_text_new; /* the graph is to be kept, with a text of what it does then */
};

/* Posts the first @len bytes of what is written; the rest moves up. */
static CUresult post_first(struct fgv_lane *lane, struct changes *changes, size_t len)
{
	struct fgv_exec_part *text = &changes->text;
	CUresult res;

	if (len > FGV_DATA_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!changes->is_text_new)
		fgv_exec_kept_forget(&changes->launch->source);
	res = fgv_post_graph_update(lane, changes->launch->graph, text->bytes, (uint32_t)len);
	text->len -= len;
	memmove(text->bytes, text->bytes + len, text->len);
	return res;
}

static CUresult post_changes(struct fgv_lane *lane, struct changes *changes)
{
	return changes->text.len ? post_first(lane, changes, changes->text.len) : CUDA_SUCCESS;
}

/* A node has been written behind @before bytes of others. */
static CUresult post_if_due(struct fgv_lane *lane, struct changes *changes, size_t before)
{
	CUresult res = CUDA_SUCCESS;

	if (changes->text.len > FGV_DATA_MAX && before)
		res = post_first(lane, changes, before);
	if (res || changes->text.len < changes->piece)
		return res;
	changes->piece = fgv_min_u64(2 * changes->piece, PIECE_BYTES);
	return post_changes(lane, changes);
}

/* --- Building ------------------------------------------------------------------ */

/* In pieces that fit into a message, of which the last is the call. */
static CUresult send(struct fgv_lane *lane, const struct fgv_exec_part *text, uint32_t home,
		     uint32_t *graph, uint32_t *refused)
{
	CUresult res = CUDA_SUCCESS;
	size_t at = 0;

	for (; text->len - at > FGV_DATA_MAX && !res; at += FGV_DATA_MAX)
		res = fgv_post_graph_part(lane, at, text->bytes + at, FGV_DATA_MAX);
	if (res)
		return res;
	return fgv_call_graph_build(lane, at, text->count, home, text->bytes + at,
				    (uint32_t)(text->len - at), graph, refused);
}

/* The nodes part by part, each part's in the order that they had. */
static CUresult put_in_order(struct fgv_exec *exec)
{
	struct fgv_node **sorted = calloc((size_t)exec->count + 1, sizeof(struct fgv_node *));
	uint32_t at = 0;

	if (!sorted)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < exec->count; i++)
		exec->host.launches[exec->order[i]->part].end++;
	for (uint32_t i = 0; i < exec->host.count; i++) {
		uint32_t count = exec->host.launches[i].end;

		exec->host.launches[i].end = at;
		at += count;
	}
	for (uint32_t i = 0; i < exec->count; i++)
		sorted[exec->host.launches[exec->order[i]->part].end++] = exec->order[i];
	free(exec->order);
	exec->order = sorted;
	return CUDA_SUCCESS;
}

static CUresult make_launches(struct fgv_exec *exec, const struct fgv_exec_text *text)
{
	struct fgv_exec_launch *launches = calloc((size_t)text->count + 1, sizeof(*launches));

	if (!launches)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fgv_exec_host_free(exec);
	exec->host.launches = launches;
	exec->host.count = text->count;
	for (uint32_t i = 0; i < text->count; i++) {
		launches[i].moved = text->parts[i].moved;
		launches[i].is_program = fgv_exec_text_is_program(text, i);
	}
	return put_in_order(exec);
}

/* The graph of a text that is alike does what @text says from now on. */
static CUresult make_alike(struct fgv_lane *lane, struct fgv_exec_launch *launch,
			   const struct fgv_exec_kept_text *text)
{
	struct changes changes = {.launch = launch, .piece = PIECE_MIN_BYTES, .is_text_new = true};
	struct fgv_exec_difference difference = {
		.from = launch->source.text, .to = text->bytes, .len = text->len};
	struct fgv_graph_node head;
	const uint8_t *message;
	CUresult res = CUDA_SUCCESS;

	while (!res && fgv_exec_alike_next(&difference, &head, &message)) {
		size_t before = changes.text.len;

		res = fgv_exec_part_put(&changes.text, head, NULL, message);
		if (!res)
			res = post_if_due(lane, &changes, before);
	}
	if (!res)
		res = post_changes(lane, &changes);
	fgv_exec_part_free(&changes.text);
	if (res)
		fgv_exec_kept_forget(&launch->source);
	else
		fgv_exec_kept_become(text, &launch->source);
	return res;
}

/* *@taken: whether there was one, or one that could be made into it. */
static CUresult take_kept(struct fgv_lane *lane, struct fgv_exec *exec,
			  const struct fgv_exec_part *text, struct fgv_exec_launch *launch,
			  bool *taken)
{
	const struct fgv_exec_kept_text kept = {text->bytes, text->len, text->count};
	uint32_t graph;
	enum fgv_exec_kept found =
		fgv_exec_kept_take(exec->device, &kept, exec->host.stream, &graph, &launch->source);

	*taken = found != FGV_EXEC_KEPT_NONE;
	if (!*taken)
		return CUDA_SUCCESS;
	exec->host.was_kept |= launch->source.was_launched;
	keep(exec, launch, graph);
	return found == FGV_EXEC_KEPT_ALIKE ? make_alike(lane, launch, &kept) : CUDA_SUCCESS;
}

static CUresult build_launch(struct fgv_lane *lane, struct fgv_exec *exec,
			     const struct fgv_exec_part *text, struct fgv_exec_launch *launch)
{
	uint32_t graph = 0, refused = 0;
	bool taken;
	CUresult res = take_kept(lane, exec, text, launch, &taken);

	if (res || taken)
		return res;
	res = send(lane, text, 0, &graph, &refused);
	if (!res && refused == CUDA_ERROR_OUT_OF_MEMORY && fgv_exec_kept_drop(lane))
		res = send(lane, text, 0, &graph, &refused);
	if (graph) {
		keep(exec, launch, graph);
	} else {
		launch->is_refused = true;
		fgv_exec_kept_forget(&launch->source);
	}
	if (!res && refused)
		fgv_debug("a graph of %u nodes is launched node by node: the host refuses it, %u",
			  text->count, refused);
	return res;
}

/* There is no other way for it. An earlier one may still be there, behind work that waits. */
static CUresult build_at_home(struct fgv_lane *lane, struct fgv_exec *exec,
			      const struct fgv_exec_part *text, struct fgv_exec_launch *launch)
{
	uint32_t home = fgv_home_handle(exec->graph->home), graph = 0, refused = 0;
	CUresult res = send(lane, text, home, &graph, &refused);

	if (!res && refused == CUDA_ERROR_NOT_SUPPORTED)
		res = fgv_sync_device(lane);
	if (!res && refused == CUDA_ERROR_NOT_SUPPORTED)
		res = send(lane, text, home, &graph, &refused);
	if (graph)
		keep(exec, launch, graph);
	if (res || !refused)
		return res;
	return refused == CUDA_ERROR_NOT_SUPPORTED
		       ? FGV_UNSUPPORTED("conditional nodes that this host's GPU can't interrupt")
		       : (CUresult)refused;
}

static CUresult build_launches(struct fgv_lane *lane, struct fgv_exec *exec,
			       const struct fgv_exec_text *text)
{
	CUresult res = CUDA_SUCCESS;

	for (uint32_t i = 0; i < text->count && !res; i++) {
		if (text->has_choices && i == text->choices_part)
			res = build_at_home(lane, exec, &text->parts[i], &exec->host.launches[i]);
		else if (!text->is_cut || text->parts[i].work >= WORTH_NODES)
			res = build_launch(lane, exec, &text->parts[i], &exec->host.launches[i]);
	}
	return res;
}

static void count(const struct fgv_exec *exec, enum fgv_stats_graph way)
{
	if (way != FGV_STATS_GRAPH_HOST && exec->host.is_there)
		fgv_stats_graph(FGV_STATS_GRAPH_CUT);
	if (way == FGV_STATS_GRAPH_HOST && !exec->host.is_there)
		way = FGV_STATS_GRAPH_REFUSED;
	fgv_stats_graph(way);
}

CUresult fgv_exec_host_build(struct fgv_lane *lane, struct fgv_exec *exec)
{
	struct fgv_exec_text text = {.has_priorities = has_priorities(exec)};
	enum fgv_stats_graph way;
	CUresult res = fgv_exec_text_write(&text, exec->graph, &way);

	while (take_changed(exec))
		continue;
	if (!res)
		res = make_launches(exec, &text);
	if (!res)
		res = build_launches(lane, exec, &text);
	fgv_exec_text_free(&text);
	if (!res && !exec->host.stream)
		count(exec, way);
	return res;
}

/* --- Changes of nodes ---------------------------------------------------------- */

static CUresult change(struct fgv_lane *lane, struct changes *changes, struct fgv_node *node)
{
	size_t before = changes->text.len;
	CUresult res = fgv_exec_text_change(&changes->text, node, &changes->launch->moved);

	return res ? res : post_if_due(lane, changes, before);
}

/* What is posted one by one is posted as it is then, unless it could be the host's now. */
static CUresult check_posted(const struct fgv_exec_launch *launch, struct fgv_node *node)
{
	bool is_program = fgv_exec_side_of(node) == FGV_EXEC_PROGRAM;

	return launch->is_refused || launch->is_program != is_program ? CUDA_ERROR_NOT_SUPPORTED
								      : CUDA_SUCCESS;
}

static CUresult send_changes(struct fgv_lane *lane, struct fgv_exec *exec, struct changes *changes)
{
	struct fgv_node *node;
	CUresult res = CUDA_SUCCESS;

	while (!res && (node = take_changed(exec))) {
		struct fgv_exec_launch *launch = &exec->host.launches[node->part];

		if (!launch->graph) {
			res = check_posted(launch, node);
			continue;
		}
		if (changes->launch != launch)
			res = post_changes(lane, changes);
		changes->launch = launch;
		if (!res)
			res = change(lane, changes, node);
	}
	return res ? res : post_changes(lane, changes);
}

CUresult fgv_exec_host_refresh(struct fgv_lane *lane, struct fgv_exec *exec)
{
	struct changes changes = {
		.text.has_priorities = has_priorities(exec),
		.piece = PIECE_MIN_BYTES,
	};
	CUresult res = send_changes(lane, exec, &changes);

	fgv_exec_part_free(&changes.text);
	if (res != CUDA_ERROR_NOT_SUPPORTED)
		return res;
	/* It is cut in other places now, or nowhere. */
	fgv_exec_host_drop(lane, exec);
	return fgv_exec_host_build(lane, exec);
}

/* --- Graphs that were kept ----------------------------------------------------- */

static bool is_elsewhere(const struct fgv_exec *exec, uint32_t stream)
{
	for (uint32_t i = 0; i < exec->host.count; i++) {
		const struct fgv_exec_launch *launch = &exec->host.launches[i];

		if (launch->graph && launch->source.was_launched && launch->source.stream != stream)
			return true;
	}
	return false;
}

CUresult fgv_exec_host_settle(struct fgv_lane *lane, struct fgv_exec *exec, uint32_t stream)
{
	CUresult res;

	exec->host.was_kept = false;
	if (!is_elsewhere(exec, stream))
		return CUDA_SUCCESS;
	fgv_exec_host_drop(lane, exec);
	exec->host.stream = &stream;
	res = fgv_exec_host_build(lane, exec);
	exec->host.stream = NULL;
	exec->host.was_kept = false;
	return res;
}
