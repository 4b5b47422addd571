/*
 * An instruction's modifiers, read into struct mods. None is passed over: those of an opcode with a
 * lowering of its own must be among the words that it knows; those of an arithmetic
 * one become a part of the operation's name or are refused there.
 */
#include "softgpu/lower/lower.h"

#include <stdio.h>
#include <string.h>

static bool take_round(struct mods *m, const char *mod)
{
	size_t length = strlen(mod);

	if (mod[0] != 'r' || length > 3 || length < 2 || !strchr("nzmp", mod[1]))
		return false;
	if (length == 3 && mod[2] != 'i')
		return false;
	m->round = mod[1];
	m->integral = length == 3;
	return true;
}

static bool take_flag(struct mods *m, const char *mod)
{
	const struct {
		const char *word;
		bool *flag;
	} flags[] = {
		{"ftz", &m->ftz},     {"sat", &m->sat},		{"satfinite", &m->satfinite},
		{"relu", &m->relu},   {"approx", &m->approx},	{"full", &m->approx},
		{"uni", &m->control}, {"aligned", &m->control}, {"sync", &m->control},
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (!strcmp(flags[i].word, mod)) {
			*flags[i].flag = true;
			return true;
		}
	}
	return false;
}

static void take_mod(struct lower *l, struct mods *m, const char *mod)
{
	enum ptx_type type = fgv_ptx_type_find(mod);
	size_t used = strlen(m->rest);

	if (type != PTX_NOTYPE && m->types_count < 4) {
		m->types[m->types_count++] = type;
	} else if (!strcmp(mod, "v2") || !strcmp(mod, "v4")) {
		m->vec = (unsigned)(mod[1] - '0');
	} else if (fgv_ptx_space_find(mod) != PTX_NOSPACE && m->space == PTX_NOSPACE) {
		m->space = fgv_ptx_space_find(mod);
	} else if (!take_flag(m, mod) && !take_round(m, mod)) {
		int n = snprintf(m->rest + used, sizeof(m->rest) - used, "_%s", mod);

		if (n < 0 || (size_t)n >= sizeof(m->rest) - used)
			fgv_lower_fail(l, "modifiers too long");
	}
}

void fgv_lower_mods(struct lower *l, const struct ptx_insn *insn, struct mods *m)
{
	memset(m, 0, sizeof(*m));
	m->vec = 1;
	for (unsigned i = 0; i < insn->mods_count; i++)
		take_mod(l, m, insn->mods[i]);
}

bool fgv_lower_has_mod(const struct ptx_insn *insn, const char *mod)
{
	for (unsigned i = 0; i < insn->mods_count; i++) {
		if (!strcmp(insn->mods[i], mod))
			return true;
	}
	return false;
}

/* Is @mod one of the words, which blanks part? "L2::*" stands for all that begin so. */
static bool is_among(const char *words, const char *mod)
{
	size_t length = strlen(mod);

	for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ') {
		size_t n = strcspn(w, " ");

		if (n == length && !memcmp(w, mod, n))
			return true;
		if (n && w[n - 1] == '*' && length >= n - 1 && !memcmp(w, mod, n - 1))
			return true;
	}
	return false;
}

bool fgv_lower_check_mods(struct lower *l, const struct ptx_insn *insn, const char *words)
{
	for (unsigned i = 0; i < insn->mods_count; i++) {
		const char *mod = insn->mods[i];

		if (fgv_ptx_type_find(mod) == PTX_NOTYPE && !is_among(words, mod)) {
			fgv_lower_fail(l, "'.%s' of '%s' is not supported", mod, insn->opcode);
			return false;
		}
	}
	return true;
}
