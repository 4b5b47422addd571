/*
 * Rewriting for fgv_ptx_slice(). A kernel begins with computing which block it takes itself for,
 * and of how many, into registers that are then read in place of the special ones. What it calls
 * gets these from it, by a parameter more.
 *
 * The registers are %<base>r0 to 7: the block's x, y, z and w, and the grid's; and where halves of
 * them are read, %<base>h0 to 7.
 */
#include "ptx/slice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REGISTERS 8
#define GRID	  4 /* the first of the grid's */

#define NAME_MAX_BYTES 64

static const char *name_with(struct ptx_slicing *s, const char *sigil, const char *suffix)
{
	char name[NAME_MAX_BYTES];
	const char *interned;
	int len = snprintf(name, sizeof(name), "%s%s%s", sigil, s->base, suffix);

	interned = fgv_ptx_intern(s->module, name, (size_t)len);
	if (!interned)
		fgv_ptx_slice_fail(s, -ENOMEM, "out of memory");
	return interned;
}

static const char *word(struct ptx_slicing *s, const char *text)
{
	const char *interned = fgv_ptx_intern(s->module, text, strlen(text));

	if (!interned)
		fgv_ptx_slice_fail(s, -ENOMEM, "out of memory");
	return interned;
}

/* Register @index of those that are 32 ('r') or 16 ('h') bits wide. */
static const char *register_of(struct ptx_slicing *s, char width, unsigned index)
{
	char suffix[] = {width, (char)('0' + index), '\0'};

	s->has_registers = true;
	s->has_narrow |= width == 'h';
	return name_with(s, "%", suffix);
}

/* --- Reads of special registers --------------------------------------------------- */

/* The first register of what @op names; -1: it is no special register that depends on the part. */
static int first_of(const struct ptx_operand *op)
{
	if (!op || !op->name)
		return -1;
	if (fgv_ptx_slice_is_block(op->name))
		return 0;
	return fgv_ptx_slice_is_grid(op->name) ? GRID : -1;
}

/* Bytes of the type that an instruction's sources have; 4 where it says none. */
static unsigned source_bytes(const struct ptx_insn *insn)
{
	for (unsigned i = insn->mods_count; i-- > 0;) {
		enum ptx_type type = fgv_ptx_type_find(insn->mods[i]);

		if (type != PTX_NOTYPE)
			return fgv_ptx_type_size(type);
	}
	return 4;
}

/* x, y, z, w or r, g, b, a: 0 to 3; -1 where it is none. */
static int place_of(const char *member)
{
	static const char places[] = "xyzwrgba";
	const char *found = member && *member && !member[1] ? strchr(places, *member) : NULL;

	return found ? (int)((found - places) % 4) : -1;
}

static void replace_operand(struct ptx_slicing *s, struct ptx_operand *op, char width)
{
	int first = first_of(op), place = place_of(op->member);

	if (first < 0)
		return;
	if (place < 0 || !width || op->kind != PTX_OP_NAME || op->value || op->negated) {
		fgv_ptx_slice_fail(s, -EOPNOTSUPP, "it reads %s in a way of its own", op->name);
		return;
	}
	op->name = register_of(s, width, (unsigned)(first + place));
	op->member = NULL;
}

static void replace_operands(struct ptx_slicing *s, struct ptx_operand *op, char width)
{
	for (; op; op = op->next) {
		replace_operand(s, op, width);
		/* The elements of what is packed are as wide as the register is. */
		replace_operands(s, op->list, width ? width : 'r');
		replace_operands(s, op->pipe, width);
	}
}

static char width_of(const struct ptx_insn *insn)
{
	unsigned bytes = source_bytes(insn);

	return bytes == 4 ? 'r' : bytes == 2 ? 'h' : '\0';
}

/* The registers of all four elements, as an operand. */
static void read_all(struct ptx_slicing *s, struct ptx_operand *op, char width)
{
	int first = first_of(op);
	struct ptx_operand *list = fgv_ptx_slice_get(s, 4 * sizeof(*list));

	if (!list)
		return;
	for (unsigned i = 0; i < 4; i++)
		list[i] = (struct ptx_operand){
			.kind = PTX_OP_NAME,
			.name = register_of(s, width, (unsigned)first + i),
			.next = i < 3 ? &list[i + 1] : NULL,
		};
	*op = (struct ptx_operand){.kind = PTX_OP_VECTOR, .list = list, .next = op->next};
}

