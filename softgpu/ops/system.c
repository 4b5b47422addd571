/*
 * Handlers of what CUDA provides to kernels; see system.h. Each goes lane by lane:
 * imm is the call, with the places of its arguments and its result.
 */
#include "softgpu/format.h"
#include "softgpu/lower/system.h"

#include "softgpu/ops/lanes.h"

#include <stdio.h>

#define PART_MAX 1024 /* characters of each part of an assertion */

static u64 place_address(const struct warp *w, const struct param_place *place)
{
	return LOCAL_WINDOW + w->local + place->offset;
}

/* Arguments lie in the frame, so they can be read. */
static u64 argument(struct warp *w, const struct call_site *site, unsigned index, unsigned lane)
{
	u64 value = 0;

	fgv_softgpu_lane_read(w, place_address(w, &site->args[index]), site->args[index].bytes,
			      lane, &value);
	return value;
}

static void give_back(struct warp *w, const struct call_site *site, unsigned lane, u64 value)
{
	if (site->returned.bytes)
		fgv_softgpu_lane_write(w, place_address(w, &site->returned), site->returned.bytes,
				       lane, &value);
}

/* What printf returns; a negative value where it could not print. *faulty: a bad address. */
static int print(struct warp *w, const struct call_site *site, unsigned lane, bool *faulty)
{
	struct output *output = &w->block->system->output;
	u64 format = argument(w, site, 0, lane);
	char text[FGV_OUTPUT_RECORD_MAX];
	struct formatted done;

	*faulty = false;
	if (!format)
		return -1;
	done = fgv_softgpu_format(w, lane, format, argument(w, site, 1, lane), text, sizeof(text));
	*faulty = done.faulty;
	if (done.len && !fgv_softgpu_output_add(output, 0, text, done.len))
		return -2;
	return done.count;
}

HANDLER(vprintf)
{
	const struct call_site *site = (const void *)(uintptr_t)in->imm;

	for (u32 left = w->active; left; left &= left - 1) {
		unsigned lane = (unsigned)__builtin_ctz(left);
		bool faulty;
		int result = print(w, site, lane, &faulty);

		if (faulty)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
		give_back(w, site, lane, (u32)result);
	}
	return in + 1;
}

/* FILE:LINE: FUNCTION: block: [x,y,z], thread: [x,y,z] Assertion `TEXT` failed. */
static void complain(struct warp *w, const struct call_site *site, unsigned lane)
{
	const uint32_t *block = w->block->ctaid;
	char what[PART_MAX], file[PART_MAX], function[PART_MAX];
	char text[FGV_OUTPUT_RECORD_MAX];
	int len;

	if (!fgv_softgpu_read_string(w, lane, argument(w, site, 0, lane), what, sizeof(what)) ||
	    !fgv_softgpu_read_string(w, lane, argument(w, site, 1, lane), file, sizeof(file)) ||
	    !fgv_softgpu_read_string(w, lane, argument(w, site, 3, lane), function,
				     sizeof(function)))
		return;
	len = snprintf(text, sizeof(text),
		       "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] "
		       "Assertion `%s` failed.\n",
		       file, (unsigned)argument(w, site, 2, lane), function, block[0], block[1],
		       block[2], w->tid[0][lane], w->tid[1][lane], w->tid[2][lane], what);
	fgv_softgpu_output_add(&w->block->system->output, 1, text, (size_t)len);
}

HANDLER(assertfail)
{
	const struct call_site *site = (const void *)(uintptr_t)in->imm;

	for (u32 left = w->active; left; left &= left - 1)
		complain(w, site, (unsigned)__builtin_ctz(left));
	return fgv_softgpu_fault(w, in, CUDA_ERROR_ASSERT);
}

HANDLER(malloc)
{
	const struct call_site *site = (const void *)(uintptr_t)in->imm;

	for (u32 left = w->active; left; left &= left - 1) {
		unsigned lane = (unsigned)__builtin_ctz(left);

		give_back(w, site, lane,
			  fgv_softgpu_heap_alloc(&w->block->system->heap,
						 argument(w, site, 0, lane)));
	}
	return in + 1;
}

HANDLER(free)
{
	const struct call_site *site = (const void *)(uintptr_t)in->imm;

	for (u32 left = w->active; left; left &= left - 1) {
		unsigned lane = (unsigned)__builtin_ctz(left);

		if (!fgv_softgpu_heap_free(&w->block->system->heap, argument(w, site, 0, lane)))
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
	}
	return in + 1;
}

HANDLER(set_condition)
{
	const struct call_site *site = (const void *)(uintptr_t)in->imm;

	for (u32 left = w->active; left; left &= left - 1) {
		unsigned lane = (unsigned)__builtin_ctz(left);

		if (!fgv_softgpu_condition_set(&w->block->system->conditions,
					       argument(w, site, 0, lane),
					       (u32)argument(w, site, 1, lane)))
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
	}
	return in + 1;
}

void fgv_softgpu_fill_system(handler *table)
{
#define H(key) table[OP_##key] = op_##key;
	H(vprintf) H(assertfail) H(malloc) H(free) H(set_condition)
#undef H
}
