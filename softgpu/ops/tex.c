/*
 * Handlers of textures and surfaces, lane by lane; imm is the instruction (tex_site.h). An
 * object that is none faults as an address that is none does.
 */
#include "softgpu/tex_site.h"
#include "softgpu/texture.h"

#include "softgpu/ops/lanes.h"

static const struct texture *find(struct warp *w, const struct tex_site *site, unsigned lane,
				  bool is_surface)
{
	const struct texture *texture =
		fgv_textures_find(w->block->textures, ROW(u64, site->handle)[lane]);

	return texture && texture->is_surface == is_surface ? texture : NULL;
}

static int32_t integer_at(const struct warp *w, uint32_t place, unsigned lane)
{
	return place == OPERAND_NONE ? 0 : ROW(s32, place)[lane];
}

static float level_at(const struct warp *w, const struct tex_site *site, unsigned lane)
{
	if (site->lod == OPERAND_NONE)
		return 0;
	return site->is_int ? (float)ROW(s32, site->lod)[lane] : ROW(f32, site->lod)[lane];
}

static void find_point(const struct warp *w, const struct tex_site *site, unsigned lane,
		       struct texture_point *point)
{
	float direction[3];

	point->is_int = site->is_int;
	point->dims = site->dims;
	point->slice = (uint32_t)integer_at(w, site->layer, lane);
	point->lod = level_at(w, site, lane);
	for (unsigned d = 0; d < site->dims; d++)
		point->at[d].i = ROW(s32, site->at[d])[lane];
	if (site->is_cube) {
		for (unsigned d = 0; d < 3; d++)
			direction[d] = point->at[d].f;
		point->dims = 2;
		point->slice = point->slice * 6 +
			       fgv_texture_face(direction, &point->at[0].f, &point->at[1].f);
	}
}

HANDLER(tex)
{
	const struct tex_site *site = (const void *)(uintptr_t)in->imm;
	const u64 *handles = ROW(u64, site->handle);
	const struct texture *texture = NULL;

	for (u32 left = w->active; left; left &= left - 1) {
		unsigned lane = (unsigned)__builtin_ctz(left);
		struct texture_point point;
		uint32_t out[4];

		/* Nearly always that of the lane before. */
		if (!texture || texture->handle != handles[lane])
			texture = find(w, site, lane, false);
		find_point(w, site, lane, &point);
		if (!texture || !fgv_texture_sample(texture, w->view, &point, out))
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
		for (unsigned c = 0; c < 4; c++)
			ROW(u32, site->data[c])[lane] = out[c];
	}
	return in + 1;
}

/* Brings @value into [0, @limit - @size], or says that it is not there. */
static bool bring_inside(int64_t *value, int64_t size, int64_t limit, enum surface_mode mode)
{
	if (*value >= 0 && *value <= limit - size)
		return true;
	*value = *value < 0 ? 0 : limit - size;
	return mode == SURFACE_CLAMP && limit >= size;
}

enum surface_place { PLACE_FOUND, PLACE_OUTSIDE, PLACE_FAULT };

/* Where a lane's access goes; x counts bytes. */
static enum surface_place find_place(struct warp *w, const struct tex_site *site, unsigned lane,
				     uint64_t *address)
{
	const struct texture *surface = find(w, site, lane, true);
	unsigned bytes = site->bytes * site->vec;
	const struct texture_level *level;
	int64_t x, y, z;
	bool inside;

	if (!surface)
		return PLACE_FAULT;
	level = &surface->levels[0];
	x = integer_at(w, site->at[0], lane);
	y = site->dims > 1 ? integer_at(w, site->at[1], lane) : 0;
	z = site->dims > 2 ? integer_at(w, site->at[2], lane) : integer_at(w, site->layer, lane);
	inside = bring_inside(&x, bytes, level->size[0] * surface->texel_bytes, site->mode);
	inside &= bring_inside(&y, 1, level->size[1], site->mode);
	inside &= bring_inside(&z, 1, level->size[2], site->mode);
	if (!inside)
		return site->mode == SURFACE_TRAP ? PLACE_FAULT : PLACE_OUTSIDE;
	*address = level->address + (uint64_t)x + (uint64_t)y * level->pitch +
		   (uint64_t)z * level->slice;
	return fgv_softgpu_view_has(w->view, *address, *address + bytes) ? PLACE_FOUND
									 : PLACE_FAULT;
}

static void *element(const struct warp *w, const struct tex_site *site, unsigned k, unsigned lane)
{
	return (uint8_t *)operand(w, site->data[k]) + lane * site->stride;
}

HANDLER(suld)
{
	const struct tex_site *site = (const void *)(uintptr_t)in->imm;

	for (u32 left = w->active; left; left &= left - 1) {
		unsigned lane = (unsigned)__builtin_ctz(left);
		uint64_t address;
		enum surface_place place = find_place(w, site, lane, &address);

		if (place == PLACE_FAULT)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_LAUNCH_FAILED);
		for (unsigned k = 0; k < site->vec; k++) {
			memset(element(w, site, k, lane), 0, site->stride);
			if (place == PLACE_FOUND)
				memcpy(element(w, site, k, lane),
				       (const uint8_t *)(uintptr_t)address + k * site->bytes,
				       site->bytes);
		}
	}
	return in + 1;
}

HANDLER(sust)
{
	const struct tex_site *site = (const void *)(uintptr_t)in->imm;

	for (u32 left = w->active; left; left &= left - 1) {
		unsigned lane = (unsigned)__builtin_ctz(left);
		uint64_t address;
		enum surface_place place = find_place(w, site, lane, &address);

		if (place == PLACE_FAULT)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_LAUNCH_FAILED);
		for (unsigned k = 0; k < site->vec && place == PLACE_FOUND; k++)
			memcpy((uint8_t *)(uintptr_t)address + k * site->bytes,
			       element(w, site, k, lane), site->bytes);
	}
	return in + 1;
}

void fgv_softgpu_fill_tex(handler *table)
{
	table[OP_tex] = op_tex;
	table[OP_suld] = op_suld;
	table[OP_sust] = op_sust;
}
