/*
 * fairgv-metrics: serves what the daemon tells of its GPUs and VMs over HTTP, to Prometheus and to
 * people. It is a program of its own so that its clients reach nothing: it asks the daemon at a
 * socket that answers questions only (key observe), as a user that may do nothing else.
 *
 * Exit status: 0 after SIGTERM; 1 where it can't serve; 2 for a wrong command line.
 */
#define _GNU_SOURCE
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "backend/config/config.h"
#include "backend/listener.h"
#include "common/log.h"
#include "common/options.h"
#include "common/util.h"
#include "tools/metrics/feed.h"
#include "tools/metrics/http.h"

#define EXIT_USAGE 2
#define DOORS_MAX  2 /* a Unix socket and a port */

/* Where clients come in. */
struct door {
	struct fgv_http http;
	char path[PATH_MAX]; /* empty: a port */
	struct stat file;
};

struct server {
	struct fgv_feed feed;
	char asked[PATH_MAX]; /* where the daemon is asked */
	struct door doors[DOORS_MAX];
	size_t door_count;
	int signals;
};

static const char usage[] =
	"usage: fairgv-metrics [OPTION]...\n"
	"  --config FILE  the daemon's configuration (" FGV_SYSCONFDIR "/fairgv/backend.conf)\n"
	"  --version      print the version\n"
	"  --help         print this\n";

static const char *parse_options(int argc, char **argv)
{
	static const struct option table[] = {
		{"config", required_argument, NULL, 'c'},
		FGV_OPTIONS_END,
	};
	static const struct fgv_options command_line = {
		.usage = usage, .table = table, .order = "", .refusal = EXIT_USAGE};
	const char *path = FGV_SYSCONFDIR "/fairgv/backend.conf";

	while (fgv_options_next(&command_line, argc, argv) != -1)
		path = optarg;
	fgv_options_end(&command_line, argc, argv);
	return path;
}

/* --- Rights ------------------------------------------------------------------ */

/* Root's are given up for those of the user that may observe. 0 or a negative errno. */
static int become(uid_t uid)
{
	const struct passwd *user;

	if (geteuid() != 0 || uid == 0)
		return 0;
	user = getpwuid(uid);
	if (setgroups(0, NULL) || setgid(user ? user->pw_gid : (gid_t)uid) || setuid(uid))
		return -errno;
	return 0;
}

static int give_up_rights(const struct fgv_config *config)
{
	int ret = become(config->observe_user);

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (ret)
		fgv_error("can't become user %u: %s", (unsigned)config->observe_user,
			  strerror(-ret));
	else if (geteuid() == 0)
		fgv_warning("runs as root: give key observe_user another user");
	return ret;
}

/* --- Doors ------------------------------------------------------------------- */

static int add_door(struct server *server, int fd, bool is_port)
{
	struct door *door = &server->doors[server->door_count];
	int ret = fgv_http_init(&door->http, fd, is_port, &server->feed);

	if (ret)
		fgv_error("can't serve: %s", strerror(-ret));
	else
		server->door_count++;
	return ret;
}

/* Its user's and group's: those who may see what the daemon shows to observers. */
static int open_socket(struct server *server, const struct fgv_config *config)
{
	struct door *door = &server->doors[server->door_count];
	char why[PATH_MAX + 128];
	int fd, ret;

	snprintf(door->path, sizeof(door->path), "%s", config->metrics_socket);
	fd = fgv_listener_open(door->path, SOCK_STREAM, 0660, &door->file, why, sizeof(why));
	if (fd < 0) {
		fgv_error("%s", why);
		return fd;
	}
	if (geteuid() == 0 && config->observe_user &&
	    chown(door->path, config->observe_user, (gid_t)-1))
		fgv_warning("%s: %s", door->path, strerror(errno));
	ret = add_door(server, fd, false);
	if (ret)
		unlink(door->path);
	return ret;
}

static int listen_at_port(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, ret;

	if (fd < 0)
		return -errno;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, SOMAXCONN))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static int open_port(struct server *server, uint16_t port)
{
	int fd = listen_at_port(port);

	if (fd >= 0)
		return add_door(server, fd, true);
	fgv_error("port %u of 127.0.0.1: %s", port, strerror(-fd));
	return fd;
}

static void close_doors(struct server *server)
{
	while (server->door_count) {
		struct door *door = &server->doors[--server->door_count];

		fgv_http_fini(&door->http);
		if (*door->path)
			unlink(door->path);
	}
}

static int open_doors(struct server *server, const struct fgv_config *config)
{
	int ret = open_socket(server, config);

	if (!ret && config->metrics_port)
		ret = open_port(server, (uint16_t)config->metrics_port);
	return ret;
}

/* --- Serving ----------------------------------------------------------------- */

/* SIGPIPE comes where a client goes while it is answered. */
static int watch_signals(void)
{
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int timeout_ms(const struct server *server)
{
	int earliest = -1;

	for (size_t i = 0; i < server->door_count; i++) {
		int ms = fgv_http_timeout_ms(&server->doors[i].http);

		if (ms >= 0 && (earliest < 0 || ms < earliest))
			earliest = ms;
	}
	return earliest;
}

static int serve(struct server *server)
{
	struct pollfd fds[1 + DOORS_MAX] = {{.fd = server->signals, .events = POLLIN}};

	for (size_t i = 0; i < server->door_count; i++)
		fds[1 + i] = (struct pollfd){.fd = fgv_http_fd(&server->doors[i].http),
					     .events = POLLIN};
	while (!(fds[0].revents & POLLIN)) {
		if (poll(fds, 1 + server->door_count, timeout_ms(server)) < 0 && errno != EINTR)
			return -errno;
		for (size_t i = 0; i < server->door_count; i++)
			fgv_http_run(&server->doors[i].http);
	}
	return 0;
}

static void say_ready(const struct server *server, const struct fgv_config *config)
{
	char port[32] = "";

	if (config->metrics_port)
		snprintf(port, sizeof(port), " and at port %u", (unsigned)config->metrics_port);
	fgv_info("serves what %s tells at %s%s", server->asked, config->metrics_socket, port);
	sd_notify(false, "READY=1");
}

static int start(struct server *server, const struct fgv_config *config)
{
	int ret = open_doors(server, config);

	if (!ret)
		ret = give_up_rights(config);
	if (ret)
		return ret;
	server->signals = watch_signals();
	if (server->signals < 0)
		return server->signals;
	say_ready(server, config);
	return 0;
}

/* What the configuration says is needed at the start only. */
static int run(const char *config_path, struct server *server)
{
	struct fgv_config config;
	char why[1024];
	int ret = fgv_config_load(&config, config_path, why, sizeof(why));

	if (ret) {
		fgv_error("%s", why);
		return ret;
	}
	snprintf(server->asked, sizeof(server->asked), "%s",
		 config.observe ? config.observe : config.control);
	fgv_feed_init(&server->feed, server->asked);
	ret = start(server, &config);
	fgv_config_fini(&config);
	if (!ret)
		ret = serve(server);
	close_doors(server);
	fgv_feed_fini(&server->feed);
	return ret;
}

int main(int argc, char **argv)
{
	static struct server server;

	fgv_log_init("fairgv-metrics");
	return run(parse_options(argc, argv), &server) ? EXIT_FAILURE : EXIT_SUCCESS;
}
