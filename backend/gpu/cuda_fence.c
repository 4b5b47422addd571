/*
 * Streams and fences. The common wait is for the end of a stream with nothing
 * queued behind it (launch, synchronize): there asking the stream costs one driver call
 * per look and nothing at the launch. Only when something is queued behind a fence that
 * nobody has seen pass yet, an event is recorded first, between the two.
 *
 *   fence_part::event == NULL   in its stream's list of loose parts; passes when the
 *                               stream is empty
 *   fence_part::event != NULL   passes when the event has happened; the stream may be
 *                               gone
 *
 * The driver alone says what is done. A word that the GPU writes behind the work would be seen
 * up to 0.3 us earlier, but a guest's kernels can write whatever the GPU can write for it.
 */
#define _GNU_SOURCE
#include "backend/gpu/cuda_internal.h"

#include <stdlib.h>
#include "common/util.h"

#define GARBAGE_COUNT_MAX 1024
#define GARBAGE_BYTES_MAX (256ull * 1024 * 1024)

struct fence_part {
	struct fgv_gpu_stream *stream;
	struct pooled_event *event;
	struct fence_part *next_loose, *previous_loose;
	struct fence_part *rest; /* of the same fence */
};

struct fgv_gpu_fence {
	struct fence_part *parts; /* that have not passed */
};

