/*
 * Processes before their session; see warm.h. The daemon watches a process's control socket
 * until it has said how opening its GPU went; its death comes by SIGCHLD, before and after.
 */
#define _GNU_SOURCE
#include "backend/warm_priv.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/loop.h"
#include "backend/mps/mps.h"
#include "common/log.h"
#include "common/util.h"

/* The first use of the driver after boot takes seconds on a machine with many GPUs. */
#define OPENING_MAX_NS (60 * FGV_NS_PER_SEC)
/* To destroy a context takes tens of milliseconds. */
#define ENDING_MAX_NS (3 * FGV_NS_PER_SEC)

enum state { OPENING, READY, ENDING };

struct fgv_warm_process {
	struct fgv_watch watch; /* its control socket; first, so that its address is ours */
	LIST_ENTRY(fgv_warm_process) link;
	struct fgv_warm *warm;
	unsigned device;
	enum state state;
	bool is_watched;
	bool is_killed; /* for being late */
	pid_t pid;
	struct fgv_relay *relay;
	uint64_t started_ns;
	uint64_t deadline_ns; /* of its state; 0: none */
};

/* --- One process ----------------------------------------------------------- */

static const char *device_name(const struct fgv_warm_process *process)
{
	return process->warm->devices->list[process->device].name;
}

static void unwatch(struct fgv_warm_process *process)
{
	if (process->is_watched)
		fgv_loop_remove(process->warm->loop, &process->watch);
	process->is_watched = false;
}

static void forget(struct fgv_warm_process *process)
{
	LIST_REMOVE(process, link);
	fgv_relay_close(process->relay);
	process->warm->count--;
	free(process);
}

/* Its control socket's end tells it. */
static void end(struct fgv_warm_process *process)
{
	unwatch(process);
	close(process->watch.fd);
	process->state = ENDING;
	process->deadline_ns = fgv_now_ns() + ENDING_MAX_NS;
}

static void drop(struct fgv_warm_process *process)
{
	if (process->state == ENDING)
		return;
	fgv_warm_plan_dropped(&process->warm->plans[process->device], process->state == READY);
	end(process);
}

/* Says once what is wrong, and when there will be another. */
static void fail(struct fgv_warm_process *process, const char *what)
{
	uint64_t now_ns = fgv_now_ns();
	uint64_t pause_ns =
		fgv_warm_plan_failed(&process->warm->plans[process->device],
				     process->state == READY, now_ns - process->started_ns, now_ns);

	fgv_warning_of(FGV_LOG_GPU(device_name(process)),
		       "process %d, kept ready for it, %s; the next one starts in %llu s",
		       (int)process->pid, what, (unsigned long long)(pause_ns / FGV_NS_PER_SEC));
	end(process);
}

/* It has said how opening its GPU went, or has ended, which SIGCHLD tells more of. */
static void process_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_warm_process *process = (struct fgv_warm_process *)watch;
	struct fgv_prepared report;
	char what[sizeof(report.reason) + 32];
	ssize_t len = recv(watch->fd, &report, sizeof(report), MSG_DONTWAIT);

	(void)events;
	unwatch(process);
	if (len != sizeof(report))
		return;
	if (report.status) {
		snprintf(what, sizeof(what), "can't open it: %.*s", (int)sizeof(report.reason),
			 report.reason);
		fail(process, what);
		return;
	}
	fgv_debug("process %d is ready for %s", (int)process->pid, device_name(process));
	fgv_warm_plan_opened(&process->warm->plans[process->device]);
	process->state = READY;
	process->deadline_ns = 0;
}

/* With a relay for what it logs before it serves anyone. */
static int spawn_heard(struct fgv_warm_process *process)
{
	struct fgv_warm *warm = process->warm;
	const struct fgv_log_subject subject = {.gpu = device_name(process)};
	int log_fd;
	int ret = fgv_relay_open(warm->relays, &warm->lines, &process->relay, &log_fd);

	if (ret)
		return ret;
	ret = fgv_warm_spawn(warm, process->device, log_fd, &process->pid, &process->watch.fd);
	close(log_fd);
	if (ret) {
		fgv_relay_close(process->relay);
		return ret;
	}
	fgv_relay_started(process->relay, process->pid);
	fgv_relay_about(process->relay, &warm->lines, &subject);
	return 0;
}

/* A process that is opening its GPU, on the list; not counted in the plan. */
static int start(struct fgv_warm *warm, unsigned device, struct fgv_warm_process **out)
{
	struct fgv_warm_process *process = calloc(1, sizeof(*process));
	int ret;

	if (!process)
		return -ENOMEM;
	process->warm = warm;
	process->device = device;
	process->watch.ready = process_ready;
	process->started_ns = fgv_now_ns();
	process->deadline_ns = process->started_ns + OPENING_MAX_NS;
	ret = spawn_heard(process);
	if (ret) {
		free(process);
		return ret;
	}
	LIST_INSERT_HEAD(&warm->list, process, link);
	warm->count++;
	*out = process;
	return 0;
}

/* --- For a session --------------------------------------------------------- */

