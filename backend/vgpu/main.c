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
#include <malloc.h>
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
#include "backend/vgpu/parts.h"
#include "backend/vgpu/session.h"
#include "backend/vgpu/stages.h"
#include "backend/vgpu/watch.h"
#include "common/env.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/spin.h"

/* Too large for a stack; only main() names it, and hands it on. */
static struct fgv_session session_storage;

static CUresult console_init(struct fgv_session *session)
{
	int err = fgv_console_init(&session->own_console);

	session->console = &session->own_console;
	if (err < 0)
		return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the console", err);
	return CUDA_SUCCESS;
}

static CUresult watch_init(struct fgv_session *session)
{
	int err = fgv_watch_start(session);

	if (err < 0)
		return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the watcher", err);
	return CUDA_SUCCESS;
}

static CUresult sandbox_enter(struct fgv_session *session)
{
	int err = fgv_sandbox_enter(&session->sandbox, &session->prepare);

	if (err < 0)
		return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the sandbox", err);
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
		return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the sandbox", err);
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
	{fgv_stage_soft_device_init, fgv_stage_soft_device_fini},
	{console_init, NULL},
	{fgv_stage_gpu_init, fgv_stage_gpu_fini},
#define STAGES_OF_GPU 4
	{fgv_stage_units_init, NULL},
	{fgv_stage_window_init, fgv_stage_window_fini},
	{fgv_parts_open, fgv_parts_close},
	{sandbox_close, NULL},
	{fgv_stage_accounts_init, fgv_stage_accounts_fini},
	{fgv_stage_staging_init, NULL},
	{fgv_stage_gate_init, fgv_stage_gate_fini},
	{fgv_stage_session_init, fgv_session_fini},
	{fgv_parts_start, fgv_parts_stop},
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
	if (status == CUDA_SUCCESS)
		gpu->ops->fence_put(gpu, fence);
	if (status == CUDA_SUCCESS)
		status = fgv_parts_are_idle(session);
	if (status == CUDA_SUCCESS)
		undo(session, FGV_ARRAY_LEN(stages));
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

/* Until the guest or the daemon goes, or some part of it is over: then all are. */
static int run_all(struct fgv_session *session)
{
	int err = fgv_dispatcher_run(session);
	int others = fgv_parts_end(session);

	return err < 0 ? err : others;
}

/* @status: how opening the GPU went. */
static int serve(struct fgv_session *session, CUresult status)
{
	struct fgv_device_info info;

	show_title(session);
	if (status == CUDA_SUCCESS)
		status = advance(session, STAGES_OF_GPU, FGV_ARRAY_LEN(stages));
	if (status != CUDA_SUCCESS) {
		fgv_error("can't begin: %s", session->reason);
		fgv_control_welcome(session, status, session->reason);
		return EXIT_FAILURE;
	}
	fgv_daemon_serving();
	if (fgv_control_welcome(session, CUDA_SUCCESS, device_name(session, &info)) == 0 &&
	    fgv_parts_welcome(session) == 0 && run_all(session) < 0) {
		fgv_error("ended: %s", session->reason);
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

/*
 * As many as the C library would choose by itself once there are some threads: it would look for
 * the number of processors in files then, which the sandbox refuses.
 */
static void limit_arenas(void)
{
	mallopt(M_ARENA_MAX, 8 * (int)fgv_env_processors());
}

int main(int argc, char **argv)
{
	struct fgv_session *session = &session_storage;
	int err;

	setproctitle_init(argc, argv, environ);

	fgv_log_init("fairgv-vgpu");
	fgv_log_be_relayed();
	limit_arenas();
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
