/*
 * Which kernels run where. An executor publishes its kernel as a job, takes part in it, and waits
 * until no worker is at it any more. Whoever is at a job has a multiprocessor, and room for a
 * block; both are given out under job_lock, first come first served.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "softgpu/device/internal.h"

#define TURNS_PER_LOOK 16 /* at the clock */

static bool stopping(const struct softgpu *gpu)
{
	return __atomic_load_n(&gpu->stop, __ATOMIC_RELAXED);
}

/* --- Multiprocessors ------------------------------------------------------------- */

static unsigned count_units(const struct softgpu *gpu, uint64_t units)
{
	return units ? (unsigned)__builtin_popcountll(units) : gpu->units_count;
}

unsigned fgv_workers_at_once(const struct softgpu *gpu)
{
	return count_units(gpu, __atomic_load_n(&gpu->units, __ATOMIC_RELAXED));
}

void softgpu_set_units(struct softgpu *gpu, uint64_t set)
{
	if (gpu->units_count < 64)
		set &= (UINT64_C(1) << gpu->units_count) - 1;
	__atomic_store_n(&gpu->units, set, __ATOMIC_RELAXED);
}

static bool is_allowed(const struct job *job, unsigned unit)
{
	return !job->units || (unit < 64 && job->units >> unit & 1);
}

static bool take_unit(struct softgpu *gpu, const struct job *job, unsigned *unit)
{
	for (unsigned i = 0; i < gpu->units_count; i++) {
		if (!gpu->unit_used[i] && is_allowed(job, i)) {
			gpu->unit_used[i] = true;
			*unit = i;
			return true;
		}
	}
	return false;
}

/* --- Rooms ----------------------------------------------------------------------- */

static void release_if_idle(struct softgpu *gpu, struct worker *worker)
{
	if (!worker->job)
		fgv_room_release(&worker->room, &gpu->room_used);
}

/* What workers keep of other kernels' goes where it stands in the way. */
static void release_idle(struct softgpu *gpu)
{
	for (unsigned i = 0; i < COMPUTE_QUEUES; i++)
		release_if_idle(gpu, &gpu->executors[i].worker);
	for (unsigned i = 0; i + 1 < gpu->units_count; i++)
		release_if_idle(gpu, &gpu->helpers[i]);
}

static bool has_place(const struct softgpu *gpu, const struct room *room,
		      const struct room_need *need)
{
	return gpu->room_used + fgv_room_growth(room, need) <= gpu->room_max;
}

bool fgv_workers_get_room(struct softgpu *gpu, struct room *room, const struct job *job)
{
	bool ok;

	pthread_mutex_lock(&gpu->job_lock);
	ok = has_place(gpu, room, &job->need) && fgv_room_ensure(room, &job->need, &gpu->room_used);
	if (!ok)
		fgv_room_release(room, &gpu->room_used);
	pthread_mutex_unlock(&gpu->job_lock);
	return ok;
}

void fgv_workers_drop_room(struct softgpu *gpu, struct room *room)
{
	pthread_mutex_lock(&gpu->job_lock);
	fgv_room_release(room, &gpu->room_used);
	pthread_mutex_unlock(&gpu->job_lock);
}

/* --- Joining and leaving jobs ---------------------------------------------------- */

/* False: there is no multiprocessor or no place for it now. */
static bool join(struct softgpu *gpu, struct worker *worker, struct job *job)
{
	if (__atomic_load_n(&gpu->held, __ATOMIC_RELAXED))
		return false;
	if (!has_place(gpu, &worker->room, &job->need))
		release_idle(gpu);
	if (!has_place(gpu, &worker->room, &job->need) || !take_unit(gpu, job, &worker->unit))
		return false;
	worker->job = job;
	job->busy++;
	gpu->at_work++;
	return true;
}

static bool wants_help(const struct softgpu *gpu)
{
	for (unsigned i = 0; i < COMPUTE_QUEUES; i++) {
		if (gpu->executors[i].job.wanted)
			return true;
	}
	return false;
}

void fgv_workers_tell_others(struct softgpu *gpu)
{
	if (wants_help(gpu))
		pthread_cond_broadcast(&gpu->job_ready);
	if (gpu->waiting_to_start)
		pthread_cond_broadcast(&gpu->job_moved);
}

/* No block is left for it, or the job is stopped. */
static void leave(struct softgpu *gpu, struct worker *worker)
{
	struct job *job = worker->job;

	worker->job = NULL;
	gpu->unit_used[worker->unit] = false;
	job->wanted = 0;
	gpu->at_work--;
	if (!--job->busy || __atomic_load_n(&gpu->held, __ATOMIC_RELAXED))
		pthread_cond_broadcast(&gpu->job_moved);
	if (!gpu->at_work)
		__atomic_store_n(&gpu->held, 0, __ATOMIC_RELAXED);
	fgv_workers_tell_others(gpu);
}

