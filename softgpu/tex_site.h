/*
 * A texture or surface instruction, between its lowering and its handler. Places are operands
 * as in struct insn; OPERAND_NONE: there is none.
 */
#ifndef FGV_SOFTGPU_TEX_SITE_H
#define FGV_SOFTGPU_TEX_SITE_H

#include "softgpu/machine.h"

enum surface_mode { SURFACE_TRAP, SURFACE_CLAMP, SURFACE_ZERO };

struct tex_site {
	uint32_t handle;
	uint32_t data[4];
	uint32_t at[3];
	uint32_t layer;
	uint32_t lod;
	unsigned dims; /* coordinates */
	bool is_cube;
	bool is_int;	 /* coordinates, and the level */
	unsigned vec;	 /* elements of a surface access */
	unsigned bytes;	 /* of each in memory, */
	unsigned stride; /* and in a register */
	enum surface_mode mode;
};

#endif
