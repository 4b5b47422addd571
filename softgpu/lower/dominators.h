/* Immediate dominators of a graph that comes from a program's text: near-linear in its size. */
#ifndef FGV_SOFTGPU_LOWER_DOMINATORS_H
#define FGV_SOFTGPU_LOWER_DOMINATORS_H

#include <stdbool.h>
#include <stdint.h>

#define FGV_NO_NODE 0xffffffffu

struct flow_edge {
	uint32_t node;
	struct flow_edge *next;
};

struct flow_node {
	struct flow_edge *out;
	struct flow_edge *in;
	uint32_t idom; /* FGV_NO_NODE: @root does not reach it; the root's is itself */
};

/* Sets idom of all. False: no memory. */
bool fgv_softgpu_dominators(struct flow_node *nodes, uint32_t count, uint32_t root);

#endif
