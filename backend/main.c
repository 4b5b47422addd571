/*
 * fairgv-backend: the daemon that lets programs in, each into its VM. It starts a
 * vGPU process for each, says which of them may use the GPU when, and keeps the books; it is
 * on no path that a GPU request takes.
 *
 * One event loop, and a thread for each GPU that schedules it (gpusched.h). This file holds
 * the daemon's state, starts its parts in order and ends them in reverse; what comes before that is
 * in startup.c and process.c.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "backend/admin/admin.h"
#include "backend/config/config.h"
#include "backend/devices.h"
#include "backend/doors.h"
#include "backend/figures.h"
#include "backend/guard/cgroup.h"
#include "backend/journal.h"
#include "backend/journald.h"
#include "backend/live.h"
#include "backend/loop.h"
#include "backend/memwatch.h"
#include "backend/mps/keeper.h"
#include "backend/mps/mps.h"
#include "backend/options.h"
#include "backend/process.h"
#include "backend/relay.h"
#include "backend/session.h"
#include "backend/startup.h"
#include "backend/vms.h"
#include "backend/warm.h"
#include "common/log.h"
#include "common/util.h"
#include "qemu-device/herald.h"
#include "qemu-device/ivshmem.h"
#include "qemu-device/qmp.h"
#include "shmring/park.h"

/* After the end was asked for: when sessions get SIGTERM and SIGKILL, and are given up. */
#define END_TERM_MS    2000
#define END_KILL_MS    4000
#define END_GIVE_UP_MS 10000

/* The first use of the driver may take seconds for each GPU. */
#define MPS_READY_MS 30000

static struct {
	struct fgv_config config;
	struct fgv_live live;
	struct fgv_devices devices;
	struct fgv_vms vms;
	int loop;
	struct fgv_watch signals;
	struct fgv_watch lifetime;
	struct fgv_relays relays;
	struct fgv_warm warm;
	struct fgv_sessions sessions;
	struct fgv_journal journal;
	struct fgv_memwatch memwatch;
	struct fgv_figures figures;
	struct fgv_doors doors;
	struct fgv_cgroups cgroups;
	struct fgv_ivshmem ivshmem;
	struct fgv_qmp qmp;
	struct fgv_watch vcpus; /* some are to be looked for */
	struct fgv_admin admin, observers;
	char control[PATH_MAX]; /* the administrator's socket */
	char observe[PATH_MAX]; /* the observers', if there is one */
	struct fgv_mps mps;
	uint64_t ending_ns; /* not 0: since when */
} backend;

static void begin_end(const char *why)
{
	if (backend.ending_ns)
		return;
	fgv_info("ending: %s", why);
	sd_notifyf(false, "STOPPING=1\nSTATUS=Ending: %s", why);
	backend.ending_ns = fgv_now_ns();
	fgv_doors_fini(&backend.doors);
	fgv_sessions_end(&backend.sessions, "the host's daemon is ending");
	fgv_qmp_fini(&backend.qmp);
	fgv_ivshmem_fini(&backend.ivshmem);
	fgv_admin_fini(&backend.admin);
	fgv_admin_fini(&backend.observers);
	fgv_warm_end(&backend.warm);
}

static void reap(void)
{
	fgv_sessions_reap(&backend.sessions);
	fgv_warm_reap(&backend.warm);
	fgv_vms_reap(&backend.vms);
	fgv_sessions_end_lost(&backend.sessions);
	fgv_ivshmem_reaped(&backend.ivshmem);
	fgv_doors_reaped(&backend.doors);
}

/* What has come of it is in the log. */
static void reload(void)
{
	const struct fgv_live_request request = {.by = "SIGHUP"};
	struct fgv_plan done;
	char why[1024];

	if (backend.ending_ns)
		return;
	fgv_live_reload(&backend.live, &request, &done, why, sizeof(why));
	fgv_plan_fini(&done);
}

static void signals_ready(struct fgv_watch *watch, uint32_t events)
{
	struct signalfd_siginfo signal;

	(void)events;
	while (read(watch->fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo == SIGCHLD)
			reap();
		else if (signal.ssi_signo == SIGHUP)
			reload();
		else
			begin_end(strsignal((int)signal.ssi_signo));
	}
}

static void lifetime_ready(struct fgv_watch *watch, uint32_t events)
{
	(void)events;
	fgv_loop_remove(backend.loop, watch);
	begin_end("the one that it was started for is gone");
}

