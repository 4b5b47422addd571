/*
 * Writing the texts of a graph. Each record of a node is a node of the text, and those of one node
 * wait for each other in their order.
 *
 * The parts of the host and of the program take turns. A node is in the first part of its side that
 * is not before a part of what it waits for, so there are as few parts as the order allows. What
 * does nothing is in any part.
 */
#include "frontend/cuda/graph/exec_text.h"

#include <stdlib.h>
#include <string.h>

#include "api/gpu_wire.h"
#include "common/util.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/graph/exec_way.h"
#include "frontend/cuda/stream/stream.h"

#define NO_NUMBER UINT32_MAX /* nothing to wait for */

/* Where the nodes of a child graph, or of a body, find the one that they wait for. */
struct entry {
	uint32_t part, number;
};

void fgv_exec_part_free(struct fgv_exec_part *part)
{
	free(part->bytes);
}

static void drop_parts(struct fgv_exec_text *text)
{
	for (uint32_t i = 0; i < text->count; i++)
		fgv_exec_part_free(&text->parts[i]);
	free(text->parts);
	text->parts = NULL;
	text->count = 0;
}

void fgv_exec_text_free(struct fgv_exec_text *text)
{
	drop_parts(text);
}

/* --- One node of a text -------------------------------------------------------- */

static CUresult make_room(struct fgv_exec_part *text, size_t len)
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

/* The padding is the last word's, which is zero before what comes is in it. */
static void append(struct fgv_exec_part *text, const void *from, size_t len)
{
	size_t padded = fgv_align_up(len, 8);
	uint64_t *words = (uint64_t *)(text->bytes + text->len);

	if (!len)
		return;
	words[padded / 8 - 1] = 0;
	memcpy(words, from, len);
	text->len += padded;
}

/* As @head says, but for where it is. */
CUresult fgv_exec_part_put(struct fgv_exec_part *text, struct fgv_graph_node head,
			   const uint32_t *before, const void *message)
{
	size_t before_len = head.before_count * sizeof(*before);
	CUresult res = make_room(text, sizeof(head) + fgv_align_up(before_len, 8) +
					       fgv_align_up(head.message_len, 8));

	if (res)
		return res;
	head.inside = text->inside;
	head.body = text->body;
	memcpy(text->bytes + text->len, &head, sizeof(head));
	text->len += sizeof(head);
	append(text, before, before_len);
	append(text, message, head.message_len);
	text->count++;
	text->work += head.op != FGV_GRAPH_NO_OP;
	return CUDA_SUCCESS;
}

/* As the host is told it: of a kernel, where the graph is to mind. */
static uint8_t priority_of(const struct fgv_exec_part *text, const struct fgv_node *node)
{
	if (!text->has_priorities || !node || fgv_node_type(node) != CU_GRAPH_NODE_TYPE_KERNEL)
		return 0;
	return (uint8_t)(1 - fgv_stream_clamp_priority(node->work.task->attributes.priority));
}

/*
 * A @record of @node, which waits for @before. Without one it does nothing; without a node it is
 * never left out.
 */
static CUresult put(struct fgv_exec_part *text, uint32_t number, const struct fgv_record *record,
		    const struct fgv_node *node, const uint32_t *before, uint32_t before_count)
{
	const struct fgv_graph_node head = {
		.number = number,
		.op = record ? record->op : FGV_GRAPH_NO_OP,
		.message_len = record ? record->len : 0,
		.before_count = before_count,
		.is_disabled = node && node->disabled,
		.priority = priority_of(text, node),
	};

	return fgv_exec_part_put(text, head, before, record ? record->message : NULL);
}

/* --- Parts --------------------------------------------------------------------- */

/* So that there is part @number. */
static CUresult reach(struct fgv_exec_text *text, uint32_t number)
{
	struct fgv_exec_part *parts;

	if (number < text->count)
		return CUDA_SUCCESS;
	parts = realloc(text->parts, ((size_t)number + 1) * sizeof(*parts));
	if (!parts)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(parts + text->count, 0, (number + 1 - text->count) * sizeof(*parts));
	for (uint32_t i = text->count; i <= number; i++)
		parts[i].has_priorities = text->has_priorities;
	text->parts = parts;
	text->count = number + 1;
	return CUDA_SUCCESS;
}

/* Before no part of what it waits for. */
static uint32_t first_part_of(const struct fgv_node *node, const struct entry *entry)
{
	uint32_t part = entry ? entry->part : 0;

	for (uint32_t i = 0; i < node->before_count; i++)
		part = (uint32_t)fgv_max_u64(part, node->before[i]->part);
	return part;
}

