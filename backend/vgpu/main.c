/*
 * fairgv-vgpu: one guest program's session, in a process of its own. The daemon starts
 * it with a socket, says on it which GPU to open and then, perhaps much later, sends the
 * session's setup; the process serves the guest until one of the two goes. It may also be told to
 * keep a VM's images instead (images/keeper.h).
 *
 * What it takes is an ordered list of stages, which is in two parts as the daemon's messages
 * are; where one fails, those before it are undone in reverse, and the guest is told why.
 */
#define _GNU_SOURCE
#include <bsd/unistd.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/vgpu/control.h"
#include "backend/vgpu/daemon.h"
#include "backend/vgpu/dispatcher.h"
#include "backend/vgpu/images/keeper.h"
#include "backend/vgpu/sandbox/sandbox.h"
#include "backend/vgpu/session.h"
#include "backend/vgpu/watch.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/spin.h"

/* Too large for a stack; main()'s alone, who hands it to whoever needs it. */
static struct fgv_session session_storage;

/* Puts a stage's reason where the welcome takes it from. */
static CUresult failed(struct fgv_session *session, CUresult status, const char *what, int err)
{
	snprintf(session->reason, sizeof(session->reason), "%s: %s", what, strerror(-err));
	return status;
}

static void *map_shared(int fd, size_t len)
{
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return base == MAP_FAILED ? NULL : base;
}

static CUresult window_init(struct fgv_session *session)
{
	const struct fgv_setup *setup = &session->setup;
	int err;

	session->window = (struct fgv_window){
		.len = setup->window_len,
		.lanes_off = setup->lanes_off,
		.lanes = setup->lanes,
		.arena_off = setup->arena_off,
		.arena_len = setup->arena_len,
		.staging_len = setup->staging_len,
	};
	err = fgv_window_check(&session->window);
	if (err == 0)
		err = fgv_window_map_at(&session->window, session->fds[FGV_SETUP_WINDOW],
					setup->window_off);
	if (err < 0)
		return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the window", err);
	if (setup->window_off) {
		/* The others in there are none of its business. */
		close(session->fds[FGV_SETUP_WINDOW]);
		session->fds[FGV_SETUP_WINDOW] = -1;
	}
	return CUDA_SUCCESS;
}

static void window_fini(struct fgv_session *session)
{
	fgv_window_unmap(&session->window);
}

/* Maps @len bytes at @off of descriptor number @which, which is closed then; NULL and errno. */
static void *map_once(struct fgv_session *session, enum fgv_setup_fd which, size_t len, off_t off,
		      int protection)
{
	void *base = mmap(NULL, len, protection, MAP_SHARED, session->fds[which], off);

	close(session->fds[which]);
	session->fds[which] = -1;
	return base == MAP_FAILED ? NULL : base;
}

static void accounts_fini(struct fgv_session *session)
{
	if (session->account)
		munmap(session->account, sizeof(*session->account));
	if (session->accounts)
		munmap((void *)session->accounts, sizeof(*session->accounts));
	if (session->allowance)
		munmap((void *)session->allowance, sizeof(*session->allowance));
}

/* Of all this process can write its own account alone, and it keeps no descriptor of any. */
static CUresult accounts_init(struct fgv_session *session)
{
	size_t own = session->setup.account * sizeof(struct fgv_account);

	if (session->setup.account >= FGV_SESSIONS_MAX)
		return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the account", -EINVAL);
	session->allowance =
		map_once(session, FGV_SETUP_ALLOWANCE, sizeof(*session->allowance), 0, PROT_READ);
	session->accounts =
		map_once(session, FGV_SETUP_ACCOUNTS, sizeof(*session->accounts), 0, PROT_READ);
	session->account = map_once(session, FGV_SETUP_ACCOUNT, sizeof(*session->account),
				    (off_t)own, PROT_READ | PROT_WRITE);
	if (session->allowance && session->accounts && session->account)
		return CUDA_SUCCESS;
	accounts_fini(session);
	return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the accounts", -errno);
}

static CUresult gate_init(struct fgv_session *session)
{
	int err = fgv_kernels_init(&session->kernels, session->setup.fills_gaps);

	if (!err)
		err = fgv_engines_init(session);
	if (!err)
		return CUDA_SUCCESS;
	fgv_kernels_fini(&session->kernels);
	return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the grant", err);
}

static void gate_fini(struct fgv_session *session)
{
	fgv_engines_fini(session);
	fgv_kernels_fini(&session->kernels);
}

