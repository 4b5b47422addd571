/*
 * The queues: commands in the order of submission, executed by one thread each. A command that
 * comes after commands of other queues waits for these, and holds up its own queue meanwhile. What
 * it waits for was submitted before it, so the first of all that are not done can always run.
 *
 * completed is stored with release after a command's effects; the dispatcher's and the other
 * queues' loads (acquire) pair with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "softgpu/device/internal.h"

struct command *fgv_queue_new(enum command_kind kind, size_t param_bytes)
{
	size_t size = fgv_align_up(sizeof(struct command) + param_bytes + 64, 64);
	struct command *command = aligned_alloc(64, size);

	if (command) {
		memset(command, 0, size);
		command->kind = kind;
	}
	return command;
}

CUresult fgv_queue_fault(const struct softgpu *gpu)
{
	return (CUresult)__atomic_load_n(&gpu->fault, __ATOMIC_ACQUIRE);
}

static uint64_t append(struct queue *queue, struct command *command)
{
	struct softgpu *gpu = queue->gpu;
	uint64_t number = ++queue->submitted;

	command->number = number;
	pthread_mutex_lock(&gpu->queue_lock);
	if (!queue->first)
		pthread_cond_signal(&queue->filled);
	*queue->tail = command;
	queue->tail = &command->next;
	pthread_mutex_unlock(&gpu->queue_lock);
	return number;
}

void fgv_queue_append(struct softgpu *gpu, struct command *command, unsigned queue)
{
	append(&gpu->queues[queue], command);
}

static struct softgpu_point what_comes_before(const struct softgpu *gpu,
					      const struct softgpu_stream *stream, unsigned queue)
{
	struct softgpu_point point = fgv_stream_point(gpu, stream);

	if (queue >= COMPUTE_QUEUES)
		return point;
	fgv_point_join(&point, &gpu->kept);
	point.numbers[QUEUE_COMPUTE] = fgv_max_u64(point.numbers[QUEUE_COMPUTE], gpu->last_of_all);
	return point;
}

void fgv_queue_submit(struct softgpu *gpu, struct command *command, unsigned queue,
		      struct softgpu_stream *stream)
{
	if (gpu->choice) {
		fgv_choice_take(gpu->choice, command);
		return;
	}
	if (!stream)
		stream = &gpu->default_stream;
	if (queue == QUEUE_COMPUTE)
		queue = stream->compute;
	command->after = what_comes_before(gpu, stream, queue);
	stream->last = command->after;
	stream->last.numbers[queue] = append(&gpu->queues[queue], command);
	stream->queue = queue;
	if (stream->is_blocking)
		fgv_point_join(&gpu->blocking, &stream->last);
}

uint64_t fgv_queue_submit_last(struct softgpu *gpu, struct command *command)
{
	command->after = softgpu_point_of_all(gpu);
	gpu->last_of_all = append(&gpu->queues[QUEUE_COMPUTE], command);
	return gpu->last_of_all;
}

static bool is_host(struct softgpu *gpu, uint64_t address)
{
	struct host_range range;

	return fgv_softgpu_host_find(&gpu->memory, address, RANGE_RETIRED, &range);
}

unsigned fgv_queue_for_copy(struct softgpu *gpu, uint64_t dst, uint64_t src)
{
	bool from_host = is_host(gpu, src);

	if (from_host == is_host(gpu, dst))
		return QUEUE_COMPUTE;
	return from_host ? QUEUE_IN : QUEUE_OUT;
}

/* --- Waiting ---------------------------------------------------------------- */

static uint64_t completed(const struct softgpu *gpu, unsigned queue)
{
	return __atomic_load_n(&gpu->queues[queue].completed, __ATOMIC_SEQ_CST);
}

bool fgv_queue_is_done(const struct softgpu *gpu, const struct softgpu_point *point)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		if (completed(gpu, i) < point->numbers[i])
			return false;
	}
	return true;
}