/* The one that is nearest to ready; NULL: there is none. */
static struct fgv_warm_process *find(const struct fgv_warm *warm, unsigned device)
{
	struct fgv_warm_process *process, *opening = NULL;

	LIST_FOREACH(process, &warm->list, link) {
		if (process->device != device)
			continue;
		if (process->state == READY)
			return process;
		if (process->state == OPENING)
			opening = process;
	}
	return opening;
}

static void give(struct fgv_warm_process *process, struct fgv_warm_given *given)
{
	unwatch(process);
	*given = (struct fgv_warm_given){process->pid, process->watch.fd, process->relay};
	process->relay = NULL;
	forget(process);
}

/* 1: to a process that has ended unnoticed, whose death will be noticed yet. */
static int assign_kept(struct fgv_warm_process *process, const struct fgv_setup *setup,
		       const int *fds, struct fgv_warm_given *given)
{
	struct fgv_warm_plan *plan = &process->warm->plans[process->device];
	int ret;

	/* What it has logged by now is about no session. */
	fgv_relay_drain(process->relay);
	ret = fgv_fds_send(process->watch.fd, setup, sizeof(*setup), fds, FGV_SETUP_FDS);
	if (ret == -EPIPE || ret == -ECONNRESET) {
		fail(process, "has ended");
		return 1;
	}
	if (ret)
		return ret;
	fgv_warm_plan_taken(plan, process->state == READY);
	give(process, given);
	return 0;
}

static int assign_new(struct fgv_warm *warm, unsigned device, const struct fgv_setup *setup,
		      const int *fds, struct fgv_warm_given *given)
{
	struct fgv_warm_process *process;
	int ret = start(warm, device, &process);

	if (ret)
		return ret;
	ret = fgv_fds_send(process->watch.fd, setup, sizeof(*setup), fds, FGV_SETUP_FDS);
	if (ret)
		end(process);
	else
		give(process, given);
	return ret;
}

int fgv_warm_assign(struct fgv_warm *warm, unsigned device, const struct fgv_setup *setup,
		    const int fds[FGV_SETUP_FDS], struct fgv_warm_given *given)
{
	struct fgv_warm_process *process;
	int ret = 1;

	while (ret == 1 && (process = find(warm, device)))
		ret = assign_kept(process, setup, fds, given);
	if (ret == 1)
		ret = assign_new(warm, device, setup, fds, given);
	fgv_warm_plan_session(&warm->plans[device], fgv_now_ns());
	return ret;
}

void fgv_warm_suspect(struct fgv_warm *warm, unsigned device)
{
	struct fgv_warm_process *process;

	if (warm->config->context != FGV_CONTEXT_MPS)
		return;
	LIST_FOREACH(process, &warm->list, link) {
		if (process->device == device)
			drop(process);
	}
	fgv_warm_plan_session(&warm->plans[device], fgv_now_ns());
}

unsigned fgv_warm_ready(const struct fgv_warm *warm, unsigned device)
{
	return warm->plans[device].ready;
}

bool fgv_warm_is_ready(const struct fgv_warm *warm, unsigned device, pid_t pid)
{
	const struct fgv_warm_process *process;

	LIST_FOREACH(process, &warm->list, link) {
		if (process->pid == pid && process->device == device && process->state == READY)
			return true;
	}
	return false;
}

/* --- Keeping them ---------------------------------------------------------- */

/* Where the daemon runs from its build tree, the vGPU program lies beside it there. */
static int find_vgpu(char *path, size_t len)
{
	const char *chosen = getenv("FAIRGV_VGPU");
	char self[PATH_MAX];
	ssize_t self_len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (chosen) {
		snprintf(path, len, "%s", chosen);
		return access(path, X_OK) ? -errno : 0;
	}
	if (self_len > 0) {
		self[self_len] = '\0';
		snprintf(path, len, "%s/vgpu/fairgv-vgpu", dirname(self));
		if (!access(path, X_OK))
			return 0;
	}
	snprintf(path, len, "%s", FGV_PKGLIBEXECDIR "/fairgv-vgpu");
	return access(path, X_OK) ? -errno : 0;
}

/* Where sessions of @vm may begin. */
static void plan_for(struct fgv_warm *warm, const struct fgv_config_vm *vm)
{
	size_t count = fgv_config_device_count(vm, warm->devices->count);

	if (!fgv_config_places(vm))
		count = 1;
	for (size_t i = 0; i < count; i++)
		warm->plans[vm->devices.list[i]].wanted = (unsigned)warm->config->warm;
}

int fgv_warm_init(struct fgv_warm *warm, const struct fgv_config *config,
		  const struct fgv_devices *devices, const struct fgv_mps *mps,
		  struct fgv_relays *relays, char *why, size_t why_len)
{
	int ret;

	*warm = (struct fgv_warm){
		.config = config,
		.devices = devices,
		.mps = mps,
		.relays = relays,
		.loop = relays->loop,
	};
	LIST_INIT(&warm->list);
	for (size_t i = 0; i < FGV_GPU_DEVICES_MAX; i++)
		fgv_warm_plan_init(&warm->plans[i], 0, fgv_now_ns());
	fgv_warm_configure(warm);
	ret = find_vgpu(warm->vgpu_path, sizeof(warm->vgpu_path));
	if (ret)
		snprintf(why, why_len, "%s: %s", warm->vgpu_path, strerror(-ret));
	return ret;
}

