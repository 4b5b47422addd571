/*
 * softgpu/lower/dominators.h: by what the word means, and where there are many of them.
 */
#include <stdlib.h>

#include "softgpu/lower/dominators.h"
#include "tests/unit/softgpu/softgpu_kernel.h"

struct world {
	struct flow_node *nodes;
	struct flow_edge *edges;
	uint32_t count;
	uint32_t edges_count;
};

static void make_world(struct world *world, uint32_t nodes, uint32_t edges)
{
	*world = (struct world){calloc(nodes, sizeof(struct flow_node)),
				calloc(2 * (size_t)edges, sizeof(struct flow_edge)), nodes, 0};
	ck_assert(world->nodes && world->edges);
}

static void connect_nodes(struct world *world, uint32_t from, uint32_t to)
{
	struct flow_edge *e = &world->edges[2 * world->edges_count++];

	e[0] = (struct flow_edge){to, world->nodes[from].out};
	e[1] = (struct flow_edge){from, world->nodes[to].in};
	world->nodes[from].out = &e[0];
	world->nodes[to].in = &e[1];
}

static void free_world(struct world *world)
{
	free(world->nodes);
	free(world->edges);
}

/* Marks what node 0 reaches without @without. */
static void mark(const struct world *world, uint32_t at, uint32_t without, bool *seen)
{
	if (at == without || seen[at])
		return;
	seen[at] = true;
	for (struct flow_edge *e = world->nodes[at].out; e; e = e->next)
		mark(world, e->node, without, seen);
}

#define SMALL 12

/* By what the word means: a node dominates what is not reached without it. */
static void check_small(const struct world *world)
{
	bool reached[SMALL] = {false};
	bool dominates[SMALL][SMALL];

	mark(world, 0, FGV_NO_NODE, reached);
	for (uint32_t d = 0; d < SMALL; d++) {
		bool seen[SMALL] = {false};

		mark(world, 0, d, seen);
		for (uint32_t n = 0; n < SMALL; n++)
			dominates[d][n] = reached[d] && reached[n] && !seen[n];
	}
	for (uint32_t n = 1; n < SMALL; n++) {
		uint32_t idom = world->nodes[n].idom;

		ck_assert_int_eq(idom == FGV_NO_NODE, !reached[n]);
		if (!reached[n])
			continue;
		ck_assert(idom != n && dominates[idom][n]);
		for (uint32_t d = 0; d < SMALL; d++)
			ck_assert(d == n || !dominates[d][n] || dominates[d][idom]);
	}
}

START_TEST(dominators_by_definition)
{
	srandom(11);
	for (int round = 0; round < 3000; round++) {
		struct world world;
		uint32_t edges = 8 + (uint32_t)random() % 24;

		make_world(&world, SMALL, edges);
		for (uint32_t i = 0; i < edges; i++)
			connect_nodes(&world, (uint32_t)random() % SMALL,
				      (uint32_t)random() % SMALL);
		ck_assert(fgv_softgpu_dominators(world.nodes, SMALL, 0));
		check_small(&world);
		free_world(&world);
	}
}
END_TEST

/*
 * A ladder down and up again, with a rung back from each step: what follows the edges until
 * nothing changes takes steps in the square of these.
 */
START_TEST(dominators_of_a_long_ladder)
{
	const uint32_t steps = 300000;
	struct world world;

	make_world(&world, 2 * steps + 1, 5 * steps);
	for (uint32_t i = 0; i < steps; i++) {
		connect_nodes(&world, i, i + 1);
		connect_nodes(&world, i, 2 * steps - i);
		connect_nodes(&world, 2 * steps - i, i);
		if (i)
			connect_nodes(&world, 2 * steps - i + 1, 2 * steps - i);
	}
	ck_assert(fgv_softgpu_dominators(world.nodes, world.count, 0));
	for (uint32_t i = 1; i < steps; i++)
		ck_assert_uint_ne(world.nodes[i].idom, FGV_NO_NODE);
	free_world(&world);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("softgpu_dominators");
	TCase *t = tcase_create("dominators");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, dominators_by_definition);
	tcase_add_test(t, dominators_of_a_long_ladder);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return kernel_run_suite(suite());
}
