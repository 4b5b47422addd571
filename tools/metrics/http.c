/*
 * Serving what the daemon tells; see http.h. libmicrohttpd keeps the time of connections that do
 * nothing, and not that of those that do a little again and again, so clients are listed here, too.
 */
#include "tools/metrics/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/log.h"
#include "common/util.h"
#include "tools/metrics/page.h"

#define TICK_MS 1000 /* while there are connections */

static const char text_plain[] = "text/plain; charset=utf-8";
static const char openmetrics[] = "application/openmetrics-text";

struct fgv_http_client {
	LIST_ENTRY(fgv_http_client) link;
	int fd;
	uint64_t end_ns;
};

/* --- Connections ------------------------------------------------------------- */

static int fd_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

static void connection_changed(void *cls, struct MHD_Connection *connection, void **place,
			       enum MHD_ConnectionNotificationCode code)
{
	struct fgv_http *http = cls;
	struct fgv_http_client *client = *place;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (client)
			LIST_REMOVE(client, link);
		free(client);
		return;
	}
	client = calloc(1, sizeof(*client));
	*place = client;
	if (!client) {
		shutdown(fd_of(connection), SHUT_RDWR);
		return;
	}
	client->fd = fd_of(connection);
	client->end_ns = fgv_now_ns() + FGV_HTTP_SECONDS_MAX * FGV_NS_PER_SEC;
	LIST_INSERT_HEAD(&http->clients, client, link);
}

static void end_late(struct fgv_http *http)
{
	uint64_t now_ns = fgv_now_ns();
	struct fgv_http_client *client;

	LIST_FOREACH(client, &http->clients, link) {
		if (now_ns >= client->end_ns)
			shutdown(client->fd, SHUT_RDWR);
	}
}

/* --- Replies ----------------------------------------------------------------- */

static void add_headers(struct MHD_Response *response, const char *type)
{
	static const char *const headers[][2] = {
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"Content-Security-Policy", FGV_PAGE_POLICY},
		{"Connection", "close"},
	};

	MHD_add_response_header(response, "Content-Type", type);
	for (size_t i = 0; i < FGV_ARRAY_LEN(headers); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
}

static enum MHD_Result reply_with(struct MHD_Connection *connection, unsigned status,
				  const char *type, const char *text, size_t len,
				  enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)text, mode);
	enum MHD_Result ret;

	if (!response)
		return MHD_NO;
	add_headers(response, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	ret = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return ret;
}

/* @line: a literal. */
static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *line)
{
	return reply_with(connection, status, text_plain, line, strlen(line),
			  MHD_RESPMEM_PERSISTENT);
}

static const char *type_of(enum fgv_feed_form form)
{
	static const char *const types[FGV_FEED_FORMS] = {
		"application/json",
		"text/plain; version=0.0.4; charset=utf-8",
		"application/openmetrics-text; version=1.0.0; charset=utf-8",
	};

	return types[form];
}

static void forget_report(struct fgv_http *http)
{
	for (size_t i = 0; i < FGV_FEED_FORMS; i++) {
		if (http->report[i])
			MHD_destroy_response(http->report[i]);
		http->report[i] = NULL;
	}
	http->made_of = 0;
}

/* One copy of each form for all clients; slow ones keep that of an older report. */
static struct MHD_Response *response_of(struct fgv_http *http, enum fgv_feed_form form)
{
	struct fgv_feed *feed = http->feed;
	struct MHD_Response **response = &http->report[form];

	fgv_feed_refresh(feed);
	if (http->made_of != feed->number)
		forget_report(http);
	http->made_of = feed->number;
	if (!*response && feed->text[form]) {
		*response = MHD_create_response_from_buffer(feed->len[form], feed->text[form],
							    MHD_RESPMEM_MUST_COPY);
		if (*response)
			add_headers(*response, type_of(form));
	}
	return *response;
}

static enum MHD_Result reply_report(struct fgv_http *http, struct MHD_Connection *connection,
				    enum fgv_feed_form form)
{
	struct MHD_Response *response = response_of(http, form);

	if (response)
		return MHD_queue_response(connection, MHD_HTTP_OK, response);
	return reply_with(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text_plain, http->feed->why,
			  strlen(http->feed->why), MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result reply_metrics(struct fgv_http *http, struct MHD_Connection *connection)
{
	const char *wanted =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool is_open = wanted && strstr(wanted, openmetrics);

	return reply_report(http, connection, is_open ? FGV_FEED_OPENMETRICS : FGV_FEED_PROMETHEUS);
}

static enum MHD_Result reply_page(struct MHD_Connection *connection)
{
	return reply_with(connection, MHD_HTTP_OK, "text/html; charset=utf-8", fgv_page_text,
			  sizeof(fgv_page_text) - 1, MHD_RESPMEM_PERSISTENT);
}

/* --- Requests ---------------------------------------------------------------- */

/* What stands before the port. */
static bool is_local_name(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

	for (size_t i = 0; host && i < FGV_ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);

		if (!strncasecmp(host, names[i], len) && (!host[len] || host[len] == ':'))
			return true;
	}
	return false;
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_len, void **state)
{
	struct fgv_http *http = cls;
	const char *host =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	(void)version;
	(void)upload;
	(void)upload_len;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
	if (http->only_local_names && !is_local_name(host))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "this host is not called so\n");
	if (!strcmp(url, "/"))
		return reply_page(connection);
	if (!strcmp(url, "/metrics"))
		return reply_metrics(http, connection);
	if (!strcmp(url, "/report"))
		return reply_report(http, connection, FGV_FEED_JSON);
	return refuse(connection, MHD_HTTP_NOT_FOUND, "there are /, /metrics and /report\n");
}

/* --- Serving ----------------------------------------------------------------- */

int fgv_http_init(struct fgv_http *http, int fd, bool only_local_names, struct fgv_feed *feed)
{
	*http = (struct fgv_http){.feed = feed, .only_local_names = only_local_names};
	LIST_INIT(&http->clients);
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, answer, http, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)FGV_HTTP_CLIENTS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)FGV_HTTP_IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)FGV_HTTP_MEMORY_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, http, MHD_OPTION_END);
	if (http->daemon)
		return 0;
	close(fd);
	return -ENOMEM;
}

void fgv_http_fini(struct fgv_http *http)
{
	forget_report(http);
	MHD_stop_daemon(http->daemon); /* closes the socket, too */
}

int fgv_http_fd(const struct fgv_http *http)
{
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int fgv_http_timeout_ms(const struct fgv_http *http)
{
	MHD_UNSIGNED_LONG_LONG wanted_ms;

	if (MHD_get_timeout(http->daemon, &wanted_ms) == MHD_YES)
		return (int)fgv_min_u64(wanted_ms, TICK_MS);
	return LIST_EMPTY(&http->clients) ? -1 : TICK_MS;
}

void fgv_http_run(struct fgv_http *http)
{
	MHD_run(http->daemon);
	end_late(http);
}
