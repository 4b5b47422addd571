/*
 * wmma, mma, ldmatrix and movmatrix. All lanes of a warp come together first, whichever way
 * they came; a warp that has not all 32 faults.
 */
#include "softgpu/lower/lower.h"
#include "softgpu/matrix.h"

#include <string.h>

/* The types of a multiplication's operands, and sizes m, n, k. f64 and f16 are apart from others.
 */
static const struct shape {
	const char *name;
	unsigned m, n, k;
	const char *wmma; /* types of a and b that it has, blanks between */
	const char *mma;
} shapes[] = {
	{"m16n16k16", 16, 16, 16, "f16 bf16 s8 u8", ""},
	{"m32n8k16", 32, 8, 16, "f16 bf16 s8 u8", ""},
	{"m8n32k16", 8, 32, 16, "f16 bf16 s8 u8", ""},
	{"m16n16k8", 16, 16, 8, "tf32", ""},
	{"m8n8k4", 8, 8, 4, "f64", "f64"},
	{"m8n8k16", 8, 8, 16, "", "s8 u8"},
	{"m16n8k4", 16, 8, 4, "", "tf32 f64"},
	{"m16n8k8", 16, 8, 8, "", "f16 bf16 tf32 f64"},
	{"m16n8k16", 16, 8, 16, "", "f16 bf16 s8 u8"},
	{"m16n8k32", 16, 8, 32, "", "s8 u8"},
};

static const struct element {
	enum ptx_type ptx;
	enum element_type type;
	unsigned bytes;
	const char *sums; /* types of c and d */
} elements[] = {
	{PTX_F16, ELEMENT_F16, 2, "f16 f32"}, {PTX_BF16, ELEMENT_BF16, 2, "f32"},
	{PTX_TF32, ELEMENT_TF32, 4, "f32"},   {PTX_F32, ELEMENT_F32, 4, ""},
	{PTX_F64, ELEMENT_F64, 8, "f64"},     {PTX_S8, ELEMENT_S8, 1, "s32"},
	{PTX_U8, ELEMENT_U8, 1, "s32"},	      {PTX_S32, ELEMENT_S32, 4, ""},
};

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ') {
		if (strcspn(at, " ") == length && !memcmp(at, word, length))
			return true;
	}
	return false;
}

static const struct shape *find_shape(const struct ptx_insn *insn)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		if (fgv_lower_has_mod(insn, shapes[i].name))
			return &shapes[i];
	}
	return NULL;
}

static const struct element *find_element(enum ptx_type type)
{
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++) {
		if (elements[i].ptx == type)
			return &elements[i];
	}
	return NULL;
}

static void refuse(struct lower *l, const struct ptx_insn *insn)
{
	fgv_lower_fail(l, "this form of '%s' is not supported", insn->opcode);
}

/* Kept as long as the program. */
static struct matrix_site *new_site(struct lower *l)
{
	struct matrix_site *site = fgv_softgpu_pool_get(&l->program->pool, sizeof(*site));

	if (!site)
		fgv_lower_no_memory(l);
	else
		memset(site, 0, sizeof(*site));
	return site;
}

static void emit(struct lower *l, enum op op, const struct matrix_site *site)
{
	uint32_t all = fgv_lower_const(l, ALL_LANES, 4);

	fgv_lower_emit(l, OP_warp_sync)->insn.o[5] = all;
	fgv_lower_emit(l, op)->insn.imm = (int64_t)(uintptr_t)site;
}

/* {a, b, ...} or one register: f->regs_count of them. */
static bool take_registers(struct lower *l, const struct ptx_operand *op, bool is_dest,
			   struct fragment *f)
{
	const struct ptx_operand *at = op && op->kind == PTX_OP_VECTOR ? op->list : op;
	unsigned size = f->bytes == 8 ? 8 : 4;
	unsigned count = 0;

	for (; at && count < f->regs_count; at = op->kind == PTX_OP_VECTOR ? at->next : NULL)
		f->regs[count++] =
			is_dest ? fgv_lower_dest(l, at, size) : fgv_lower_source(l, at, size);
	if (at || count != f->regs_count)
		fgv_lower_fail(l, "%u registers expected", f->regs_count);
	return !l->failed;
}

