/*
 * Start-time fair queuing; what it promises is in sfq.h. The tree holds the active nodes in
 * order of (start tag, id), with its leftmost cached, so that looking at the next one is
 * O(1) and a charge O(log n). A charge that leaves a node in its place does not touch the
 * tree.
 */
#include "scheduler/sfq.h"

#include <stddef.h>

static int compare(const struct fgv_sfq_node *a, const struct fgv_sfq_node *b)
{
	int64_t order = (int64_t)(a->start - b->start);

	if (order == 0)
		order = (int64_t)(a->id - b->id);
	return (order > 0) - (order < 0);
}

RB_GENERATE_INTERNAL(fgv_sfq_tree, fgv_sfq_node, link, compare, __attribute__((unused)) static)

void fgv_sfq_init(struct fgv_sfq *q, uint64_t first_tag)
{
	*q = (struct fgv_sfq){.vtime = first_tag, .last_finish = first_tag};
	RB_INIT(&q->tree);
}

void fgv_sfq_node_init(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t id, uint32_t weight)
{
	*node = (struct fgv_sfq_node){.start = q->vtime, .id = id, .weight = weight};
}

/*
 * What RB_INSERT() does, but it asks for both children before it knows which it needs: the
 * way down is half the cost of a decision, and each node on it is a cache line of its own.
 */
static void insert(struct fgv_sfq *q, struct fgv_sfq_node *node)
{
	struct fgv_sfq_node *parent = NULL, *child = RB_ROOT(&q->tree);
	bool left = true, leftmost = true;

	while (child != NULL) {
		parent = child;
		__builtin_prefetch(RB_LEFT(parent, link));
		__builtin_prefetch(RB_RIGHT(parent, link));
		left = compare(node, parent) < 0;
		leftmost &= left;
		child = left ? RB_LEFT(parent, link) : RB_RIGHT(parent, link);
	}
	RB_SET(node, parent, link);
	if (parent == NULL)
		RB_ROOT(&q->tree) = node;
	else if (left)
		RB_LEFT(parent, link) = node;
	else
		RB_RIGHT(parent, link) = node;
	fgv_sfq_tree_RB_INSERT_COLOR(&q->tree, node);
	if (leftmost)
		q->leftmost = node;
}

static void take_out(struct fgv_sfq *q, struct fgv_sfq_node *node)
{
	if (q->leftmost == node)
		q->leftmost = RB_NEXT(fgv_sfq_tree, &q->tree, node);
	RB_REMOVE(fgv_sfq_tree, &q->tree, node);
}

static void advance_vtime(struct fgv_sfq *q)
{
	if (q->leftmost != NULL && fgv_sfq_before(q->vtime, q->leftmost->start))
		q->vtime = q->leftmost->start;
}

/* Nobody was active since idle_since_ns: old debts fade at the rate of the clock. */
static void pass_idle_time(struct fgv_sfq *q, uint64_t now_ns)
{
	uint64_t owed = q->last_finish - q->vtime;
	uint64_t idle_ns = now_ns > q->idle_since_ns ? now_ns - q->idle_since_ns : 0;

	if (fgv_sfq_before(q->vtime, q->last_finish))
		q->vtime += idle_ns < owed ? idle_ns : owed;
}

void fgv_sfq_activate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns)
{
	if (q->leftmost == NULL)
		pass_idle_time(q, now_ns);
	if (fgv_sfq_before(node->start, q->vtime)) {
		node->start = q->vtime;
		node->rest = 0;
	}
	node->active = true;
	insert(q, node);
	advance_vtime(q);
}

void fgv_sfq_deactivate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns)
{
	take_out(q, node);
	node->active = false;
	advance_vtime(q);
	if (q->leftmost == NULL)
		q->idle_since_ns = now_ns;
}

void fgv_sfq_charge(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t used_ns)
{
	uint64_t amount = used_ns + node->rest;
	struct fgv_sfq_node *after = NULL;
	uint64_t start = node->start + amount / node->weight;

	if (node->active)
		after = RB_NEXT(fgv_sfq_tree, &q->tree, node);
	node->rest = amount % node->weight;
	if (after != NULL && !fgv_sfq_precedes(node, start, after, after->start)) {
		take_out(q, node);
		node->start = start;
		insert(q, node);
	} else {
		node->start = start;
	}
	if (fgv_sfq_before(q->last_finish, start))
		q->last_finish = start;
	advance_vtime(q);
}

void fgv_sfq_set_weight(struct fgv_sfq_node *node, uint32_t weight)
{
	/* The rest stands for rest / weight of a nanosecond of virtual time. */
	node->rest = node->rest * weight / node->weight;
	node->weight = weight;
}

uint64_t fgv_sfq_finish(const struct fgv_sfq_node *node, uint64_t used_ns)
{
	return node->start + (used_ns + node->rest) / node->weight;
}

struct fgv_sfq_node *fgv_sfq_first(const struct fgv_sfq *q)
{
	return q->leftmost;
}

struct fgv_sfq_node *fgv_sfq_next(struct fgv_sfq_node *node)
{
	return RB_NEXT(fgv_sfq_tree, NULL, node);
}

bool fgv_sfq_precedes(const struct fgv_sfq_node *a, uint64_t a_start, const struct fgv_sfq_node *b,
		      uint64_t b_start)
{
	if (a_start != b_start)
		return fgv_sfq_before(a_start, b_start);
	return a->id < b->id;
}
