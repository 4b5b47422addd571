/* Calls of what CUDA provides; see system.h. */
#include "softgpu/lower/system.h"

#include <string.h>

static const struct system_call {
	const char *name;
	enum op op;
	uint8_t returned; /* bytes of the result */
	uint8_t args_count;
	uint8_t args[5]; /* bytes of each */
} system_calls[] = {
	{"vprintf", OP_vprintf, 4, 2, {8, 8}},
	{"__assertfail", OP_assertfail, 0, 5, {8, 8, 4, 8, 8}},
	{"malloc", OP_malloc, 8, 1, {8}},
	{"free", OP_free, 0, 1, {8}},
	{"cudaGraphSetConditional", OP_set_condition, 0, 2, {8, 4}},
};

static bool fits(const struct call_site *site, const struct system_call *call)
{
	if (site->args_count != call->args_count || site->returned.bytes > call->returned)
		return false;
	for (uint32_t i = 0; i < site->args_count; i++) {
		if (site->args[i].bytes != call->args[i])
			return false;
	}
	return true;
}

bool fgv_lower_system_call(struct lower *l, const struct call_site *site, const char *name)
{
	for (size_t i = 0; i < sizeof(system_calls) / sizeof(*system_calls); i++) {
		const struct system_call *call = &system_calls[i];

		if (strcmp(call->name, name) != 0 || !fits(site, call))
			continue;
		if (call->op == OP_malloc)
			l->program->uses_heap = true;
		fgv_lower_emit(l, call->op)->insn.imm = (int64_t)(uintptr_t)site;
		return true;
	}
	return false;
}