static void vcpus_ready(struct fgv_watch *watch, uint32_t events)
{
	(void)events;
	fgv_doorbell_clear(watch->fd);
	fgv_sessions_find_vcpus(&backend.sessions);
}

static int watch_vcpus(void)
{
	backend.vcpus = (struct fgv_watch){
		.fd = backend.devices.cosched.bell_fd,
		.ready = vcpus_ready,
	};
	return fgv_loop_add(backend.loop, &backend.vcpus, EPOLLIN);
}

static int watch_signals(void)
{
	sigset_t set;
	int ret;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write that fails says so */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	backend.signals.ready = signals_ready;
	backend.signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (backend.signals.fd < 0)
		return -errno;
	ret = fgv_loop_add(backend.loop, &backend.signals, EPOLLIN);
	if (ret)
		close(backend.signals.fd);
	return ret;
}

static int watch_lifetime(int fd)
{
	if (fd < 0)
		return 0;
	backend.lifetime = (struct fgv_watch){.fd = fd, .ready = lifetime_ready};
	return fgv_loop_add(backend.loop, &backend.lifetime, EPOLLIN);
}

static int start_loop(const struct fgv_backend_options *options)
{
	int ret;

	backend.loop = fgv_loop_create();
	if (backend.loop < 0)
		return backend.loop;
	ret = watch_signals();
	if (ret)
		goto close_loop;
	ret = watch_lifetime(options->private_fd);
	if (!ret)
		ret = watch_vcpus();
	if (!ret)
		ret = fgv_relays_init(&backend.relays, backend.loop);
	if (ret)
		goto close_signals;
	return 0;
close_signals:
	close(backend.signals.fd);
close_loop:
	close(backend.loop);
	return ret;
}

static void end_loop(void)
{
	fgv_relays_fini(&backend.relays);
	close(backend.signals.fd);
	close(backend.loop);
}

static void end_vms(void)
{
	fgv_vms_fini(&backend.vms);
	fgv_cgroups_fini(&backend.cgroups);
}

/* Where there are no control groups the limits of each process by itself are all. */
static int start_cgroups(void)
{
	char why[PATH_MAX + 128];
	int ret = fgv_cgroups_init(&backend.cgroups, backend.config.cgroup, why, sizeof(why));

	if (ret)
		fgv_error("cgroup: %s", why);
	else if (*why)
		fgv_info("VMs have no control groups of their own: %s", why);
	return ret;
}

static int start_admin(char *why, size_t why_len)
{
	const struct fgv_admin_scope scope = {
		.devices = &backend.devices,
		.sessions = &backend.sessions,
		.warm = &backend.warm,
		.vms = &backend.vms,
		.live = &backend.live,
	};

	int ret =
		fgv_admin_init(&backend.admin, backend.loop, backend.control, &scope, why, why_len);

	if (ret)
		return ret;
	if (backend.config.observe)
		snprintf(backend.observe, sizeof(backend.observe), "%s", backend.config.observe);
	ret = fgv_admin_init_observers(&backend.observers, backend.loop,
				       backend.config.observe ? backend.observe : NULL,
				       backend.config.observe_user, &scope, why, why_len);
	if (ret)
		fgv_admin_fini(&backend.admin);
	return ret;
}

/* Of QEMU's two sockets that a VM has. */
static int open_guest(const struct fgv_config_vm *vm, char *why, size_t why_len)
{
	int ret = fgv_ivshmem_open(&backend.ivshmem, vm->ivshmem, vm->ivshmem_user, why, why_len);

	return ret ? ret : fgv_qmp_open(&backend.qmp, vm->ivshmem, vm->ivshmem_user, why, why_len);
}

static void settle_guests(void)
{
	fgv_ivshmem_settle(&backend.ivshmem);
	fgv_qmp_settle(&backend.qmp);
}

static int start_vms(char *why, size_t why_len)
{
	const struct fgv_live_parts parts = {
		.config = &backend.config,
		.devices = &backend.devices,
		.vms = &backend.vms,
		.sessions = &backend.sessions,
		.warm = &backend.warm,
		.doors = &backend.doors,
		.guests = {.open = open_guest, .settle = settle_guests},
	};

	return fgv_live_start(&backend.live, &parts, why, why_len);
}

