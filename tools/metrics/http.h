/*
 * The HTTP side of fairgv-metrics, by libmicrohttpd:
 *
 *	/		the page that draws what the others tell
 *	/metrics	for Prometheus, in the format that the client asks for
 *	/report		the daemon's report as JSON, as fairgvctl stat --json prints it
 *
 * Clients are hostile. Each connection is for one GET or HEAD, has so much memory for its header,
 * and is closed after FGV_HTTP_SECONDS_MAX whatever it does; more than FGV_HTTP_CLIENTS_MAX at once
 * wait to be accepted. Nothing that a client sends goes further than into a comparison.
 *
 * Threads: one, which calls fgv_http_run() when the descriptor is readable or the time has come.
 */
#ifndef FGV_TOOLS_METRICS_HTTP_H
#define FGV_TOOLS_METRICS_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "tools/metrics/feed.h"

#define FGV_HTTP_CLIENTS_MAX  32
#define FGV_HTTP_SECONDS_MAX  10    /* of a connection */
#define FGV_HTTP_IDLE_SECONDS 5	    /* of one that sends or takes nothing */
#define FGV_HTTP_MEMORY_BYTES 16384 /* for the header of a request, and of the reply */

struct MHD_Daemon;
struct MHD_Response;
struct fgv_http_client;
LIST_HEAD(fgv_http_clients, fgv_http_client);

struct fgv_http {
	struct MHD_Daemon *daemon;
	struct fgv_feed *feed;
	bool only_local_names; /* refuse requests for names that others may give us */
	struct fgv_http_clients clients;
	uint64_t made_of; /* number of the report that @report is of; 0: none */
	struct MHD_Response *report[FGV_FEED_FORMS];
};

/*
 * Serves what connects to the listening socket @fd, which is taken over, until fgv_http_fini().
 * @only_local_names: of a TCP socket. A page of somebody else's, in a browser of this host, is
 * kept out by the name that it has for us. 0 or a negative errno, and @fd closed.
 */
int fgv_http_init(struct fgv_http *http, int fd, bool only_local_names, struct fgv_feed *feed);
void fgv_http_fini(struct fgv_http *http);

/* To poll() for POLLIN. */
int fgv_http_fd(const struct fgv_http *http);
/* Call fgv_http_run() after so many milliseconds at the latest; -1: no need to. */
int fgv_http_timeout_ms(const struct fgv_http *http);
void fgv_http_run(struct fgv_http *http);

#endif
