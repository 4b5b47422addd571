/*
 * fairgv-run: runs a CUDA program under FairGV. Where a daemon answers, the program
 * is told where it is and takes this process over; where none is expected and none does, a
 * private one is started for this run (run_private.c). In a guest with a FairGV device the program
 * finds that by itself.
 *
 * Exit status: the program's, 128 and the signal where one killed it, 127 where it
 * was not found, 126 where it can't be executed, 125 for what is wrong here.
 */
#include <config.h>

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "api/wire.h"
#include "common/log.h"
#include "common/options.h"
#include "tools/run.h"

static const char default_socket[] = FGV_RUNSTATEDIR "/fairgv/backend.sock";
static const char library[] = "libcudart.so.13";

#define DEVICE_NAME "/dev/fairgv"

static const char usage[] =
	"usage: fairgv-run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"  --vm NAME       the VM to run in (the first that you may use)\n"
	"  --config FILE   start a private daemon with this configuration\n"
	"  --socket PATH   the daemon's socket ($FAIRGV_SOCKET; none where there is\n"
	"                  " DEVICE_NAME "; " FGV_RUNSTATEDIR "/fairgv/backend.sock)\n"
	"  --private       start a private daemon, whatever runs here\n"
	"  --strict        hide the GPU's own devices from the program\n"
	"  --quiet         print no line of FairGV's own but errors ($FAIRGV_QUIET)\n"
	"  --stats         print what the program asked of the GPU when it ends\n"
	"  --version       print the version\n"
	"  --help          print this\n";

static void parse_options(int argc, char **argv, struct fgv_run *run)
{
	static const struct option table[] = {
		{"vm", required_argument, NULL, 'm'},
		{"config", required_argument, NULL, 'c'},
		{"socket", required_argument, NULL, 's'},
		{"private", no_argument, NULL, 'p'},
		{"strict", no_argument, NULL, 'S'},
		{"quiet", no_argument, NULL, 'q'},
		{"stats", no_argument, NULL, 't'},
		FGV_OPTIONS_END,
	};
	static const struct fgv_options command_line = {
		.usage = usage, .table = table, .order = "+", .refusal = FGV_RUN_FAILED};
	int option;

	*run = (struct fgv_run){0};
	while ((option = fgv_options_next(&command_line, argc, argv)) != -1) {
		switch (option) {
		case 'm':
			run->vm = optarg;
			break;
		case 'c':
			run->config_path = optarg;
			break;
		case 's':
			run->socket = optarg;
			break;
		case 'p':
			run->is_private = true;
			break;
		case 'S':
			run->is_strict = true;
			break;
		case 'q':
			setenv("FAIRGV_QUIET", "1", 1);
			break;
		case 't':
			setenv("FAIRGV_STATS", "1", 0);
			break;
		}
	}
	run->program = argv + optind;
}

static int check_options(const struct fgv_run *run)
{
	struct sockaddr_un address;

	if (!run->program[0]) {
		fputs(usage, stderr);
		return -EINVAL;
	}
	if (run->vm && strlen(run->vm) >= FGV_NAME_MAX) {
		fgv_error("--vm: a VM's name has at most %d characters", FGV_NAME_MAX - 1);
		return -EINVAL;
	}
	if (run->socket && (run->config_path || run->is_private)) {
		fgv_error("--socket is of a daemon that runs, %s for one to be started: not both",
			  run->config_path ? "--config" : "--private");
		return -EINVAL;
	}
	if (run->socket && strlen(run->socket) >= sizeof(address.sun_path)) {
		fgv_error("--socket: the path is too long");
		return -EINVAL;
	}
	return 0;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* What options leave open. A guest's device is not a daemon's socket: libcudart chooses it. */
static int choose(struct fgv_run *run)
{
	const char *device = variable("FAIRGV_DEVICE");

	if (!device && !access(DEVICE_NAME, F_OK))
		device = DEVICE_NAME;
	run->use_device = device && !run->socket && !run->config_path && !run->is_private &&
			  !variable("FAIRGV_SOCKET");
	if (run->use_device && run->vm) {
		fgv_error("--vm: the host knows which VM %s belongs to; --socket or --config is "
			  "for a daemon of this machine",
			  device);
		return -EINVAL;
	}
	if (!run->use_device && !run->vm)
		run->vm = variable("FAIRGV_VM");
	return 0;
}

/* 0 if a daemon answers at @path. */
static int probe_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int ret = 0;
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno != EAGAIN)
		ret = -errno; /* EAGAIN: its queue is full, so it is there */
	close(fd);
	return ret;
}