static int start_service(const char *socket)
{
	char why[1024];
	int ret = fgv_warm_init(&backend.warm, &backend.config, &backend.devices, &backend.mps,
				&backend.relays, why, sizeof(why));

	if (!ret)
		ret = fgv_sessions_init(&backend.sessions, &backend.config, &backend.warm,
					backend.loop, why, sizeof(why));
	if (ret)
		goto say_why;
	ret = fgv_doors_init(&backend.doors, backend.loop, socket, &backend.sessions, &backend.vms,
			     why, sizeof(why));
	if (ret)
		goto say_why;
	ret = fgv_ivshmem_init(&backend.ivshmem, backend.loop, &backend.sessions, &backend.vms, why,
			       sizeof(why));
	if (ret)
		goto fini_doors;
	fgv_qmp_init(&backend.qmp, backend.loop, backend.config.cosched, &backend.vms);
	ret = start_vms(why, sizeof(why));
	if (!ret)
		ret = start_admin(why, sizeof(why));
	if (!ret)
		return 0;
	fgv_qmp_fini(&backend.qmp);
	fgv_ivshmem_fini(&backend.ivshmem);
fini_doors:
	fgv_doors_fini(&backend.doors);
say_why:
	fgv_error("%s", why);
	return ret;
}

/*
 * What another daemon has left at this socket, where nobody answers any more. A private daemon's
 * folder is its own.
 */
static void start_journal(const struct fgv_backend_options *options, const char *socket)
{
	char path[PATH_MAX];
	unsigned ended = 0;
	int ret;

	if (options->private_fd >= 0)
		return;
	snprintf(path, sizeof(path), "%s.sessions", socket);
	ret = fgv_journal_init(&backend.journal, path, &ended);
	if (ret)
		fgv_warning(
			"%s: %s: sessions that this daemon leaves behind when it is killed will "
			"not be found",
			path, strerror(-ret));
	else
		backend.sessions.journal = &backend.journal;
	if (ended)
		fgv_warning("processes that a daemon before this one has left are ended: %u",
			    ended);
}

static int start_mps(const char *socket)
{
	char why[1024];
	int ret = fgv_mps_start(&backend.mps, &backend.config, backend.loop, socket,
				&backend.devices, MPS_READY_MS, why, sizeof(why));

	if (ret) {
		fgv_error("%s", why);
		begin_end("there is no MPS");
	}
	return ret;
}

static void say_ready(int fd, const char *socket)
{
	char line[FGV_GPU_DEVICES_MAX * 260] = "";
	size_t len = 0;

	for (size_t i = 0; i < backend.devices.count; i++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s", i ? ", " : "",
					backend.devices.list[i].name);
	fgv_info("VMs: %zu; on %s; listening at %s", backend.vms.count, line, socket);
	sd_notifyf(false, "READY=1\nSTATUS=VMs: %zu; on %s", backend.vms.count, line);
	if (fd < 0)
		return;
	line[len++] = '\n';
	if (write(fd, line, len) < 0)
		fgv_warning("--ready-fd: %s", strerror(errno));
	close(fd);
}

static uint64_t deadline_ns(void)
{
	uint64_t doors_ns = fgv_earlier_ns(fgv_doors_deadline_ns(&backend.doors),
					   fgv_ivshmem_deadline_ns(&backend.ivshmem));
	uint64_t admin_ns = fgv_earlier_ns(fgv_admin_deadline_ns(&backend.admin),
					   fgv_admin_deadline_ns(&backend.observers));
	uint64_t qmp_ns = fgv_qmp_deadline_ns(&backend.qmp);
	uint64_t process_ns =
		fgv_earlier_ns(fgv_warm_deadline_ns(&backend.warm),
			       fgv_earlier_ns(fgv_sessions_deadline_ns(&backend.sessions),
					      fgv_memwatch_deadline_ns(&backend.memwatch)));
	uint64_t page_ns = fgv_sessions_page_deadline_ns(&backend.sessions);

	return fgv_earlier_ns(fgv_earlier_ns(doors_ns, admin_ns),
			      fgv_earlier_ns(qmp_ns, fgv_earlier_ns(process_ns, page_ns)));
}

static void serve(void)
{
	while (!backend.ending_ns) {
		fgv_loop_turn(backend.loop, deadline_ns());
		if (backend.ending_ns)
			break;
		fgv_doors_tick(&backend.doors);
		fgv_ivshmem_tick(&backend.ivshmem);
		fgv_qmp_tick(&backend.qmp, fgv_now_ns());
		fgv_admin_tick(&backend.admin);
		fgv_admin_tick(&backend.observers);
		fgv_warm_tick(&backend.warm);
		fgv_sessions_tick(&backend.sessions);
		fgv_sessions_page_tick(&backend.sessions);
		fgv_memwatch_tick(&backend.memwatch);
	}
}

