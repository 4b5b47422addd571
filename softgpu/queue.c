/*
 * The queue: commands in the order of submission, executed by one thread. Order of submission is
 * a correct order for all streams, so a stream is only the number of its last
 * command, and waiting for an event costs nothing.
 *
 * completed is stored with release after a command's effects; the dispatcher's
 * loads (acquire) pair with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "softgpu/internal.h"

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

void fgv_queue_submit(struct softgpu *gpu, struct command *command, struct softgpu_stream *stream)
{
	command->number = ++gpu->submitted;
	(stream ? stream : &gpu->default_stream)->last = command->number;
	pthread_mutex_lock(&gpu->queue_lock);
	if (!gpu->first)
		pthread_cond_signal(&gpu->queue_filled);
	*gpu->tail = command;
	gpu->tail = &command->next;
	pthread_mutex_unlock(&gpu->queue_lock);
}

static uint64_t completed(const struct softgpu *gpu)
{
	return __atomic_load_n(&gpu->completed, __ATOMIC_ACQUIRE);
}

static CUresult reached(const struct softgpu *gpu, uint64_t number)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	if (completed(gpu) < number)
		return CUDA_ERROR_NOT_READY;
	/* A fault of that very command came before its completion. */
	return fgv_queue_fault(gpu);
}

static void wait_for(const struct softgpu *gpu, uint64_t number)
{
	static const struct timespec pause = {.tv_nsec = 20000};

	while (completed(gpu) < number)
		nanosleep(&pause, NULL);
}

void fgv_queue_wait(struct softgpu *gpu, uint64_t number)
{
	wait_for(gpu, number);
}

void fgv_queue_wait_frees(struct softgpu *gpu)
{
	wait_for(gpu, gpu->last_free);
}

/* What is queued behind the kernel with the fault is passed over. */
void fgv_queue_wait_fault(struct softgpu *gpu)
{
	if (fgv_queue_fault(gpu) != CUDA_SUCCESS)
		wait_for(gpu, gpu->submitted);
}

static void run_launch(struct softgpu *gpu, const struct command *command)
{
	const struct softgpu_engine *engine = &gpu->config.engine;

	if (engine->seat && !fgv_engine_acquire(engine, &gpu->stop))
		return;
	fgv_softgpu_output_turn(&gpu->system.output);
	fgv_workers_run(gpu, &command->launch, command->param, command->number);
	if (engine->seat)
		fgv_engine_release(engine);
}

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

/* After a fault only what gives something back is still done. */
static void run_command(struct softgpu *gpu, struct command *command)
{
	bool sane = fgv_queue_fault(gpu) == CUDA_SUCCESS;

	switch (command->kind) {
	case COMMAND_LAUNCH:
		if (sane)
			run_launch(gpu, command);
		break;
	case COMMAND_COPY:
		if (sane)
			run_copy(&command->copy);
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
	case COMMAND_UNMAP:
		fgv_softgpu_space_hide(&gpu->memory, command->unmap.address, command->unmap.bytes);
		break;
	case COMMAND_UNLOAD:
		fgv_module_destroy(command->module);
		break;
	case COMMAND_DROP_EVENT:
		free(command->event);
		break;
	}
}

static struct command *take_all(struct softgpu *gpu)
{
	struct command *list;

