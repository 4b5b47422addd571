/*
 * Further GPUs; see parts.h. A part goes through the stages of a session in two steps: what needs
 * the sandbox to be open is done in the first part's thread, for one GPU after another; the rest,
 * from the accounts on, in the part's own.
 */
#define _GNU_SOURCE
#include "backend/vgpu/parts.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "backend/vgpu/control.h"
#include "backend/vgpu/daemon.h"
#include "backend/vgpu/dispatcher.h"
#include "backend/vgpu/session.h"
#include "backend/vgpu/stages.h"
#include "common/util.h"
#include "shmring/park.h"

/* So long is waited for a thread that is to end; the daemon's patience is longer. */
#define END_SEC 1

struct stage {
	CUresult (*init)(struct fgv_session *session);
	void (*fini)(struct fgv_session *session);
};

static const struct stage opening[] = {
	{fgv_stage_soft_device_init, fgv_stage_soft_device_fini},
	{fgv_stage_gpu_init, fgv_stage_gpu_fini},
	{fgv_stage_units_init, NULL},
	{fgv_stage_window_init, fgv_stage_window_fini},
};

static const struct stage starting[] = {
	{fgv_stage_accounts_init, fgv_stage_accounts_fini},
	{fgv_stage_staging_init, NULL},
	{fgv_stage_gate_init, fgv_stage_gate_fini},
	{fgv_stage_session_init, fgv_session_fini},
};

struct part {
	struct fgv_session session;
	struct fgv_session *first;
	int peer_fd; /* the guest's end of its connection, until the guest has it */
	pthread_t thread;
	sem_t ready;
	CUresult status; /* of starting, once it is ready */
	int err;	 /* of its dispatcher, once its thread has ended */
	bool has_thread;
	bool is_stuck;
};

struct list {
	struct fgv_parts head; /* what the first part points to */
	struct part parts[];
};

static struct part *part_of(const struct fgv_session *first, unsigned i)
{
	return &((struct list *)first->parts)->parts[i];
}

static unsigned count(const struct fgv_session *first)
{
	return first->parts ? first->parts->opened : 0;
}

static void undo(struct fgv_session *session, const struct stage *stages, size_t done)
{
	while (done-- > 0) {
		if (stages[done].fini)
			stages[done].fini(session);
	}
}

/* Goes through all of @stages; where one fails, none is done any more. */
static CUresult advance(struct fgv_session *session, const struct stage *stages, size_t end)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t done = 0; done < end && status == CUDA_SUCCESS; done++) {
		status = stages[done].init(session);
		if (status != CUDA_SUCCESS)
			undo(session, stages, done);
	}
	return status;
}

/* --- Opening ----------------------------------------------------------------- */

static CUresult open_part(struct fgv_session *first, struct part *part)
{
	struct fgv_session *session = &part->session;
	CUresult status;
	int err;

	part->peer_fd = -1;
	err = fgv_daemon_await_part(session, &part->peer_fd);
	if (err < 0)
		return fgv_stage_failed(first, CUDA_ERROR_OPERATING_SYSTEM, "a further GPU", err);
	part->first = first;
	session->first = first;
	session->console = first->console;
	session->sandbox.listener = -1;
	status = advance(session, opening, FGV_ARRAY_LEN(opening));
	if (status != CUDA_SUCCESS) {
		memcpy(first->reason, session->reason, sizeof(first->reason));
		return status;
	}
	sem_init(&part->ready, 0, 0);
	first->parts->sessions[first->parts->opened++] = session;
	return CUDA_SUCCESS;
}

CUresult fgv_parts_open(struct fgv_session *first)
{
	uint32_t wanted = first->setup.parts;
	CUresult status = CUDA_SUCCESS;

	if (!wanted)
		return CUDA_SUCCESS;
	if (wanted >= FGV_GPU_DEVICES_MAX)
		return fgv_stage_failed(first, CUDA_ERROR_OPERATING_SYSTEM, "further GPUs",
					-EINVAL);
	first->parts = calloc(1, sizeof(struct list) + wanted * sizeof(struct part));
	if (!first->parts)
		return fgv_stage_failed(first, CUDA_ERROR_OUT_OF_MEMORY, "further GPUs", -ENOMEM);
	for (uint32_t i = 0; i < wanted && status == CUDA_SUCCESS; i++)
		status = open_part(first, part_of(first, i));
	first->gpu->ops->use(first->gpu);
	if (status != CUDA_SUCCESS)
		fgv_parts_close(first);
	return status;
}

/* They may reach each other's memory, which none gives up while another is at work. */
static void halt_all(struct fgv_session *first, bool waits)
{
	first->gpu->ops->halt(first->gpu, waits);
	for (unsigned i = 0; i < count(first); i++) {
		struct fgv_gpu *gpu = part_of(first, i)->session.gpu;

		gpu->ops->halt(gpu, waits);
	}
}