/* The registers of a fragment follow from its size; a and b of f16 have 8 in wmma. */
static void set_fragment(struct fragment *f, const struct element *e, unsigned rows,
			 unsigned columns, enum fragment_order order)
{
	unsigned row_bytes = e->bytes == 8 ? 8 * LANES : 4 * LANES;

	f->type = e->type;
	f->bytes = e->bytes;
	f->rows = rows;
	f->columns = columns;
	f->order = order;
	f->regs_count = f->regs_filled = rows * columns * e->bytes / row_bytes;
}

static void set_factor(struct fragment *f, const struct element *e, unsigned rows, unsigned columns,
		       enum fragment_order order)
{
	set_fragment(f, e, rows, columns, order);
	if (e->type == ELEMENT_F16 && order == ORDER_ROWS)
		f->regs_count = FRAGMENT_REGS;
}

/* The types of d, a, b and c; of f16 wmma says those of d and c alone. */
static bool find_types(const struct ptx_insn *insn, const struct mods *m, const struct shape *shape,
		       const struct element *types[4])
{
	bool is_short = m->types_count == 2 && !strcmp(insn->opcode, "wmma");
	const char *taken = !strcmp(insn->opcode, "wmma") ? shape->wmma : shape->mma;

	if (m->types_count != 4 && !is_short)
		return false;
	types[0] = find_element(m->types[0]);
	types[1] = find_element(is_short ? PTX_F16 : m->types[1]);
	types[2] = find_element(is_short ? PTX_F16 : m->types[2]);
	types[3] = find_element(m->types[m->types_count - 1]);
	if (!types[0] || !types[1] || !types[2] || !types[3])
		return false;
	if (m->satfinite && types[0]->type != ELEMENT_S32 && !is_short)
		return false;
	/* Whole numbers with and without sign go together; other types must be one. */
	if (types[1] != types[2] && (types[1]->bytes != 1 || types[2]->bytes != 1))
		return false;
	return has_word(taken, fgv_ptx_type_name(types[1]->ptx)) &&
	       has_word(types[1]->sums, fgv_ptx_type_name(types[0]->ptx)) &&
	       has_word(types[1]->sums, fgv_ptx_type_name(types[3]->ptx));
}

/* d, a, b, c */
static void lower_multiply(struct lower *l, const struct ptx_insn *insn)
{
	bool is_mma = !strcmp(insn->opcode, "mma");
	const struct shape *shape = find_shape(insn);
	const struct element *types[4];
	struct matrix_site *site;
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (!shape || !find_types(insn, &m, shape, types) || insn->operands_count != 4 ||
	    (m.round && (m.round != 'n' || types[0]->type != ELEMENT_F64)))
		return refuse(l, insn);
	site = new_site(l);
	if (!site)
		return;
	site->satfinite = m.satfinite;
	set_fragment(&site->d, types[0], shape->m, shape->n, is_mma ? ORDER_C : ORDER_ROWS);
	set_factor(&site->a, types[1], shape->m, shape->k, is_mma ? ORDER_A : ORDER_ROWS);
	set_factor(&site->b, types[2], shape->k, shape->n, is_mma ? ORDER_B : ORDER_ROWS);
	set_fragment(&site->c, types[3], shape->m, shape->n, is_mma ? ORDER_C : ORDER_ROWS);
	if (take_registers(l, fgv_lower_operand(insn, 1), false, &site->a) &&
	    take_registers(l, fgv_lower_operand(insn, 2), false, &site->b) &&
	    take_registers(l, fgv_lower_operand(insn, 3), false, &site->c) &&
	    take_registers(l, fgv_lower_operand(insn, 0), true, &site->d))
		emit(l, OP_matrix_multiply, site);
}

/* Which fragment a load or store is of: its type, and its size in this shape. */
static bool find_fragment(const struct ptx_insn *insn, const struct mods *m,
			  const struct shape *shape, struct fragment *f)
{
	const struct element *e = m->types_count == 1 ? find_element(m->types[0]) : NULL;

	if (!e)
		return false;
	if (fgv_lower_has_mod(insn, "a"))
		set_factor(f, e, shape->m, shape->k, ORDER_ROWS);
	else if (fgv_lower_has_mod(insn, "b"))
		set_factor(f, e, shape->k, shape->n, ORDER_ROWS);
	else
		set_fragment(f, e, shape->m, shape->n, ORDER_ROWS);
	if (fgv_lower_has_mod(insn, "a") || fgv_lower_has_mod(insn, "b"))
		return has_word(shape->wmma, fgv_ptx_type_name(e->ptx));
	/* Some type of the shape's factors must give such sums. */
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++) {
		if (has_word(shape->wmma, fgv_ptx_type_name(elements[i].ptx)) &&
		    has_word(elements[i].sums, fgv_ptx_type_name(e->ptx)))
			return true;
	}
	return false;
}

