/*
 * Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (TOPLAS 1979), with
 * path compression alone: O(m log n). Nodes are numbered in the order of a depth-first search; but
 * for that, all is done by number. Nothing recurses, for graphs are as deep as a text says.
 */
#include "softgpu/lower/dominators.h"

#include <stdlib.h>

struct search {
	struct flow_node *nodes;
	uint32_t *number;   /* of a node; FGV_NO_NODE: not reached */
	uint32_t *node;	    /* of a number */
	uint32_t *parent;   /* in the search's tree */
	uint32_t *semi;	    /* semidominator */
	uint32_t *label;    /* of the least semidominator on the way up to the ancestor */
	uint32_t *ancestor; /* in the forest; FGV_NO_NODE: a root of it */
	uint32_t *bucket;   /* first of those whose semidominator this is, */
	uint32_t *next;	    /* and the one behind it */
	uint32_t *idom;
	uint32_t *stack;
	uint32_t count; /* reached */
};

#define ARRAYS 10

static void reach(struct search *s, uint32_t node, uint32_t parent)
{
	uint32_t n = s->count++;

	s->number[node] = n;
	s->node[n] = node;
	s->parent[n] = parent;
	s->semi[n] = s->label[n] = n;
	s->ancestor[n] = s->bucket[n] = FGV_NO_NODE;
}

/* @at: how far the edges of each node have been followed. */
static void search(struct search *s, uint32_t root, struct flow_edge **at)
{
	uint32_t depth = 0;

	reach(s, root, FGV_NO_NODE);
	at[root] = s->nodes[root].out;
	s->stack[depth++] = root;
	while (depth) {
		uint32_t node = s->stack[depth - 1];
		struct flow_edge *e = at[node];

		if (!e) {
			depth--;
			continue;
		}
		at[node] = e->next;
		if (s->number[e->node] != FGV_NO_NODE)
			continue;
		reach(s, e->node, s->number[node]);
		at[e->node] = s->nodes[e->node].out;
		s->stack[depth++] = e->node;
	}
}

/* The label on the way from @v to its root in the forest; the way becomes shorter. */
static uint32_t evaluate(struct search *s, uint32_t v)
{
	uint32_t depth = 0;

	if (s->ancestor[v] == FGV_NO_NODE)
		return s->label[v];
	for (uint32_t at = v; s->ancestor[s->ancestor[at]] != FGV_NO_NODE; at = s->ancestor[at])
		s->stack[depth++] = at;
	while (depth) {
		uint32_t at = s->stack[--depth];
		uint32_t up = s->ancestor[at];

		if (s->semi[s->label[up]] < s->semi[s->label[at]])
			s->label[at] = s->label[up];
		s->ancestor[at] = s->ancestor[up];
	}
	return s->label[v];
}

static void find_semi(struct search *s, uint32_t w)
{
	for (struct flow_edge *e = s->nodes[s->node[w]].in; e; e = e->next) {
		uint32_t v = s->number[e->node];
		uint32_t u;

		if (v == FGV_NO_NODE)
			continue;
		u = evaluate(s, v);
		if (s->semi[u] < s->semi[w])
			s->semi[w] = s->semi[u];
	}
	s->next[w] = s->bucket[s->semi[w]];
	s->bucket[s->semi[w]] = w;
}

static void empty_bucket(struct search *s, uint32_t of)
{
	for (uint32_t v = s->bucket[of]; v != FGV_NO_NODE; v = s->next[v]) {
		uint32_t u = evaluate(s, v);

		s->idom[v] = s->semi[u] < s->semi[v] ? u : of;
	}
	s->bucket[of] = FGV_NO_NODE;
}

static void dominate(struct search *s)
{
	for (uint32_t w = s->count - 1; w > 0; w--) {
		find_semi(s, w);
		s->ancestor[w] = s->parent[w];
		empty_bucket(s, s->parent[w]);
	}
	s->idom[0] = 0;
	for (uint32_t w = 1; w < s->count; w++) {
		if (s->idom[w] != s->semi[w])
			s->idom[w] = s->idom[s->idom[w]];
	}
}

static void lay_out(struct search *s, uint32_t *memory, uint32_t count)
{
	uint32_t **arrays[ARRAYS] = {&s->number,   &s->node,   &s->parent, &s->semi, &s->label,
				     &s->ancestor, &s->bucket, &s->next,   &s->idom, &s->stack};

	for (unsigned i = 0; i < ARRAYS; i++)
		*arrays[i] = memory + (size_t)i * count;
}

bool fgv_softgpu_dominators(struct flow_node *nodes, uint32_t count, uint32_t root)
{
	struct search s = {.nodes = nodes};
	uint32_t *memory = calloc(count, ARRAYS * sizeof(*memory));
	struct flow_edge **at = calloc(count, sizeof(struct flow_edge *));
	bool ok = memory && at;

	if (ok) {
		lay_out(&s, memory, count);
		for (uint32_t i = 0; i < count; i++)
			s.number[i] = FGV_NO_NODE;
		search(&s, root, at);
		dominate(&s);
	}
	for (uint32_t i = 0; ok && i < count; i++) {
		bool reached = s.number[i] != FGV_NO_NODE;

		nodes[i].idom = reached ? s.node[s.idom[s.number[i]]] : FGV_NO_NODE;
	}
	free(memory);
	free(at);
	return ok;
}
