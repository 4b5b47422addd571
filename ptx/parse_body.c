/*
 * Function bodies: blocks, labels, instructions and their operands.
 */
#include "ptx/internal.h"

#include <string.h>

static struct ptx_operand *parse_operand(struct parser *p);

/* Comma-separated operands up to @close, which is taken. */
static struct ptx_operand *parse_list(struct parser *p, char close)
{
	struct ptx_operand *list = NULL;
	struct ptx_operand **tail = &list;

	if (!fgv_ptx_enter(p))
		return NULL;
	while (!fgv_ptx_is_punct(p, close) && !p->status) {
		*tail = parse_operand(p);
		if (!*tail)
			break;
		tail = &(*tail)->next;
		if (!fgv_ptx_take_punct(p, ','))
			break;
	}
	fgv_ptx_expect(p, close);
	fgv_ptx_leave(p);
	return list;
}

/* "+8", "-8", "+-8"; nothing where none follows. */
static void take_displacement(struct parser *p, struct ptx_operand *op)
{
	bool minus = fgv_ptx_is_punct(p, '-');

	if (!minus && !fgv_ptx_is_punct(p, '+'))
		return;
	fgv_ptx_lex_next(p);
	op->value = fgv_ptx_take_int(p);
	if (minus)
		op->value = -op->value;
}

static void take_number(struct parser *p, struct ptx_operand *op)
{
	bool minus = fgv_ptx_is_punct(p, '-');

	if (minus)
		fgv_ptx_lex_next(p);
	op->value = p->token.value;
	if (p->token.kind == T_F32) {
		op->kind = PTX_OP_F32;
		op->value ^= minus ? 0x80000000ull : 0;
		fgv_ptx_lex_next(p);
	} else if (p->token.kind == T_F64) {
		op->kind = PTX_OP_F64;
		op->value ^= minus ? 1ull << 63 : 0;
		fgv_ptx_lex_next(p);
	} else {
		op->kind = PTX_OP_INT;
		op->value = fgv_ptx_take_int(p);
		if (minus)
			op->value = -op->value;
	}
}

static void take_name(struct parser *p, struct ptx_operand *op)
{
	if (p->token.length == 1 && p->token.text[0] == '_') {
		op->kind = PTX_OP_SINK;
		fgv_ptx_lex_next(p);
		return;
	}
	op->kind = PTX_OP_NAME;
	op->name = fgv_ptx_take_name(p);
	if (p->token.kind == T_DOT) {
		op->member = fgv_ptx_intern(p->module, p->token.text, p->token.length);
		if (!op->member)
			fgv_ptx_fail_memory(p);
		fgv_ptx_lex_next(p);
	}
	take_displacement(p, op);
}

/* What is between [ and ]. */
static void take_address(struct parser *p, struct ptx_operand *op)
{
	if (p->token.kind == T_NAME)
		take_name(p, op);
	else
		take_number(p, op);
	if (op->kind != PTX_OP_NAME && op->kind != PTX_OP_INT)
		fgv_ptx_fail(p, "malformed address");
	op->kind = PTX_OP_ADDRESS;
	if (fgv_ptx_take_punct(p, ','))
		op->list = parse_list(p, ']');
	else
		fgv_ptx_expect(p, ']');
}

static void take_pipe(struct parser *p, struct ptx_operand *op)
{
	if (!fgv_ptx_take_punct(p, '|'))
		return;
	op->pipe = fgv_ptx_get(p, sizeof(*op->pipe));
	if (!op->pipe)
		return;
	if (p->token.kind == T_NAME)
		take_name(p, op->pipe);
	else
		fgv_ptx_fail(p, "register expected after '|'");
}

static struct ptx_operand *parse_operand(struct parser *p)
{
	struct ptx_operand *op = fgv_ptx_get(p, sizeof(*op));

	if (!op)
		return NULL;
	op->negated = fgv_ptx_take_punct(p, '!');
	if (fgv_ptx_take_punct(p, '[')) {
		take_address(p, op);
	} else if (fgv_ptx_take_punct(p, '{')) {
		op->kind = PTX_OP_VECTOR;
		op->list = parse_list(p, '}');
	} else if (fgv_ptx_take_punct(p, '(')) {
		op->kind = PTX_OP_PAREN;
		op->list = parse_list(p, ')');
	} else if (p->token.kind == T_NAME) {
		take_name(p, op);
	} else {
		take_number(p, op);
	}
	take_pipe(p, op);
	return op;
}

static void take_mods(struct parser *p, struct ptx_insn *insn)
{
	const char *mods[FGV_PTX_MODS_MAX];

	while (p->token.kind == T_DOT) {
		if (insn->mods_count == FGV_PTX_MODS_MAX) {
			fgv_ptx_fail(p, "more than %d modifiers", FGV_PTX_MODS_MAX);
			return;
		}
		mods[insn->mods_count] = fgv_ptx_intern(p->module, p->token.text, p->token.length);
		if (!mods[insn->mods_count++]) {
			fgv_ptx_fail_memory(p);
			return;
		}
		fgv_ptx_lex_next(p);
	}
	insn->mods = fgv_ptx_get(p, sizeof(*mods) * insn->mods_count);
	if (insn->mods && insn->mods_count)
		memcpy(insn->mods, mods, sizeof(*mods) * insn->mods_count);
}

