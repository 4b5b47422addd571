/*
 * tex, suld and sust. Objects are values in registers; coordinates, and the layer before
 * them, follow in the address.
 */
#include "softgpu/lower/lower.h"

#include <string.h>

#include "softgpu/tex_site.h"

static const struct geometry {
	const char *name;
	unsigned dims;
	bool is_layered;
	bool is_cube;
} geometries[] = {
	{"1d", 1, false, false},  {"2d", 2, false, false}, {"3d", 3, false, false},
	{"a1d", 1, true, false},  {"a2d", 2, true, false}, {"cube", 3, false, true},
	{"acube", 3, true, true},
};

static const struct geometry *find_geometry(const struct ptx_insn *insn)
{
	for (size_t i = 0; i < sizeof(geometries) / sizeof(*geometries); i++) {
		if (fgv_lower_has_mod(insn, geometries[i].name))
			return &geometries[i];
	}
	return NULL;
}

static const struct ptx_operand *first_of(const struct ptx_operand *op)
{
	return op && op->kind == PTX_OP_VECTOR ? op->list : op;
}

/* [object, {layer, x, y, z}]: the layer and the coordinates that there are. */
static bool take_place(struct lower *l, const struct ptx_operand *op,
		       const struct geometry *geometry, struct tex_site *site)
{
	struct ptx_operand object = {.kind = PTX_OP_NAME};
	const struct ptx_operand *at;

	if (!op || op->kind != PTX_OP_ADDRESS || !op->name || !op->list || op->list->next) {
		fgv_lower_fail(l, "an object and coordinates expected");
		return false;
	}
	object.name = op->name;
	site->handle = fgv_lower_source(l, &object, 8);
	site->dims = geometry->dims;
	site->is_cube = geometry->is_cube;
	at = first_of(op->list);
	site->layer = OPERAND_NONE;
	if (geometry->is_layered && at) {
		site->layer = fgv_lower_source(l, at, 4);
		at = at->next;
	}
	for (unsigned d = 0; d < geometry->dims; d++, at = at ? at->next : NULL)
		site->at[d] = fgv_lower_source(l, at, 4);
	return !l->failed;
}

/* Kept as long as the program. */
static struct tex_site *new_site(struct lower *l, const struct ptx_insn *insn,
				 const struct geometry **geometry)
{
	struct tex_site *site = fgv_softgpu_pool_get(&l->program->pool, sizeof(*site));

	*geometry = find_geometry(insn);
	if (!site)
		fgv_lower_no_memory(l);
	else if (!*geometry)
		fgv_lower_fail(l, "instruction '%s' with this geometry is not supported",
			       insn->opcode);
	return l->failed ? NULL : site;
}

/* tex.geometry.v4.dtype.ctype {r, g, b, a}, [object, {x, ...}]; with .level, the level behind. */
void fgv_lower_tex(struct lower *l, const struct ptx_insn *insn)
{
	const struct ptx_operand *data = first_of(fgv_lower_operand(insn, 0));
	bool has_level = fgv_lower_has_mod(insn, "level");
	const struct geometry *geometry;
	struct tex_site *site = new_site(l, insn, &geometry);
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (!site)
		return;
	if (m.types_count != 2 || m.vec != 4 || fgv_ptx_type_size(m.types[0]) != 4 ||
	    (m.types[1] != PTX_F32 && m.types[1] != PTX_S32) ||
	    insn->operands_count != 2u + has_level) {
		fgv_lower_fail(l, "this form of tex is not supported");
		return;
	}
	for (unsigned c = 0; c < 4; c++, data = data ? data->next : NULL)
		site->data[c] = fgv_lower_dest(l, data, 4);
	if (!take_place(l, fgv_lower_operand(insn, 1), geometry, site))
		return;
	site->is_int = m.types[1] == PTX_S32;
	site->lod = has_level ? fgv_lower_source(l, fgv_lower_operand(insn, 2), 4) : OPERAND_NONE;
	fgv_lower_emit(l, OP_tex)->insn.imm = (int64_t)(uintptr_t)site;
}

/* The elements of an access, all in registers of one size. */
static void take_elements(struct lower *l, const struct ptx_operand *op, bool is_store,
			  struct tex_site *site)
{
	const struct ptx_operand *at = first_of(op);
	int size = at ? fgv_lower_reg_size(l, at) : -1;

	site->stride = size > 0 ? (unsigned)size : site->bytes == 1 ? 2 : site->bytes;
	if (site->stride < site->bytes)
		fgv_lower_fail(l, "register narrower than the type");
	for (unsigned k = 0; k < site->vec; k++, at = at ? at->next : NULL)
		site->data[k] = is_store ? fgv_lower_source(l, at, site->stride)
					 : fgv_lower_dest(l, at, site->stride);
}

static enum surface_mode mode_of(const struct ptx_insn *insn)
{
	if (fgv_lower_has_mod(insn, "clamp"))
		return SURFACE_CLAMP;
	return fgv_lower_has_mod(insn, "zero") ? SURFACE_ZERO : SURFACE_TRAP;
}

/* suld.b.geometry.vec.type.mode d, [object, {x, ...}]; sust the other way round. */
static void lower_surface(struct lower *l, const struct ptx_insn *insn, enum op op)
{
	bool is_store = op == OP_sust;
	const struct geometry *geometry;
	struct tex_site *site = new_site(l, insn, &geometry);
	struct mods m;

	fgv_lower_mods(l, insn, &m);
	if (!site)
		return;
	site->bytes = m.types_count == 1 ? fgv_ptx_type_size(m.types[0]) : 0;
	site->vec = m.vec;
	site->mode = mode_of(insn);
	if (!fgv_lower_has_mod(insn, "b") || !site->bytes || geometry->is_cube ||
	    insn->operands_count != 2) {
		fgv_lower_fail(l, "this form of '%s' is not supported", insn->opcode);
		return;
	}
	take_elements(l, fgv_lower_operand(insn, is_store), is_store, site);
	if (take_place(l, fgv_lower_operand(insn, !is_store), geometry, site))
		fgv_lower_emit(l, op)->insn.imm = (int64_t)(uintptr_t)site;
}

void fgv_lower_suld(struct lower *l, const struct ptx_insn *insn)
{
	lower_surface(l, insn, OP_suld);
}

void fgv_lower_sust(struct lower *l, const struct ptx_insn *insn)
{
	lower_surface(l, insn, OP_sust);
}
