/* Bursts of kernels; see burst.h. */
#include "scheduler/burst.h"

#include "common/util.h"

/* A break counts as none if it is shorter than a hand-over, or than a 20th of a burst. */
#define BREAK_NS    (100 * FGV_NS_PER_US)
#define BREAK_SHARE 20

void fgv_burst_init(struct fgv_burst *burst, uint64_t quota_ns)
{
	*burst = (struct fgv_burst){.quota_ns = quota_ns};
}

void fgv_burst_used(struct fgv_burst *burst, uint64_t used_ns)
{
	burst->running_ns += used_ns;
}

void fgv_burst_pause(struct fgv_burst *burst, uint64_t now_ns)
{
	burst->paused_ns = now_ns;
}

static uint64_t kept(const struct fgv_burst *burst)
{
	return fgv_min_u64(burst->count, FGV_BURST_RECENT);
}

static void end_burst(struct fgv_burst *burst)
{
	uint64_t *place = &burst->recent_ns[burst->count++ % FGV_BURST_RECENT];

	burst->sum_ns += burst->running_ns - *place;
	*place = burst->last_ns = burst->running_ns;
	burst->running_ns = 0;
}

void fgv_burst_resume(struct fgv_burst *burst, uint64_t now_ns)
{
	uint64_t break_ns = now_ns - burst->paused_ns;
	uint64_t average_ns = kept(burst) != 0 ? burst->sum_ns / kept(burst) : 0;

	if (burst->running_ns != 0 && break_ns >= BREAK_NS && break_ns >= average_ns / BREAK_SHARE)
		end_burst(burst);
}

/* The 90th percentile of the recent ones: of ten or more, the largest is left out. */
static uint64_t largest_but_a_tenth(const struct fgv_burst *burst)
{
	uint64_t first_ns = 0, second_ns = 0;

	for (uint64_t i = 0; i < kept(burst); i++) {
		uint64_t this_ns = burst->recent_ns[i];

		if (this_ns > first_ns) {
			second_ns = first_ns;
			first_ns = this_ns;
		} else if (this_ns > second_ns) {
			second_ns = this_ns;
		}
	}
	return kept(burst) >= 10 ? second_ns : first_ns;
}

uint64_t fgv_burst_quota(struct fgv_burst *burst, uint64_t min_ns, uint64_t max_ns)
{
	uint64_t last_ns = fgv_max_u64(burst->last_ns, burst->running_ns);
	uint64_t most_ns = fgv_max_u64(largest_but_a_tenth(burst), burst->running_ns);
	uint64_t next_ns;

	if (last_ns == 0)
		return fgv_max_u64(min_ns, fgv_min_u64(burst->quota_ns, max_ns));
	next_ns = fgv_max_u64(min_ns, fgv_min_u64(most_ns / 2 + last_ns / 2, max_ns));
	burst->quota_ns = burst->quota_ns / 2 + next_ns / 2;
	return fgv_max_u64(min_ns, fgv_min_u64(burst->quota_ns, max_ns));
}
