/* Histograms of durations, see hist.h. */
#include "scheduler/hist.h"

#include "common/util.h"

/* Bucket 0 holds everything below 1 1/8 µs; then eight equal steps to each doubling. */
static unsigned int bucket_of(uint64_t ns)
{
	uint64_t us8 = ns * FGV_HIST_STEPS / FGV_NS_PER_US;
	unsigned int octave, index;

	if (ns > UINT64_MAX / FGV_HIST_STEPS)
		return FGV_HIST_BUCKETS - 1;
	if (us8 < FGV_HIST_STEPS)
		return 0;
	octave = 60 - (unsigned int)__builtin_clzll(us8);
	index = octave * FGV_HIST_STEPS + (unsigned int)((us8 >> octave) - FGV_HIST_STEPS);
	return index < FGV_HIST_BUCKETS ? index : FGV_HIST_BUCKETS - 1;
}

void fgv_hist_add(struct fgv_hist *h, uint64_t ns)
{
	uint32_t *slot = &h->bucket[bucket_of(ns)];

	if (*slot != UINT32_MAX)
		(*slot)++;
	h->count++;
	h->sum_ns += ns;
	h->max_ns = fgv_max_u64(h->max_ns, ns);
}

void fgv_hist_fetch(const struct fgv_hist *h, uint64_t ns)
{
	__builtin_prefetch(&h->bucket[bucket_of(ns)]);
}

void fgv_hist_merge(struct fgv_hist *h, const struct fgv_hist *from)
{
	for (unsigned int i = 0; i < FGV_HIST_BUCKETS; i++)
		if (__builtin_add_overflow(h->bucket[i], from->bucket[i], &h->bucket[i]))
			h->bucket[i] = UINT32_MAX;
	h->count += from->count;
	h->sum_ns += from->sum_ns;
	h->max_ns = fgv_max_u64(h->max_ns, from->max_ns);
}

uint64_t fgv_hist_edge_ns(unsigned int bucket)
{
	uint64_t octave = bucket / FGV_HIST_STEPS, step = bucket % FGV_HIST_STEPS;

	if (bucket >= FGV_HIST_BUCKETS - 1)
		return UINT64_MAX;
	return ((FGV_HIST_STEPS + step + 1) << octave) * FGV_NS_PER_US / FGV_HIST_STEPS;
}

uint64_t fgv_hist_quantile_ns(const struct fgv_hist *h, unsigned int permille)
{
	uint64_t below = 0, want;

	if (h->count == 0)
		return 0;
	want = fgv_max_u64(1, (h->count * permille + 999) / 1000);
	for (unsigned int i = 0; i < FGV_HIST_BUCKETS; i++) {
		below += h->bucket[i];
		if (below >= want)
			return fgv_min_u64(fgv_hist_edge_ns(i), h->max_ns);
	}
	return h->max_ns;
}
