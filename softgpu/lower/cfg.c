/*
 * Where the sides of a branch meet: its block's immediate post-dominator (dominators.h, on the
 * reversed graph). Paths that end in trap, in a function's exit or in an endless loop do not
 * count: their lanes are gone, or never come. Nor do, where there is another way, branches straight
 * to a kernel's end: lanes that return early are not waited for. Then the drafts become the
 * code's instructions.
 */
#include "softgpu/lower/lower.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/lower/dominators.h"

#define GRAPH_BYTES 112ull /* that the graph and its dominators take for an instruction */

struct node {
	uint32_t first; /* instructions [first, end) */
	uint32_t end;
	bool only_exits; /* does nothing but end the kernel */
};

struct graph {
	struct lower *l;
	struct node *nodes;
	struct flow_node *flow; /* of each; its edges go against the program's */
	uint32_t count;
	uint32_t *block_of; /* instruction to block */
	uint32_t end;
	bool early_returns; /* whether they count */
};

static bool ends_block(enum op op)
{
	return op == OP_bra || op == OP_brx || op == OP_exit || op == OP_ret || op == OP_trap;
}

static void find_blocks(struct graph *g)
{
	const struct lower *l = g->l;

	for (uint32_t i = 0; i < l->count; i++) {
		bool starts = !i || l->drafts[i].insn.op == OP_join ||
			      ends_block((enum op)l->drafts[i - 1].insn.op);

		if (starts)
			g->nodes[g->count++].first = i;
		g->nodes[g->count - 1].end = i + 1;
		g->block_of[i] = g->count - 1;
	}
}

static bool add_edge(struct graph *g, uint32_t from, uint32_t to)
{
	struct flow_edge *e = fgv_softgpu_pool_get(&g->l->pool, 2 * sizeof(*e));

	if (!e)
		return false;
	e[0] = (struct flow_edge){to, g->flow[from].in};
	e[1] = (struct flow_edge){from, g->flow[to].out};
	g->flow[from].in = &e[0];
	g->flow[to].out = &e[1];
	return true;
}

static uint32_t label_block(const struct graph *g, uint32_t label)
{
	return g->block_of[g->l->places[label]];
}

/* Of a block that is a label alone it is what the next one does. */
static bool only_exits(const struct graph *g, uint32_t block)
{
	const struct lower *l = g->l;
	const struct draft *last = &l->drafts[g->nodes[block].end - 1];
	uint32_t i = g->nodes[block].first;

	while (l->drafts[i].insn.op == OP_join && i + 1 < g->nodes[block].end)
		i++;
	if (l->drafts[i].insn.op == OP_join)
		return block + 1 < g->count && g->nodes[block + 1].only_exits;
	if (&l->drafts[i] != last || !l->function->entry)
		return false;
	return last->insn.op == OP_bra ? last->target == l->end_label : last->insn.op == OP_exit;
}

static bool add_way(struct graph *g, uint32_t from, uint32_t to, bool conditional)
{
	if (conditional && !g->early_returns && g->nodes[to].only_exits)
		return true;
	return add_edge(g, from, to);
}

static bool add_edges(struct graph *g)
{
	for (uint32_t b = 0; b < g->count; b++) {
		const struct draft *last = &g->l->drafts[g->nodes[b].end - 1];
		enum op op = (enum op)last->insn.op;
		bool conditional = op == OP_bra_if || op == OP_brx;

		if (op == OP_brx) {
			for (uint32_t i = 0; i < last->table->count; i++) {
				if (!add_way(g, b, label_block(g, last->table_labels[i]), true))
					return false;
			}
		}
		if ((op == OP_bra || op == OP_bra_if) &&
		    !add_way(g, b, label_block(g, last->target), conditional))
			return false;
		if (!ends_block(op) && b + 1 < g->count && !add_way(g, b, b + 1, conditional))
			return false;
	}
	return true;
}

/* A branch that has its join already keeps it. */
static void set_joins(struct graph *g)
{
	for (uint32_t b = 0; b < g->count; b++) {
		struct draft *last = &g->l->drafts[g->nodes[b].end - 1];
		uint32_t ipdom = g->flow[b].idom;

		if ((last->insn.op == OP_bra_if || last->insn.op == OP_brx) &&
		    last->join == NO_INDEX && ipdom != FGV_NO_NODE && !g->nodes[ipdom].only_exits)
			last->join = g->nodes[ipdom].first;
		/* Behind an indirect call its groups meet. */
		for (uint32_t i = g->nodes[b].first; i < g->nodes[b].end; i++) {
			if (g->l->drafts[i].insn.op == OP_call_indirect)
				g->l->drafts[i].join = i + 1;
		}
	}
}