	pthread_mutex_lock(&gpu->queue_lock);
	while (!gpu->first && !__atomic_load_n(&gpu->stop, __ATOMIC_RELAXED))
		pthread_cond_wait(&gpu->queue_filled, &gpu->queue_lock);
	list = gpu->first;
	gpu->first = NULL;
	gpu->tail = &gpu->first;
	pthread_mutex_unlock(&gpu->queue_lock);
	return list;
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

static void *executor_main(void *arg)
{
	struct softgpu *gpu = arg;
	struct command *list;

	while ((list = take_all(gpu))) {
		while (list) {
			struct command *command = list;
			uint64_t number = command->number;

			list = command->next;
			run_command(gpu, command);
			free(command);
			__atomic_store_n(&gpu->completed, number, __ATOMIC_SEQ_CST);
			notify(gpu);
		}
	}
	return NULL;
}

CUresult fgv_queue_start(struct softgpu *gpu)
{
	gpu->tail = &gpu->first;
	gpu->executor_started = fgv_thread_start(&gpu->workers[0].thread, executor_main, gpu);
	return gpu->executor_started ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is queued is not run any more, except for what gives something back. */
void fgv_queue_stop(struct softgpu *gpu)
{
	if (!gpu->executor_started)
		return;
	__atomic_store_n(&gpu->fault, CUDA_ERROR_DEINITIALIZED, __ATOMIC_RELEASE);
	/* A job published after this finds stop set, one published before is told. */
	pthread_mutex_lock(&gpu->job_lock);
	__atomic_store_n(&gpu->stop, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&gpu->job.stop, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&gpu->job_lock);
	pthread_mutex_lock(&gpu->queue_lock);
	pthread_cond_signal(&gpu->queue_filled);
	pthread_mutex_unlock(&gpu->queue_lock);
	if (gpu->config.engine.seat)
		fgv_engine_wake(&gpu->config.engine);
	pthread_join(gpu->workers[0].thread, NULL);
}

CUresult softgpu_stream_create(struct softgpu *gpu, struct softgpu_stream **stream)
{
	CUresult fault = fgv_queue_fault(gpu);
	struct softgpu_stream *s;

	if (fault != CUDA_SUCCESS)
		return fault;
	s = calloc(1, sizeof(*s));
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*stream = s;
	return CUDA_SUCCESS;
}

CUresult softgpu_stream_destroy(struct softgpu *gpu, struct softgpu_stream *stream)
{
	free(stream);
	return fgv_queue_fault(gpu);
}

CUresult softgpu_stream_query(struct softgpu *gpu, struct softgpu_stream *stream)
{
	return reached(gpu, (stream ? stream : &gpu->default_stream)->last);
}

CUresult softgpu_query(struct softgpu *gpu)
{
	return reached(gpu, gpu->submitted);
}

CUresult softgpu_event_create(struct softgpu *gpu, struct softgpu_event **event)
{
	CUresult fault = fgv_queue_fault(gpu);
	struct softgpu_event *e;

	if (fault != CUDA_SUCCESS)
		return fault;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*event = e;
	return CUDA_SUCCESS;
}

void softgpu_event_destroy(struct softgpu *gpu, struct softgpu_event *event)
{
	struct command *command;

	if (completed(gpu) >= event->last) {
		free(event);
		return;
	}
	command = fgv_queue_new(COMMAND_DROP_EVENT, 0);
	if (!command)
		return; /* lost until the process ends */
	command->event = event;
	fgv_queue_submit(gpu, command, NULL);
}

CUresult softgpu_event_record(struct softgpu *gpu, struct softgpu_event *event,
			      struct softgpu_stream *stream)
{
	CUresult fault = fgv_queue_fault(gpu);
	struct command *command;

	if (fault != CUDA_SUCCESS)
		return fault;
	command = fgv_queue_new(COMMAND_RECORD, 0);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->event = event;
	fgv_queue_submit(gpu, command, stream);
	event->last = gpu->submitted;
	return CUDA_SUCCESS;
}

CUresult softgpu_event_query(struct softgpu *gpu, struct softgpu_event *event)
{
	return reached(gpu, event->last);
}

CUresult softgpu_event_elapsed(struct softgpu *gpu, struct softgpu_event *start,
			       struct softgpu_event *end, float *ms)
{
	CUresult result = reached(gpu, fgv_max_u64(start->last, end->last));

	if (!start->last || !end->last)
		return CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		*ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / FGV_NS_PER_MS);
	return result;
}

CUresult softgpu_stream_wait_event(struct softgpu *gpu, struct softgpu_stream *stream,
				   struct softgpu_event *event)
{
	(void)stream;
	(void)event;
	return fgv_queue_fault(gpu);
}

int softgpu_completion_fd(const struct softgpu *gpu)
{
	return gpu->completion_fd;
}

void softgpu_arm(struct softgpu *gpu)
{
	/* Pairs with notify(). */
	__atomic_store_n(&gpu->armed, 1, __ATOMIC_SEQ_CST);
}
