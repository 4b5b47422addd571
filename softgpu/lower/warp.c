/* Votes, matches, reductions and shuffles. */
#include "softgpu/lower/lower.h"

#include <stdio.h>
#include <string.h>

static uint32_t member_mask(struct lower *l, const struct ptx_insn *insn, unsigned index)
{
	const struct ptx_operand *op = fgv_lower_operand(insn, index);

	return op ? fgv_lower_source(l, op, 4) : OPERAND_NONE;
}

/* @size: of the first source, 0: a predicate. */
static void emit(struct lower *l, const char *key, uint32_t d, const uint32_t *sources,
		 unsigned count, unsigned size, uint32_t members)
{
	struct insn *in;

	fgv_lower_emit_op(l, key, d, sources, count);
	if (l->failed)
		return;
	in = &l->drafts[l->count - 1].insn;
	in->vec = (uint8_t)size;
	in->o[5] = members;
}

/* vote.sync.mode.type d, {!}a, members; without .sync the members are the lanes that run. */
void fgv_lower_vote(struct lower *l, const struct ptx_insn *insn)
{
	static const char *const modes[] = {"all", "any", "uni", "ballot"};
	uint32_t p;
	uint32_t members;
	char key[32];

	for (unsigned i = 0; i < 4; i++) {
		if (!fgv_lower_has_mod(insn, modes[i]))
			continue;
		p = fgv_lower_predicate(l, fgv_lower_operand(insn, 1));
		members = member_mask(l, insn, 2);
		snprintf(key, sizeof(key), "vote_%s", modes[i]);
		emit(l, key, fgv_lower_dest(l, insn->operands, i == 3 ? 4 : 0), &p, 1, 0, members);
		return;
	}
	fgv_lower_fail(l, "this kind of vote is not supported");
}

void fgv_lower_match(struct lower *l, const struct ptx_insn *insn)
{
	bool all = fgv_lower_has_mod(insn, "all");
	struct mods m;
	unsigned size;
	uint32_t sources[3];
	uint32_t d;
	char key[32];

	fgv_lower_mods(l, insn, &m);
	size = m.types_count ? fgv_ptx_type_size(m.types[0]) : 0;
	if ((size != 4 && size != 8) || !insn->operands) {
		fgv_lower_fail(l, "this kind of match is not supported");
		return;
	}
	d = fgv_lower_dest(l, insn->operands, 4);
	sources[0] = fgv_lower_source(l, fgv_lower_operand(insn, 1), size);
	sources[1] = OPERAND_NONE;
	sources[2] = all && insn->operands->pipe ? fgv_lower_dest(l, insn->operands->pipe, 0)
						 : OPERAND_NONE;
	snprintf(key, sizeof(key), "match_%s_u%u", all ? "all" : "any", size * 8);
	emit(l, key, d, sources, 3, size, member_mask(l, insn, 2));
}

void fgv_lower_redux(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	uint32_t source;
	uint32_t members;
	char key[96];
	bool ordered;

	fgv_lower_mods(l, insn, &m);
	ordered = !strcmp(m.rest, "_min") || !strcmp(m.rest, "_max");
	snprintf(key, sizeof(key), "redux%s%s", m.rest,
		 !ordered		 ? ""
		 : m.types[0] == PTX_S32 ? "_s32"
					 : "_u32");
	if (m.types_count != 1 || fgv_ptx_type_size(m.types[0]) != 4 || m.types[0] == PTX_F32) {
		fgv_lower_fail(l, "this kind of redux is not supported");
		return;
	}
	source = fgv_lower_source(l, fgv_lower_operand(insn, 1), 4);
	members = member_mask(l, insn, 2);
	emit(l, key, fgv_lower_dest(l, insn->operands, 4), &source, 1, 4, members);
}

/* shfl.sync.mode.b32 d|p, a, b, c, members */
void fgv_lower_shfl(struct lower *l, const struct ptx_insn *insn)
{
	struct mods m;
	uint32_t sources[4];
	uint32_t d;
	char key[96];

	fgv_lower_mods(l, insn, &m);
	if (insn->operands_count < 4 || m.types_count != 1 ||
	    fgv_ptx_type_size(m.types[0]) != 4) {
		fgv_lower_fail(l, "this kind of shfl is not supported");
		return;
	}
	d = fgv_lower_dest(l, insn->operands, 4);
	for (unsigned i = 0; i < 3; i++)
		sources[i] = fgv_lower_source(l, fgv_lower_operand(insn, i + 1), 4);
	sources[3] =
		insn->operands->pipe ? fgv_lower_dest(l, insn->operands->pipe, 0) : OPERAND_NONE;
	snprintf(key, sizeof(key), "shfl%s", m.rest);
	emit(l, key, d, sources, 4, 4, member_mask(l, insn, 4));
}

void fgv_lower_activemask(struct lower *l, const struct ptx_insn *insn)
{
	fgv_lower_emit_op(l, "activemask", fgv_lower_dest(l, insn->operands, 4), NULL, 0);
}

void fgv_lower_elect(struct lower *l, const struct ptx_insn *insn)
{
	uint32_t p;
	uint32_t d = OPERAND_NONE;

	if (!insn->operands || !insn->operands->pipe) {
		fgv_lower_fail(l, "elect needs two destinations");
		return;
	}
	if (insn->operands->kind != PTX_OP_SINK)
		d = fgv_lower_dest(l, insn->operands, 4);
	p = fgv_lower_dest(l, insn->operands->pipe, 0);
	emit(l, "elect", d, &p, 1, 0, member_mask(l, insn, 1));
}