static CUresult soft_device_init(struct fgv_session *session)
{
	if (!session->prepare.soft)
		return CUDA_SUCCESS;
	session->seat = map_shared(session->seat_fds[FGV_SEAT_PAGE], sizeof(*session->seat));
	if (!session->seat)
		return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the soft device", -errno);
	return CUDA_SUCCESS;
}

static void soft_device_fini(struct fgv_session *session)
{
	if (session->seat)
		munmap(session->seat, sizeof(*session->seat));
}

static CUresult console_init(struct fgv_session *session)
{
	int err = fgv_console_init(&session->console);

	if (err < 0)
		return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the console", err);
	return CUDA_SUCCESS;
}

static CUresult gpu_init(struct fgv_session *session)
{
	const struct fgv_prepare *prepare = &session->prepare;
	const struct fgv_gpu_ops *ops = prepare->soft ? &fgv_gpu_soft : &fgv_gpu_cuda;
	char why[160] = "";
	struct fgv_gpu_config config = {
		.ordinal = (int)prepare->ordinal,
		.soft_memory_bytes = prepare->soft_memory_bytes,
		.soft_engine =
			{
				.seat = session->seat,
				.bell_fd = session->seat_fds[FGV_SEAT_BELL],
				.arbiter_fd = session->seat_fds[FGV_SEAT_ARBITER],
			},
		.why = why,
		.why_len = sizeof(why),
	};
	CUresult status = ops->open(&config, &session->gpu);

	if (status != CUDA_SUCCESS)
		snprintf(session->reason, sizeof(session->reason),
			 "%s device %u can't be opened: CUDA error %d%s%s", ops->name,
			 prepare->ordinal, (int)status, *why ? ": " : "", why);
	return status;
}

static void gpu_fini(struct fgv_session *session)
{
	session->gpu->ops->close(session->gpu);
}

static CUresult staging_init(struct fgv_session *session)
{
	const struct fgv_window *window = &session->window;
	CUresult status;

	if (window->staging_len == 0)
		return CUDA_SUCCESS;
	status = session->gpu->ops->host_register(session->gpu, window->base + window->arena_off,
						  window->staging_len);
	if (status != CUDA_SUCCESS)
		snprintf(session->reason, sizeof(session->reason),
			 "the window's staging part can't be registered: CUDA error %d",
			 (int)status);
	return status;
}

static CUresult session_init(struct fgv_session *session)
{
	int err = fgv_session_init(session);

	fgv_images_init(&session->images, session->fds[FGV_SETUP_IMAGES]);
	if (err == -EDQUOT) {
		snprintf(session->reason, sizeof(session->reason),
			 "VM %s has no GPU memory left for the context of another program, or for "
			 "what it needs",
			 session->setup.vm);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (err < 0)
		return failed(session, CUDA_ERROR_OUT_OF_MEMORY, "the session", err);
	return CUDA_SUCCESS;
}

static CUresult watch_init(struct fgv_session *session)
{
	int err = fgv_watch_start(session);

	if (err < 0)
		return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the watcher", err);
	return CUDA_SUCCESS;
}

static CUresult sandbox_enter(struct fgv_session *session)
{
	int err = fgv_sandbox_enter(&session->sandbox, &session->prepare);

	if (err < 0)
		return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the sandbox", err);
	return CUDA_SUCCESS;
}

static CUresult sandbox_close(struct fgv_session *session)
{
	const struct fgv_setup *setup = &session->setup;
	const struct fgv_sandbox_terms terms = {
		.uid = setup->uid,
		.limits =
			{
				.data_bytes = setup->data_bytes,
				.file_bytes = setup->file_bytes,
				.threads = setup->threads,
			},
		.window = session->window.base,
		.window_len = session->window.len,
	};
	int err;

	fgv_daemon_channels();
	err = fgv_sandbox_close(&session->sandbox, &terms);

	if (err < 0)
		return failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the sandbox", err);
	fgv_daemon_confined(session);
	return CUDA_SUCCESS;
}

/*
 * The order of what needs what. The first ones open the GPU, without knowing for whom, in as
 * much of the sandbox as needs no VM; the rest of it closes before anything of a guest's comes in.
 */
static const struct stage {
	CUresult (*init)(struct fgv_session *session);
	void (*fini)(struct fgv_session *session);
} stages[] = {
	{sandbox_enter, NULL},
	{soft_device_init, soft_device_fini},
	{console_init, NULL},
	{gpu_init, gpu_fini},
#define STAGES_OF_GPU 4
	{window_init, window_fini},
	{sandbox_close, NULL},
	{accounts_init, accounts_fini},
	{staging_init, NULL},
	{gate_init, gate_fini},
	{session_init, fgv_session_fini},
	{watch_init, NULL},
};

static void undo(struct fgv_session *session, size_t done)
{
	while (done-- > 0) {
		if (stages[done].fini)
			stages[done].fini(session);
	}
}

/* Goes through the stages from @done up to @end; where one fails, none is done any more. */
static CUresult advance(struct fgv_session *session, size_t done, size_t end)
{
	CUresult status = CUDA_SUCCESS;

	for (; done < end && status == CUDA_SUCCESS; done++) {
		status = stages[done].init(session);
		if (status != CUDA_SUCCESS)
			undo(session, done);
	}
	return status;
}

/*
 * A GPU that still works for this session is left to the kernel, which stops it as the
 * process ends; to take its memory away by hand would be to wait for it. The exit status.
 */
static int end(struct fgv_session *session)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_gpu_fence *fence;
	CUresult status;

	if (fgv_watch_may_leave(session))
		return EXIT_SUCCESS;
	status = gpu->ops->fence_all(gpu, &fence);
	if (status == CUDA_SUCCESS)
		status = gpu->ops->fence_query(gpu, fence);
	if (status == CUDA_SUCCESS) {
		gpu->ops->fence_put(gpu, fence);
		undo(session, FGV_ARRAY_LEN(stages));
	}
	return status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_READY ? EXIT_SUCCESS
									: FGV_EXIT_FAULT;
}

