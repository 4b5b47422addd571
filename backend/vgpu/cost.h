/*
 * What work is likely to cost: GPU time by kind of request, learned from what was measured.
 * A wrong guess makes a slice somewhat longer or shorter; it is never charged.
 *
 * A kind is a function with the number of its threads, or an operation with the size of its
 * data, to a power of two. Kinds share places in a table of fixed size, so a guest that makes many
 * spoils its own guesses only.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_COST_H
#define FGV_VGPU_COST_H

#include <stdint.h>

#define FGV_COST_PLACES 1024

/* Per request; 0: never measured. */
struct fgv_costs {
	uint32_t ns[FGV_COST_PLACES];
};

/* The place of requests of @kind, an operation or a function's handle, that are of @size. */
static inline uint16_t fgv_cost_place(uint32_t kind, uint64_t size)
{
	uint32_t magnitude = size ? 64 - (uint32_t)__builtin_clzll(size) : 0;

	return (uint16_t)((kind * 0x9e3779b1u + magnitude * 0x85ebca6bu) >> 22);
}

/* @ns as a table has it; 0 stays what was never measured. */
uint32_t fgv_cost_within(uint64_t ns);

/*
 * A request of @place, which was never measured, took @measured_ns together with others whose
 * predicted cost was @others_ns.
 */
void fgv_cost_learn_first(struct fgv_costs *costs, uint16_t place, uint64_t others_ns,
			  uint64_t measured_ns);

/*
 * Requests of these places, all of which were measured before and whose predicted cost was
 * @predicted_ns in all, took @measured_ns. Each place comes halfway.
 */
void fgv_cost_learn(struct fgv_costs *costs, const uint16_t *places, unsigned count,
		    uint64_t predicted_ns, uint64_t measured_ns);

#endif
