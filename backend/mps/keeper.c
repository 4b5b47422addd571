/*
 * The keeper of MPS; see keeper.h. It waits in an event loop whatever it waits for, so
 * that it never misses the end of the daemon.
 *
 * The folder is locked for as long as the keeper lives: a daemon that is started where one
 * was killed a moment ago waits until the MPS of that one has been taken down.
 */
#define _GNU_SOURCE
#include "backend/mps/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/loop.h"
#include "backend/mps/control.h"
#include "common/log.h"
#include "common/util.h"

#define PAUSE_MS 50 /* between two looks at something that nothing tells of */

/* How long MPS gets to end: when asked to, on SIGTERM, on SIGKILL. */
#define QUIT_MS 2000
#define TERM_MS 1000
#define KILL_MS 4000

/* The pause before it is started again: doubled each time, and short again when it ran. */
#define AGAIN_MIN_S 1
#define AGAIN_MAX_S 60

static struct {
	const char *folder;
	int folder_fd; /* locked */
	char pipes[PATH_MAX];
	char logs[PATH_MAX];
	uint64_t ready_ns;
	int loop;
	struct fgv_watch channel;
	bool told_to_end;
} keeper;

static uint64_t in_ms(uint64_t ms)
{
	return fgv_now_ns() + ms * FGV_NS_PER_MS;
}

/* The daemon sends nothing, so this is its end, or that of its end of the channel. */
static void channel_ready(struct fgv_watch *watch, uint32_t events)
{
	(void)events;
	keeper.told_to_end = true;
	fgv_loop_remove(keeper.loop, watch);
}

