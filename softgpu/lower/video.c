/* Video instructions: opcode, modifiers and the parts of operands that are named, as a struct
 * video. */
#include "softgpu/lower/lower.h"

#include <string.h>

#include "softgpu/video.h"

static const struct {
	const char *opcode;
	enum video_op op;
	unsigned elements;
} video_ops[] = {
	{"vadd", VIDEO_ADD, 1},	 {"vsub", VIDEO_SUB, 1},	  {"vabsdiff", VIDEO_ABSDIFF, 1},
	{"vmin", VIDEO_MIN, 1},	 {"vmax", VIDEO_MAX, 1},	  {"vshl", VIDEO_SHL, 1},
	{"vshr", VIDEO_SHR, 1},	 {"vset", VIDEO_SET, 1},	  {"vadd2", VIDEO_ADD, 2},
	{"vsub2", VIDEO_SUB, 2}, {"vabsdiff2", VIDEO_ABSDIFF, 2}, {"vmin2", VIDEO_MIN, 2},
	{"vmax2", VIDEO_MAX, 2}, {"vavrg2", VIDEO_AVRG, 2},	  {"vset2", VIDEO_SET, 2},
	{"vadd4", VIDEO_ADD, 4}, {"vsub4", VIDEO_SUB, 4},	  {"vabsdiff4", VIDEO_ABSDIFF, 4},
	{"vmin4", VIDEO_MIN, 4}, {"vmax4", VIDEO_MAX, 4},	  {"vavrg4", VIDEO_AVRG, 4},
	{"vset4", VIDEO_SET, 4},
};
#define VIDEO_OPS (sizeof(video_ops) / sizeof(*video_ops))

static int find_video(const char *opcode)
{
	for (size_t i = 0; i < VIDEO_OPS; i++) {
		if (!strcmp(video_ops[i].opcode, opcode))
			return (int)i;
	}
	return -1;
}

bool fgv_lower_is_video(const char *opcode)
{
	return find_video(opcode) >= 0;
}

/* Index of the first of @words that is among the modifiers, or @none. */
static unsigned mod_index(const struct ptx_insn *insn, const char *const *words, unsigned count,
			  unsigned none)
{
	for (unsigned i = 0; i < count; i++) {
		if (fgv_lower_has_mod(insn, words[i]))
			return i;
	}
	return none;
}

/* ".b2" or ".h1" of a scalar operand: lowest bit and width; all of it where nothing is said. */
static bool take_part(const struct ptx_operand *op, uint8_t *place, uint8_t *bits)
{
	const char *part = op->member;
	unsigned size = part && part[0] == 'b' ? 8 : 16;

	*place = 0;
	*bits = 32;
	if (!part)
		return true;
	if ((part[0] != 'b' && part[0] != 'h') || part[1] < '0' || part[2] ||
	    (unsigned)(part[1] - '0') >= 32 / size)
		return false;
	*place = (uint8_t)((unsigned)(part[1] - '0') * size);
	*bits = (uint8_t)size;
	return true;
}

/* ".b7610" or ".h32" of a vector operand: which element each is, the highest first. */
static bool take_selection(const struct ptx_operand *op, unsigned elements, unsigned first,
			   uint8_t *select)
{
	const char *part = op->member;

	for (unsigned i = 0; i < elements; i++)
		select[i] = (uint8_t)(first + i);
	if (!part)
		return true;
	if (part[0] != (elements == 2 ? 'h' : 'b') || strlen(part) != elements + 1)
		return false;
	for (unsigned i = 0; i < elements; i++) {
		unsigned n = (unsigned)(part[elements - i] - '0');

		if (n >= 2 * elements)
			return false;
		select[i] = (uint8_t)n;
	}
	return true;
}

/* ".h0" or ".b310" of a vector destination: the elements that are computed. */
static bool take_mask(const struct ptx_operand *op, unsigned elements, uint8_t *mask)
{
	const char *part = op->member;

	*mask = (uint8_t)((1u << elements) - 1);
	if (!part)
		return true;
	if (part[0] != (elements == 2 ? 'h' : 'b') || !part[1])
		return false;
	*mask = 0;
	for (const char *p = part + 1; *p; p++) {
		if (*p < '0' || (unsigned)(*p - '0') >= elements)
			return false;
		*mask |= (uint8_t)(1u << (*p - '0'));
	}
	return true;
}

