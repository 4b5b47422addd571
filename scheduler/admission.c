/* Which bounds can be kept together; see admission.h. */
#include "scheduler/admission.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct fgv_sched_shares *left = a, *right = b;

	return (left->bound_ns > right->bound_ns) - (left->bound_ns < right->bound_ns);
}

bool fgv_admission_keeps(struct fgv_sched_shares *shares, size_t count, uint64_t blocking_ns)
{
	uint64_t requested = 0;

	qsort(shares, count, sizeof(*shares), compare);
	for (size_t i = 0; i < count; i++) {
		uint64_t bound_ns = shares[i].bound_ns;
		unsigned __int128 wanted;

		if (bound_ns == 0)
			continue;
		requested += shares[i].request;
		wanted = (unsigned __int128)requested * bound_ns +
			 (unsigned __int128)blocking_ns * FGV_SCHED_WHOLE;
		if (wanted > (unsigned __int128)bound_ns * FGV_SCHED_WHOLE)
			return false;
	}
	return true;
}
