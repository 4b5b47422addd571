/*
 * Streams. NULL and CU_STREAM_LEGACY are the legacy default stream, CU_STREAM_PER_THREAD is the
 * thread's own, which is made at its first use.
 *
 * CUDA_ERROR_INVALID_HANDLE for what is no stream, CUDA_ERROR_INVALID_VALUE for a missing
 * out-parameter or unknown flags; else the codes of captures and of the session.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_STREAM_H
#define FGV_CUDA_STREAM_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;

/* Higher priorities are lower numbers; CUDA's range on every GPU since Volta. */
#define FGV_STREAM_PRIORITY_LEAST    0
#define FGV_STREAM_PRIORITY_GREATEST (-5)

/* The nearest one that there is. */
static inline int fgv_stream_clamp_priority(int priority)
{
	if (priority > FGV_STREAM_PRIORITY_LEAST)
		return FGV_STREAM_PRIORITY_LEAST;
	return priority < FGV_STREAM_PRIORITY_GREATEST ? FGV_STREAM_PRIORITY_GREATEST : priority;
}

static inline bool fgv_stream_is_legacy(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY;
}

/*
 * For the core: the host's handle for @stream, 0 for the legacy one. Work is about to be put into
 * the stream: if it is being captured, @lane has a recorder from here until it is left, or the
 * capture does not allow it.
 */
CUresult fgv_stream_handle(struct fgv_lane *lane, CUstream stream, uint32_t *handle);

/* The same without being about to put work into it; @blocking: it waits for the legacy stream. */
CUresult fgv_stream_find(struct fgv_lane *lane, CUstream stream, uint32_t *handle, bool *blocking);

/* The same without a lane: nothing is asked of the host but the thread's own stream, once. */
CUresult fgv_stream_number(CUstream stream, uint32_t *handle);

/* The ordinal of its device; the thread's where it is a default stream, or none at all. */
uint32_t fgv_stream_device(CUstream stream);

/* Whether @stream is one. */
static inline CUresult fgv_stream_check(CUstream stream)
{
	uint32_t handle;

	return fgv_stream_number(stream, &handle);
}

/* A priority out of range is the nearest one in it. */
CUresult fgv_stream_create(CUstream *stream, unsigned flags, int priority);
CUresult fgv_stream_destroy(CUstream stream);

CUresult fgv_stream_synchronize(CUstream stream);
CUresult fgv_stream_query(CUstream stream); /* CUDA_ERROR_NOT_READY */

/* How it was created; the default streams are as cuStreamCreate() makes them. */
CUresult fgv_stream_get_flags(CUstream stream, unsigned *flags);
CUresult fgv_stream_get_priority(CUstream stream, int *priority);
/* The host's handle, which no other stream of the session has. */
CUresult fgv_stream_get_id(CUstream stream, unsigned long long *id);
/* The context that it was created in; a default stream is the thread's context's. */
CUresult fgv_stream_get_context(CUstream stream, CUcontext *context);
/* The ordinal of its device. */
CUresult fgv_stream_get_device(CUstream stream, int *ordinal);

CUresult fgv_stream_get_attribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value);
CUresult fgv_stream_set_attribute(CUstream stream, CUstreamAttrID id,
				  const CUstreamAttrValue *value);
CUresult fgv_stream_copy_attributes(CUstream to_stream, CUstream from_stream);

/* For the reset of a device alone: destroys all streams that were created. */
void fgv_stream_drain(struct fgv_lane *lane);

#endif