static bool find_joins_once(struct graph *g, bool early_returns)
{
	memset(g->flow, 0, g->count * sizeof(*g->flow));
	g->early_returns = early_returns;
	if (!add_edges(g) || !fgv_softgpu_dominators(g->flow, g->count, g->end))
		return false;
	set_joins(g);
	return true;
}

static bool find_joins(struct lower *l)
{
	struct graph g = {.l = l};
	bool ok;

	if (!fgv_budget_take(&l->budget, l->count * GRAPH_BYTES)) {
		fgv_lower_no_memory(l);
		return false;
	}
	g.nodes = calloc(l->count, sizeof(*g.nodes));
	g.block_of = calloc(l->count, sizeof(*g.block_of));
	g.flow = calloc(l->count, sizeof(*g.flow));
	ok = g.nodes && g.block_of && g.flow;
	if (ok) {
		find_blocks(&g);
		for (uint32_t b = g.count; b-- > 0;)
			g.nodes[b].only_exits = only_exits(&g, b);
		g.end = label_block(&g, l->end_label);
		ok = find_joins_once(&g, false) && find_joins_once(&g, true);
	}
	if (!ok)
		fgv_lower_no_memory(l);
	free(g.nodes);
	free(g.block_of);
	free(g.flow);
	fgv_budget_give(&l->budget, l->count * GRAPH_BYTES);
	return ok;
}

/* New index of each instruction without the joins that no branch needs. */
static uint32_t number_kept(struct lower *l, uint32_t *index, uint8_t *needed)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		if (l->drafts[i].join != NO_INDEX)
			needed[l->drafts[i].join] = 1;
	}
	for (uint32_t i = 0; i < l->count; i++) {
		index[i] = kept;
		if (l->drafts[i].insn.op != OP_join || needed[i])
			kept++;
		else
			needed[i] = 2;
	}
	return kept;
}

static void finish_insn(struct lower *l, const struct draft *d, struct insn *in,
			const uint32_t *index)
{
	struct insn *insns = l->code->insns;

	*in = d->insn;
	if (d->target != NO_INDEX) {
		in->target = &insns[index[l->places[d->target]]];
		if (in->target <= in)
			in->op = in->op == OP_bra ? OP_bra_back : OP_bra_if_back;
	}
	if (d->join != NO_INDEX)
		in->join = &insns[index[d->join]];
	for (uint32_t i = 0; d->table && i < d->table->count; i++)
		d->table->targets[i] = &insns[index[l->places[d->table_labels[i]]]];
	in->run = fgv_softgpu_handlers()[in->op];
}

static bool write_insns(struct lower *l)
{
	uint32_t *index = calloc(l->count, sizeof(*index));
	uint8_t *needed = calloc(l->count + 1, 1);
	struct code *code = l->code;

	if (index && needed) {
		code->insns_count = number_kept(l, index, needed);
		code->insns = fgv_softgpu_pool_get(&l->program->pool,
						   code->insns_count * sizeof(*code->insns));
	}
	for (uint32_t i = 0; code->insns && i < l->count; i++) {
		if (needed[i] != 2)
			finish_insn(l, &l->drafts[i], &code->insns[index[i]], index);
	}
	free(index);
	free(needed);
	return code->insns != NULL;
}

static bool check_labels(struct lower *l)
{
	for (uint32_t i = 0; i < l->labels_count; i++) {
		if (l->places[i] == NO_INDEX) {
			fgv_lower_fail(l, "a branch goes to a label that the function lacks");
			return false;
		}
	}
	return true;
}

bool fgv_lower_finish(struct lower *l)
{
	struct code *code = l->code;

	if (!fgv_lower_check(l) || !check_labels(l) || !find_joins(l))
		return false;
	code->consts = fgv_softgpu_pool_get(&l->program->pool, l->consts_bytes + 64);
	if (!code->consts || !write_insns(l)) {
		fgv_lower_no_memory(l);
		return false;
	}
	if (l->consts_bytes)
		memcpy(code->consts, l->consts, l->consts_bytes);
	code->frame_bytes = (l->frame + 63) & ~63u;
	code->local_bytes = (l->local + 15) & ~15u;
	return true;
}
