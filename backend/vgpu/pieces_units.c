/*
 * Small allocations in one block: which of its units are taken, by bits. The first place with room
 * is the one that is taken.
 */
#include "backend/vgpu/pieces_units.h"

#include <errno.h>
#include <stdlib.h>

#define BITS 64

static uint32_t words(const struct fgv_piece_units *units)
{
	return (units->count + BITS - 1) / BITS;
}

static bool is_set(const uint64_t *bits, uint32_t unit)
{
	return bits[unit / BITS] >> unit % BITS & 1;
}

static void set(uint64_t *bits, uint32_t first, uint32_t count)
{
	for (uint32_t unit = first; unit < first + count; unit++)
		bits[unit / BITS] |= UINT64_C(1) << unit % BITS;
}

static uint32_t units_of(uint64_t bytes)
{
	return (uint32_t)((bytes + FGV_UNIT_BYTES - 1) / FGV_UNIT_BYTES);
}

struct fgv_piece_units *fgv_piece_units_create(uint64_t bytes)
{
	struct fgv_piece_units *units = calloc(1, sizeof(*units));

	if (!units)
		return NULL;
	units->count = (uint32_t)(bytes / FGV_UNIT_BYTES);
	units->taken = calloc(3 * (size_t)words(units), sizeof(*units->taken));
	if (!units->taken) {
		free(units);
		return NULL;
	}
	units->freed = units->taken + words(units);
	units->closed = units->freed + words(units);
	return units;
}

void fgv_piece_units_destroy(struct fgv_piece_units *units)
{
	if (!units)
		return;
	free(units->taken);
	free(units);
}

int fgv_piece_units_take(struct fgv_piece_units *units, uint64_t bytes, uint64_t *offset)
{
	uint32_t wanted = units_of(bytes), run = 0;

	if (wanted > units->count - units->live)
		return -ENOSPC;
	for (uint32_t unit = 0; unit < units->count; unit++) {
		if (unit % BITS == 0 && units->taken[unit / BITS] == UINT64_MAX) {
			run = 0;
			unit += BITS - 1;
			continue;
		}
		run = is_set(units->taken, unit) ? 0 : run + 1;
		if (run < wanted)
			continue;
		set(units->taken, unit + 1 - wanted, wanted);
		units->live += wanted;
		*offset = (uint64_t)(unit + 1 - wanted) * FGV_UNIT_BYTES;
		return 0;
	}
	return -ENOSPC;
}

void fgv_piece_units_free(struct fgv_piece_units *units, uint64_t offset, uint64_t bytes)
{
	uint32_t count = units_of(bytes);

	set(units->freed, (uint32_t)(offset / FGV_UNIT_BYTES), count);
	units->live -= count;
	units->has_freed = true;
}

void fgv_piece_units_close(struct fgv_piece_units *units)
{
	for (uint32_t i = 0; i < words(units); i++) {
		units->closed[i] |= units->freed[i];
		units->freed[i] = 0;
	}
}

void fgv_piece_units_collect(struct fgv_piece_units *units)
{
	units->has_freed = false;
	for (uint32_t i = 0; i < words(units); i++) {
		units->taken[i] &= ~units->closed[i];
		units->closed[i] = 0;
		units->has_freed |= units->freed[i] != 0;
	}
}
