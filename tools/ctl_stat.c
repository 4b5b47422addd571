/*
 * fairgvctl stat: what VMs and sessions have used, in all or in each interval. The daemon
 * reports totals only; what belongs to an interval is the difference of two reports.
 */
#include "tools/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "common/util.h"
#include "scheduler/hist.h"
#include "tools/ctl_figures.h"

/* Two reports, of which the earlier is NULL where totals are to be shown. */
struct span {
	const json_t *earlier, *later;
	uint64_t len_ns;
};

/* --- Printing ---------------------------------------------------------------- */

static void add_count(struct fgv_table *table, const struct span *span, uint64_t count)
{
	if (span->earlier)
		fgv_table_add(table, "%.1f", (double)count * FGV_NS_PER_SEC / (double)span->len_ns);
	else
		fgv_table_add(table, "%" PRIu64, count);
}

static void add_figures(struct fgv_table *table, const struct span *span, const struct fgv_ctl_figures *f,
			uint64_t total_ns)
{
	if (span->earlier)
		fgv_table_add_share(table, f->gpu_ns, span->len_ns);
	else
		fgv_table_add_time(table, f->gpu_ns);
	fgv_table_add_share(table, f->gpu_ns, total_ns);
	add_count(table, span, f->grants);
	add_count(table, span, f->overruns);
	fgv_table_add_time(table, f->overrun_ns);
	fgv_table_add_time(table, fgv_hist_quantile_ns(&f->wait, 500));
	fgv_table_add_time(table, fgv_hist_quantile_ns(&f->wait, 990));
	fgv_table_add_time(table, f->wait.max_ns);
	add_count(table, span, f->stalls);
	add_count(table, span, f->favoured);
	add_count(table, span, f->requests);
	add_count(table, span, f->round_trips);
	fgv_table_add_bytes(table, f->memory_bytes);
}

static uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* What a VM with several GPUs has had of one; the rest is known of all together. */
static void add_gpu(struct fgv_table *table, const struct span *span, const json_t *share,
		    const json_t *before)
{
	const json_t *gpus = json_object_get(span->later, "gpus");
	const json_t *gpus_before = json_object_get(span->earlier, "gpus");
	uint64_t gpu_ns = fgv_ctl_since(number(share, "gpu_ns"), number(before, "gpu_ns"));
	uint64_t total_ns =
		fgv_ctl_since(number(fgv_ctl_find_like(gpus, share, "device"), "gpu_ns"),
			      number(fgv_ctl_find_like(gpus_before, share, "device"), "gpu_ns"));

	fgv_table_add(table, "GPU %" PRIu64, number(share, "device"));
	if (span->earlier)
		fgv_table_add_share(table, gpu_ns, span->len_ns);
	else
		fgv_table_add_time(table, gpu_ns);
	fgv_table_add_share(table, gpu_ns, total_ns);
	add_count(table, span, fgv_ctl_since(number(share, "grants"), number(before, "grants")));
	for (unsigned i = 0; i < 9; i++) /* from overruns to round trips */
		fgv_table_add(table, "-");
	fgv_table_add_bytes(table, number(share, "memory_bytes"));
}

static void add_gpus(struct fgv_table *table, const struct span *span, const json_t *vm,
		     const json_t *before)
{
	const json_t *gpus = json_object_get(vm, "gpus"), *old = json_object_get(before, "gpus");
	json_t *share;
	size_t i;

	json_array_foreach(gpus, i, share)
	{
		if (json_array_size(gpus) < 2)
			return;
		fgv_table_add(table, "%s", json_string_value(json_object_get(vm, "name")));
		add_gpu(table, span, share, fgv_ctl_find_like(old, share, "device"));
		fgv_ctl_add_limit(table, vm);
	}
}

/* A VM and, under it, its GPUs, if they are several, and its sessions. */
static int add_vm(struct fgv_table *table, const struct span *span, const json_t *vm)
{
	const json_t *before = fgv_ctl_find_like(json_object_get(span->earlier, "vms"), vm, "name");
	const char *name = json_string_value(json_object_get(vm, "name"));
	uint64_t total_ns = fgv_ctl_gpu_ns(span->later, span->earlier, vm);
	struct fgv_ctl_figures f;
	json_t *session;
	size_t i;

	if (!name || fgv_ctl_figures_of(vm, before, &f))
		return -EPROTO;
	fgv_table_add(table, "%s", name);
	fgv_table_add(table, "all");
	add_figures(table, span, &f, total_ns);
	fgv_ctl_add_limit(table, vm);
	add_gpus(table, span, vm, before);
	json_array_foreach(json_object_get(vm, "sessions"), i, session)
	{
		const json_t *old = json_object_get(before, "sessions");

		if (fgv_ctl_figures_of(session, fgv_ctl_find_like(old, session, "number"), &f))
			return -EPROTO;
		fgv_table_add(table, "%s", name);
		fgv_table_add(table, "%" JSON_INTEGER_FORMAT,
			      json_integer_value(json_object_get(session, "number")));
		add_figures(table, span, &f, total_ns);
		fgv_table_add(table, "-");
	}
	return 0;
}