/*
 * Where our own files are: in the build tree if this runs from there, else where they
 * were installed.
 */
static int find_files(struct fgv_run *run)
{
	char self[PATH_MAX], path[PATH_MAX + 128];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *folder;

	snprintf(run->backend_path, sizeof(run->backend_path), "%s", FGV_SBINDIR "/fairgv-backend");
	snprintf(run->library_folder, sizeof(run->library_folder), "%s", FGV_PKGLIBDIR);
	if (len > 0) {
		self[len] = '\0';
		folder = dirname(dirname(self));
		snprintf(path, sizeof(path), "%s/frontend/.libs/%s", folder, library);
		if (!access(path, F_OK)) {
			snprintf(run->library_folder, sizeof(run->library_folder), "%s",
				 dirname(path));
			snprintf(run->backend_path, sizeof(run->backend_path),
				 "%s/backend/fairgv-backend", folder);
			return 0;
		}
	}
	snprintf(path, sizeof(path), "%s/%s", run->library_folder, library);
	if (!access(path, F_OK))
		return 0;
	fgv_error("%s: %s", path, strerror(errno));
	return -ENOENT;
}

static int prepend_library_path(const char *folder)
{
	const char *before = getenv("LD_LIBRARY_PATH");
	char *path;
	int ret;

	if (!before || !*before)
		return setenv("LD_LIBRARY_PATH", folder, 1) ? -errno : 0;
	if (asprintf(&path, "%s:%s", folder, before) < 0)
		return -ENOMEM;
	ret = setenv("LD_LIBRARY_PATH", path, 1) ? -errno : 0;
	free(path);
	return ret;
}

int fgv_run_execute(const struct fgv_run *run)
{
	if (prepend_library_path(run->library_folder) ||
	    (run->socket && setenv("FAIRGV_SOCKET", run->socket, 1)) ||
	    (run->vm && setenv("FAIRGV_VM", run->vm, 1))) {
		fgv_error("out of memory");
		return FGV_RUN_FAILED;
	}
	if (run->is_strict && fgv_run_strict())
		return FGV_RUN_FAILED;
	execvp(run->program[0], run->program);
	fgv_error("%s: %s", run->program[0], errno == ENOENT ? "no such program" : strerror(errno));
	return errno == ENOENT ? FGV_RUN_NOT_FOUND : FGV_RUN_NOT_EXECUTABLE;
}

/* Whether the program can use a daemon that is there; else one is to be started. */
static bool find_daemon(struct fgv_run *run, int *error)
{
	const char *given = run->socket ? run->socket : variable("FAIRGV_SOCKET");

	*error = 0;
	if (run->config_path || run->is_private)
		return false;
	run->socket = given ? given : default_socket;
	*error = probe_socket(run->socket);
	if (*error && given)
		fgv_error("no daemon answers at %s: %s; --private starts one for this run", given,
			  strerror(-*error));
	return !*error || given;
}

/* What it is told that the program may not tell: it has been replaced by then. */
static void find_hint(struct fgv_run *run, char *text, size_t len)
{
	run->hint = fgv_run_hint(run, text, len);
	if (run->hint)
		fgv_warning("%s", run->hint);
}

int main(int argc, char **argv)
{
	struct fgv_run run;
	char hint[PATH_MAX + 256];
	int error;

	fgv_log_init("fairgv-run");
	parse_options(argc, argv, &run);
	fgv_log_init("fairgv-run"); /* options may have changed what it goes by */
	if (choose(&run) || check_options(&run) || find_files(&run))
		return FGV_RUN_FAILED;
	find_hint(&run, hint, sizeof(hint));
	if (run.use_device)
		return fgv_run_execute(&run);
	if (find_daemon(&run, &error))
		return error ? FGV_RUN_FAILED : fgv_run_execute(&run);
	return fgv_run_private(&run);
}
