/* Reading the daemon's reports; see ctl_figures.h. */
#include "tools/ctl_figures.h"

#include <errno.h>
#include "common/util.h"

static int read_bucket(const json_t *pair, struct fgv_hist *hist)
{
	const json_t *edge = json_array_get(pair, 0), *count = json_array_get(pair, 1);
	uint64_t edge_ns = json_is_null(edge) ? UINT64_MAX : (uint64_t)json_integer_value(edge);
	unsigned i = 0;

	while (i < FGV_HIST_BUCKETS && fgv_hist_edge_ns(i) != edge_ns)
		i++;
	if (i == FGV_HIST_BUCKETS || !json_is_integer(count))
		return -EPROTO;
	hist->bucket[i] = (uint32_t)json_integer_value(count);
	return 0;
}

static int read_wait(const json_t *wait, struct fgv_hist *hist)
{
	json_int_t count, sum_ns, max_ns;
	json_t *histogram, *pair;
	int ret = 0;
	size_t i;

	if (json_unpack((json_t *)wait, "{s:I, s:I, s:I, s:o}", "count", &count, "sum_ns", &sum_ns,
			"max_ns", &max_ns, "histogram", &histogram))
		return -EPROTO;
	*hist = (struct fgv_hist){
		.count = (uint64_t)count, .sum_ns = (uint64_t)sum_ns, .max_ns = (uint64_t)max_ns};
	json_array_foreach(histogram, i, pair) ret |= read_bucket(pair, hist);
	return ret;
}

/* The figures of a VM or of a session. */
static int read_figures(const json_t *object, struct fgv_ctl_figures *f)
{
	static const char format[] = "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}";
	json_int_t gpu_ns, grants, overruns, overrun_ns, stalls, favoured, requests, round_trips,
		launches, memory;

	if (json_unpack((json_t *)object, format, "gpu_ns", &gpu_ns, "grants", &grants, "overruns",
			&overruns, "overrun_ns", &overrun_ns, "stalls", &stalls, "favoured",
			&favoured, "requests", &requests, "round_trips", &round_trips, "launches",
			&launches, "memory_bytes", &memory))
		return -EPROTO;
	*f = (struct fgv_ctl_figures){
		.gpu_ns = (uint64_t)gpu_ns,
		.grants = (uint64_t)grants,
		.overruns = (uint64_t)overruns,
		.overrun_ns = (uint64_t)overrun_ns,
		.stalls = (uint64_t)stalls,
		.favoured = (uint64_t)favoured,
		.requests = (uint64_t)requests,
		.round_trips = (uint64_t)round_trips,
		.launches = (uint64_t)launches,
		.memory_bytes = (uint64_t)memory,
	};
	return read_wait(json_object_get(object, "wait"), &f->wait);
}

const json_t *fgv_ctl_find_like(const json_t *array, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	json_t *element;
	size_t i;

	json_array_foreach(array, i, element)
	{
		if (json_equal(json_object_get(element, key), value))
			return element;
	}
	return NULL;
}

uint64_t fgv_ctl_since(uint64_t later, uint64_t earlier)
{
	return later >= earlier ? later - earlier : later;
}

/* The longest wait is known if it was the longest of all, and else up to its bucket. */
static uint64_t max_since(const struct fgv_hist *difference, uint64_t later_ns, uint64_t earlier_ns)
{
	if (later_ns != earlier_ns)
		return later_ns;
	for (unsigned i = FGV_HIST_BUCKETS; i--;) {
		if (difference->bucket[i])
			return fgv_min_u64(fgv_hist_edge_ns(i), later_ns);
	}
	return 0;
}

static void subtract_hist(struct fgv_hist *hist, const struct fgv_hist *earlier)
{
	for (unsigned i = 0; i < FGV_HIST_BUCKETS; i++)
		hist->bucket[i] = (uint32_t)fgv_ctl_since(hist->bucket[i], earlier->bucket[i]);
	hist->count = fgv_ctl_since(hist->count, earlier->count);
	hist->sum_ns = fgv_ctl_since(hist->sum_ns, earlier->sum_ns);
	hist->max_ns = max_since(hist, hist->max_ns, earlier->max_ns);
}

/* All but the use of memory, which is no sum. */
static void subtract(struct fgv_ctl_figures *f, const struct fgv_ctl_figures *earlier)
{
	f->gpu_ns = fgv_ctl_since(f->gpu_ns, earlier->gpu_ns);
	f->grants = fgv_ctl_since(f->grants, earlier->grants);
	f->overruns = fgv_ctl_since(f->overruns, earlier->overruns);
	f->overrun_ns = fgv_ctl_since(f->overrun_ns, earlier->overrun_ns);
	f->stalls = fgv_ctl_since(f->stalls, earlier->stalls);
	f->favoured = fgv_ctl_since(f->favoured, earlier->favoured);
	f->requests = fgv_ctl_since(f->requests, earlier->requests);
	f->round_trips = fgv_ctl_since(f->round_trips, earlier->round_trips);
	f->launches = fgv_ctl_since(f->launches, earlier->launches);
	subtract_hist(&f->wait, &earlier->wait);
}

int fgv_ctl_figures_of(const json_t *object, const json_t *before, struct fgv_ctl_figures *f)
{
	struct fgv_ctl_figures earlier;
	int ret = read_figures(object, f);

	if (ret || !before)
		return ret;
	ret = read_figures(before, &earlier);
	if (!ret)
		subtract(f, &earlier);
	return ret;
}

static uint64_t gpu_ns(const json_t *gpu)
{
	return (uint64_t)json_integer_value(json_object_get(gpu, "gpu_ns"));
}

uint64_t fgv_ctl_gpu_ns(const json_t *later, const json_t *earlier, const json_t *vm)
{
	const json_t *gpus = json_object_get(later, "gpus");
	const json_t *before = json_object_get(earlier, "gpus");
	uint64_t sum = 0;
	json_t *share;
	size_t i;

	json_array_foreach(json_object_get(vm, "gpus"), i, share)
	{
		sum += fgv_ctl_since(gpu_ns(fgv_ctl_find_like(gpus, share, "device")),
				     gpu_ns(fgv_ctl_find_like(before, share, "device")));
	}
	return sum;
}