/* Until all vGPU processes are gone, but not longer than @ms after the end was asked for. */
static void await_processes(uint64_t ms)
{
	uint64_t deadline_ns = backend.ending_ns + ms * FGV_NS_PER_MS;

	while (backend.sessions.count + backend.warm.count && fgv_now_ns() < deadline_ns)
		fgv_loop_turn(backend.loop, deadline_ns);
}

static void signal_processes(int signal)
{
	fgv_sessions_signal(&backend.sessions, signal);
	fgv_warm_signal(&backend.warm, signal);
}

/* begin_end() has told the processes to end: sees to it that they do. */
static void end_processes(void)
{
	await_processes(END_TERM_MS);
	signal_processes(SIGTERM);
	await_processes(END_KILL_MS);
	signal_processes(SIGKILL);
	await_processes(END_GIVE_UP_MS);
	fgv_sessions_fini(&backend.sessions);
	fgv_warm_fini(&backend.warm);
}

/* Beside a socket that was chosen for this run, else where the configuration says. */
static void choose_control(const char *socket)
{
	if (socket)
		snprintf(backend.control, sizeof(backend.control), "%s.control", socket);
	else
		snprintf(backend.control, sizeof(backend.control), "%s", backend.config.control);
}

static int run(const struct fgv_backend_options *options)
{
	const char *socket = options->socket ? options->socket : backend.config.socket;
	int ret = fgv_devices_start(&backend.devices, &backend.config);

	choose_control(options->socket);
	if (ret) {
		fgv_error("can't start scheduling: %s", strerror(-ret));
		return ret;
	}
	fgv_vms_init(&backend.vms, &backend.cgroups);
	ret = start_cgroups();
	if (ret)
		goto stop_devices;
	ret = start_loop(options);
	if (ret) {
		fgv_error("can't start: %s", strerror(-ret));
		goto end_vms;
	}
	ret = start_service(socket);
	if (ret)
		goto end_loop;
	start_journal(options, socket);
	backend.sessions.mps = &backend.mps;
	fgv_memwatch_init(&backend.memwatch, &backend.config, &backend.devices, &backend.sessions,
			  &backend.vms);
	fgv_figures_init(&backend.figures, backend.memwatch.nvml);
	backend.sessions.figures = &backend.figures;
	ret = start_mps(socket);
	if (!ret)
		say_ready(options->ready_fd, socket);
	serve();
	end_processes();
	fgv_memwatch_fini(&backend.memwatch);
	fgv_mps_stop(&backend.mps);
	fgv_journal_fini(&backend.journal);
end_loop:
	end_loop();
	if (options->private_fd >= 0)
		fgv_process_remove_folder(socket);
end_vms:
	end_vms();
stop_devices:
	fgv_devices_stop(&backend.devices);
	return ret;
}

static void begin_log(void)
{
	fgv_log_be_service();
	fgv_journald_begin();
}

int main(int argc, char **argv)
{
	struct fgv_backend_options options;
	const struct fgv_startup startup = {
		.options = &options,
		.config = &backend.config,
		.live = &backend.live,
		.devices = &backend.devices,
	};
	int ret;

	fgv_process_close_memory();
	if (fgv_mps_keeper_asked(argc, argv))
		return fgv_mps_keeper_run(argv);
	if (fgv_herald_asked(argc, argv))
		return fgv_herald_run(argv);
	fgv_log_init("fairgv-backend");
	fgv_mps_hide();
	signal(SIGCHLD, SIG_DFL); /* where it is inherited as ignored, nothing can be waited for */
	fgv_backend_options_parse(argc, argv, &options);
	/* What else it says is for somebody at a terminal, waiting for it. */
	if (options.private_fd < 0 && !options.check)
		begin_log();
	else
		unsetenv("NOTIFY_SOCKET"); /* of the service that started it, which this one is not
					    */
	fgv_process_seal_descriptors();
	fgv_process_raise_descriptors();
	ret = fgv_startup(&startup);
	if (ret)
		return EXIT_FAILURE;
	if (!options.check)
		ret = run(&options);
	fgv_startup_undo(&startup);
	if (ret)
		return EXIT_FAILURE;
	return options.private_fd >= 0 && !options.check && !backend.sessions.last_number
		       ? FGV_EXIT_UNUSED
		       : EXIT_SUCCESS;
}