static bool take_address(struct lower *l, const struct ptx_operand *op, const struct mods *m,
			 struct matrix_site *site)
{
	struct memory_place place;

	if (!fgv_lower_place(l, op, m->space, &place))
		return false;
	site->kind = place.kind;
	site->reg = place.reg;
	site->imm = place.imm;
	site->is_shared = m->space == PTX_SHARED;
	return true;
}

/* load r, [p], stride and store [p], r, stride; without a stride rows follow each other. */
static void lower_transfer(struct lower *l, const struct ptx_insn *insn, bool is_store)
{
	const struct ptx_operand *stride = fgv_lower_operand(insn, 2);
	const struct shape *shape = find_shape(insn);
	struct matrix_site *site = new_site(l);
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (!site)
		return;
	if (!shape || !find_fragment(insn, &m, shape, &site->d) || insn->operands_count < 2 ||
	    insn->operands_count > 3)
		return refuse(l, insn);
	site->by_columns = fgv_lower_has_mod(insn, "col");
	site->default_stride = site->by_columns ? site->d.rows : site->d.columns;
	if (!take_registers(l, fgv_lower_operand(insn, is_store), !is_store, &site->d) ||
	    !take_address(l, fgv_lower_operand(insn, !is_store), &m, site))
		return;
	site->stride = stride ? fgv_lower_source(l, stride, 4) : OPERAND_NONE;
	emit(l, is_store ? OP_matrix_store : OP_matrix_load, site);
}

void fgv_lower_wmma(struct lower *l, const struct ptx_insn *insn)
{
	bool is_store = fgv_lower_has_mod(insn, "store");

	if (fgv_lower_has_mod(insn, "mma"))
		lower_multiply(l, insn);
	else if (is_store == fgv_lower_has_mod(insn, "d"))
		lower_transfer(l, insn, is_store);
	else
		refuse(l, insn);
}

/* Of mma rows of a and columns of b alone lie together. */
void fgv_lower_mma(struct lower *l, const struct ptx_insn *insn)
{
	if (fgv_lower_has_mod(insn, "row") && fgv_lower_has_mod(insn, "col"))
		lower_multiply(l, insn);
	else
		refuse(l, insn);
}

static void set_halves(struct matrix_site *site, struct fragment *f, unsigned count,
		       const struct ptx_insn *insn)
{
	f->bytes = 2;
	f->regs_count = f->regs_filled = count;
	site->count = count;
	site->is_turned = fgv_lower_has_mod(insn, "trans");
}

/* ldmatrix.sync.aligned.m8n8.num{.trans}.shared.b16 r, [p] */
void fgv_lower_ldmatrix(struct lower *l, const struct ptx_insn *insn)
{
	unsigned count = fgv_lower_has_mod(insn, "x4") ? 4 : fgv_lower_has_mod(insn, "x2") ? 2 : 1;
	struct matrix_site *site = new_site(l);
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (!site)
		return;
	if (m.types_count != 1 || m.types[0] != PTX_B16 || insn->operands_count != 2 ||
	    !fgv_lower_has_mod(insn, "m8n8"))
		return refuse(l, insn);
	set_halves(site, &site->d, count, insn);
	if (take_registers(l, insn->operands, true, &site->d) &&
	    take_address(l, fgv_lower_operand(insn, 1), &m, site))
		emit(l, OP_matrix_rows, site);
}

/* movmatrix.sync.aligned.m8n8.trans.b16 d, a */
void fgv_lower_movmatrix(struct lower *l, const struct ptx_insn *insn)
{
	struct matrix_site *site = new_site(l);
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (!site)
		return;
	if (m.types_count != 1 || m.types[0] != PTX_B16 || insn->operands_count != 2 ||
	    !fgv_lower_has_mod(insn, "m8n8") || !fgv_lower_has_mod(insn, "trans"))
		return refuse(l, insn);
	set_halves(site, &site->d, 1, insn);
	set_halves(site, &site->a, 1, insn);
	if (take_registers(l, fgv_lower_operand(insn, 1), false, &site->a) &&
	    take_registers(l, insn->operands, true, &site->d))
		emit(l, OP_matrix_turn, site);
}
