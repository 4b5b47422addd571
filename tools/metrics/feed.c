/* Asking the daemon for what is served; see feed.h. */
#define _GNU_SOURCE
#include "tools/metrics/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include "common/log.h"
#include "common/util.h"
#include "tools/metrics/text.h"

void fgv_feed_init(struct fgv_feed *feed, const char *socket)
{
	*feed = (struct fgv_feed){.socket = socket};
}

static void forget(struct fgv_feed *feed)
{
	for (size_t i = 0; i < FGV_FEED_FORMS; i++) {
		free(feed->text[i]);
		feed->text[i] = NULL;
		feed->len[i] = 0;
	}
}

void fgv_feed_fini(struct fgv_feed *feed)
{
	forget(feed);
}

static int write_form(FILE *out, const json_t *report, enum fgv_feed_form form)
{
	switch (form) {
	case FGV_FEED_JSON:
		return json_dumpf(report, out, JSON_COMPACT);
	case FGV_FEED_PROMETHEUS:
		return fgv_metrics_write(out, report, FGV_METRICS_PROMETHEUS);
	default:
		return fgv_metrics_write(out, report, FGV_METRICS_OPENMETRICS);
	}
}

static int make_form(struct fgv_feed *feed, const json_t *report, enum fgv_feed_form form)
{
	FILE *out = open_memstream(&feed->text[form], &feed->len[form]);
	int ret;

	if (!out)
		return -1;
	ret = write_form(out, report, form);
	return fclose(out) || ret;
}

static void make_all(struct fgv_feed *feed, const json_t *report)
{
	int failed = 0;

	for (size_t i = 0; i < FGV_FEED_FORMS; i++)
		failed |= make_form(feed, report, (enum fgv_feed_form)i);
	if (!failed)
		return;
	forget(feed);
	snprintf(feed->why, sizeof(feed->why), "the daemon's report can't be written");
}

/* Once when it begins, and once when it is over. */
static void log_change(struct fgv_feed *feed)
{
	bool failing = !feed->text[FGV_FEED_JSON];

	if (failing && !feed->failing)
		fgv_warning("nothing to serve: %s", feed->why);
	if (!failing && feed->failing)
		fgv_info("%s answers again", feed->socket);
	feed->failing = failing;
}

void fgv_feed_refresh(struct fgv_feed *feed)
{
	uint64_t now_ns = fgv_now_ns();
	json_t *report;

	if (feed->asked_ns && now_ns - feed->asked_ns < FGV_FEED_KEPT_NS)
		return;
	forget(feed);
	report = fgv_ctl_try(feed->socket, json_pack("{s:s}", "request", "stat"), feed->why,
			     sizeof(feed->why));
	if (report)
		make_all(feed, report);
	json_decref(report);
	log_change(feed);
	feed->number++;
	feed->asked_ns = fgv_now_ns();
}
