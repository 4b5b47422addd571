/*
 * What streams and events ask of captures (graph/capture.h), which come above them. Whoever begins
 * to capture says how it is asked; until then a question costs a look at a counter.
 *
 * Streams and events have names here, as each device has handles of its own.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_CAPTURING_H
#define FGV_CUDA_CAPTURING_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;

/* The name of what has the host's @handle on @device. The legacy stream has handle 0. */
static inline uint64_t fgv_capturing_name(uint32_t device, uint32_t handle)
{
	return (uint64_t)device << 32 | handle;
}

struct fgv_capturing {
	/*
	 * Work for the stream with the host's handle @stream is coming, on @lane: gives that a
	 * recorder if it is being captured. The error of what a capture does not allow.
	 */
	CUresult (*enter)(struct fgv_lane *lane, uint32_t stream);
	/* Whether @stream is being captured. CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: it must not ask.
	 */
	CUresult (*status)(uint64_t stream, CUstreamCaptureStatus *status);
	/* Whether a call that is not allowed during captures may be made; fails those it disturbs.
	 */
	CUresult (*check_unsafe)(void);
	/*
	 * Records @event, the host's handle, in the stream that is being captured on @lane; or, if
	 * there is none, says that the event is an ordinary one again: then it is to be recorded by
	 * the host.
	 * @edge: how its waiters wait for the stream's last node; NULL: as what comes next in the
	 * stream.
	 */
	CUresult (*record_event)(struct fgv_lane *lane, uint32_t event, const CUgraphEdgeData *edge,
				 bool *captured);
	/* Whether @stream's waiting for @event is a matter of captures, and what became of it. */
	CUresult (*wait_event)(uint64_t stream, bool blocking, uint64_t event, bool *captured);
	/* CUDA_ERROR_CAPTURED_EVENT for an event that was last recorded in a capture. */
	CUresult (*check_event)(uint64_t event);
	/* Nodes that allocate and free, in the stream that is being captured on @lane. */
	CUresult (*alloc)(struct fgv_lane *lane, uint64_t bytes, uint64_t *address);
	CUresult (*free)(struct fgv_lane *lane, uint64_t address);
	/* It is destroyed. */
	void (*forget_stream)(uint64_t stream);
	void (*forget_event)(uint64_t event);
};

/* Of fgv_capturing_now() alone. */
extern uint32_t fgv_capturing_uses; /* atomic */
extern const struct fgv_capturing *fgv_capturing_table;

/* A capture, a captured event or a diverted thread more, or less: all use the same @table. */
void fgv_capturing_begin(const struct fgv_capturing *table);
void fgv_capturing_end(void);

/* NULL: nothing is captured. */
static inline const struct fgv_capturing *fgv_capturing_now(void)
{
	/* Pairs with the release in fgv_capturing_begin(). */
	if (__builtin_expect(!__atomic_load_n(&fgv_capturing_uses, __ATOMIC_ACQUIRE), 1))
		return NULL;
	return fgv_capturing_table;
}

static inline CUresult fgv_capturing_check_unsafe(void)
{
	const struct fgv_capturing *now = fgv_capturing_now();

	return now ? now->check_unsafe() : CUDA_SUCCESS;
}

#endif
