/*
 * Workers run the blocks of one kernel at a time. The executor publishes the job under
 * job_lock, takes part as worker 0, and waits until no worker is at it any more. A block
 * goes to whoever takes the next number, so blocks start in order.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "softgpu/device/internal.h"

#define PATIENCE_YIELDS 16
#define TURNS_PER_LOOK	16 /* at the clock */

static unsigned count_units(const struct softgpu *gpu, uint64_t units)
{
	return units ? (unsigned)__builtin_popcountll(units) : gpu->workers_count;
}

unsigned fgv_workers_at_once(const struct softgpu *gpu)
{
	return count_units(gpu, __atomic_load_n(&gpu->units, __ATOMIC_RELAXED));
}

void softgpu_set_units(struct softgpu *gpu, uint64_t set)
{
	if (gpu->workers_count < 64)
		set &= (UINT64_C(1) << gpu->workers_count) - 1;
	__atomic_store_n(&gpu->units, set, __ATOMIC_RELAXED);
}

/* The multiprocessor that a worker is in this job. */
static unsigned unit_of(const struct job *job, unsigned index)
{
	uint64_t units = job->units;

	if (!units)
		return index;
	while (index-- > 0)
		units &= units - 1;
	return (unsigned)__builtin_ctzll(units);
}

/* Sets a worker's block up for a kernel. */
static bool prepare(struct worker *worker, const struct job *job)
{
	const struct launch *launch = job->launch;
	const struct code *code = launch->code;
	struct room *room = &worker->room;
	struct block *b = &worker->block;

	memset(b, 0, offsetof(struct block, ctaid));
	memcpy(b->nctaid, launch->grid, sizeof(b->nctaid));
	memcpy(b->ntid, launch->block, sizeof(b->ntid));
	b->threads = launch->threads;
	b->warps_count = (b->threads + LANES - 1) / LANES;
	b->local_bytes = code->local_total;
	b->frame_bytes = job->need.frame_bytes;
	b->dynamic_bytes = launch->dynamic_bytes;
	b->shared_bytes = job->need.shared_bytes;
	b->reserved_bytes = job->need.reserved_bytes;
	b->param_bytes = code->param_bytes;
	b->param = job->param;
	b->worker = unit_of(job, worker->index);
	b->workers = worker->gpu->workers_count;
	b->grid_id = job->number;
	b->workspace = launch->workspace;
	b->stop = &worker->gpu->job.stop;
	b->system = &worker->gpu->system;
	b->textures = &worker->gpu->textures;
	b->view = (struct memory_view){.memory = &worker->gpu->memory};
	if (!fgv_room_ensure(room, &job->need, &worker->gpu->room_used))
		return false;
	b->frames = room->parts[ROOM_FRAMES].base;
	b->local = room->parts[ROOM_LOCAL].base;
	b->shared = room->parts[ROOM_SHARED].base;
	b->warps = (struct warp *)room->parts[ROOM_WARPS].base;
	return true;
}

static const char *fault_name(CUresult code)
{
	switch (code) {
	case CUDA_ERROR_ILLEGAL_ADDRESS:
		return "illegal address";
	case CUDA_ERROR_MISALIGNED_ADDRESS:
		return "misaligned address";
	case CUDA_ERROR_ASSERT:
		return "assertion";
	case CUDA_ERROR_INVALID_PC:
		return "call of what is no function";
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
		return "illegal instruction";
	case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
		return "out of memory for threads";
	default:
		return "trap or deadlock";
	}
}

/*
 * The first fault of the device is kept; the store (release) pairs with fgv_queue_fault(). It is
 * logged before: the finder of the fault may end the process while other blocks still run.
 */
