/*
 * Writing the text of a graph. Each record of a node is a node of the text, and those of one node
 * wait for each other in their order.
 */
#include "frontend/cuda/graph/exec_text.h"

#include <stdlib.h>
#include <string.h>

#include "api/gpu_wire.h"
#include "common/util.h"
#include "frontend/cuda/stream/host_func.h"

#define NO_ENTRY UINT32_MAX

void fgv_exec_text_free(struct fgv_exec_text *text)
{
	free(text->bytes);
}

/* --- What the host can do ------------------------------------------------------ */

static enum fgv_stats_graph way_of_box(const struct fgv_record *record)
{
	const struct fgv_copy_box_request *box = (const void *)record->message;

	return box->to_array || box->from_array ? FGV_STATS_GRAPH_ARRAY : FGV_STATS_GRAPH_HOST;
}

static enum fgv_stats_graph way_of(const struct fgv_record *record)
{
	CUhostFn function;
	void *data;

	if (record->run)
		return fgv_host_func_describe(record, &function, &data) ? FGV_STATS_GRAPH_FUNCTION
									: FGV_STATS_GRAPH_PAGEABLE;
	switch (record->op) {
	case FGV_OP_LAUNCH:
	case FGV_OP_LAUNCH_COOPERATIVE:
	case FGV_OP_LAUNCH_CLUSTERS:
	case FGV_OP_COPY_DEVICE:
	case FGV_OP_FILL:
	case FGV_OP_FILL_ROWS:
		return FGV_STATS_GRAPH_HOST;
	case FGV_OP_COPY_BOX:
		return way_of_box(record);
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
		return FGV_STATS_GRAPH_EVENT;
	default:
		return FGV_STATS_GRAPH_OTHER;
	}
}

static enum fgv_stats_graph way_of_records(const struct fgv_record *first)
{
	enum fgv_stats_graph way = FGV_STATS_GRAPH_HOST;

	for (; first && way == FGV_STATS_GRAPH_HOST; first = first->next)
		way = way_of(first);
	return way;
}

static enum fgv_stats_graph way_of_graph(const struct fgv_graph *graph)
{
	enum fgv_stats_graph way = FGV_STATS_GRAPH_HOST;

	for (const struct fgv_node *each = graph->first; each && way == FGV_STATS_GRAPH_HOST;
	     each = each->next)
		way = each->work.child ? way_of_graph(each->work.child)
				       : way_of_records(each->work.records);
	return way;
}

static uint64_t moved_by_one(const struct fgv_record *record)
{
	const struct fgv_copy_device_request *copy = (const void *)record->message;
	const struct fgv_copy_box_request *box = (const void *)record->message;
	const struct fgv_fill_request *fill = (const void *)record->message;
	const struct fgv_fill_rows_request *rows = (const void *)record->message;

	switch (record->op) {
	case FGV_OP_COPY_DEVICE:
		return copy->size;
	case FGV_OP_COPY_BOX:
		return box->box[0] * box->box[1] * box->box[2];
	case FGV_OP_FILL:
		return fill->count * fill->width;
	case FGV_OP_FILL_ROWS:
		return rows->width * rows->height;
	default:
		return 0;
	}
}

/* Each no more than just too much, so that sums do not wrap. */
static uint64_t moved_by(const struct fgv_record *first)
{
	uint64_t moved = 0;

	for (; first; first = first->next)
		moved += fgv_min_u64(moved_by_one(first), FGV_GRAPH_MOVED_MAX + 1);
	return moved;
}

/* --- One node of the text ------------------------------------------------------ */

static CUresult make_room(struct fgv_exec_text *text, size_t len)
{
	size_t room = fgv_max_u64(2 * text->room, text->len + len);
	uint8_t *grown;

	if (text->len + len <= text->room)
		return CUDA_SUCCESS;
	grown = realloc(text->bytes, room);
	if (!grown)
		return CUDA_ERROR_OUT_OF_MEMORY;
	text->bytes = grown;
	text->room = room;
	return CUDA_SUCCESS;
}

static void append(struct fgv_exec_text *text, const void *from, size_t len)
{
	size_t padded = fgv_align_up(len, 8);

	if (len)
		memcpy(text->bytes + text->len, from, len);
	memset(text->bytes + text->len + len, 0, padded - len);
	text->len += padded;
}

/* @record NULL: a node that does nothing. It waits for @before. */
static CUresult put(struct fgv_exec_text *text, uint32_t number, const struct fgv_record *record,
		    bool is_disabled, const uint32_t *before, uint32_t before_count)
{
	const struct fgv_graph_node head = {
		.number = number,
		.op = record ? record->op : FGV_GRAPH_NO_OP,
		.message_len = record ? record->len : 0,
		.before_count = before_count,
		.is_disabled = is_disabled,
	};
	size_t before_len = before_count * sizeof(*before);
	CUresult res = make_room(text, sizeof(head) + fgv_align_up(before_len, 8) +
					       fgv_align_up(head.message_len, 8));

	if (res)
		return res;
	append(text, &head, sizeof(head));
	append(text, before, before_len);
	append(text, record ? record->message : NULL, head.message_len);
	text->count++;
	return CUDA_SUCCESS;
}

