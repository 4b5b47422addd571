/*
 * Counting and printing. Requests are counted in their lane (lane.c); what this file
 * keeps is the list of unsupported calls, which only grows: a call that is made for
 * the first time is pushed with a compare-and-swap.
 */
#define _GNU_SOURCE
#include "frontend/client/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "frontend/client/lane.h"

struct totals {
	struct fgv_op_count all;
	struct fgv_op_count ops[FGV_OP_MAX + 1];
};

static struct {
	struct fgv_unsupported *unsupported; /* atomic */
	int forgotten;
	uint64_t graphs[FGV_STATS_GRAPH_WAYS]; /* atomic */
} state;

static const char *const graph_ways[FGV_STATS_GRAPH_WAYS] = {
	[FGV_STATS_GRAPH_HOST] = "host",	 [FGV_STATS_GRAPH_FUNCTION] = "function",
	[FGV_STATS_GRAPH_PAGEABLE] = "pageable", [FGV_STATS_GRAPH_MOVES] = "moves",
	[FGV_STATS_GRAPH_OTHER] = "other",	 [FGV_STATS_GRAPH_REFUSED] = "refused",
	[FGV_STATS_GRAPH_CUT] = "cut",
};

/* True: that was the first one. */
static bool count(struct fgv_unsupported *unsupported)
{
	struct fgv_unsupported *head;

	if (__atomic_fetch_add(&unsupported->calls, 1, __ATOMIC_RELAXED))
		return false;
	head = __atomic_load_n(&state.unsupported, __ATOMIC_RELAXED);
	do {
		unsupported->next = head;
		/* Pairs with the acquire in fgv_stats_print(). */
	} while (!__atomic_compare_exchange_n(&state.unsupported, &head, unsupported, true,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	return true;
}

void fgv_stats_unsupported(struct fgv_unsupported *unsupported)
{
	if (count(unsupported))
		fgv_warning("not supported: %s", unsupported->name);
}

void fgv_stats_unsupported_quietly(struct fgv_unsupported *unsupported)
{
	count(unsupported);
}

void fgv_stats_graph(enum fgv_stats_graph way)
{
	__atomic_fetch_add(&state.graphs[way], 1, __ATOMIC_RELAXED);
}

void fgv_stats_forget(void)
{
	struct fgv_unsupported *each = state.unsupported;

	for (; each; each = each->next)
		each->calls = 0;
	state.unsupported = NULL;
	memset(state.graphs, 0, sizeof(state.graphs));
	state.forgotten = 1;
}

static void add(struct fgv_op_count *to, const struct fgv_op_count *count)
{
	to->requests += __atomic_load_n(&count->requests, __ATOMIC_RELAXED);
	to->round_trips += __atomic_load_n(&count->round_trips, __ATOMIC_RELAXED);
}

static void add_lane(const struct fgv_lane *lane, void *arg)
{
	struct totals *totals = arg;

	for (int i = 0; i <= FGV_OP_MAX; i++)
		add(&totals->ops[i], &lane->counts[i]);
}

static void sum_up(struct totals *totals)
{
	memset(totals, 0, sizeof(*totals));
	if (state.forgotten)
		return;
	fgv_lane_visit(add_lane, totals);
	for (int i = 0; i <= FGV_OP_MAX; i++)
		add(&totals->all, &totals->ops[i]);
}

static bool is_counted(const struct totals *totals, int op)
{
	return fgv_op_infos[op].name && totals->ops[op].requests;
}

/* Each way that some graph has gone, as @form has it. */
static void print_graphs(FILE *out, const char *form)
{
	for (int i = 0; i < FGV_STATS_GRAPH_WAYS; i++) {
		uint64_t count = __atomic_load_n(&state.graphs[i], __ATOMIC_RELAXED);

		if (count)
			fprintf(out, form, graph_ways[i], count);
	}
}

static void print_table(FILE *out, const struct totals *totals)
{
	const struct fgv_unsupported *each;

	fprintf(out, "fairgv: %-20s %12s %12s\n", "operation", "requests", "round trips");
	for (int i = 0; i <= FGV_OP_MAX; i++) {
		if (is_counted(totals, i))
			fprintf(out, "fairgv: %-20s %12lu %12lu\n", fgv_op_infos[i].name,
				totals->ops[i].requests, totals->ops[i].round_trips);
	}
	fprintf(out, "fairgv: %-20s %12lu %12lu\n", "total", totals->all.requests,
		totals->all.round_trips);
	print_graphs(out, "fairgv: graphs, %-12s %12lu\n");
	each = __atomic_load_n(&state.unsupported, __ATOMIC_ACQUIRE);
	for (; each; each = each->next)
		fprintf(out, "fairgv: not supported: %s, %lu calls\n", each->name,
			__atomic_load_n(&each->calls, __ATOMIC_RELAXED));
}

static void print_words(FILE *out, const struct totals *totals)
{
	const struct fgv_unsupported *each;

	fprintf(out, "requests=%lu\nround_trips=%lu\n", totals->all.requests,
		totals->all.round_trips);
	for (int i = 0; i <= FGV_OP_MAX; i++) {
		if (is_counted(totals, i))
			fprintf(out, "op.%s=%lu,%lu\n", fgv_op_infos[i].name,
				totals->ops[i].requests, totals->ops[i].round_trips);
	}
	print_graphs(out, "graphs.%s=%lu\n");
	each = __atomic_load_n(&state.unsupported, __ATOMIC_ACQUIRE);
	for (; each; each = each->next)
		fprintf(out, "unsupported=%s:%lu\n", each->name,
			__atomic_load_n(&each->calls, __ATOMIC_RELAXED));
}

/* One write, so that the lines of two processes do not mix. */
static void write_out(int fd, const char *text, size_t len)
{
	ssize_t done;

	do {
		done = write(fd, text, len);
	} while (done < 0 && errno == EINTR);
}

static void print_to(int fd, void (*print)(FILE *out, const struct totals *totals))
{
	struct totals totals;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	sum_up(&totals);
	print(out, &totals);
	if (!fclose(out))
		write_out(fd, text, len);
	free(text);
}

void fgv_stats_print(void)
{
	const char *wanted = getenv("FAIRGV_STATS");
	int fd;

	if (!wanted || !*wanted || !strcmp(wanted, "0"))
		return;
	if (*wanted != '/') {
		print_to(STDERR_FILENO, print_table);
		return;
	}
	fd = open(wanted, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		fgv_warning("FAIRGV_STATS=%s: %s", wanted, strerror(errno));
		return;
	}
	print_to(fd, print_words);
	close(fd);
}