static void work(struct softgpu *gpu, struct worker *worker)
{
	bool has_room = fgv_room_ensure(&worker->room, &worker->job->need, &gpu->room_used);

	pthread_mutex_unlock(&gpu->job_lock);
	if (has_room)
		fgv_blocks_run(worker, worker->job);
	else
		fgv_blocks_refuse(worker, worker->job);
	pthread_mutex_lock(&gpu->job_lock);
	leave(gpu, worker);
}

static bool find_job(struct softgpu *gpu, struct worker *worker)
{
	for (unsigned i = 0; i < COMPUTE_QUEUES; i++) {
		struct job *job = &gpu->executors[i].job;

		if (job->wanted && join(gpu, worker, job)) {
			job->wanted--;
			return true;
		}
	}
	return false;
}

static void *helper_main(void *arg)
{
	struct worker *worker = arg;
	struct softgpu *gpu = worker->gpu;

	fgv_thread_name();
	pthread_mutex_lock(&gpu->job_lock);
	while (!stopping(gpu)) {
		if (find_job(gpu, worker))
			work(gpu, worker);
		else
			pthread_cond_wait(&gpu->job_ready, &gpu->job_lock);
	}
	pthread_mutex_unlock(&gpu->job_lock);
	return NULL;
}

/* --- Between turns of blocks ---------------------------------------------------- */

/* Not a fault, but worth knowing when a program does not end. The time held does not count. */
static void tell_if_long(const struct softgpu *gpu, struct job *job)
{
	uint64_t away_ns = __atomic_load_n(&job->away_ns, __ATOMIC_RELAXED);
	uint64_t limit_ns = gpu->config.long_kernel_ns;

	if (fgv_now_ns() - job->began_ns < limit_ns + away_ns ||
	    __atomic_exchange_n(&job->is_long, 1, __ATOMIC_RELAXED))
		return;
	fgv_info("soft GPU: kernel %.100s has run for %.3g s, and goes on", job->launch->code->name,
		 (double)limit_ns / FGV_NS_PER_SEC);
}

void fgv_workers_between_turns(struct worker *worker, struct job *job)
{
	struct softgpu *gpu = worker->gpu;

	if (++worker->turns % TURNS_PER_LOOK == 0)
		tell_if_long(gpu, job);
	if (__atomic_load_n(&gpu->held, __ATOMIC_RELAXED) ||
	    fgv_engine_is_held(&gpu->config.engine))
		fgv_turn_stand_still(gpu);
}

/* --- Kernels --------------------------------------------------------------------- */

/* Until a multiprocessor or a room may have become free. */
static void await_move(struct softgpu *gpu)
{
	gpu->waiting_to_start++;
	pthread_cond_wait(&gpu->job_moved, &gpu->job_lock);
	gpu->waiting_to_start--;
}

/* For all blocks of a cooperative grid at once. */
static bool has_place_for_grid(struct softgpu *gpu, const struct job *job)
{
	uint64_t bytes = job->blocks * fgv_room_bytes(&job->need);

	if (gpu->room_used + bytes > gpu->room_max)
		release_idle(gpu);
	return gpu->room_used + bytes <= gpu->room_max;
}

/* Waits until the executor is at its job. False: that is stopped. */
static bool start(struct softgpu *gpu, struct executor *executor)
{
	struct job *job = &executor->job;

	while (!__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
		if ((!job->launch->workspace || has_place_for_grid(gpu, job)) &&
		    join(gpu, &executor->worker, job)) {
			job->began_ns = fgv_now_ns();
			return true;
		}
		await_move(gpu);
	}
	return false;
}

static void call_helpers(struct softgpu *gpu, struct job *job)
{
	uint64_t at_once = fgv_min_u64(count_units(gpu, job->units),
				       gpu->room_max / fgv_room_bytes(&job->need));

	job->wanted = (unsigned)fgv_min_u64(job->blocks, at_once) - 1;
	for (unsigned i = 0; i < job->wanted; i++)
		pthread_cond_signal(&gpu->job_ready);
}

static void run_blocks(struct softgpu *gpu, struct executor *executor)
{
	struct job *job = &executor->job;

	if (!start(gpu, executor))
		return;
	call_helpers(gpu, job);
	work(gpu, &executor->worker);
	while (job->busy)
		pthread_cond_wait(&gpu->job_moved, &gpu->job_lock);
}

static bool ensure_rooms(struct softgpu *gpu, const struct job *job, struct room *rooms)
{
	for (uint64_t n = 0; n < job->blocks; n++) {
		if (!fgv_room_ensure(&rooms[n], &job->need, &gpu->room_used))
			return false;
	}
	return true;
}

