/*
 * The printer: a tree as text, one statement a line. Numbers are written so that
 * they read back to the same bits.
 */
#include "ptx/ptx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_linkage(FILE *out, unsigned linkage)
{
	if (linkage & PTX_EXTERN)
		fputs(".extern ", out);
	if (linkage & PTX_VISIBLE)
		fputs(".visible ", out);
	if (linkage & PTX_WEAK)
		fputs(".weak ", out);
	if (linkage & PTX_COMMON)
		fputs(".common ", out);
}

static void print_displacement(FILE *out, uint64_t value)
{
	if (value)
		fprintf(out, "+%" PRId64, (int64_t)value);
}

static void print_symbol(FILE *out, const struct ptx_init *init)
{
	if (init->mask)
		fprintf(out, "0x%" PRIx64 "(", init->mask);
	if (init->generic)
		fprintf(out, "generic(%s)", init->symbol);
	else
		fputs(init->symbol, out);
	print_displacement(out, init->value);
	if (init->mask)
		fputc(')', out);
}

static void print_init(FILE *out, const struct ptx_init *init)
{
	switch (init->kind) {
	case PTX_INIT_LIST:
		fputc('{', out);
		for (const struct ptx_init *i = init->list; i; i = i->next) {
			print_init(out, i);
			if (i->next)
				fputs(", ", out);
		}
		fputc('}', out);
		break;
	case PTX_INIT_INT:
		fprintf(out, "%" PRId64, (int64_t)init->value);
		break;
	case PTX_INIT_F32:
		fprintf(out, "0f%08" PRIX64, init->value);
		break;
	case PTX_INIT_F64:
		fprintf(out, "0d%016" PRIX64, init->value);
		break;
	case PTX_INIT_SYMBOL:
		print_symbol(out, init);
		break;
	}
}

static void print_var(FILE *out, const struct ptx_var *var)
{
	print_linkage(out, var->linkage);
	fprintf(out, ".%s ", fgv_ptx_space_name(var->space));
	if (var->managed)
		fputs(".attribute(.managed) ", out);
	if (var->align)
		fprintf(out, ".align %" PRIu32 " ", var->align);
	if (var->vector > 1)
		fprintf(out, ".v%" PRIu32 " ", var->vector);
	fprintf(out, ".%s ", fgv_ptx_type_name(var->type));
	if (var->ptr) {
		fputs(".ptr ", out);
		if (var->ptr_space != PTX_NOSPACE)
			fprintf(out, ".%s ", fgv_ptx_space_name(var->ptr_space));
		if (var->ptr_align)
			fprintf(out, ".align %" PRIu32 " ", var->ptr_align);
	}
	fputs(var->name, out);
	if (var->reg_count)
		fprintf(out, "<%" PRIu32 ">", var->reg_count);
	for (uint32_t i = 0; i < var->dims_count; i++) {
		if (var->dims[i])
			fprintf(out, "[%" PRIu64 "]", var->dims[i]);
		else
			fputs(i ? "[0]" : "[]", out);
	}
	if (var->init) {
		fputs(" = ", out);
		print_init(out, var->init);
	}
}

static void print_vars(FILE *out, const struct ptx_var *var)
{
	fputc('(', out);
	for (; var; var = var->next) {
		print_var(out, var);
		if (var->next)
			fputs(", ", out);
	}
	fputc(')', out);
}

static void print_operands(FILE *out, const struct ptx_operand *op);

static void print_name(FILE *out, const struct ptx_operand *op)
{
	fputs(op->name, out);
	if (op->member)
		fprintf(out, ".%s", op->member);
	print_displacement(out, op->value);
}

static void print_address(FILE *out, const struct ptx_operand *op)
{
	fputc('[', out);
	if (op->name)
		print_name(out, op);
	else
		fprintf(out, "%" PRId64, (int64_t)op->value);
	if (op->list) {
		fputs(", ", out);
		print_operands(out, op->list);
	}
	fputc(']', out);
}