/* mov.v4 {a, b, c, d}, {e, f, g, h}: an instruction for each that has a place to go. */
static void take_apart(struct ptx_slicing *s, struct ptx_stmt *stmt)
{
	const struct ptx_insn whole = stmt->insn;
	const struct ptx_operand *to = whole.operands->list, *from = whole.operands->next->list;
	struct ptx_stmt *rest = stmt->next, *at = NULL;
	const char **mods = fgv_ptx_slice_get(s, sizeof(*mods));

	if (!mods)
		return;
	mods[0] = whole.mods[whole.mods_count - 1];
	for (; to && from; to = to->next, from = from->next) {
		struct ptx_operand *operands = fgv_ptx_slice_get(s, 2 * sizeof(*operands));
		struct ptx_stmt *next = at ? fgv_ptx_slice_get(s, sizeof(*next)) : stmt;

		if (!operands || !next)
			return;
		if (to->kind == PTX_OP_SINK)
			continue;
		operands[0] = *to;
		operands[0].next = &operands[1];
		operands[1] = *from;
		operands[1].next = NULL;
		*next = (struct ptx_stmt){
			.kind = PTX_STMT_INSN, .line = stmt->line, .insn = whole, .next = rest};
		next->insn.mods = mods;
		next->insn.mods_count = 1;
		next->insn.operands = operands;
		if (at)
			at->next = next;
		at = next;
	}
	/* All four go nowhere. */
	if (!at)
		*stmt = (struct ptx_stmt){.kind = PTX_STMT_BLOCK, .line = stmt->line, .next = rest};
}

static bool reads_whole_vector(const struct ptx_insn *insn)
{
	const struct ptx_operand *from = insn->operands ? insn->operands->next : NULL;

	return !strcmp(insn->opcode, "mov") && insn->operands_count == 2 && insn->mods_count == 2 &&
	       !strcmp(insn->mods[0], "v4") && first_of(from) >= 0 && from->kind == PTX_OP_NAME &&
	       !from->member && !from->value;
}

static void replace_in_insn(struct ptx_slicing *s, struct ptx_stmt *stmt)
{
	struct ptx_insn *insn = &stmt->insn;
	char width = width_of(insn);

	if (!reads_whole_vector(insn) || !width) {
		replace_operands(s, insn->operands, width);
		return;
	}
	read_all(s, insn->operands->next, width);
	if (!s->status && insn->operands->kind == PTX_OP_VECTOR)
		take_apart(s, stmt);
}

/* Constants are read where the other module has them, which is global memory. */
static void replace_const(struct ptx_slicing *s, struct ptx_insn *insn)
{
	for (unsigned i = 0; i < insn->mods_count; i++) {
		if (!strcmp(insn->mods[i], "const"))
			insn->mods[i] = word(s, "global");
	}
}

/* --- Making statements -------------------------------------------------------------- */

static struct ptx_operand *make_operand(struct ptx_slicing *s, const struct ptx_operand *like)
{
	struct ptx_operand *op = fgv_ptx_slice_get(s, sizeof(*op));

	if (op)
		*op = *like;
	return op;
}

/* opcode.mod(.mod) to, from(, more), behind *@tail. */
static void add_insn(struct ptx_slicing *s, struct ptx_stmt ***tail, const char *const words[3],
		     const struct ptx_operand *operands, unsigned count)
{
	struct ptx_stmt *stmt = fgv_ptx_slice_get(s, sizeof(*stmt));
	const char **mods = fgv_ptx_slice_get(s, 2 * sizeof(*mods));
	struct ptx_operand **link;

	if (!stmt || !mods)
		return;
	stmt->kind = PTX_STMT_INSN;
	stmt->line = s->line;
	stmt->insn.opcode = word(s, words[0]);
	stmt->insn.mods = mods;
	for (unsigned i = 1; i < 3 && words[i]; i++)
		mods[stmt->insn.mods_count++] = word(s, words[i]);
	stmt->insn.operands_count = count;
	link = &stmt->insn.operands;
	for (unsigned i = 0; i < count && !s->status; i++) {
		*link = make_operand(s, &operands[i]);
		if (*link)
			link = &(*link)->next;
	}
	**tail = stmt;
	*tail = &stmt->next;
}

static struct ptx_operand named(const char *name)
{
	return (struct ptx_operand){.kind = PTX_OP_NAME, .name = name};
}

static struct ptx_operand at(const char *name, size_t offset)
{
	return (struct ptx_operand){.kind = PTX_OP_ADDRESS, .name = name, .value = offset};
}