static void take_operands(struct parser *p, struct ptx_insn *insn)
{
	struct ptx_operand **tail = &insn->operands;

	while (!fgv_ptx_is_punct(p, ';') && !p->status) {
		*tail = parse_operand(p);
		if (!*tail)
			return;
		tail = &(*tail)->next;
		insn->operands_count++;
		if (!fgv_ptx_take_punct(p, ','))
			break;
	}
	fgv_ptx_expect(p, ';');
}

static void parse_prototype(struct parser *p, struct ptx_stmt *stmt, const char *name)
{
	stmt->kind = PTX_STMT_PROTOTYPE;
	stmt->prototype.name = name;
	fgv_ptx_lex_next(p);
	if (fgv_ptx_is_punct(p, '('))
		stmt->prototype.returns = fgv_ptx_parse_params(p);
	fgv_ptx_take_name(p);
	if (fgv_ptx_is_punct(p, '('))
		stmt->prototype.params = fgv_ptx_parse_params(p);
	while (p->token.kind == T_DOT) {
		if (fgv_ptx_is_dot(p, "noreturn"))
			stmt->prototype.noreturn = true;
		fgv_ptx_lex_next(p);
		while (p->token.kind == T_INT)
			fgv_ptx_lex_next(p);
	}
	fgv_ptx_expect(p, ';');
}

static void parse_targets(struct parser *p, struct ptx_stmt *stmt, const char *name)
{
	stmt->kind = PTX_STMT_TARGETS;
	stmt->targets.name = name;
	stmt->targets.calls = fgv_ptx_is_dot(p, "calltargets");
	fgv_ptx_lex_next(p);
	stmt->targets.list = parse_list(p, ';');
}

/* After "name": a label, a table that is named by one, or an instruction. */
static void parse_named(struct parser *p, struct ptx_stmt *stmt)
{
	const char *name = fgv_ptx_take_name(p);

	if (!stmt->insn.guard && fgv_ptx_take_punct(p, ':')) {
		if (fgv_ptx_is_dot(p, "branchtargets") || fgv_ptx_is_dot(p, "calltargets")) {
			parse_targets(p, stmt, name);
		} else if (fgv_ptx_is_dot(p, "callprototype")) {
			parse_prototype(p, stmt, name);
		} else {
			stmt->kind = PTX_STMT_LABEL;
			stmt->label = name;
		}
		return;
	}
	stmt->kind = PTX_STMT_INSN;
	stmt->insn.opcode = name;
	take_mods(p, &stmt->insn);
	take_operands(p, &stmt->insn);
}

static void parse_guarded(struct parser *p, struct ptx_stmt *stmt)
{
	stmt->insn.guard_negated = fgv_ptx_take_punct(p, '!');
	stmt->insn.guard = fgv_ptx_take_name(p);
	parse_named(p, stmt);
}

/* One declaration makes as many statements as it has names. */
static struct ptx_stmt **add_vars(struct parser *p, struct ptx_stmt **tail)
{
	struct ptx_var *var = fgv_ptx_parse_vars(p, 0);

	fgv_ptx_expect(p, ';');
	while (var) {
		struct ptx_stmt *stmt = fgv_ptx_get(p, sizeof(*stmt));
		struct ptx_var *next = var->next;

		if (!stmt)
			break;
		stmt->kind = PTX_STMT_VAR;
		stmt->line = var->line;
		stmt->var = var;
		var->next = NULL;
		*tail = stmt;
		tail = &stmt->next;
		var = next;
	}
	return tail;
}

static struct ptx_stmt *parse_stmt(struct parser *p)
{
	struct ptx_stmt *stmt = fgv_ptx_get(p, sizeof(*stmt));

	if (!stmt)
		return NULL;
	stmt->line = p->token.line;
	if (fgv_ptx_take_punct(p, '{')) {
		stmt->kind = PTX_STMT_BLOCK;
		if (fgv_ptx_enter(p))
			stmt->block = fgv_ptx_parse_body(p);
		fgv_ptx_leave(p);
	} else if (fgv_ptx_take_punct(p, '@')) {
		parse_guarded(p, stmt);
	} else {
		parse_named(p, stmt);
	}
	return stmt;
}

struct ptx_stmt *fgv_ptx_parse_body(struct parser *p)
{
	struct ptx_stmt *body = NULL;
	struct ptx_stmt **tail = &body;

	while (!fgv_ptx_is_punct(p, '}') && !p->status) {
		if (p->token.kind == T_END) {
			fgv_ptx_fail(p, "text ends inside a block");
		} else if (fgv_ptx_starts_var(p)) {
			tail = add_vars(p, tail);
		} else if (!fgv_ptx_skip_debug(p) && !fgv_ptx_take_punct(p, ';')) {
			*tail = parse_stmt(p);
			if (*tail)
				tail = &(*tail)->next;
		}
	}
	fgv_ptx_expect(p, '}');
	return body;
}