/* The first of its side from @part on, where there is room for what it moves. */
static uint32_t part_of(const struct fgv_exec_text *text, struct fgv_node *node, uint32_t part)
{
	if (!text->is_cut || (part < text->count && text->parts[part].inside))
		return part;
	switch (fgv_exec_side_of(node)) {
	case FGV_EXEC_ANY:
		return part;
	case FGV_EXEC_PROGRAM:
		return part + !fgv_exec_text_is_program(text, part);
	case FGV_EXEC_HOST:
		break;
	}
	part += fgv_exec_text_is_program(text, part);
	while (part < text->count && text->parts[part].moved + node->moved > FGV_GRAPH_MOVED_MAX)
		part += 2;
	return part;
}

/* Whether a node of @part is in a text. */
static bool is_written(const struct fgv_exec_text *text, uint32_t part)
{
	return !text->is_dry && !fgv_exec_text_is_program(text, part);
}

/* --- One node of the graph ----------------------------------------------------- */

static CUresult put_graph(struct fgv_exec_text *text, struct fgv_graph *graph,
			  const struct entry *entry);

/* What @node waits for in its own part; what is in others is done before. */
static uint32_t list_before(const struct fgv_node *node, uint32_t part, const struct entry *entry,
			    uint32_t *numbers)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < node->before_count; i++) {
		if (node->before[i]->part == part)
			numbers[count++] = node->before[i]->last;
	}
	if (!node->before_count && entry && entry->part == part && entry->number != NO_NUMBER)
		numbers[count++] = entry->number;
	return count;
}

static CUresult put_records(struct fgv_exec_text *text, struct fgv_node *node, uint32_t number,
			    const uint32_t *before, uint32_t before_count)
{
	const struct fgv_record *record = node->work.task->records;
	struct fgv_exec_part *part = &text->parts[number];
	uint32_t last;
	CUresult res;

	part->moved += node->moved;
	if (!is_written(text, number))
		return CUDA_SUCCESS;
	node->first = part->count;
	res = put(part, part->count, record, node, before, before_count);
	while (!res && record && record->next) {
		record = record->next;
		last = part->count - 1;
		res = put(part, part->count, record, node, &last, 1);
	}
	node->last = part->count - 1;
	return res;
}

/* One that does nothing. */
static CUresult put_nothing(struct fgv_exec_text *text, uint32_t number, const uint32_t *before,
			    uint32_t before_count)
{
	struct fgv_exec_part *part = &text->parts[number];

	return is_written(text, number) ? put(part, part->count, NULL, NULL, before, before_count)
					: CUDA_SUCCESS;
}

/* Those of @graph that no other waits for, of the last part that there are any in. */
static uint32_t list_last(const struct fgv_graph *graph, uint32_t *part, uint32_t *numbers)
{
	uint32_t count = 0;

	for (struct fgv_node *each = graph->first; each; each = each->next)
		each->marked = false;
	for (struct fgv_node *each = graph->first; each; each = each->next) {
		for (uint32_t i = 0; i < each->before_count; i++)
			each->before[i]->marked = true;
		*part = (uint32_t)fgv_max_u64(*part, each->part);
	}
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		if (!each->marked && each->part == *part)
			numbers[count++] = each->last;
	}
	return count;
}

/* What waits for the child graph waits for the end of it, whose place is the node's. */
static CUresult put_end(struct fgv_exec_text *text, struct fgv_node *node,
			const struct entry *entry)
{
	const struct fgv_graph *child = node->work.child;
	uint32_t *last = calloc(child->count + 1, sizeof(*last));
	uint32_t count, part = entry->part;
	CUresult res;

	if (!last)
		return CUDA_ERROR_OUT_OF_MEMORY;
	last[0] = entry->number;
	count = child->count ? list_last(child, &part, last) : 1;
	node->part = part;
	node->last = text->parts[part].count;
	res = put_nothing(text, part, last, count);
	free(last);
	return res;
}

static CUresult put_child(struct fgv_exec_text *text, struct fgv_node *node, uint32_t part,
			  const uint32_t *before, uint32_t before_count)
{
	const struct entry entry = {part, text->parts[part].count};
	CUresult res = put_nothing(text, part, before, before_count);

	if (!res)
		res = put_graph(text, node->work.child, &entry);
	return res ? res : put_end(text, node, &entry);
}