static void report(enum fgv_mps_news news, const char *text)
{
	struct fgv_mps_message message = {.news = news};

	snprintf(message.text, sizeof(message.text), "%s", text);
	if (send(FGV_MPS_KEEPER_FD, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		fgv_debug("the daemon does not hear of MPS: %s", strerror(errno));
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	remove(path);
	return 0;
}

static void remove_folders(void)
{
	nftw(keeper.pipes, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	nftw(keeper.logs, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* A locked descriptor of the folder, made if need be; -EAGAIN: somebody else has it. */
static int open_folder(void)
{
	struct stat there, opened;
	int fd;

	if (mkdir(keeper.folder, 0700) && errno != EEXIST)
		return -errno;
	fd = open(keeper.folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	/* Whoever had it before may have removed it from under us. */
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &opened) || lstat(keeper.folder, &there) ||
	    opened.st_ino != there.st_ino || opened.st_dev != there.st_dev) {
		close(fd);
		return -EAGAIN;
	}
	if (opened.st_uid != geteuid() || fchmod(fd, 0700)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static int take_folder(void)
{
	uint64_t deadline_ns = fgv_now_ns() + keeper.ready_ns;
	int fd;

	while ((fd = open_folder()) == -EAGAIN && !keeper.told_to_end && fgv_now_ns() < deadline_ns)
		fgv_loop_turn(keeper.loop, in_ms(PAUSE_MS));
	keeper.folder_fd = fd;
	return fd < 0 ? fd : 0;
}

static void give_folder(void)
{
	remove_folders();
	rmdir(keeper.folder);
	close(keeper.folder_fd);
}

/* Drivers that don't know get_server_status are believed. */
static bool server_is_up(uint64_t deadline_ns)
{
	const char *answer;
	char text[64];
	long server;

	if (fgv_mps_control_command("get_server_list\n", deadline_ns, &answer))
		return false;
	server = strtol(answer, NULL, 10);
	if (server <= 0)
		return false;
	snprintf(text, sizeof(text), "get_server_status %ld\n", server);
	if (fgv_mps_control_command(text, deadline_ns, &answer))
		return false;
	return !strstr(answer, "INITIALIZING") && !strstr(answer, "FAULT");
}

/*
 * Starts the server without waiting for a client, so that what ails it shows now and the
 * first session need not wait. 0, -ECHILD: the control daemon has ended, -ETIMEDOUT,
 * -ECANCELED: told to end.
 */
static int await_server(void)
{
	uint64_t deadline_ns = fgv_now_ns() + keeper.ready_ns;
	bool started = false;
	const char *answer;
	char text[64];

	snprintf(text, sizeof(text), "start_server -uid %u\n", (unsigned)geteuid());
	while (!keeper.told_to_end) {
		if (!fgv_mps_control_runs())
			return -ECHILD;
		if (fgv_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		started = started || !fgv_mps_control_command(text, deadline_ns, &answer);
		if (started && server_is_up(deadline_ns))
			return 0;
		fgv_loop_turn(keeper.loop, fgv_min_u64(deadline_ns, in_ms(PAUSE_MS)));
	}
	return -ECANCELED;
}

static void explain(int error, char *why, size_t len)
{
	if (error == -ECHILD)
		fgv_mps_control_explain(why, len);
	else if (error == -ETIMEDOUT)
		snprintf(why, len, "NVIDIA's MPS did not get ready in %.1f s",
			 (double)keeper.ready_ns / FGV_NS_PER_SEC);
	else
		snprintf(why, len, "NVIDIA's MPS can't be started: %s", strerror(-error));
	if (*fgv_mps_control_said())
		snprintf(why + strlen(why), len - strlen(why), "; it said: %s",
			 fgv_mps_control_said());
}

static int start(char *why, size_t len)
{
	int ret = 0;

	remove_folders();
	if (mkdir(keeper.pipes, 0700) || mkdir(keeper.logs, 0700))
		ret = -errno;
	if (!ret)
		ret = fgv_mps_control_start();
	if (!ret)
		ret = await_server();
	if (ret && ret != -ECANCELED)
		explain(ret, why, len);
	return ret;
}

static void kill_all(void)
{
	if (!fgv_mps_control_end(SIGTERM, in_ms(TERM_MS)) &&
	    !fgv_mps_control_end(SIGKILL, in_ms(KILL_MS)))
		fgv_error("NVIDIA's MPS has processes that do not die");
}

static void stop(void)
{
	uint64_t deadline_ns = in_ms(QUIT_MS);
	const char *answer;

	if (fgv_mps_control_runs() && !fgv_mps_control_command("quit\n", deadline_ns, &answer))
		fgv_mps_control_end(0, deadline_ns);
	kill_all();
}

/* Until MPS ends or is to end. */
static void watch_control(char *why, size_t len)
{
	report(FGV_MPS_READY, "");
	while (fgv_mps_control_runs() && !keeper.told_to_end)
		fgv_loop_turn(keeper.loop, 0);
	if (keeper.told_to_end)
		return;
	report(FGV_MPS_DOWN, "");
	fgv_mps_control_explain(why, len);
}

static void pause_s(unsigned seconds)
{
	uint64_t deadline_ns = in_ms(seconds * 1000ull);

	while (!keeper.told_to_end && fgv_now_ns() < deadline_ns)
		fgv_loop_turn(keeper.loop, deadline_ns);
}

/* Keeps MPS running until told to end. Its first start alone may fail for good. */
static void keep(void)
{
	char why[sizeof(((struct fgv_mps_message *)NULL)->text)];
	unsigned again_s = AGAIN_MIN_S;

	for (bool first = true; !keeper.told_to_end; first = false) {
		uint64_t started_ns = fgv_now_ns();
		int ret = start(why, sizeof(why));

		if (!ret)
			watch_control(why, sizeof(why));
		if (keeper.told_to_end)
			return;
		kill_all();
		if (ret && first) {
			report(FGV_MPS_FAILED, why);
			return;
		}
		if (fgv_now_ns() - started_ns > AGAIN_MAX_S * FGV_NS_PER_SEC)
			again_s = AGAIN_MIN_S;
		fgv_warning("%s; it is started again in %u s%s", why, again_s,
			    ret ? "" : ", and the sessions that used it fail");
		pause_s(again_s);
		again_s = (unsigned)fgv_min_u64(2ull * again_s, AGAIN_MAX_S);
	}
}

static int set_up(char **argv)
{
	int ret;

	close_range(FGV_MPS_KEEPER_FD + 1, ~0u, 0);
	keeper.folder = argv[FGV_MPS_KEEPER_FOLDER];
	keeper.ready_ns = strtoull(argv[FGV_MPS_KEEPER_READY_MS], NULL, 10) * FGV_NS_PER_MS;
	keeper.channel = (struct fgv_watch){.fd = FGV_MPS_KEEPER_FD, .ready = channel_ready};
	snprintf(keeper.pipes, sizeof(keeper.pipes), "%s/" FGV_MPS_PIPES, keeper.folder);
	snprintf(keeper.logs, sizeof(keeper.logs), "%s/" FGV_MPS_LOGS, keeper.folder);
	if (setenv("CUDA_MPS_PIPE_DIRECTORY", keeper.pipes, 1) ||
	    setenv("CUDA_MPS_LOG_DIRECTORY", keeper.logs, 1) ||
	    setenv("CUDA_VISIBLE_DEVICES", argv[FGV_MPS_KEEPER_DEVICES], 1) ||
	    fcntl(FGV_MPS_KEEPER_FD, F_SETFD, FD_CLOEXEC) || prctl(PR_SET_NAME, FGV_MPS_KEEPER))
		return -errno;
	keeper.loop = fgv_loop_create();
	if (keeper.loop < 0)
		return keeper.loop;
	ret = fgv_loop_add(keeper.loop, &keeper.channel, EPOLLIN);
	return ret ? ret : fgv_mps_control_init(keeper.loop, &keeper.told_to_end);
}

bool fgv_mps_keeper_asked(int argc, char **argv)
{
	return argc == FGV_MPS_KEEPER_ARGUMENTS && !strcmp(argv[0], FGV_MPS_KEEPER);
}

int fgv_mps_keeper_run(char **argv)
{
	char why[128];
	int ret;

	fgv_log_init("fairgv-backend");
	fgv_log_be_service();
	ret = set_up(argv);
	if (!ret)
		ret = take_folder();
	if (ret) {
		snprintf(why, sizeof(why), "NVIDIA's MPS can't have its folder: %s",
			 ret == -EAGAIN ? "another daemon's is in it" : strerror(-ret));
		report(FGV_MPS_FAILED, why);
		return EXIT_FAILURE;
	}
	keep();
	stop();
	give_folder();
	return EXIT_SUCCESS;
}