static struct ptx_var *make_var(struct ptx_slicing *s, enum ptx_space space, enum ptx_type type,
				const char *name)
{
	struct ptx_var *var = fgv_ptx_slice_get(s, sizeof(*var));

	if (var)
		*var = (struct ptx_var){
			.name = name, .space = space, .type = type, .vector = 1, .line = s->line};
	return var;
}

/* A struct ptx_part as a parameter. */
static struct ptx_var *make_part(struct ptx_slicing *s, const char *name)
{
	struct ptx_var *var = make_var(s, PTX_PARAM, PTX_B8, name);

	if (!var)
		return NULL;
	var->align = 4;
	var->dims_count = 1;
	var->dims[0] = sizeof(struct ptx_part);
	return var;
}

static void add_var(struct ptx_slicing *s, struct ptx_stmt ***tail, struct ptx_var *var)
{
	struct ptx_stmt *stmt = fgv_ptx_slice_get(s, sizeof(*stmt));

	if (!stmt || !var)
		return;
	stmt->kind = PTX_STMT_VAR;
	stmt->line = s->line;
	stmt->var = var;
	**tail = stmt;
	*tail = &stmt->next;
}

static void add_registers(struct ptx_slicing *s, struct ptx_stmt ***tail, enum ptx_type type,
			  const char *suffix)
{
	struct ptx_var *var = make_var(s, PTX_REG, type, name_with(s, "%", suffix));

	if (var)
		var->reg_count = REGISTERS;
	add_var(s, tail, var);
}

/* --- Where a function begins ------------------------------------------------------------ */

#define WORDS(...) ((const char *const[3]){__VA_ARGS__})

/* Where word @i of the part lies in the parameter. */
static size_t offset_of(unsigned i)
{
	return i < GRID ? offsetof(struct ptx_part, first[i])
			: offsetof(struct ptx_part, grid[i - GRID]);
}

/* Register @i of the block, from the launch's own and where its part begins. */
static void add_block(struct ptx_slicing *s, struct ptx_stmt ***tail, unsigned i,
		      const char *special)
{
	struct ptx_operand own = named(register_of(s, 'r', i));
	struct ptx_operand spare = named(register_of(s, 'r', 3)), from = named(word(s, special));
	char member[] = {(char)('x' + i), '\0'};

	from.member = word(s, member);
	add_insn(s, tail, WORDS("ld", "param", "u32"),
		 (struct ptx_operand[]){spare, at(name_with(s, "", "part"), offset_of(i))}, 2);
	add_insn(s, tail, WORDS("mov", "u32"), (struct ptx_operand[]){own, from}, 2);
	add_insn(s, tail, WORDS("add", "u32"), (struct ptx_operand[]){own, own, spare}, 3);
}

static void add_loaded(struct ptx_slicing *s, struct ptx_stmt ***tail, unsigned i)
{
	add_insn(s, tail, WORDS("ld", "param", "u32"),
		 (struct ptx_operand[]){named(register_of(s, 'r', i)),
					at(name_with(s, "", "part"), offset_of(i))},
		 2);
}

static void add_number(struct ptx_slicing *s, struct ptx_stmt ***tail, unsigned i, uint64_t value)
{
	add_insn(s, tail, WORDS("mov", "u32"),
		 (struct ptx_operand[]){named(register_of(s, 'r', i)),
					{.kind = PTX_OP_INT, .value = value}},
		 2);
}

static void add_halves(struct ptx_slicing *s, struct ptx_stmt ***tail)
{
	add_registers(s, tail, PTX_B16, "h");
	for (unsigned i = 0; i < REGISTERS; i++)
		add_insn(s, tail, WORDS("cvt", "u16", "u32"),
			 (struct ptx_operand[]){named(register_of(s, 'h', i)),
						named(register_of(s, 'r', i))},
			 2);
}

/* All that the function may read, in front of its body; what it does not read costs nothing. */
static void add_beginning(struct ptx_slicing *s, struct ptx_function *f)
{
	struct ptx_stmt *body = f->body, **tail = &f->body;
	bool narrow = s->has_narrow;

	add_registers(s, &tail, PTX_B32, "r");
	for (unsigned i = 0; i < 3; i++) {
		if (f->entry)
			add_block(s, &tail, i, "%ctaid");
		else
			add_loaded(s, &tail, i);
		add_loaded(s, &tail, GRID + i);
	}
	add_number(s, &tail, 3, 0);
	add_number(s, &tail, GRID + 3, 1);
	if (narrow)
		add_halves(s, &tail);
	*tail = body;
}