static CUresult write_choice(struct fgv_exec_part *part, struct fgv_node *node,
			     const uint32_t *before, uint32_t before_count)
{
	const CUDA_CONDITIONAL_NODE_PARAMS *params = &node->work.task->params.conditional;
	const struct fgv_graph_choice choice = {
		.condition = params->handle,
		.type = params->type,
		.bodies = params->size,
	};
	const struct fgv_graph_node head = {
		.number = part->count,
		.op = FGV_GRAPH_CHOICE,
		.message_len = sizeof(choice),
		.before_count = before_count,
	};

	node->first = node->last = part->count;
	return fgv_exec_part_put(part, head, before, &choice);
}

/* Its nodes are in the same part, which no other part is begun for meanwhile. */
static CUresult put_bodies(struct fgv_exec_text *text, struct fgv_node *node, uint32_t number)
{
	const struct entry entry = {number, NO_NUMBER};
	uint32_t outer = text->parts[number].inside;
	uint16_t outer_body = text->parts[number].body;
	CUresult res = CUDA_SUCCESS;

	for (uint32_t i = 0; i < node->work.bodies->count && !res; i++) {
		text->parts[number].inside = node->first + 1;
		text->parts[number].body = (uint16_t)i;
		res = put_graph(text, node->work.bodies->graphs[i], &entry);
	}
	text->parts[number].inside = outer;
	text->parts[number].body = outer_body;
	return res;
}

/* All choices are one graph's, as their conditions have one home. */
static CUresult put_choice(struct fgv_exec_text *text, struct fgv_node *node, uint32_t number,
			   const uint32_t *before, uint32_t before_count)
{
	CUresult res = CUDA_SUCCESS;

	if (text->has_choices && text->choices_part != number)
		return FGV_UNSUPPORTED("conditional nodes before and behind functions");
	text->has_choices = true;
	text->choices_part = number;
	if (!text->is_dry)
		res = write_choice(&text->parts[number], node, before, before_count);
	return res ? res : put_bodies(text, node, number);
}

static CUresult put_node(struct fgv_exec_text *text, struct fgv_node *node,
			 const struct entry *entry, uint32_t *before)
{
	uint32_t part = first_part_of(node, entry), count;
	CUresult res;

	if (!node->work.child)
		part = part_of(text, node, part);
	res = reach(text, part);
	if (res)
		return res;
	node->part = part;
	count = list_before(node, part, entry, before);
	if (node->work.bodies)
		return put_choice(text, node, part, before, count);
	return node->work.child ? put_child(text, node, part, before, count)
				: put_records(text, node, part, before, count);
}

/* --- All of them --------------------------------------------------------------- */

/* Its first nodes wait for @entry. */
static CUresult put_graph(struct fgv_exec_text *text, struct fgv_graph *graph,
			  const struct entry *entry)
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

/* How many parts there are if the program begins, or the host. */
static CUresult count_parts(struct fgv_exec_text *text, struct fgv_graph *graph, bool program,
			    uint32_t *count)
{
	CUresult res;

	text->is_dry = true;
	text->starts_with_program = program;
	res = put_graph(text, graph, NULL);
	*count = text->count;
	drop_parts(text);
	text->is_dry = text->has_choices = false;
	return res;
}

CUresult fgv_exec_text_write(struct fgv_exec_text *text, struct fgv_graph *graph,
			     enum fgv_stats_graph *way)
{
	uint32_t counts[2];
	CUresult res = CUDA_SUCCESS;

	*way = fgv_exec_way_of(graph);
	text->is_cut = *way != FGV_STATS_GRAPH_HOST;
	for (int program = 0; text->is_cut && program < 2 && !res; program++)
		res = count_parts(text, graph, program, &counts[program]);
	if (res)
		return res;
	text->starts_with_program = text->is_cut && counts[1] < counts[0];
	return put_graph(text, graph, NULL);
}

static uint32_t count_records(const struct fgv_record *first)
{
	uint32_t count = 0;

	for (; first; first = first->next)
		count++;
	return count ? count : 1;
}

/* The host changes none. */
static bool is_event(const struct fgv_node *node)
{
	return fgv_node_type(node) == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
	       fgv_node_type(node) == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
}

CUresult fgv_exec_text_change(struct fgv_exec_part *text, struct fgv_node *node, uint64_t *moved)
{
	const struct fgv_record *record = node->work.task->records;
	uint32_t count = count_records(record);
	CUresult res = CUDA_SUCCESS;

	*moved -= node->moved;
	if (is_event(node) || fgv_exec_side_of(node) == FGV_EXEC_PROGRAM ||
	    count != node->last - node->first + 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	*moved += node->moved;
	if (*moved > FGV_GRAPH_MOVED_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; i < count && !res; i++) {
		res = put(text, node->first + i, record, node, NULL, 0);
		record = record ? record->next : NULL;
	}
	return res;
}
