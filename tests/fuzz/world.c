/* The same stages as in the daemon's main(), but for processes and signals. */
#include "tests/fuzz/world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONFIG                                                                                     \
	"gpu = \"soft\"; window = \"8M\"; lanes = 4; warm = 0; cgroup = \"off\"; engines = false;" \
	"vms = ( { name = \"a\"; memory = \"64M\"; }, { name = \"b\"; weight = 3; } );"

/* A fuzzer has standard error closed, but the sanitizer's reports come through. */
void __sanitizer_report_error_summary(const char *text) __attribute__((weak));

static void must(bool ok, const char *what, const char *why)
{
	char text[640];

	if (ok)
		return;
	snprintf(text, sizeof(text), "the machine refused: %s: %s", what, why);
	if (__sanitizer_report_error_summary)
		__sanitizer_report_error_summary(text);
	else
		fprintf(stderr, "%s\n", text);
	abort();
}

/* Of what returns a negative errno, or sets it. */
static void must_do(int ret, const char *what)
{
	must(ret >= 0, what, strerror(ret < -1 ? -ret : errno));
}

static int open_guest(const struct fgv_config_vm *vm, char *why, size_t why_len)
{
	(void)vm, (void)why, (void)why_len;
	return 0;
}

static void settle_guests(void)
{
}

static void begin_config(struct fuzz_world *world)
{
	char why[512] = "", choice[512];

	must(!fgv_config_parse(&world->config, CONFIG, "world", why, sizeof(why)), "configuration",
	     why);
	must(!fgv_live_init(&world->live, &world->config, NULL, NULL, why, sizeof(why)), "settings",
	     why);
	must(!fgv_devices_init(&world->devices, &world->config, why, sizeof(why), choice,
			       sizeof(choice)),
	     "devices", why);
	must_do(fgv_devices_start(&world->devices, &world->config), "starting devices");
	fgv_vms_init(&world->vms, &world->cgroups);
	must(!fgv_cgroups_init(&world->cgroups, world->config.cgroup, why, sizeof(why)),
	     "control groups", why);
}

static void begin_sessions(struct fuzz_world *world)
{
	char why[512] = "";

	/* As fgv_warm_init() leaves it; there is no vGPU program that it could find. */
	world->warm = (struct fgv_warm){.config = &world->config,
					.devices = &world->devices,
					.mps = &world->mps,
					.loop = world->loop,
					.ending = true};
	LIST_INIT(&world->warm.list);
	must(!fgv_sessions_init(&world->sessions, &world->config, &world->warm, world->loop, why,
				sizeof(why)),
	     "sessions", why);
	fgv_figures_init(&world->figures, NULL);
	world->sessions.mps = &world->mps;
	world->sessions.figures = &world->figures;
}

static void begin_sockets(struct fuzz_world *world)
{
	const struct fgv_live_parts parts = {
		.config = &world->config,
		.devices = &world->devices,
		.vms = &world->vms,
		.sessions = &world->sessions,
		.warm = &world->warm,
		.doors = &world->doors,
		.guests = {.open = open_guest, .settle = settle_guests},
	};
	char why[512] = "";

	strcpy(world->folder, "/dev/shm/fairgv-fuzz-XXXXXX");
	must(mkdtemp(world->folder), world->folder, strerror(errno));
	snprintf(world->socket, sizeof(world->socket), "%s/socket", world->folder);
	snprintf(world->control, sizeof(world->control), "%s/control", world->folder);
	must(!fgv_doors_init(&world->doors, world->loop, world->socket, &world->sessions,
			     &world->vms, why, sizeof(why)),
	     "sockets", why);
	must(!fgv_live_start(&world->live, &parts, why, sizeof(why)), "live changes", why);
}

/* The one whose folder the process leaves behind, since targets keep it for their next input. */
static struct fuzz_world *open_world;

static void remove_files(void)
{
	if (!open_world)
		return;
	unlink(open_world->socket);
	unlink(open_world->control);
	rmdir(open_world->folder);
}

void fuzz_world_begin(struct fuzz_world *world)
{
	static bool is_known;

	if (!is_known)
		is_known = atexit(remove_files) == 0;
	open_world = world;
	memset(world, 0, sizeof(*world));
	world->loop = fgv_loop_create();
	must_do(world->loop, "epoll");
	begin_config(world);
	begin_sessions(world);
	begin_sockets(world);
}

void fuzz_world_end(struct fuzz_world *world)
{
	fgv_doors_fini(&world->doors);
	must(world->sessions.count == 0 && world->warm.count == 0, "the end", "sessions are left");
	fgv_sessions_fini(&world->sessions);
	fgv_vms_fini(&world->vms);
	fgv_cgroups_fini(&world->cgroups);
	fgv_devices_stop(&world->devices);
	fgv_devices_fini(&world->devices);
	fgv_live_fini(&world->live);
	fgv_config_fini(&world->config);
	close(world->loop);
	must(!rmdir(world->folder), world->folder, strerror(errno));
	open_world = NULL;
}

void fuzz_loop_turn(int loop)
{
	struct pollfd pending = {.fd = loop, .events = POLLIN};

	while (poll(&pending, 1, 0) > 0)
		fgv_loop_turn(loop, 0);
}

int fuzz_next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	must_do(fd, "/dev/null");
	close(fd);
	return fd;
}

int fuzz_connect(const char *path, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	must_do(fd, "a socket");
	must(strlen(path) < sizeof(address.sun_path), path, strerror(ENAMETOOLONG));
	strcpy(address.sun_path, path);
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}