/* --- Calls ------------------------------------------------------------------------------- */

/* Whether the function that is called was given the parameter, too. */
static bool is_told(const struct ptx_slicing *s, const struct ptx_insn *insn)
{
	const struct ptx_slice_item *found =
		fgv_ptx_slice_find(s, fgv_ptx_slice_target(insn)->name);

	return s->tells_all && found && found->item->kind == PTX_ITEM_FUNCTION &&
	       found->item->function->defined;
}

static void add_argument(struct ptx_slicing *s, struct ptx_insn *insn, const char *name)
{
	struct ptx_operand *argument =
		make_operand(s, &(struct ptx_operand){.kind = PTX_OP_NAME, .name = name});
	struct ptx_operand *target = fgv_ptx_slice_target(insn), **link;

	if (!target->next || target->next->kind != PTX_OP_PAREN) {
		struct ptx_operand list = {.kind = PTX_OP_PAREN, .next = target->next};

		target->next = make_operand(s, &list);
		insn->operands_count++;
	}
	if (s->status)
		return;
	for (link = &target->next->list; *link;)
		link = &(*link)->next;
	*link = argument;
}

/* A parameter for this call, with what it gets, and then the call; past it. */
static struct ptx_stmt *tell(struct ptx_slicing *s, struct ptx_stmt **link)
{
	static const unsigned told[] = {0, 1, 2, GRID, GRID + 1, GRID + 2};
	struct ptx_stmt *call = *link, **tail = link;
	char suffix[16];
	const char *name;

	snprintf(suffix, sizeof(suffix), "call%u", s->calls++);
	name = name_with(s, "", suffix);
	add_var(s, &tail, make_part(s, name));
	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		add_insn(s, &tail, WORDS("st", "param", "b32"),
			 (struct ptx_operand[]){at(name, offset_of(told[i])),
						named(register_of(s, 'r', told[i]))},
			 2);
	add_argument(s, &call->insn, name);
	*tail = call;
	return call;
}

/* --- All of it --------------------------------------------------------------------------- */

static void rewrite_body(struct ptx_slicing *s, struct ptx_stmt **link)
{
	while (*link && !s->status) {
		struct ptx_stmt *stmt = *link;

		s->line = stmt->line;
		if (stmt->kind == PTX_STMT_BLOCK)
			rewrite_body(s, &stmt->block);
		if (stmt->kind == PTX_STMT_INSN) {
			replace_const(s, &stmt->insn);
			if (!strcmp(stmt->insn.opcode, "call") && is_told(s, &stmt->insn))
				stmt = tell(s, link);
			replace_in_insn(s, stmt);
		}
		link = &stmt->next;
	}
}

static void rewrite_function(struct ptx_slicing *s, struct ptx_function *f)
{
	struct ptx_var **end = &f->params;

	s->line = f->line;
	s->has_registers = s->has_narrow = false;
	s->calls = 0;
	while (*end)
		end = &(*end)->next;
	*end = make_part(s, name_with(s, "", "part"));
	rewrite_body(s, &f->body);
	if (s->has_registers && !s->status)
		add_beginning(s, f);
}

static bool operands_depend(const struct ptx_operand *op)
{
	for (; op; op = op->next) {
		if (first_of(op) >= 0 || operands_depend(op->list) || operands_depend(op->pipe))
			return true;
	}
	return false;
}

static bool depends(const struct ptx_stmt *stmt)
{
	for (; stmt; stmt = stmt->next) {
		if ((stmt->kind == PTX_STMT_INSN && operands_depend(stmt->insn.operands)) ||
		    (stmt->kind == PTX_STMT_BLOCK && depends(stmt->block)))
			return true;
	}
	return false;
}

void fgv_ptx_slice_rewrite(struct ptx_slicing *s)
{
	struct ptx_item *item;

	for (item = s->module->items; item; item = item->next) {
		if (item->kind == PTX_ITEM_FUNCTION && !item->function->entry)
			s->tells_all |= depends(item->function->body);
	}
	for (item = s->module->items; item && !s->status; item = item->next) {
		struct ptx_function *f = item->kind == PTX_ITEM_FUNCTION ? item->function : NULL;

		if (!f)
			continue;
		if (f->entry ||
		    (s->tells_all && fgv_ptx_slice_find(s, f->name)->item->function->defined))
			rewrite_function(s, f);
		else
			rewrite_body(s, &f->body);
	}
}
