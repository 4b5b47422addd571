/*
 * Streams, events and points of the work, all of them the dispatcher's. A stream is what its next
 * command comes after; so waiting for an event costs the device nothing.
 */
#include <stdlib.h>

#include "common/util.h"
#include "softgpu/device/internal.h"

struct softgpu_point fgv_stream_point(const struct softgpu *gpu,
				      const struct softgpu_stream *stream)
{
	const struct softgpu_stream *legacy = &gpu->default_stream;
	struct softgpu_point point = stream ? stream->last : legacy->last;

	if (!stream || stream == legacy)
		fgv_point_join(&point, &gpu->blocking);
	else if (stream->is_blocking)
		fgv_point_join(&point, &legacy->last);
	return point;
}

struct softgpu_point softgpu_point_of(const struct softgpu *gpu,
				      const struct softgpu_stream *stream)
{
	return stream ? stream->last : fgv_stream_point(gpu, NULL);
}

struct softgpu_point softgpu_point_of_all(const struct softgpu *gpu)
{
	struct softgpu_point point;

	for (unsigned i = 0; i < QUEUES; i++)
		point.numbers[i] = gpu->queues[i].submitted;
	return point;
}

struct softgpu_point softgpu_point_of_computing(const struct softgpu *gpu)
{
	struct softgpu_point point = {0};

	for (unsigned i = QUEUE_COMPUTE; i < COMPUTE_QUEUES; i++)
		point.numbers[i] = gpu->queues[i].submitted;
	return point;
}

CUresult softgpu_fault(const struct softgpu *gpu)
{
	return fgv_queue_fault(gpu);
}

CUresult softgpu_query(const struct softgpu *gpu)
{
	const struct softgpu_point point = softgpu_point_of_all(gpu);

	return softgpu_point_query(gpu, &point);
}

/* --- Streams ---------------------------------------------------------------- */

CUresult softgpu_stream_create(struct softgpu *gpu, bool is_blocking,
			       struct softgpu_stream **stream)
{
	CUresult fault = fgv_queue_fault(gpu);
	struct softgpu_stream *s;

	if (fault != CUDA_SUCCESS)
		return fault;
	s = calloc(1, sizeof(*s));
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->is_blocking = is_blocking;
	s->compute = fgv_queue_choose(gpu);
	s->queue = s->compute;
	*stream = s;
	return CUDA_SUCCESS;
}

CUresult softgpu_stream_destroy(struct softgpu *gpu, struct softgpu_stream *stream)
{
	gpu->streams[stream->compute]--;
	free(stream);
	return fgv_queue_fault(gpu);
}

CUresult softgpu_stream_query(struct softgpu *gpu, struct softgpu_stream *stream)
{
	const struct softgpu_point point = softgpu_point_of(gpu, stream);

	return softgpu_point_query(gpu, &point);
}

/* --- Events ----------------------------------------------------------------- */

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

	if (fgv_queue_is_done(gpu, &event->all)) {
		free(event);
		return;
	}
	command = fgv_queue_new(COMMAND_DROP_EVENT, 0);
	if (!command)
		return; /* lost until the process ends */
	command->event = event;
	command->after = event->all;
	fgv_queue_append(gpu, command, event->queue);
}

/* By the queue that the stream used last, so that it waits for nothing else. */
CUresult softgpu_event_record(struct softgpu *gpu, struct softgpu_event *event,
			      struct softgpu_stream *stream)
{
	struct softgpu_stream *of = stream ? stream : &gpu->default_stream;
	CUresult fault = fgv_queue_fault(gpu);
	struct command *command;

	if (fault != CUDA_SUCCESS)
		return fault;
	command = fgv_queue_new(COMMAND_RECORD, 0);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->event = event;
	fgv_queue_submit(gpu, command, of->queue, stream);
	event->last = of->last;
	event->queue = of->queue;
	fgv_point_join(&event->all, &event->last);
	event->is_recorded = true;
	return CUDA_SUCCESS;
}

CUresult softgpu_event_query(struct softgpu *gpu, struct softgpu_event *event)
{
	return softgpu_point_query(gpu, &event->last);
}

CUresult softgpu_event_elapsed(struct softgpu *gpu, struct softgpu_event *start,
			       struct softgpu_event *end, float *ms)
{
	CUresult result;

	if (!start->is_recorded || !end->is_recorded)
		return CUDA_ERROR_INVALID_HANDLE;
	result = softgpu_point_query(gpu, &start->last);
	if (result == CUDA_SUCCESS)
		result = softgpu_point_query(gpu, &end->last);
	if (result == CUDA_SUCCESS)
		*ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / FGV_NS_PER_MS);
	return result;
}

CUresult softgpu_stream_wait_event(struct softgpu *gpu, struct softgpu_stream *stream,
				   struct softgpu_event *event)
{
	struct softgpu_stream *of = stream ? stream : &gpu->default_stream;

	fgv_point_join(&of->last, &event->last);
	if (of->is_blocking)
		fgv_point_join(&gpu->blocking, &event->last);
	return fgv_queue_fault(gpu);
}

int softgpu_completion_fd(const struct softgpu *gpu)
{
	return gpu->completion_fd;
}