/* An event of the pool, with one reference. */
static CUresult event_get(struct cuda *cuda, struct pooled_event **event)
{
	struct pooled_event *made = cuda->free_events;
	CUresult status;

	if (made) {
		cuda->free_events = made->next;
		made->refs = 1;
		*event = made;
		return CUDA_SUCCESS;
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->refs = 1;
	status = cuda->driver->event_create(&made->handle, CU_EVENT_DISABLE_TIMING);
	if (status == CUDA_SUCCESS)
		*event = made;
	else
		free(made);
	return status;
}

static void event_put(struct cuda *cuda, struct pooled_event *event)
{
	if (--event->refs > 0)
		return;
	event->next = cuda->free_events;
	cuda->free_events = event;
}

static void unlink_loose(struct fence_part *part)
{
	if (part->previous_loose)
		part->previous_loose->next_loose = part->next_loose;
	else
		part->stream->loose = part->next_loose;
	if (part->next_loose)
		part->next_loose->previous_loose = part->previous_loose;
}

/* Gives the loose parts of @stream an event: what is queued now is before it. */
static CUresult pin(struct cuda *cuda, struct fgv_gpu_stream *stream)
{
	struct pooled_event *event;
	CUresult status;

	if (!stream->loose)
		return CUDA_SUCCESS;
	status = event_get(cuda, &event);
	if (status != CUDA_SUCCESS)
		return status;
	status = cuda->driver->event_record(event->handle, stream->handle);
	if (status == CUDA_SUCCESS) {
		for (struct fence_part *part = stream->loose; part; part = part->next_loose) {
			part->event = event;
			event->refs++;
		}
		stream->loose = NULL;
	}
	event_put(cuda, event);
	return status;
}

CUresult fgv_cuda_before_work(struct cuda *cuda, struct fgv_gpu_stream *stream)
{
	CUresult status = pin(cuda, stream);

	/* The legacy stream is not empty while a stream has work that waits for it. */
	if (status == CUDA_SUCCESS && stream->is_blocking)
		status = pin(cuda, &cuda->legacy);
	stream->is_busy = true;
	stream->is_computing |= !cuda->base.copies;
	return status;
}

CUresult fgv_cuda_stream_query(struct cuda *cuda, struct fgv_gpu_stream *stream)
{
	CUresult status = cuda->driver->stream_query(stream->handle);

	if (status == CUDA_SUCCESS)
		stream->is_busy = stream->is_computing = false;
	return status;
}

CUresult fgv_cuda_stream_create(struct fgv_gpu *gpu, uint32_t flags, int32_t priority,
				struct fgv_gpu_stream **stream)
{
	struct cuda *cuda = cuda_of(gpu);
	struct fgv_gpu_stream *made = calloc(1, sizeof(*made));
	CUresult status;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = cuda->driver->stream_create(&made->handle, flags, priority);
	if (status != CUDA_SUCCESS) {
		free(made);
		return status;
	}
	made->is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
	made->next = cuda->legacy.next;
	made->previous = &cuda->legacy;
	made->next->previous = made;
	cuda->legacy.next = made;
	*stream = made;
	return CUDA_SUCCESS;
}

/*
 * What is still queued in @stream is made a part of the legacy stream, so that fences
 * over everything go on seeing it. For a stream that does not wait for the legacy stream
 * that is more order than it asked for; only programs that destroy such streams at
 * work pay for it.
 */
static CUresult hand_over(struct cuda *cuda, struct fgv_gpu_stream *stream)
{
	struct pooled_event *event;
	CUresult status = pin(cuda, stream);

	if (status != CUDA_SUCCESS)
		return status;
	status = event_get(cuda, &event);
	if (status != CUDA_SUCCESS)
		return status;
	status = cuda->driver->event_record(event->handle, stream->handle);
	if (status == CUDA_SUCCESS)
		status = fgv_cuda_before_work(cuda, &cuda->legacy);
	if (status == CUDA_SUCCESS)
		status = cuda->driver->stream_wait_event(NULL, event->handle, 0);
	event_put(cuda, event);
	return status;
}

CUresult fgv_cuda_stream_destroy(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = CUDA_SUCCESS, destroyed;

	if (stream->loose ||
	    (stream->is_busy && fgv_cuda_stream_query(cuda, stream) == CUDA_ERROR_NOT_READY))
		status = hand_over(cuda, stream);
	/* Only a GPU that has failed gets here with loose parts; its fences all fail now. */
	while (stream->loose) {
		struct fence_part *part = stream->loose;

		unlink_loose(part);
		part->stream = &cuda->legacy;
		part->previous_loose = NULL;
		part->next_loose = cuda->legacy.loose;
		if (part->next_loose)
			part->next_loose->previous_loose = part;
		cuda->legacy.loose = part;
	}
	destroyed = cuda->driver->stream_destroy(stream->handle);
	stream->previous->next = stream->next;
	stream->next->previous = stream->previous;
	free(stream);
	return status != CUDA_SUCCESS ? status : destroyed;
}

/* Adds what is queued now in @stream to @fence. */
static CUresult add_part(struct fgv_gpu_fence *fence, struct fgv_gpu_stream *stream)
{
	struct fence_part *part = calloc(1, sizeof(*part));

	if (!part)
		return CUDA_ERROR_OUT_OF_MEMORY;
	part->stream = stream;
	part->next_loose = stream->loose;
	if (part->next_loose)
		part->next_loose->previous_loose = part;
	stream->loose = part;
	part->rest = fence->parts;
	fence->parts = part;
	return CUDA_SUCCESS;
}

CUresult fgv_cuda_fence(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
			struct fgv_gpu_fence **fence)
{
	struct fgv_gpu_fence *made = calloc(1, sizeof(*made));
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (made)
		status = add_part(made, stream_of(cuda_of(gpu), stream));
	if (status != CUDA_SUCCESS) {
		free(made);
		return status;
	}
	*fence = made;
	return CUDA_SUCCESS;
}

static bool is_busy(const struct fgv_gpu_stream *stream) { return stream->is_busy; }

static bool is_computing(const struct fgv_gpu_stream *stream) { return stream->is_computing; }

/* A fence over the streams that @counts says are part of it. */
static CUresult fence_over(struct cuda *cuda, bool (*counts)(const struct fgv_gpu_stream *stream),
			   struct fgv_gpu_fence **fence)
{
	struct fgv_gpu_stream *stream = &cuda->legacy;
	CUresult status = CUDA_SUCCESS;

	*fence = calloc(1, sizeof(**fence));
	if (!*fence)
		return CUDA_ERROR_OUT_OF_MEMORY;
	do {
		if (counts(stream))
			status = add_part(*fence, stream);
		stream = stream->next;
	} while (status == CUDA_SUCCESS && stream != &cuda->legacy);
	if (status != CUDA_SUCCESS)
		fgv_cuda_fence_put(&cuda->base, *fence);
	return status;
}

/* Where nothing is at work the legacy stream is asked, if only to learn of a fault. */
CUresult fgv_cuda_fence_all(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence)
{
	CUresult status = fence_over(cuda_of(gpu), is_busy, fence);

	if (status != CUDA_SUCCESS || (*fence)->parts)
		return status;
	status = add_part(*fence, &cuda_of(gpu)->legacy);
	if (status != CUDA_SUCCESS)
		fgv_cuda_fence_put(gpu, *fence);
	return status;
}

CUresult fgv_cuda_fence_computing(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence)
{
	return fence_over(cuda_of(gpu), is_computing, fence);
}

static CUresult query(struct cuda *cuda, struct fence_part *part)
{
	return part->event ? cuda->driver->event_query(part->event->handle)
			   : fgv_cuda_stream_query(cuda, part->stream);
}

/* Takes the first part off @fence. */
static void drop_part(struct cuda *cuda, struct fgv_gpu_fence *fence)
{
	struct fence_part *part = fence->parts;

	if (part->event)
		event_put(cuda, part->event);
	else
		unlink_loose(part);
	fence->parts = part->rest;
	free(part);
}

CUresult fgv_cuda_fence_query(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence)
{
	struct cuda *cuda = cuda_of(gpu);

	while (fence->parts) {
		struct fence_part *part = fence->parts;
		CUresult status = query(cuda, part);

		if (status != CUDA_SUCCESS)
			return status;
		if (part->event)
			fgv_cuda_flush_event(cuda, part->event->handle);
		else
			fgv_cuda_flush_stream(cuda, part->stream->handle);
		drop_part(cuda, fence);
	}
	if (cuda->garbage)
		fgv_cuda_collect(cuda);
	return CUDA_SUCCESS;
}

void fgv_cuda_fence_put(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence)
{
	while (fence->parts)
		drop_part(cuda_of(gpu), fence);
	free(fence);
}

static bool is_idle(struct cuda *cuda)
{
	struct fgv_gpu_stream *stream = &cuda->legacy;

	do {
		if (stream->is_busy && fgv_cuda_stream_query(cuda, stream) != CUDA_SUCCESS)
			return false;
		stream = stream->next;
	} while (stream != &cuda->legacy);
	return true;
}

static CUresult drop(struct cuda *cuda, enum garbage_kind kind, uint64_t what)
{
	switch (kind) {
	case GARBAGE_MEMORY:
		return cuda->driver->mem_free(what);
	case GARBAGE_MODULE:
		return cuda->driver->module_unload((CUmodule)(uintptr_t)what);
	case GARBAGE_ARRAY:
		return cuda->driver->array_destroy((CUarray)(uintptr_t)what);
	case GARBAGE_MIPMAPPED:
		return cuda->driver->mipmapped_destroy((CUmipmappedArray)(uintptr_t)what);
	}
	return CUDA_ERROR_UNKNOWN;
}

void fgv_cuda_collect_now(struct cuda *cuda)
{
	uint64_t begun_ns = fgv_now_ns();

	while (cuda->garbage) {
		struct garbage *item = cuda->garbage;

		drop(cuda, item->kind, item->what);
		cuda->garbage = item->next;
		free(item);
	}
	cuda->base.late_bytes = 0;
	cuda->garbage_count = 0;
	cuda->base.late_ns += fgv_now_ns() - begun_ns;
}

void fgv_cuda_collect(struct cuda *cuda)
{
	if (cuda->garbage && is_idle(cuda))
		fgv_cuda_collect_now(cuda);
}

/*
 * The driver waits for the whole GPU when it frees, and waiting here holds up all of
 * the session's threads. The price of not waiting is memory that is charged for longer: at
 * most GARBAGE_BYTES_MAX, past which it is the program that waits.
 */
CUresult fgv_cuda_discard(struct cuda *cuda, enum garbage_kind kind, uint64_t what, uint64_t bytes)
{
	struct garbage *item;

	if (!cuda->garbage && is_idle(cuda))
		return drop(cuda, kind, what);
	item = malloc(sizeof(*item));
	if (!item)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*item = (struct garbage){kind, what, bytes, cuda->garbage};
	cuda->garbage = item;
	cuda->base.late_bytes += bytes;
	if (++cuda->garbage_count > GARBAGE_COUNT_MAX || cuda->base.late_bytes > GARBAGE_BYTES_MAX)
		fgv_cuda_collect_now(cuda);
	else
		fgv_cuda_collect(cuda);
	return CUDA_SUCCESS;
}