static void work_together(struct softgpu *gpu, struct worker *worker, struct room *rooms)
{
	struct job *job = worker->job;
	bool has_rooms = rooms && ensure_rooms(gpu, job, rooms);

	pthread_mutex_unlock(&gpu->job_lock);
	if (has_rooms)
		fgv_blocks_run_together(worker, job, rooms);
	else
		fgv_blocks_refuse(worker, job);
	pthread_mutex_lock(&gpu->job_lock);
	for (uint64_t n = 0; rooms && n < job->blocks; n++)
		fgv_room_release(&rooms[n], &gpu->room_used);
	leave(gpu, worker);
}

/* A cooperative grid: all blocks at once, each in memory of its own. */
static void run_together(struct softgpu *gpu, struct executor *executor)
{
	struct job *job = &executor->job;
	struct room *rooms = calloc(job->blocks, sizeof(*rooms));

	if (start(gpu, executor))
		work_together(gpu, &executor->worker, rooms);
	free(rooms);
}

static void publish(struct softgpu *gpu, struct executor *executor, const struct job *job)
{
	executor->job = *job;
	executor->job.grid = ++gpu->grids;
	executor->job.stop = stopping(gpu) || fgv_queue_fault(gpu) != CUDA_SUCCESS;
	fgv_softgpu_output_turn(&gpu->system.output);
}

static void run(struct softgpu *gpu, struct executor *executor, const struct job *job)
{
	pthread_mutex_lock(&gpu->job_lock);
	if (fgv_turn_begin(gpu)) {
		publish(gpu, executor, job);
		if (job->launch->workspace)
			run_together(gpu, executor);
		else
			run_blocks(gpu, executor);
		fgv_turn_end(gpu);
	}
	pthread_mutex_unlock(&gpu->job_lock);
}

/* It fits, as was seen when it was submitted. */
void fgv_workers_run(struct softgpu *gpu, struct executor *executor, const struct launch *launch,
		     const uint8_t *param)
{
	struct job job = {
		.launch = launch,
		.param = param,
		.blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2],
		.units = __atomic_load_n(&gpu->units, __ATOMIC_RELAXED),
	};
	uint64_t max = gpu->room_max;

	fgv_room_need(launch->code, launch->threads, launch->dynamic_bytes,
		      launch->workspace ? max / job.blocks : max, &job.need);
	/* Cooperative grids count in the same workspace. */
	if (launch->workspace)
		pthread_mutex_lock(&gpu->grid_lock);
	run(gpu, executor, &job);
	if (launch->workspace)
		pthread_mutex_unlock(&gpu->grid_lock);
}

void fgv_workers_stop_jobs(struct softgpu *gpu)
{
	pthread_mutex_lock(&gpu->job_lock);
	for (unsigned i = 0; i < COMPUTE_QUEUES; i++)
		__atomic_store_n(&gpu->executors[i].job.stop, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&gpu->job_moved);
	pthread_mutex_unlock(&gpu->job_lock);
}

/* --- Threads --------------------------------------------------------------------- */

/* The thread takes no signals but those that its own faults raise. */
bool fgv_thread_start(pthread_t *thread, void *(*run_thread)(void *), void *arg)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t others, before;
	bool started;

	sigfillset(&others);
	for (size_t i = 0; i < FGV_ARRAY_LEN(own); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	started = !pthread_create(thread, NULL, run_thread, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* Another thread's name is a file, which a process in a sandbox may not open. */
void fgv_thread_name(void)
{
	pthread_setname_np(pthread_self(), SOFTGPU_THREAD_NAME);
}

CUresult fgv_workers_start(struct softgpu *gpu)
{
	bool ok = true;

	gpu->helpers = calloc(gpu->units_count, sizeof(*gpu->helpers));
	if (!gpu->helpers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < COMPUTE_QUEUES; i++)
		gpu->executors[i].worker.gpu = gpu;
	for (unsigned i = 0; i + 1 < gpu->units_count && ok; i++) {
		struct worker *worker = &gpu->helpers[i];

		worker->gpu = gpu;
		ok = worker->started = fgv_thread_start(&worker->thread, helper_main, worker);
	}
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The executors have ended. */
void fgv_workers_stop(struct softgpu *gpu)
{
	if (!gpu->helpers)
		return;
	pthread_mutex_lock(&gpu->job_lock);
	__atomic_store_n(&gpu->stop, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&gpu->job_ready);
	pthread_mutex_unlock(&gpu->job_lock);
	for (unsigned i = 0; i + 1 < gpu->units_count; i++) {
		if (gpu->helpers[i].started)
			pthread_join(gpu->helpers[i].thread, NULL);
	}
	release_idle(gpu);
	free(gpu->helpers);
	gpu->helpers = NULL;
}
