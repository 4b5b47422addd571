/*
 * Learning what work costs.
 */
#include "backend/vgpu/cost.h"

/* A mark that is this far from its prediction says more about a pause than about its work. */
#define RATIO_MAX 64.0

/* So that a wrong guess lets a bounded number of requests through. */
#define NS_MIN 1000.0

static uint32_t within(double ns)
{
	return ns < NS_MIN ? NS_MIN : ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

uint32_t fgv_cost_within(uint64_t ns)
{
	return ns ? within((double)ns) : 0;
}

void fgv_cost_learn_first(struct fgv_costs *costs, uint16_t place, uint64_t others_ns,
			  uint64_t measured_ns)
{
	costs->ns[place] = within((double)measured_ns - (double)others_ns);
}

void fgv_cost_learn(struct fgv_costs *costs, const uint16_t *places, unsigned count,
		    uint64_t predicted_ns, uint64_t measured_ns)
{
	double ratio = predicted_ns ? (double)measured_ns / (double)predicted_ns : 1;

	if (ratio > RATIO_MAX)
		ratio = RATIO_MAX;
	for (unsigned i = 0; i < count; i++) {
		uint32_t *known = &costs->ns[places[i]];

		*known = within(*known * (1 + ratio) / 2);
	}
}