static int print_span(const struct span *span)
{
	static const char *const totals[] = {
		"<VM",	    "session",	   "GPU time", "share", "grants", "overruns",
		"over by",  "wait p50",	   "p99",      "max",	"stalls", "favoured",
		"requests", "round trips", "memory",   "limit", NULL};
	static const char *const rates[] = {
		"<VM",	      "session",       "GPU",	 "share", "grants/s", "overruns/s",
		"over by",    "wait p50",      "p99",	 "max",	  "stalls/s", "favoured/s",
		"requests/s", "round trips/s", "memory", "limit", NULL};
	const json_t *vms = json_object_get(span->later, "vms");
	struct fgv_table table;
	json_t *vm;
	size_t i;

	fgv_table_init(&table, span->earlier ? rates : totals);
	json_array_foreach(vms, i, vm)
	{
		if (add_vm(&table, span, vm))
			return fgv_ctl_bad_reply();
	}
	fgv_table_print(&table);
	return fgv_ctl_flush();
}

static int print_json(const json_t *report)
{
	json_dumpf(report, stdout, JSON_COMPACT);
	putchar('\n');
	return fgv_ctl_flush();
}

/* --- Asking ------------------------------------------------------------------ */

/* A report, or NULL; either way all is said. */
static json_t *ask(const char *socket, const struct fgv_ctl_stat *stat)
{
	json_t *request = json_pack("{s:s}", "request", "stat");
	json_t *names = stat->vms[0] ? json_array() : NULL;
	json_t *report;

	for (size_t i = 0; stat->vms[i]; i++)
		json_array_append_new(names, json_string(stat->vms[i]));
	if (names)
		json_object_set_new(request, "vms", names);
	report = fgv_ctl_ask(socket, request);
	if (!report || json_is_array(json_object_get(report, "vms")))
		return report;
	fgv_ctl_bad_reply();
	json_decref(report);
	return NULL;
}

/* Sleeps until the next multiple of the interval, so that reports do not drift. */
static void await(struct timespec *next, uint64_t interval_ns)
{
	uint64_t ns = (uint64_t)next->tv_nsec + interval_ns;

	next->tv_sec += (time_t)(ns / FGV_NS_PER_SEC);
	next->tv_nsec = (long)(ns % FGV_NS_PER_SEC);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) == EINTR)
		continue;
}

static int print_interval(json_t *earlier, json_t *later)
{
	struct span span = {.earlier = earlier, .later = later};

	span.len_ns = fgv_ctl_since((uint64_t)json_integer_value(json_object_get(later, "time_ns")),
			    (uint64_t)json_integer_value(json_object_get(earlier, "time_ns")));
	return span.len_ns ? print_span(&span) : fgv_ctl_bad_reply();
}

/* Totals, so the first report needs no interval before it. */
static int repeat_json(const char *socket, const struct fgv_ctl_stat *stat, struct timespec *next)
{
	for (uint64_t i = 0; !stat->count || i < stat->count; i++) {
		json_t *report;
		int ret;

		if (i)
			await(next, stat->interval_ns);
		report = ask(socket, stat);
		ret = report ? print_json(report) : -EIO;
		json_decref(report);
		if (ret)
			return ret;
	}
	return 0;
}

static int repeat_table(const char *socket, const struct fgv_ctl_stat *stat, struct timespec *next)
{
	json_t *earlier = ask(socket, stat), *later;
	int ret = earlier ? 0 : -EIO;

	for (uint64_t i = 0; !ret && (!stat->count || i < stat->count); i++) {
		await(next, stat->interval_ns);
		later = ask(socket, stat);
		if (i)
			putchar('\n');
		ret = later ? print_interval(earlier, later) : -EIO;
		json_decref(earlier);
		earlier = later;
	}
	json_decref(earlier);
	return ret;
}

static int print_totals(const char *socket, const struct fgv_ctl_stat *stat)
{
	json_t *report = ask(socket, stat);
	struct span span = {.later = report};
	int ret = report ? 0 : -EIO;

	if (!ret)
		ret = stat->json ? print_json(report) : print_span(&span);
	json_decref(report);
	return ret;
}

int fgv_ctl_stat(const char *socket, const struct fgv_ctl_stat *stat)
{
	struct timespec now;

	if (!stat->interval_ns)
		return print_totals(socket, stat);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return stat->json ? repeat_json(socket, stat, &now) : repeat_table(socket, stat, &now);
}