CUresult softgpu_point_query(const struct softgpu *gpu, const struct softgpu_point *point)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	if (!fgv_queue_is_done(gpu, point))
		return CUDA_ERROR_NOT_READY;
	/* A fault of that very command came before its completion. */
	return fgv_queue_fault(gpu);
}

static void wait_for(const struct softgpu *gpu, const struct softgpu_point *point)
{
	static const struct timespec pause = {.tv_nsec = 20000};

	while (!fgv_queue_is_done(gpu, point))
		nanosleep(&pause, NULL);
}

void fgv_queue_wait(struct softgpu *gpu, uint64_t number)
{
	const struct softgpu_point point = {.numbers[QUEUE_COMPUTE] = number};

	wait_for(gpu, &point);
}

void fgv_queue_wait_all(struct softgpu *gpu)
{
	const struct softgpu_point point = softgpu_point_of_all(gpu);

	wait_for(gpu, &point);
}

void fgv_queue_wait_frees(struct softgpu *gpu)
{
	fgv_queue_wait(gpu, gpu->last_free);
}

/* What is queued behind the kernel with the fault is passed over. */
void fgv_queue_wait_fault(struct softgpu *gpu)
{
	if (fgv_queue_fault(gpu) != CUDA_SUCCESS)
		fgv_queue_wait_all(gpu);
}

/*
 * A read that writes: it comes behind whatever the caller has stored before, as begin() does with
 * what the command finds. So either this sees the command, or the command sees what was stored.
 */
void fgv_queue_wait_begun(struct softgpu *gpu)
{
	struct softgpu_point point;

	for (unsigned i = 0; i < QUEUES; i++)
		point.numbers[i] = __atomic_fetch_add(&gpu->queues[i].begun, 0, __ATOMIC_SEQ_CST);
	wait_for(gpu, &point);
}

/* --- Running ---------------------------------------------------------------- */

#define FILL_ROW(T)                                                                                \
	for (size_t i = 0; i < command->fill.row_elements; i++)                                    \
		((T *)(void *)row)[i] = (T)command->fill.value;

static void run_fill(const struct command *command)
{
	for (size_t r = 0; r < command->fill.rows; r++) {
		char *row = command->fill.dst + r * command->fill.pitch;

		if (command->fill.width == 1)
			memset(row, (int)command->fill.value, command->fill.row_elements);
		else if (command->fill.width == 2)
			FILL_ROW(uint16_t)
		else
			FILL_ROW(uint32_t)
	}
}

static bool is_word(const struct copy *copy, size_t bytes)
{
	return copy->bytes == bytes && (uintptr_t)copy->dst % bytes == 0;
}

/* A word is written whole, since somebody may wait for its value. */
static void run_copy(const struct copy *copy)
{
	uint64_t word = 0;

	if (!is_word(copy, sizeof(uint32_t)) && !is_word(copy, sizeof(uint64_t))) {
		memmove(copy->dst, copy->src, copy->bytes);
		return;
	}
	memcpy(&word, copy->src, copy->bytes);
	if (copy->bytes == sizeof(uint32_t))
		__atomic_store_n((uint32_t *)copy->dst, (uint32_t)word, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)copy->dst, word, __ATOMIC_RELEASE);
}

