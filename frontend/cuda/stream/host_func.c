/*
 * Calling the program's functions. A thread of this library asks the host which
 * function's turn it is, calls it, and says that it has returned with the next question. What
 * comes after it in the stream waits on the host for that.
 *
 * The thread is started for the first function of a device and stays. Its functions may call
 * nothing of CUDA: it has no lane then, and gets none.
 *
 * Lock: state.mutex guards the list. A number is drawn and posted while it is held, so that the
 * thread finds what the host tells it.
 */
#include "frontend/cuda/stream/host_func.h"

#include <pthread.h>
#include <stdlib.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/stream/capturing.h"
#include "frontend/cuda/stream/stream.h"

/* Either of both. */
struct func {
	CUhostFn host;
	CUstreamCallback callback;
	CUstream stream; /* as the callback gets it */
	void *data;
};

struct pending {
	struct pending *next;
	uint64_t number;
	uint32_t device; /* of the stream */
	struct func func;
};

static struct {
	pthread_mutex_t mutex;
	struct pending *first;
	struct pending **end;
	uint64_t last_number;
	bool has_thread[FGV_DEVICES_MAX];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .end = &state.first};

/* Takes number @number, or with 0 the first of @device, out of the list. */
static struct pending *take(uint32_t device, uint64_t number)
{
	struct pending **link = &state.first;
	struct pending *found;

	pthread_mutex_lock(&state.mutex);
	while (*link && ((*link)->device != device || (number && (*link)->number != number)))
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

static void call(struct pending *pending, CUresult status)
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
static void end_all(uint32_t device, CUresult status)
{
	struct pending *pending;

	while ((pending = take(device, 0)))
		call(pending, status);
	pthread_mutex_lock(&state.mutex);
	state.has_thread[device] = false;
	pthread_mutex_unlock(&state.mutex);
}

static CUresult ask(uint32_t device, uint64_t done, uint64_t *number)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device, &lane);

	if (res)
		return res;
	res = fgv_call_host_func_next(lane, done, number);
	fgv_lane_leave(lane);
	return res;
}

static void *serve(void *ordinal)
{
	uint32_t device = (uint32_t)(uintptr_t)ordinal;
	uint64_t number = 0;
	CUresult res;

	while (!(res = ask(device, number, &number))) {
		struct pending *pending = take(device, number);

		if (pending)
			call(pending, CUDA_SUCCESS);
	}
	end_all(device, res);
	return NULL;
}

static CUresult post_locked(struct fgv_lane *lane, struct pending *pending, uint32_t stream)
{
	uint32_t device = lane->client->device;
	CUresult res;

	if (!state.has_thread[device] && fgv_thread_start(serve, (void *)(uintptr_t)device))
		return CUDA_ERROR_OUT_OF_MEMORY;
	state.has_thread[device] = true;
	pending->device = device;
	pending->number = ++state.last_number;
	res = fgv_post_host_func(lane, stream, pending->number);
	if (res)
		return res;
	pending->next = NULL;
	*state.end = pending;
	state.end = &pending->next;
	return CUDA_SUCCESS;
}

static CUresult start(struct fgv_lane *lane, const struct func *func, uint32_t stream)
{
	struct pending *pending = malloc(sizeof(*pending));
	CUresult res;

	if (!pending)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pending->func = *func;
	pthread_mutex_lock(&state.mutex);
	res = post_locked(lane, pending, stream);
	pthread_mutex_unlock(&state.mutex);
	if (res)
		free(pending);
	return res;
}

static CUresult start_again(struct fgv_lane *lane, void *message, uint32_t stream)
{
	return start(lane, message, stream);
}

CUresult fgv_host_func_start(struct fgv_lane *lane, uint32_t stream, CUhostFn fn, void *data)
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

bool fgv_host_func_describe(const struct fgv_record *record, CUhostFn *fn, void **data)
{
	const struct func *func = (const void *)record->message;

	if (record->run != start_again)
		return false;
	*fn = func->host;
	*data = func->data;
	return true;
}

static CUresult launch(const struct func *func)
{
	struct fgv_lane *lane;
	uint32_t handle;
	CUresult res = fgv_context_enter_on(fgv_stream_device(func->stream), &lane);

	if (res)
		return res;
	res = fgv_stream_handle(lane, func->stream, &handle);
	if (!res)
		res = lane->recorder ? keep(lane->recorder, func) : start(lane, func, handle);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_host_func_launch(CUstream stream, CUhostFn fn, void *data)
{
	const struct func func = {.host = fn, .stream = stream, .data = data};

	return fn ? launch(&func) : CUDA_ERROR_INVALID_VALUE;
}

/* CUDA has no callbacks in graphs. */
static CUresult check_uncaptured(CUstream stream)
{
	const struct fgv_capturing *now = fgv_capturing_now();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	uint32_t handle;
	CUresult res;

	if (!now)
		return CUDA_SUCCESS;
	res = fgv_stream_number(stream, &handle);
	if (!res)
		res = now->status(fgv_capturing_name(fgv_stream_device(stream), handle), &status);
	if (res)
		return res;
	return status ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult fgv_host_func_add_callback(CUstream stream, CUstreamCallback callback, void *data,
				    unsigned flags)
{
	const struct func func = {.callback = callback, .stream = stream, .data = data};
	CUresult res;

	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = check_uncaptured(stream);
	return res ? res : launch(&func);
}