static void keep_fault(struct worker *worker, CUresult code)
{
	struct softgpu *gpu = worker->gpu;
	const struct block *b = &worker->block;

	pthread_mutex_lock(&gpu->job_lock);
	if (!__atomic_load_n(&gpu->fault, __ATOMIC_RELAXED)) {
		fgv_warning("soft GPU: %s in %.100s, block (%u, %u, %u), PTX line %u",
			    fault_name(code), b->fault_code ? b->fault_code->name : "?",
			    b->ctaid[0], b->ctaid[1], b->ctaid[2],
			    b->fault_insn ? b->fault_insn->line : 0);
		__atomic_store_n(&gpu->fault, (int)code, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&gpu->job_lock);
}

/* One that was only told to stop has nothing to say. */
static void give_up(struct worker *worker, struct job *job, CUresult result)
{
	if (worker->block.fault != CUDA_SUCCESS)
		keep_fault(worker, result);
	__atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
}

/* There is no memory to run blocks in. */
static void refuse(struct worker *worker, struct job *job)
{
	worker->block.fault_code = job->launch->code;
	worker->block.fault_insn = NULL;
	keep_fault(worker, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	__atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
}

static void place(struct block *b, uint64_t n)
{
	b->ctaid[0] = (uint32_t)(n % b->nctaid[0]);
	b->ctaid[1] = (uint32_t)(n / b->nctaid[0] % b->nctaid[1]);
	b->ctaid[2] = (uint32_t)(n / b->nctaid[0] / b->nctaid[1]);
}

static bool start_next(struct worker *worker, struct job *job)
{
	uint64_t n = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);

	if (n >= job->blocks)
		return false;
	place(&worker->block, n);
	fgv_softgpu_block_start(&worker->block, job->launch->code);
	return true;
}

/*
 * All others stand still: gives the engine away until it comes back. The executor's alone, which
 * is under job_lock but for the time without the engine.
 */
static void give_engine_away(struct softgpu *gpu)
{
	uint64_t since_ns = fgv_now_ns();

	pthread_mutex_unlock(&gpu->job_lock);
	fgv_engine_stand_still(&gpu->config.engine, &gpu->stop);
	pthread_mutex_lock(&gpu->job_lock);
	__atomic_fetch_add(&gpu->job.away_ns, fgv_now_ns() - since_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&gpu->job.held, 0, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&gpu->job_let_go);
}

static void stand_still(struct softgpu *gpu)
{
	gpu->job.still++;
	pthread_cond_signal(&gpu->job_done);
	while (__atomic_load_n(&gpu->job.held, __ATOMIC_RELAXED))
		pthread_cond_wait(&gpu->job_let_go, &gpu->job_lock);
	gpu->job.still--;
}

static bool is_held(const struct softgpu *gpu)
{
	return __atomic_load_n(&gpu->job.held, __ATOMIC_RELAXED) ||
	       fgv_engine_is_held(&gpu->config.engine);
}

/* Not a fault, but worth knowing when a program does not end. The time held does not count. */
static void tell_if_long(struct softgpu *gpu)
{
	uint64_t away_ns = __atomic_load_n(&gpu->job.away_ns, __ATOMIC_RELAXED);
	uint64_t limit_ns = gpu->config.long_kernel_ns;

	if (fgv_now_ns() - gpu->job.began_ns < limit_ns + away_ns ||
	    __atomic_exchange_n(&gpu->job.is_long, 1, __ATOMIC_RELAXED))
		return;
	fgv_info("soft GPU: kernel %.100s has run for %.3g s, and goes on",
		 gpu->job.launch->code->name, (double)limit_ns / FGV_NS_PER_SEC);
}

/*
 * Between two turns of blocks: stands still if this process is held. Whichever worker sees it
 * first tells the others; the executor, worker 0, speaks with the arbiter.
 */
static void between_turns(struct worker *worker)
{
	struct softgpu *gpu = worker->gpu;

	if (++worker->turns % TURNS_PER_LOOK == 0)
		tell_if_long(gpu);
	if (!is_held(gpu))
		return;
	pthread_mutex_lock(&gpu->job_lock);
	__atomic_store_n(&gpu->job.held, 1, __ATOMIC_RELAXED);
	if (worker->index) {
		stand_still(gpu);
	} else {
		while (gpu->job.still < gpu->job.busy)
			pthread_cond_wait(&gpu->job_done, &gpu->job_lock);
		give_engine_away(gpu);
	}
	pthread_mutex_unlock(&gpu->job_lock);
}

/* false: it can do nothing, as no block is left for it. */
static bool take_turn(struct worker *worker, struct job *job)
{
	CUresult result;

	if (!worker->block.alive && !start_next(worker, job))
		return false;
	result = fgv_softgpu_block_turn(&worker->block, job->launch->code);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		give_up(worker, job, result);
	return true;
}

static bool is_tired(const struct worker *worker, const struct job *job)
{
	return worker->block.yields >= PATIENCE_YIELDS &&
	       __atomic_load_n(&job->next, __ATOMIC_RELAXED) < job->blocks;
}

/* How many blocks of a kernel a multiprocessor has at once. */
static unsigned seats_of(const struct block *b)
{
	uint32_t shared = b->shared_bytes + (b->reserved_bytes ? 0 : RESERVED_SHARED);
	uint32_t seats = SM_THREADS / (b->warps_count * LANES);

	return (unsigned)fgv_min_u64(fgv_min_u64(seats, SM_SHARED / shared), SM_BLOCKS);
}

static void free_seat(struct worker *seat)
{
	fgv_room_release(&seat->room, &seat->gpu->room_used);
	free(seat);
}

static struct worker *add_seat(const struct worker *worker, struct job *job)
{
	struct worker *seat;

	if (__atomic_sub_fetch(&job->seats, 1, __ATOMIC_RELAXED) < 0) {
		__atomic_add_fetch(&job->seats, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	seat = calloc(1, sizeof(*seat));
	if (!seat)
		return NULL;
	seat->gpu = worker->gpu;
	seat->index = worker->index;
	if (prepare(seat, job))
		return seat;
	free_seat(seat);
	return NULL;
}

/*
 * A block that takes long may wait for one that has not begun: programs with a barrier of their
 * own, or a chain from block to block, count on all being there that a device has at once. So
 * each time the last one takes long, another gets a seat beside it, and they take turns.
 */
static void run_beside(struct worker *worker, struct job *job)
{
	struct worker *seats[SM_BLOCKS] = {worker};
	unsigned max = seats_of(&worker->block);
	unsigned used = 1;
	bool any = true;

	while (any && !__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
		any = false;
		between_turns(worker);
		for (unsigned i = 0; i < used; i++)
			any |= take_turn(seats[i], job);
		if (used >= max || !is_tired(seats[used - 1], job))
			continue;
		seats[used] = add_seat(worker, job);
		if (seats[used])
			used++;
		else
			max = used;
	}
	while (--used > 0) {
		free_seat(seats[used]);
		__atomic_add_fetch(&job->seats, 1, __ATOMIC_RELAXED);
	}
}

static void run_blocks(struct worker *worker, struct job *job)
{
	if (!prepare(worker, job)) {
		refuse(worker, job);
		return;
	}
	worker->block.alive = 0;
	while (!__atomic_load_n(&job->stop, __ATOMIC_RELAXED) && take_turn(worker, job)) {
		between_turns(worker);
		if (worker->block.alive && is_tired(worker, job))
			return run_beside(worker, job);
	}
}

/* Each block has a worker's memory to itself, and the calling thread goes round. */
static void take_turns(struct worker *executor, struct worker *blocks, uint64_t count,
		       struct job *job)
{
	const struct code *code = job->launch->code;
	uint64_t left = count;

	while (left > 0 && !__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
		between_turns(executor);
		for (uint64_t n = 0; n < count; n++) {
			struct worker *each = &blocks[n];
			CUresult result;

			if (!each->block.alive)
				continue;
			result = fgv_softgpu_block_turn(&each->block, code);
			if (result == CUDA_SUCCESS)
				left--;
			else if (result != CUDA_ERROR_NOT_READY)
				return give_up(each, job, result);
		}
	}
}

static void run_together(struct softgpu *gpu, struct job *job)
{
	struct worker *blocks = calloc(job->blocks, sizeof(*blocks));
	bool ready = blocks;

	for (uint64_t n = 0; ready && n < job->blocks; n++) {
		blocks[n].gpu = gpu;
		blocks[n].index = (unsigned)(n % count_units(gpu, job->units));
		ready = prepare(&blocks[n], job);
		if (ready) {
			place(&blocks[n].block, n);
			fgv_softgpu_block_start(&blocks[n].block, job->launch->code);
		}
	}
	if (ready)
		take_turns(&gpu->workers[0], blocks, job->blocks, job);
	else
		refuse(&gpu->workers[0], job);
	for (uint64_t n = 0; blocks && n < job->blocks; n++)
		fgv_room_release(&blocks[n].room, &gpu->room_used);
	free(blocks);
}

static bool stopping(const struct softgpu *gpu)
{
	return __atomic_load_n(&gpu->stop, __ATOMIC_RELAXED);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct softgpu *gpu = worker->gpu;
	uint64_t seen = 0;

	pthread_mutex_lock(&gpu->job_lock);
	for (;;) {
		while (!stopping(gpu) && (gpu->job_serial == seen || !gpu->job.wanted ||
					  worker->index >= gpu->job.limit))
			pthread_cond_wait(&gpu->job_ready, &gpu->job_lock);
		if (stopping(gpu))
			break;
		seen = gpu->job_serial;
		gpu->job.wanted--;
		gpu->job.busy++;
		pthread_mutex_unlock(&gpu->job_lock);
		run_blocks(worker, &gpu->job);
		pthread_mutex_lock(&gpu->job_lock);
		if (!--gpu->job.busy || gpu->job.held)
			pthread_cond_signal(&gpu->job_done);
	}
	pthread_mutex_unlock(&gpu->job_lock);
	return NULL;
}

static void publish(struct softgpu *gpu, const struct job *job, unsigned helpers)
{
	pthread_mutex_lock(&gpu->job_lock);
	gpu->job = *job;
	gpu->job.wanted = helpers;
	gpu->job.stop = stopping(gpu);
	gpu->job_serial++;
	if (gpu->job.limit < gpu->workers_count)
		pthread_cond_broadcast(&gpu->job_ready);
	for (unsigned i = 0; i < helpers && gpu->job.limit == gpu->workers_count; i++)
		pthread_cond_signal(&gpu->job_ready);
	pthread_mutex_unlock(&gpu->job_lock);
}

/* Nobody joins any more; those who are at it finish, or stand still in between. */
static void retire(struct softgpu *gpu)
{
	pthread_mutex_lock(&gpu->job_lock);
	gpu->job.wanted = 0;
	while (gpu->job.busy) {
		if (gpu->job.held && gpu->job.still == gpu->job.busy)
			give_engine_away(gpu);
		else
			pthread_cond_wait(&gpu->job_done, &gpu->job_lock);
	}
	pthread_mutex_unlock(&gpu->job_lock);
}

static void release_all(struct softgpu *gpu)
{
	for (unsigned i = 0; i < gpu->workers_count; i++)
		fgv_room_release(&gpu->workers[i].room, &gpu->room_used);
}

/*
 * Makes room for @blocks at once on the workers, and says how many more may run beside them. What
 * workers keep of other kernels' goes where it stands in the way. No worker is at work.
 */
static void make_room(struct softgpu *gpu, struct job *job, uint64_t blocks)
{
	uint64_t each = fgv_room_bytes(&job->need);
	uint64_t used = gpu->room_used;

	for (unsigned i = 0; i < blocks; i++)
		used += fgv_room_growth(&gpu->workers[i].room, &job->need);
	if (used > gpu->room_max) {
		release_all(gpu);
		used = blocks * each;
	}
	job->seats = (int)fgv_min_u64((gpu->room_max - used) / each, INT32_MAX);
}

/* All blocks at once, each in memory of its own. */
static void run_cooperative(struct softgpu *gpu, struct job *job)
{
	if (gpu->room_used + job->blocks * fgv_room_bytes(&job->need) > gpu->room_max)
		release_all(gpu);
	publish(gpu, job, 0);
	run_together(gpu, &gpu->job);
}

void fgv_workers_run(struct softgpu *gpu, const struct launch *launch, const uint8_t *param,
		     uint64_t number)
{
	uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	uint64_t units = __atomic_load_n(&gpu->units, __ATOMIC_RELAXED);
	struct job job = {
		.launch = launch,
		.param = param,
		.number = number,
		.blocks = blocks,
		.units = units,
		.began_ns = fgv_now_ns(),
	};
	uint64_t at_once;

	/* It fits, as was seen when it was submitted. */
	fgv_room_need(launch->code, launch->threads, launch->dynamic_bytes,
		      launch->workspace ? gpu->room_max / blocks : gpu->room_max, &job.need);
	if (launch->workspace)
		return run_cooperative(gpu, &job);
	at_once = fgv_min_u64(count_units(gpu, units), gpu->room_max / fgv_room_bytes(&job.need));
	job.limit = (unsigned)at_once;
	make_room(gpu, &job, at_once);
	publish(gpu, &job, (unsigned)fgv_min_u64(blocks, at_once) - 1);
	run_blocks(&gpu->workers[0], &gpu->job);
	retire(gpu);
}

bool fgv_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t others, before;
	bool started;

	sigfillset(&others);
	for (size_t i = 0; i < FGV_ARRAY_LEN(own); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	started = !pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_setname_np(*thread, SOFTGPU_THREAD_NAME);
	return started;
}

CUresult fgv_workers_start(struct softgpu *gpu)
{
	bool ok = true;

	gpu->workers = calloc(gpu->workers_count, sizeof(*gpu->workers));
	if (!gpu->workers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < gpu->workers_count; i++) {
		struct worker *worker = &gpu->workers[i];

		worker->gpu = gpu;
		worker->index = i;
		if (i && ok)
			ok = worker->started =
				fgv_thread_start(&worker->thread, worker_main, worker);
	}
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void fgv_workers_stop(struct softgpu *gpu)
{
	if (!gpu->workers)
		return;
	pthread_mutex_lock(&gpu->job_lock);
	__atomic_store_n(&gpu->stop, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&gpu->job_ready);
	pthread_mutex_unlock(&gpu->job_lock);
	for (unsigned i = 0; i < gpu->workers_count; i++) {
		struct worker *worker = &gpu->workers[i];

		if (worker->started)
			pthread_join(worker->thread, NULL);
		fgv_room_release(&worker->room, &gpu->room_used);
	}
	free(gpu->workers);
	gpu->workers = NULL;
}