/* The first fault is kept, as of kernels. */
static void fail_copy(struct softgpu *gpu, const struct copy *copy)
{
	int none = 0;

	fgv_warning("soft GPU: memory of another one was freed before it was copied: %zu bytes",
		    copy->bytes);
	__atomic_compare_exchange_n(&gpu->fault, &none, (int)CUDA_ERROR_ILLEGAL_ADDRESS, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void run_copy_checked(struct softgpu *gpu, const struct copy *copy)
{
	if (copy->is_peers &&
	    (!fgv_softgpu_memory_has(&gpu->memory, (uint64_t)(uintptr_t)copy->dst, copy->bytes) ||
	     !fgv_softgpu_memory_has(&gpu->memory, (uint64_t)(uintptr_t)copy->src, copy->bytes)))
		fail_copy(gpu, copy);
	else
		run_copy(copy);
}

/* Pairs with fgv_queue_wait_begun(). */
static void begin(struct queue *queue, const struct command *command)
{
	switch (command->kind) {
	case COMMAND_LAUNCH:
	case COMMAND_COPY:
	case COMMAND_COPY_BOX:
	case COMMAND_FILL:
	case COMMAND_CHOICE:
		__atomic_store_n(&queue->begun, command->number, __ATOMIC_SEQ_CST);
		break;
	default:
		break;
	}
}

void fgv_queue_run(struct softgpu *gpu, struct command *command, unsigned queue)
{
	bool sane = fgv_queue_fault(gpu) == CUDA_SUCCESS;

	switch (command->kind) {
	case COMMAND_LAUNCH:
		if (sane)
			fgv_workers_run(gpu, &gpu->executors[queue], &command->launch,
					command->param);
		break;
	case COMMAND_COPY:
		if (sane)
			run_copy_checked(gpu, &command->copy);
		break;
	case COMMAND_COPY_BOX:
		if (sane)
			fgv_softgpu_box_run(&command->box);
		break;
	case COMMAND_DROP_TEXTURE:
		fgv_textures_drop(&gpu->textures, command->address);
		break;
	case COMMAND_FILL:
		if (sane)
			run_fill(command);
		break;
	case COMMAND_RECORD:
		command->event->time_ns = fgv_now_ns();
		break;
	case COMMAND_FREE:
		fgv_softgpu_memory_free(&gpu->memory, command->address);
		break;
	case COMMAND_HIDE:
		fgv_softgpu_host_set(&gpu->memory, command->address, RANGE_HIDDEN);
		break;
	case COMMAND_UNMAP:
		fgv_softgpu_space_hide(&gpu->memory, command->unmap.address, command->unmap.bytes,
				       command->unmap.is_view);
		break;
	case COMMAND_UNLOAD:
		fgv_module_destroy(command->module);
		break;
	case COMMAND_DROP_EVENT:
		free(command->event);
		break;
	case COMMAND_CONDITION:
		__atomic_store_n(command->condition.at, command->condition.value, __ATOMIC_RELAXED);
		break;
	case COMMAND_DROP_CONDITION:
		__atomic_store_n(command->dropped, false, __ATOMIC_RELEASE);
		break;
	case COMMAND_CHOICE:
		if (sane)
			fgv_choice_run(gpu, command->choice, queue);
		break;
	}
}

void fgv_queue_drop(struct command *command)
{
	if (command->kind == COMMAND_CHOICE)
		fgv_choice_free(command->choice);
	free(command);
}

static struct command *take_all(struct queue *queue)
{
	struct softgpu *gpu = queue->gpu;
	struct command *list;

	pthread_mutex_lock(&gpu->queue_lock);
	while (!queue->first && !__atomic_load_n(&gpu->stop, __ATOMIC_RELAXED))
		pthread_cond_wait(&queue->filled, &gpu->queue_lock);
	list = queue->first;
	queue->first = NULL;
	queue->tail = &queue->first;
	pthread_mutex_unlock(&gpu->queue_lock);
	return list;
}

/* Those of the same queue are done. */
static void await_others(struct softgpu *gpu, const struct softgpu_point *after)
{
	if (fgv_queue_is_done(gpu, after))
		return;
	pthread_mutex_lock(&gpu->queue_lock);
	/* Pairs with complete(): either this sees the completion, or that side that this waits. */
	__atomic_add_fetch(&gpu->waiting, 1, __ATOMIC_SEQ_CST);
	while (!fgv_queue_is_done(gpu, after))
		pthread_cond_wait(&gpu->queue_moved, &gpu->queue_lock);
	__atomic_sub_fetch(&gpu->waiting, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&gpu->queue_lock);
}

static void notify(struct softgpu *gpu)
{
	uint64_t one = 1;

	/* Pairs with softgpu_arm(): either this sees the arm, or the arming side the completion. */
	if (!__atomic_load_n(&gpu->armed, __ATOMIC_SEQ_CST) ||
	    !__atomic_exchange_n(&gpu->armed, 0, __ATOMIC_SEQ_CST))
		return;
	while (write(gpu->completion_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
}

static void complete(struct queue *queue, uint64_t number)
{
	struct softgpu *gpu = queue->gpu;

	__atomic_store_n(&queue->completed, number, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&gpu->waiting, __ATOMIC_SEQ_CST)) {
		pthread_mutex_lock(&gpu->queue_lock);
		pthread_cond_broadcast(&gpu->queue_moved);
		pthread_mutex_unlock(&gpu->queue_lock);
	}
	notify(gpu);
}

static void *queue_main(void *arg)
{
	struct queue *queue = arg;
	unsigned index = (unsigned)(queue - queue->gpu->queues);
	struct command *list;

	fgv_thread_name();
	while ((list = take_all(queue))) {
		while (list) {
			struct command *command = list;
			uint64_t number = command->number;

			list = command->next;
			await_others(queue->gpu, &command->after);
			begin(queue, command);
			fgv_queue_run(queue->gpu, command, index);
			fgv_queue_drop(command);
			complete(queue, number);
		}
	}
	return NULL;
}

static bool start(struct queue *queue)
{
	if (!queue->started)
		queue->started = fgv_thread_start(&queue->thread, queue_main, queue);
	return queue->started;
}

/* The other queues' threads come with the streams that use them. */
CUresult fgv_queue_start(struct softgpu *gpu)
{
	bool ok = start(&gpu->queues[QUEUE_COMPUTE]) && start(&gpu->queues[QUEUE_IN]) &&
		  start(&gpu->queues[QUEUE_OUT]);

	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The first one is the default stream's. Where threads are short, streams share it. */
unsigned fgv_queue_choose(struct softgpu *gpu)
{
	unsigned least = QUEUE_COMPUTE + 1;

	for (unsigned i = least + 1; i < COMPUTE_QUEUES; i++) {
		if (gpu->streams[i] < gpu->streams[least])
			least = i;
	}
	if (!start(&gpu->queues[least]))
		least = QUEUE_COMPUTE;
	gpu->streams[least]++;
	return least;
}

void fgv_queue_tell(struct softgpu *gpu)
{
	__atomic_store_n(&gpu->fault, CUDA_ERROR_DEINITIALIZED, __ATOMIC_RELEASE);
	__atomic_store_n(&gpu->stop, 1, __ATOMIC_RELAXED);
	fgv_workers_stop_jobs(gpu);
	pthread_mutex_lock(&gpu->queue_lock);
	for (unsigned i = 0; i < QUEUES; i++)
		pthread_cond_signal(&gpu->queues[i].filled);
	pthread_mutex_unlock(&gpu->queue_lock);
	if (gpu->config.engine.seat)
		fgv_engine_wake(&gpu->config.engine);
}

/* What is queued is not run any more, except for what gives something back. */
void fgv_queue_stop(struct softgpu *gpu)
{
	if (!gpu->queues[QUEUE_COMPUTE].started)
		return;
	fgv_queue_tell(gpu);
	for (unsigned i = 0; i < QUEUES; i++) {
		if (gpu->queues[i].started)
			pthread_join(gpu->queues[i].thread, NULL);
		gpu->queues[i].started = false;
	}
}

void softgpu_arm(struct softgpu *gpu)
{
	/* Pairs with notify(). */
	__atomic_store_n(&gpu->armed, 1, __ATOMIC_SEQ_CST);
}
