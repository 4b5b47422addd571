/*
 * fairgvctl metrics: the daemon's figures in Prometheus' text format, for its node exporter's
 * textfile collector. fairgv-metrics serves them over HTTP.
 */
#include "tools/ctl.h"

#include <errno.h>
#include "tools/metrics/text.h"

int fgv_ctl_metrics(const char *socket)
{
	json_t *report = fgv_ctl_ask(socket, json_pack("{s:s}", "request", "stat"));
	int ret;

	if (!report)
		return -EIO;
	ret = fgv_metrics_write(stdout, report, FGV_METRICS_PROMETHEUS);
	json_decref(report);
	return ret ? fgv_ctl_bad_reply() : fgv_ctl_flush();
}
