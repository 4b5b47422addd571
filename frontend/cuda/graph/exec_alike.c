/*
 * Comparing texts of graphs, node by node.
 */
#include "frontend/cuda/graph/exec_alike.h"

#include <string.h>

#include "api/gpu_wire.h"
#include "common/util.h"

/* Of a hash: odd, with bits in all places. */
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* A node where it lies in its text. */
struct view {
	struct fgv_graph_node head;
	const uint8_t *start, *message;
	size_t front; /* bytes, of the head and of what it waits for */
	size_t len;   /* of all of it */
};

static struct view view_of(const uint8_t *at)
{
	struct view view = {.start = at};

	memcpy(&view.head, at, sizeof(view.head));
	view.front = sizeof(view.head) + fgv_align_up(view.head.before_count * sizeof(uint32_t), 8);
	view.message = at + view.front;
	view.len = view.front + fgv_align_up(view.head.message_len, 8);
	return view;
}

/* Of a launch: what the host can't change, or need not be able to. */
static uint64_t kind_of_launch(const struct view *view)
{
	struct fgv_launch_request launch;

	memcpy(&launch, view->message, sizeof(launch));
	return (uint64_t)launch.param_count << 32 | launch.function;
}

/* --- Numbers ------------------------------------------------------------------- */

static uint64_t mix(uint64_t number, uint64_t word)
{
	return (number ^ word ^ (number >> 29)) * FACTOR;
}

static uint64_t mix_all(uint64_t number, const uint8_t *bytes, size_t len)
{
	const uint64_t *words = (const uint64_t *)bytes;

	for (size_t i = 0; i < len / 8; i++)
		number = mix(number, words[i]);
	return number;
}

static bool is_of_kernels(uint32_t op)
{
	return op == FGV_OP_LAUNCH || op == FGV_OP_LAUNCH_COOPERATIVE ||
	       op == FGV_OP_LAUNCH_CLUSTERS || op == FGV_GRAPH_NO_OP;
}

bool fgv_exec_alike_number(const uint8_t *text, size_t len, struct fgv_exec_numbers *numbers)
{
	uint64_t shape = len, rest = 0;
	struct view view;

	for (size_t at = 0; at < len; at += view.len) {
		view = view_of(text + at);
		if (!is_of_kernels(view.head.op))
			return false;
		shape = mix_all(shape, view.start, view.front);
		if (view.head.op == FGV_OP_LAUNCH)
			shape = mix(shape, kind_of_launch(&view));
		rest = mix_all(rest, view.message, view.len - view.front);
	}
	numbers->shape = shape;
	numbers->whole = mix(shape, rest);
	return true;
}

/* --- Differences --------------------------------------------------------------- */

static bool has_same_message(const struct view *view, const struct view *other)
{
	return !memcmp(view->message, other->message, view->len - view->front);
}

/* The first of both are of the same length then. */
static bool is_alike(const struct view *view, const struct view *other)
{
	if (memcmp(&view->head, &other->head, sizeof(view->head)) ||
	    memcmp(view->start, other->start, view->front))
		return false;
	return view->head.op == FGV_OP_LAUNCH ? kind_of_launch(view) == kind_of_launch(other)
					      : has_same_message(view, other);
}

bool fgv_exec_alike_are(const uint8_t *text, const uint8_t *other, size_t len)
{
	struct view view, other_view;

	for (size_t at = 0; at < len; at += view.len) {
		view = view_of(text + at);
		other_view = view_of(other + at);
		if (!is_alike(&view, &other_view))
			return false;
	}
	return true;
}

bool fgv_exec_alike_next(struct fgv_exec_difference *difference, struct fgv_graph_node *head,
			 const uint8_t **message)
{
	while (difference->at < difference->len) {
		struct view from = view_of(difference->from + difference->at);
		struct view to = view_of(difference->to + difference->at);

		difference->at += to.len;
		if (has_same_message(&from, &to))
			continue;
		*head = to.head;
		head->before_count = 0;
		*message = to.message;
		return true;
	}
	return false;
}