/* --- One node of the graph ----------------------------------------------------- */

static CUresult put_graph(struct fgv_exec_text *text, struct fgv_graph *graph, uint32_t entry);

static CUresult put_records(struct fgv_exec_text *text, struct fgv_node *node,
			    const uint32_t *before, uint32_t before_count)
{
	const struct fgv_record *record = node->work.records;
	uint32_t last;
	CUresult res;

	node->first = text->count;
	node->moved = moved_by(record);
	text->moved += node->moved;
	res = put(text, text->count, record, node->disabled, before, before_count);
	while (!res && record && record->next) {
		record = record->next;
		last = text->count - 1;
		res = put(text, text->count, record, node->disabled, &last, 1);
	}
	return res;
}

/* Those of @graph that no other waits for, in @numbers. */
static uint32_t list_last(const struct fgv_graph *graph, uint32_t *numbers)
{
	uint32_t count = 0;

	for (struct fgv_node *each = graph->first; each; each = each->next)
		each->marked = false;
	for (struct fgv_node *each = graph->first; each; each = each->next) {
		for (uint32_t i = 0; i < each->before_count; i++)
			each->before[i]->marked = true;
	}
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (!each->marked)
			numbers[count++] = each->last;
	}
	return count;
}

/* What waits for the child graph waits for the end of it, whose number is the node's last. */
static CUresult put_end(struct fgv_exec_text *text, const struct fgv_graph *child, uint32_t entry)
{
	uint32_t *last = calloc(child->count + 1, sizeof(*last));
	uint32_t count;
	CUresult res;

	if (!last)
		return CUDA_ERROR_OUT_OF_MEMORY;
	last[0] = entry;
	count = child->count ? list_last(child, last) : 1;
	res = put(text, text->count, NULL, false, last, count);
	free(last);
	return res;
}

static CUresult put_child(struct fgv_exec_text *text, struct fgv_node *node, const uint32_t *before,
			  uint32_t before_count)
{
	uint32_t entry = text->count;
	CUresult res = put(text, entry, NULL, false, before, before_count);

	node->first = entry;
	if (!res)
		res = put_graph(text, node->work.child, entry);
	return res ? res : put_end(text, node->work.child, entry);
}

static CUresult put_node(struct fgv_exec_text *text, struct fgv_node *node, uint32_t entry,
			 uint32_t *before)
{
	uint32_t count = node->before_count;
	CUresult res;

	for (uint32_t i = 0; i < count; i++)
		before[i] = node->before[i]->last;
	if (!count && entry != NO_ENTRY)
		before[count++] = entry;
	res = node->work.child ? put_child(text, node, before, count)
			       : put_records(text, node, before, count);
	node->last = text->count - 1;
	return res;
}

/* --- All of them --------------------------------------------------------------- */

/* Its first nodes wait for @entry. */
static CUresult put_graph(struct fgv_exec_text *text, struct fgv_graph *graph, uint32_t entry)
{
	uint32_t *before = calloc(graph->count + 1, sizeof(*before));
	struct fgv_node **sorted;
	CUresult res = before ? fgv_graph_sort(graph, &sorted) : CUDA_ERROR_OUT_OF_MEMORY;

	if (res) {
		free(before);
		return res;
	}
	for (uint32_t i = 0; i < graph->count && !res; i++)
		res = put_node(text, sorted[i], entry, before);
	free(sorted);
	free(before);
	return res;
}

CUresult fgv_exec_text_write(struct fgv_exec_text *text, struct fgv_graph *graph,
			     enum fgv_stats_graph *way)
{
	CUresult res;

	*way = way_of_graph(graph);
	if (*way != FGV_STATS_GRAPH_HOST)
		return CUDA_SUCCESS;
	res = put_graph(text, graph, NO_ENTRY);
	if (text->moved > FGV_GRAPH_MOVED_MAX)
		*way = FGV_STATS_GRAPH_MOVES;
	return res;
}

static uint32_t count_records(const struct fgv_record *first)
{
	uint32_t count = 0;

	for (; first; first = first->next)
		count++;
	return count ? count : 1;
}

CUresult fgv_exec_text_change(struct fgv_exec_text *text, struct fgv_node *node, uint64_t *moved)
{
	const struct fgv_record *record = node->work.records;
	uint32_t count = count_records(record);
	CUresult res = CUDA_SUCCESS;

	if (way_of_records(record) != FGV_STATS_GRAPH_HOST || count != node->last - node->first + 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	*moved -= node->moved;
	node->moved = moved_by(record);
	*moved += node->moved;
	if (*moved > FGV_GRAPH_MOVED_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; i < count && !res; i++) {
		res = put(text, node->first + i, record, node->disabled, NULL, 0);
		record = record ? record->next : NULL;
	}
	return res;
}
