/*
 * What a worker does with a kernel: its blocks, one after another. A block goes to whoever takes
 * the next number, so blocks start in order.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "softgpu/device/internal.h"

#define PATIENCE_YIELDS 16

/* Sets a worker's block up for a kernel, in the room that it has. */
static void prepare(struct worker *worker, const struct job *job)
{
	const struct launch *launch = job->launch;
	const struct code *code = launch->code;
	const struct room *room = &worker->room;
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
	b->worker = worker->unit;
	b->workers = worker->gpu->units_count;
	b->grid_id = job->grid;
	b->workspace = launch->workspace;
	b->stop = &job->stop;
	b->system = &worker->gpu->system;
	b->textures = &worker->gpu->textures;
	b->view = (struct memory_view){.memory = &worker->gpu->memory};
	b->frames = room->parts[ROOM_FRAMES].base;
	b->local = room->parts[ROOM_LOCAL].base;
	b->shared = room->parts[ROOM_SHARED].base;
	b->warps = (struct warp *)room->parts[ROOM_WARPS].base;
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
 * logged before: the finder of the fault may end the process while other blocks still run. All
 * kernels end then.
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
	fgv_workers_stop_jobs(gpu);
}

/* One that was only told to stop has nothing to say. */
static void give_up(struct worker *worker, struct job *job, CUresult result)
{
	if (worker->block.fault != CUDA_SUCCESS)
		keep_fault(worker, result);
	__atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
}

void fgv_blocks_refuse(struct worker *worker, struct job *job)
{
	worker->block.fault_code = job->launch->code;
	worker->block.fault_insn = NULL;
	keep_fault(worker, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
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
	fgv_workers_drop_room(seat->gpu, &seat->room);
	free(seat);
}

static struct worker *add_seat(const struct worker *worker, const struct job *job)
{
	struct worker *seat = calloc(1, sizeof(*seat));

	if (!seat)
		return NULL;
	seat->gpu = worker->gpu;
	seat->unit = worker->unit;
	if (!fgv_workers_get_room(seat->gpu, &seat->room, job)) {
		free(seat);
		return NULL;
	}
	prepare(seat, job);
	return seat;
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
		fgv_workers_between_turns(worker, job);
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
	while (--used > 0)
		free_seat(seats[used]);
}

void fgv_blocks_run(struct worker *worker, struct job *job)
{
	prepare(worker, job);
	worker->block.alive = 0;
	while (!__atomic_load_n(&job->stop, __ATOMIC_RELAXED) && take_turn(worker, job)) {
		fgv_workers_between_turns(worker, job);
		if (worker->block.alive && is_tired(worker, job))
			return run_beside(worker, job);
	}
}

/* Each block has a worker's memory to itself, and the calling thread goes round. */
static void take_turns(struct worker *worker, struct worker *blocks, uint64_t count,
		       struct job *job)
{
	const struct code *code = job->launch->code;
	uint64_t left = count;

	while (left > 0 && !__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
		fgv_workers_between_turns(worker, job);
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

void fgv_blocks_run_together(struct worker *worker, struct job *job, struct room *rooms)
{
	struct softgpu *gpu = worker->gpu;
	struct worker *blocks = calloc(job->blocks, sizeof(*blocks));

	if (!blocks) {
		fgv_blocks_refuse(worker, job);
		return;
	}
	for (uint64_t n = 0; n < job->blocks; n++) {
		blocks[n].gpu = gpu;
		blocks[n].unit = (unsigned)(n % gpu->units_count);
		blocks[n].room = rooms[n];
		prepare(&blocks[n], job);
		place(&blocks[n].block, n);
		fgv_softgpu_block_start(&blocks[n].block, job->launch->code);
	}
	take_turns(worker, blocks, job->blocks, job);
	free(blocks);
}