/* The name that the guest gets to see. */
static const char *device_name(struct fgv_session *session, struct fgv_device_info *info)
{
	return session->gpu->ops->info(session->gpu, info) == CUDA_SUCCESS ? info->name : "";
}

/* For ps; what the guest calls itself may be anything. */
static void show_title(const struct fgv_session *session)
{
	const struct fgv_setup *setup = &session->setup;
	char title[2 * FGV_NAME_MAX + 32];

	snprintf(title, sizeof(title), "%s %s, session %u", setup->vm, setup->program,
		 setup->session);
	fgv_log_flatten(title);
	setproctitle("%s", title);
}

/* @status: how opening the GPU went. */
static int serve(struct fgv_session *session, CUresult status)
{
	struct fgv_device_info info;

	show_title(session);
	if (status == CUDA_SUCCESS)
		status = advance(session, STAGES_OF_GPU, FGV_ARRAY_LEN(stages));
	if (status != CUDA_SUCCESS) {
		fgv_error(FGV_SESSION_FORMAT ": can't begin: %s", FGV_SESSION_ARGS(session),
			  session->reason);
		fgv_control_welcome(session, status, session->reason);
		return EXIT_FAILURE;
	}
	fgv_daemon_serving();
	if (fgv_control_welcome(session, CUDA_SUCCESS, device_name(session, &info)) == 0 &&
	    fgv_dispatcher_run(session) < 0) {
		fgv_error(FGV_SESSION_FORMAT ": ended: %s", FGV_SESSION_ARGS(session),
			  session->reason);
		fgv_control_end(session, session->reason);
		return EXIT_FAILURE;
	}
	return end(session);
}

/* Opens the GPU, and serves the session that is to come, if one does. The exit status. */
static int run(struct fgv_session *session)
{
	CUresult status = advance(session, 0, STAGES_OF_GPU);
	int err;

	setproctitle("ready");
	fgv_daemon_report(session, status);
	err = fgv_daemon_await_setup(session);
	if (err == 0)
		return serve(session, status);
	if (err != -ECONNRESET) {
		fgv_error("no setup on descriptor %d: %s", FGV_CONTROL_FD, strerror(-err));
		return EXIT_FAILURE;
	}
	if (status == CUDA_SUCCESS)
		undo(session, STAGES_OF_GPU);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct fgv_session *session = &session_storage;
	int err;

	setproctitle_init(argc, argv, environ);

	fgv_log_init("fairgv-vgpu");
	fgv_log_be_service();
	err = fgv_sandbox_begin();
	if (err < 0) {
		fgv_error("can't give up privileges: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	fgv_spin_init();
	for (unsigned i = 0; i < FGV_SEAT_FDS; i++)
		session->seat_fds[i] = -1;
	for (unsigned i = 0; i < FGV_SETUP_FDS; i++)
		session->fds[i] = -1;
	err = fgv_daemon_await_prepare(session);
	if (err == -ECONNRESET)
		return EXIT_SUCCESS;
	if (err < 0) {
		fgv_error("no order on descriptor %d: %s", FGV_CONTROL_FD, strerror(-err));
		return EXIT_FAILURE;
	}
	if (session->prepare.keeps_images)
		return fgv_keeper_run(&session->prepare);
	/* No exit handlers: the driver's would wait for the GPU. */
	_exit(run(session));
}