void fgv_parts_close(struct fgv_session *first)
{
	struct fgv_parts *parts = first->parts;

	if (count(first)) {
		halt_all(first, false);
		halt_all(first, true);
	}
	while (count(first) > 0) {
		struct part *part = part_of(first, --parts->opened);

		part->session.gpu->ops->use(part->session.gpu);
		undo(&part->session, opening, FGV_ARRAY_LEN(opening));
		sem_destroy(&part->ready);
		if (part->peer_fd >= 0)
			close(part->peer_fd);
	}
	first->gpu->ops->use(first->gpu);
	free(parts);
	first->parts = NULL;
}

/* --- Serving ----------------------------------------------------------------- */

static void end_dispatcher(struct fgv_session *session)
{
	__atomic_store_n(&session->is_over, 1, __ATOMIC_RELAXED);
	fgv_doorbell_ring(session->fds[FGV_SETUP_DOORBELL]);
}

static void *serve(void *arg)
{
	struct part *part = arg;
	struct fgv_session *session = &part->session;

	part->status = session->gpu->ops->use(session->gpu);
	if (part->status == CUDA_SUCCESS)
		part->status = advance(session, starting, FGV_ARRAY_LEN(starting));
	sem_post(&part->ready);
	if (part->status != CUDA_SUCCESS)
		return NULL;
	part->err = fgv_dispatcher_run(session);
	end_dispatcher(part->first);
	return NULL;
}

static CUresult start_part(struct fgv_session *first, struct part *part)
{
	int err = pthread_create(&part->thread, NULL, serve, part);

	if (err)
		return fgv_stage_failed(first, CUDA_ERROR_OPERATING_SYSTEM, "a dispatcher", -err);
	part->has_thread = true;
	while (sem_wait(&part->ready) < 0 && errno == EINTR)
		continue;
	if (part->status != CUDA_SUCCESS)
		memcpy(first->reason, part->session.reason, sizeof(first->reason));
	return part->status;
}

CUresult fgv_parts_start(struct fgv_session *first)
{
	CUresult status = CUDA_SUCCESS;

	for (unsigned i = 0; i < count(first) && status == CUDA_SUCCESS; i++)
		status = start_part(first, part_of(first, i));
	if (status != CUDA_SUCCESS) {
		fgv_parts_end(first);
		fgv_parts_stop(first);
	}
	return status;
}

/* False: it has not come back from its driver. */
static bool join(struct part *part)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_SEC;
	part->is_stuck = pthread_timedjoin_np(part->thread, NULL, &until) != 0;
	part->has_thread = part->is_stuck;
	return !part->is_stuck;
}

int fgv_parts_end(struct fgv_session *first)
{
	int err = 0;

	for (unsigned i = 0; i < count(first); i++)
		end_dispatcher(&part_of(first, i)->session);
	for (unsigned i = 0; i < count(first); i++) {
		struct part *part = part_of(first, i);

		if (!part->has_thread || !join(part) || part->err >= 0 || err < 0)
			continue;
		err = part->err;
		memcpy(first->reason, part->session.reason, sizeof(first->reason));
	}
	return err;
}

void fgv_parts_stop(struct fgv_session *first)
{
	for (unsigned i = 0; i < count(first); i++) {
		struct part *part = part_of(first, i);

		if (part->has_thread || !part->session.lanes || part->status != CUDA_SUCCESS)
			continue;
		part->session.gpu->ops->use(part->session.gpu);
		undo(&part->session, starting, FGV_ARRAY_LEN(starting));
	}
	first->gpu->ops->use(first->gpu);
}

int fgv_parts_welcome(struct fgv_session *first)
{
	int err = 0;

	for (unsigned i = 0; i < count(first) && !err; i++) {
		struct part *part = part_of(first, i);
		struct fgv_gpu *gpu = part->session.gpu;
		struct fgv_device_info info;
		bool is_known = gpu->ops->info(gpu, &info) == CUDA_SUCCESS;

		err = fgv_control_welcome_part(first, &part->session, part->peer_fd,
					       is_known ? info.name : "");
		close(part->peer_fd);
		part->peer_fd = -1;
	}
	return err;
}

static CUresult look(struct part *part)
{
	struct fgv_gpu *gpu = part->session.gpu;
	struct fgv_gpu_fence *fence;
	CUresult status;

	if (part->is_stuck)
		return CUDA_ERROR_NOT_READY;
	status = gpu->ops->use(gpu);
	if (status == CUDA_SUCCESS)
		status = gpu->ops->fence_all(gpu, &fence);
	if (status == CUDA_SUCCESS)
		status = gpu->ops->fence_query(gpu, fence);
	if (status == CUDA_SUCCESS)
		gpu->ops->fence_put(gpu, fence);
	return status;
}

CUresult fgv_parts_are_idle(struct fgv_session *first)
{
	CUresult status = CUDA_SUCCESS;

	for (unsigned i = 0; i < count(first) && status == CUDA_SUCCESS; i++)
		status = look(part_of(first, i));
	if (first->parts)
		first->gpu->ops->use(first->gpu);
	return status;
}
