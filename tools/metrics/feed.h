/*
 * What fairgv-metrics serves of the daemon: its report as JSON and as text for Prometheus, each
 * made when somebody asks for it, and kept for a moment, so that however many ask, the daemon is
 * asked seldom.
 *
 * Threads: one.
 */
#ifndef FGV_TOOLS_METRICS_FEED_H
#define FGV_TOOLS_METRICS_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/ctl.h"

#define FGV_FEED_KEPT_NS 250000000ull

enum fgv_feed_form { FGV_FEED_JSON, FGV_FEED_PROMETHEUS, FGV_FEED_OPENMETRICS, FGV_FEED_FORMS };

struct fgv_feed {
	const char *socket; /* where the daemon is asked */
	uint64_t asked_ns;  /* 0: never */
	uint64_t number;    /* of the report, counted from 1; a report that fails has one, too */
	bool failing;	    /* that is in the log */
	char why[FGV_CTL_WHY_LEN];
	char *text[FGV_FEED_FORMS]; /* NULL: there is none, and @why says why */
	size_t len[FGV_FEED_FORMS];
};

/* @socket lives as long as @feed. */
void fgv_feed_init(struct fgv_feed *feed, const char *socket);
void fgv_feed_fini(struct fgv_feed *feed);

/*
 * Asks the daemon anew if what is kept is too old. Afterwards text, len and number are those of the
 * newest report, until the next call. Blocks for as long as the daemon takes, at most some seconds.
 */
void fgv_feed_refresh(struct fgv_feed *feed);

#endif
