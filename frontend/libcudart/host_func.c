/*
 * cudaLaunchHostFunc() and cudaStreamAddCallback(). A thread of this library asks the host which
 * function's turn it is, calls it, and says that it has returned with the next question. What
 * comes after it in the stream waits on the host for that.
 *
 * The thread is started for the first function and stays. Its functions may call
 * nothing of CUDA: it has no lane then, and gets none.
 *
 * Lock: state.mutex guards the list. A number is drawn and posted while it is held, so that the
 * thread finds what the host tells it.
 */
#include "frontend/libcudart/host_func.h"

#include <pthread.h>
#include <stdlib.h>

#include "frontend/libcudart/cudart.h"

/* Either of both. */
struct func {
	cudaHostFn_t host;
	cudaStreamCallback_t callback;
	cudaStream_t stream; /* as the callback gets it */
	void *data;
};

struct pending {
	struct pending *next;
	uint64_t number;
	struct func func;
};

static struct {
	pthread_mutex_t mutex;
	struct pending *first;
	struct pending **end;
	uint64_t last_number;
	bool has_thread;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .end = &state.first};

/* Takes number @number, or with 0 the first, out of the list. */
static struct pending *take(uint64_t number)
{
	struct pending **link = &state.first;
	struct pending *found;

	pthread_mutex_lock(&state.mutex);
	while (*link && number && (*link)->number != number)
		link = &(*link)->next;
	found = *link;
	if (found) {
		*link = found->next;
		if (!*link)
			state.end = link;
	}
	pthread_mutex_unlock(&state.mutex);
	return found;
}

static void call(struct pending *pending, cudaError_t status)
{
	struct fgv_thread *self = &fgv_thread_self;
	struct fgv_lane *lane = self->lane;
	const struct func *func = &pending->func;

	self->lane = NULL;
	self->forbidden = 1;
	if (func->callback)
		func->callback(func->stream, status, func->data);
	else if (!status)
		func->host(func->data);
	self->forbidden = 0;
	self->lane = lane;
	free(pending);
}

/* There will be no GPU any more: only callbacks want to know. */
static void end_all(cudaError_t status)
{
	struct pending *pending;

	while ((pending = take(0)))
		call(pending, status);
	pthread_mutex_lock(&state.mutex);
	state.has_thread = false;
	pthread_mutex_unlock(&state.mutex);
}

static cudaError_t ask(uint64_t done, uint64_t *number)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_call_host_func_next(lane, done, number));
	fgv_lane_leave(lane);
	return error;
}

static void *serve(void *unused)
{
	uint64_t number = 0;
	cudaError_t error;

	(void)unused;
	while (!(error = ask(number, &number))) {
		struct pending *pending = take(number);

		if (pending)
			call(pending, cudaSuccess);
	}
	end_all(error);
	return NULL;
}

static cudaError_t post_locked(struct fgv_lane *lane, struct pending *pending, uint32_t stream)
{
	cudaError_t error;

	if (!state.has_thread && fgv_thread_start(serve))
		return cudaErrorMemoryAllocation;
	state.has_thread = true;
	pending->number = ++state.last_number;
	error = fgv_error_from(fgv_post_host_func(lane, stream, pending->number));
	if (error)
		return error;
	pending->next = NULL;
	*state.end = pending;
	state.end = &pending->next;
	return cudaSuccess;
}

static CUresult start(struct fgv_lane *lane, const struct func *func, uint32_t stream)
{
	struct pending *pending = malloc(sizeof(*pending));
	cudaError_t error;

	if (!pending)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pending->func = *func;
	pthread_mutex_lock(&state.mutex);
	error = post_locked(lane, pending, stream);
	pthread_mutex_unlock(&state.mutex);
	if (error)
		free(pending);
	return (CUresult)error;
}

static CUresult start_again(struct fgv_lane *lane, void *message, uint32_t stream)
{
	return start(lane, message, stream);
}

CUresult fgv_host_func_start(struct fgv_lane *lane, uint32_t stream, cudaHostFn_t fn, void *data)
{
	const struct func func = {.host = fn, .data = data};

	return start(lane, &func, stream);
}

static CUresult keep(struct fgv_recorder *recorder, const struct func *func)
{
	struct func *kept = fgv_recorder_add(recorder, start_again, 0, sizeof(*kept));

	if (kept)
		*kept = *func;
	return recorder->failed;
}

bool fgv_host_func_describe(const struct fgv_record *record, struct cudaHostNodeParamsV2 *params)
{
	const struct func *func = (const void *)record->message;

	if (record->run != start_again)
		return false;
	*params = (struct cudaHostNodeParamsV2){func->host, func->data};
	return true;
}

static cudaError_t launch(const struct func *func)
{
	struct fgv_lane *lane;
	uint32_t handle;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_stream_handle(lane, func->stream, &handle);
	if (!error)
		error = fgv_error_from(lane->recorder ? keep(lane->recorder, func)
						      : start(lane, func, handle));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	const struct func func = {.host = fn, .stream = stream, .data = userData};

	return fgv_error_set(fn ? launch(&func) : cudaErrorInvalidValue);
}

/* CUDA has no callbacks in graphs. */
static cudaError_t add_callback(const struct func *func, unsigned flags)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	cudaError_t error;

	if (!func->callback || flags)
		return cudaErrorInvalidValue;
	error = cudaStreamIsCapturing(func->stream, &status);
	if (error)
		return error;
	return status ? cudaErrorStreamCaptureUnsupported : launch(func);
}

FGV_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
					     void *userData, unsigned int flags)
{
	const struct func func = {.callback = callback, .stream = stream, .data = userData};

	return fgv_error_set(add_callback(&func, flags));
}