void fgv_warm_configure(struct fgv_warm *warm)
{
	const struct fgv_config *config = warm->config;
	struct fgv_warm_process *process;

	for (size_t i = 0; i < FGV_GPU_DEVICES_MAX; i++)
		warm->plans[i].wanted = 0;
	for (size_t i = 0; i < config->vm_count; i++)
		plan_for(warm, &config->vms[i]);
	LIST_FOREACH(process, &warm->list, link) {
		const struct fgv_warm_plan *plan = &warm->plans[process->device];

		if (plan->ready + plan->opening > plan->wanted)
			drop(process);
	}
}

static bool keeps(const struct fgv_warm *warm)
{
	return warm->mps->ready && !warm->ending;
}

uint64_t fgv_warm_deadline_ns(const struct fgv_warm *warm)
{
	const struct fgv_warm_process *process;
	uint64_t deadline_ns = 0;

	LIST_FOREACH(process, &warm->list, link)
		deadline_ns = fgv_earlier_ns(deadline_ns, process->deadline_ns);
	for (size_t i = 0; i < warm->devices->count && keeps(warm); i++)
		deadline_ns = fgv_earlier_ns(deadline_ns, fgv_warm_plan_due_ns(&warm->plans[i]));
	return deadline_ns;
}

static void keep_one(struct fgv_warm *warm, unsigned device)
{
	struct fgv_warm_plan *plan = &warm->plans[device];
	struct fgv_warm_process *process;
	uint64_t now_ns = fgv_now_ns();
	int ret = start(warm, device, &process);

	fgv_warm_plan_started(plan);
	if (ret) {
		fgv_warm_plan_failed(plan, false, 0, now_ns);
		fgv_error_of(FGV_LOG_GPU(warm->devices->list[device].name),
			     "can't keep a process ready for it: %s", strerror(-ret));
		return;
	}
	process->is_watched = true;
	ret = fgv_loop_add(warm->loop, &process->watch, EPOLLIN);
	if (ret) {
		process->is_watched = false;
		fail(process, strerror(-ret));
	}
}

/* Late to open its GPU, or to end. The signal brings SIGCHLD. */
static void kill_late(struct fgv_warm_process *process)
{
	process->deadline_ns = 0;
	process->is_killed = true;
	kill(process->pid, SIGKILL);
}

void fgv_warm_tick(struct fgv_warm *warm)
{
	uint64_t now_ns = fgv_now_ns();
	struct fgv_warm_process *process;

	LIST_FOREACH(process, &warm->list, link) {
		if (process->deadline_ns && now_ns >= process->deadline_ns)
			kill_late(process);
		else if (!keeps(warm))
			drop(process);
	}
	for (unsigned i = 0; i < warm->devices->count && keeps(warm); i++) {
		uint64_t due_ns = fgv_warm_plan_due_ns(&warm->plans[i]);

		if (due_ns && now_ns >= due_ns)
			keep_one(warm, i);
	}
}

/* The process has ended and waits to be reaped: until then nobody else has its id. */
static void reap(struct fgv_warm_process *process, const siginfo_t *how)
{
	char what[128];

	fgv_device_forget(&process->warm->devices->list[process->device], process->pid);
	waitpid(process->pid, NULL, 0);
	if (process->state != ENDING) {
		if (how->si_code == CLD_EXITED)
			snprintf(what, sizeof(what), "ended with status %d", how->si_status);
		else
			snprintf(what, sizeof(what), "was killed by signal %d (%s)%s",
				 how->si_status, strsignal(how->si_status),
				 process->is_killed ? " as it did not get ready" : "");
		fail(process, what);
	}
	forget(process);
}

void fgv_warm_reap(struct fgv_warm *warm)
{
	struct fgv_warm_process *process, *after;

	for (process = LIST_FIRST(&warm->list); process; process = after) {
		siginfo_t how = {0};

		after = LIST_NEXT(process, link);
		if (!waitid(P_PID, (id_t)process->pid, &how, WEXITED | WNOHANG | WNOWAIT) &&
		    how.si_pid)
			reap(process, &how);
	}
}

/* --- The end --------------------------------------------------------------- */

void fgv_warm_end(struct fgv_warm *warm)
{
	struct fgv_warm_process *process;

	warm->ending = true;
	LIST_FOREACH(process, &warm->list, link)
		drop(process);
}

void fgv_warm_signal(struct fgv_warm *warm, int signal)
{
	struct fgv_warm_process *process;

	LIST_FOREACH(process, &warm->list, link)
		kill(process->pid, signal);
}

void fgv_warm_fini(struct fgv_warm *warm)
{
	struct fgv_warm_process *process;

	while ((process = LIST_FIRST(&warm->list))) {
		fgv_error_of(FGV_LOG_GPU(device_name(process)),
			     "process %d, kept ready for it, does not die", (int)process->pid);
		forget(process);
	}
	fgv_relay_limit_fini(&warm->lines);
}