static bool take_parts(const struct ptx_insn *insn, struct video *v)
{
	const struct ptx_operand *a = fgv_lower_operand(insn, 1);
	const struct ptx_operand *b = fgv_lower_operand(insn, 2);

	if (v->elements == 1)
		return take_part(insn->operands, &v->place_d, &v->bits_d) &&
		       take_part(a, &v->select_a[0], &v->bits_a) &&
		       take_part(b, &v->select_b[0], &v->bits_b);
	return take_mask(insn->operands, v->elements, &v->mask) &&
	       take_selection(a, v->elements, 0, v->select_a) &&
	       take_selection(b, v->elements, v->elements, v->select_b);
}

/* Signs from the types; a comparison names only those of its operands. */
static bool take_types(const struct mods *m, struct video *v)
{
	bool set = v->op == VIDEO_SET;
	unsigned first = set ? 0 : 1;

	if (m->types_count != (set ? 2u : 3u))
		return false;
	for (unsigned i = 0; i < m->types_count; i++) {
		if (m->types[i] != PTX_U32 && m->types[i] != PTX_S32)
			return false;
	}
	v->signed_d = !set && m->types[0] == PTX_S32;
	v->signed_a = m->types[first] == PTX_S32;
	v->signed_b = m->types[first + 1] == PTX_S32;
	return true;
}

/* What comes of the third operand, and whether there is one. */
static bool take_second(const struct ptx_insn *insn, struct video *v)
{
	static const char *const words[] = {"add", "min", "max"};
	unsigned second = mod_index(insn, words, v->elements == 1 ? 3 : 1, 3);
	bool part = insn->operands->member;

	v->second = (uint8_t)(second < 3		? VIDEO_PLUS + second
			      : part || v->elements > 1 ? VIDEO_MERGE
							: VIDEO_ALONE);
	if (v->elements == 1 && part && second < 3)
		return false;
	return insn->operands_count == (v->second == VIDEO_ALONE ? 3u : 4u);
}

/* A register without the part of it that is named. */
static uint32_t whole(struct lower *l, const struct ptx_operand *op, bool is_dest)
{
	struct ptx_operand plain = *op;

	plain.member = NULL;
	return is_dest ? fgv_lower_dest(l, &plain, 4) : fgv_lower_source(l, &plain, 4);
}

static bool take_video(const struct ptx_insn *insn, const struct mods *m, struct video *v)
{
	static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
	unsigned compare = mod_index(insn, compares, 6, 6);
	bool shift = v->op == VIDEO_SHL || v->op == VIDEO_SHR;
	bool clamp = fgv_lower_has_mod(insn, "clamp");

	v->sat = m->sat;
	v->compare = (uint8_t)compare;
	v->wrap = fgv_lower_has_mod(insn, "wrap");
	v->bits = (uint8_t)(32 / v->elements);
	if ((compare < 6) != (v->op == VIDEO_SET) || (clamp != v->wrap) != shift ||
	    (v->sat &&
	     (v->op == VIDEO_SET || (v->elements > 1 && fgv_lower_has_mod(insn, "add")))) ||
	    m->vec != 1 || insn->operands_count < 3)
		return false;
	return take_types(m, v) && take_second(insn, v) && take_parts(insn, v) &&
	       !(shift && v->signed_b);
}

void fgv_lower_video(struct lower *l, const struct ptx_insn *insn)
{
	int index = find_video(insn->opcode);
	struct video *v = fgv_softgpu_pool_get(&l->program->pool, sizeof(*v));
	struct mods m;
	uint32_t o[4];
	struct draft *d;

	if (!v) {
		fgv_lower_no_memory(l);
		return;
	}
	fgv_lower_mods(l, insn, &m);
	v->op = (uint8_t)video_ops[index].op;
	v->elements = (uint8_t)video_ops[index].elements;
	if (!take_video(insn, &m, v)) {
		fgv_lower_fail(l, "this form of '%s' is not supported", insn->opcode);
		return;
	}
	for (unsigned i = 1; i < 4; i++)
		o[i] = i < insn->operands_count ? whole(l, fgv_lower_operand(insn, i), false)
						: fgv_lower_const(l, 0, 4);
	o[0] = whole(l, insn->operands, true);
	d = fgv_lower_emit(l, OP_video);
	memcpy(d->insn.o, o, sizeof(o));
	d->insn.imm = (int64_t)(uintptr_t)v;
}