static void print_operand(FILE *out, const struct ptx_operand *op)
{
	if (op->negated)
		fputc('!', out);
	switch (op->kind) {
	case PTX_OP_NAME:
		print_name(out, op);
		break;
	case PTX_OP_INT:
		fprintf(out, "%" PRId64, (int64_t)op->value);
		break;
	case PTX_OP_F32:
		fprintf(out, "0f%08" PRIX64, op->value);
		break;
	case PTX_OP_F64:
		fprintf(out, "0d%016" PRIX64, op->value);
		break;
	case PTX_OP_ADDRESS:
		print_address(out, op);
		break;
	case PTX_OP_VECTOR:
	case PTX_OP_PAREN:
		fputc(op->kind == PTX_OP_VECTOR ? '{' : '(', out);
		print_operands(out, op->list);
		fputc(op->kind == PTX_OP_VECTOR ? '}' : ')', out);
		break;
	case PTX_OP_SINK:
		fputc('_', out);
		break;
	}
	if (op->pipe) {
		fputc('|', out);
		print_operand(out, op->pipe);
	}
}

static void print_operands(FILE *out, const struct ptx_operand *op)
{
	for (; op; op = op->next) {
		print_operand(out, op);
		if (op->next)
			fputs(", ", out);
	}
}

static void print_insn(FILE *out, const struct ptx_insn *insn)
{
	if (insn->guard)
		fprintf(out, "@%s%s ", insn->guard_negated ? "!" : "", insn->guard);
	fputs(insn->opcode, out);
	for (unsigned i = 0; i < insn->mods_count; i++)
		fprintf(out, ".%s", insn->mods[i]);
	if (insn->operands)
		fputc(' ', out);
	print_operands(out, insn->operands);
	fputs(";\n", out);
}

static void print_prototype(FILE *out, const struct ptx_prototype *prototype)
{
	fprintf(out, "%s: .callprototype ", prototype->name);
	print_vars(out, prototype->returns);
	fputs(" _ ", out);
	print_vars(out, prototype->params);
	fprintf(out, "%s;\n", prototype->noreturn ? " .noreturn" : "");
}

static void print_body(FILE *out, const struct ptx_stmt *stmt)
{
	fputs("{\n", out);
	for (; stmt; stmt = stmt->next) {
		switch (stmt->kind) {
		case PTX_STMT_INSN:
			print_insn(out, &stmt->insn);
			break;
		case PTX_STMT_LABEL:
			fprintf(out, "%s:\n", stmt->label);
			break;
		case PTX_STMT_VAR:
			print_var(out, stmt->var);
			fputs(";\n", out);
			break;
		case PTX_STMT_BLOCK:
			print_body(out, stmt->block);
			break;
		case PTX_STMT_TARGETS:
			fprintf(out, "%s: .%s ", stmt->targets.name,
				stmt->targets.calls ? "calltargets" : "branchtargets");
			print_operands(out, stmt->targets.list);
			fputs(";\n", out);
			break;
		case PTX_STMT_PROTOTYPE:
			print_prototype(out, &stmt->prototype);
			break;
		}
	}
	fputs("}\n", out);
}

static void print_function(FILE *out, const struct ptx_function *f)
{
	print_linkage(out, f->linkage);
	fputs(f->entry ? ".entry " : ".func ", out);
	if (f->returns) {
		print_vars(out, f->returns);
		fputc(' ', out);
	}
	fputs(f->name, out);
	print_vars(out, f->params);
	for (const struct ptx_directive *d = f->directives; d; d = d->next) {
		fprintf(out, "\n.%s", d->name);
		for (unsigned i = 0; i < d->values_count; i++)
			fprintf(out, "%s%" PRIu64, i ? ", " : " ", d->values[i]);
	}
	if (f->defined) {
		fputc('\n', out);
		print_body(out, f->body);
	} else {
		fputs(";\n", out);
	}
}

static void print_module(FILE *out, const struct ptx_module *module)
{
	fprintf(out, ".version %u.%u\n.target %s\n.address_size %u\n", module->version_major,
		module->version_minor, module->target, module->address_size);
	for (const struct ptx_item *item = module->items; item; item = item->next) {
		switch (item->kind) {
		case PTX_ITEM_VAR:
			print_var(out, item->var);
			fputs(";\n", out);
			break;
		case PTX_ITEM_FUNCTION:
			print_function(out, item->function);
			break;
		case PTX_ITEM_ALIAS:
			fprintf(out, ".alias %s, %s;\n", item->alias.name, item->alias.target);
			break;
		}
	}
}

int fgv_ptx_print(const struct ptx_module *module, char **text, size_t *length)
{
	char *buffer = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&buffer, &size);
	bool failed;

	if (!out)
		return -ENOMEM;
	print_module(out, module);
	failed = ferror(out) != 0;
	failed |= fclose(out) != 0;
	if (failed) {
		free(buffer);
		return -ENOMEM;
	}
	*text = buffer;
	*length = size;
	return 0;
}
