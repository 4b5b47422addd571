/*
 * The daemon's report as text that Prometheus and its kin read. Names follow its conventions: base
 * units, and _total behind what only grows.
 *
 * Threads: any.
 */
#ifndef FGV_TOOLS_METRICS_TEXT_H
#define FGV_TOOLS_METRICS_TEXT_H

#include <jansson.h>
#include <stdio.h>

enum fgv_metrics_format {
	FGV_METRICS_PROMETHEUS,	 /* Prometheus' text format, version 0.0.4 */
	FGV_METRICS_OPENMETRICS, /* OpenMetrics 1.0.0 */
};

/*
 * Writes @report, the daemon's reply to "stat" (backend/admin/reply.h). -EPROTO, and nothing
 * written, if it is not one. Errors of @out are for the caller to find.
 */
int fgv_metrics_write(FILE *out, const json_t *report, enum fgv_metrics_format format);

#endif
