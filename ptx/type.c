/*
 * Types and state spaces: names, sizes, and the size of a declared variable.
 */
#include "ptx/ptx.h"

#include <string.h>

static const struct {
	const char *name;
	unsigned size;
} types[PTX_TYPES] = {
	[PTX_NOTYPE] = {"", 0},		[PTX_B8] = {"b8", 1},
	[PTX_B16] = {"b16", 2},		[PTX_B32] = {"b32", 4},
	[PTX_B64] = {"b64", 8},		[PTX_B128] = {"b128", 16},
	[PTX_U8] = {"u8", 1},		[PTX_U16] = {"u16", 2},
	[PTX_U32] = {"u32", 4},		[PTX_U64] = {"u64", 8},
	[PTX_S8] = {"s8", 1},		[PTX_S16] = {"s16", 2},
	[PTX_S32] = {"s32", 4},		[PTX_S64] = {"s64", 8},
	[PTX_F16] = {"f16", 2},		[PTX_F16X2] = {"f16x2", 4},
	[PTX_BF16] = {"bf16", 2},	[PTX_BF16X2] = {"bf16x2", 4},
	[PTX_TF32] = {"tf32", 4},	[PTX_U16X2] = {"u16x2", 4},
	[PTX_S16X2] = {"s16x2", 4},	[PTX_E4M3X2] = {"e4m3x2", 2},
	[PTX_E5M2X2] = {"e5m2x2", 2},	[PTX_F32] = {"f32", 4},
	[PTX_F64] = {"f64", 8},		[PTX_PRED] = {"pred", 0},
	[PTX_TEXREF] = {"texref", 0},	[PTX_SAMPLERREF] = {"samplerref", 0},
	[PTX_SURFREF] = {"surfref", 0},
};

static const char *const spaces[PTX_SPACES] = {
	[PTX_NOSPACE] = "",	 [PTX_REG] = "reg",	[PTX_CONST] = "const",
	[PTX_GLOBAL] = "global", [PTX_LOCAL] = "local", [PTX_PARAM] = "param",
	[PTX_SHARED] = "shared", [PTX_TEX] = "tex",
};

unsigned fgv_ptx_type_size(enum ptx_type type)
{
	return types[type].size;
}

const char *fgv_ptx_type_name(enum ptx_type type)
{
	return types[type].name;
}

enum ptx_type fgv_ptx_type_find(const char *name)
{
	for (int i = PTX_NOTYPE + 1; i < PTX_TYPES; i++) {
		if (types[i].name[0] == name[0] && !strcmp(types[i].name, name))
			return (enum ptx_type)i;
	}
	return PTX_NOTYPE;
}

const char *fgv_ptx_space_name(enum ptx_space space)
{
	return spaces[space];
}

enum ptx_space fgv_ptx_space_find(const char *name)
{
	const char *colons = strstr(name, "::");
	size_t length = colons ? (size_t)(colons - name) : strlen(name);

	for (int i = PTX_NOSPACE + 1; i < PTX_SPACES; i++) {
		if (!strncmp(spaces[i], name, length) && !spaces[i][length])
			return (enum ptx_space)i;
	}
	return PTX_NOSPACE;
}

uint64_t fgv_ptx_var_size(const struct ptx_var *var)
{
	uint64_t size = (uint64_t)fgv_ptx_type_size(var->type) * (var->vector ? var->vector : 1);

	for (uint32_t i = 0; i < var->dims_count; i++) {
		if (var->dims[i] && size > FGV_PTX_SIZE_MAX / var->dims[i])
			return FGV_PTX_SIZE_MAX;
		size *= var->dims[i];
	}
	return size;
}

uint32_t fgv_ptx_var_align(const struct ptx_var *var)
{
	unsigned natural = fgv_ptx_type_size(var->type) * (var->vector ? var->vector : 1);

	if (var->align)
		return var->align;
	return natural ? natural : 1;
}
