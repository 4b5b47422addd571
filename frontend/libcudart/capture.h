/*
 * Streams that are being captured: what is put into them becomes nodes of a graph. All work
 * of streams asks fgv_stream_handle() for its stream, so that is where a capture is met: the
 * lane gets a recorder (client/recorder.h) until it is left, and what was recorded by then is a
 * node. A call that puts work into a stream needs to do nothing for that.
 *
 * What is no work of a stream but may disturb a capture, allocating above all, asks
 * fgv_capture_check_unsafe(). Calls that wait for the GPU are stopped on their way to the host.
 *
 * Threads: any.
 */
#ifndef FGV_LIBCUDART_CAPTURE_H
#define FGV_LIBCUDART_CAPTURE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "frontend/libcudart/graph.h"

struct fgv_lane;

/* Captures, captured events and diverted threads there are; atomic. */
extern uint32_t fgv_capture_uses;

static inline bool fgv_capture_is_used(void)
{
	return __builtin_expect(__atomic_load_n(&fgv_capture_uses, __ATOMIC_RELAXED) != 0, 0);
}

/* What captures keep of a thread. */
struct fgv_capture_thread {
	struct fgv_recorder *recorder; /* takes what it puts into any stream; NULL: nothing does */
	enum cudaStreamCaptureMode mode;
};

extern __thread struct fgv_capture_thread fgv_capture_self;

/* From now on @recorder takes what this thread puts into any stream; NULL: no more. */
void fgv_capture_divert(struct fgv_recorder *recorder);

/*
 * Work for stream @handle is coming, on @lane: gives that a recorder if it is being captured. The
 * error of what a capture does not allow.
 */
cudaError_t fgv_capture_enter(struct fgv_lane *lane, uint32_t handle);

/* Whether a call that is not allowed during captures may be made now; fails those it disturbs. */
cudaError_t fgv_capture_check_unsafe(void);

/* A node that does @work, in the stream that is being captured on @lane. */
cudaError_t fgv_capture_add(struct fgv_lane *lane, const struct fgv_work *work);

/* Shows @visit the graph that the stream is captured into, and what its next node waits for. */
cudaError_t fgv_capture_visit(struct fgv_lane *lane,
			      cudaError_t (*visit)(struct fgv_graph *graph,
						   struct fgv_node *const *last, size_t count,
						   void *arg),
			      void *arg);

/* The stream or event, by the host's handle, is destroyed. */
void fgv_capture_forget_stream(uint32_t handle);
void fgv_capture_forget_event(uint32_t handle);

/*
 * Records the event in the stream that is being captured on @lane; or, if there is none, says
 * that the event is an ordinary one again: then it is to be recorded by the host. @edge: how its
 * waiters wait for the stream's last node; NULL: as what comes next in the stream.
 */
cudaError_t fgv_capture_record_event(struct fgv_lane *lane, uint32_t event,
				     const cudaGraphEdgeData *edge, bool *captured);

/* Whether @stream's waiting for @event is a matter of captures, and what became of it then. */
cudaError_t fgv_capture_wait_event(uint32_t stream, bool blocking, uint32_t event, bool *captured);

/* cudaErrorCapturedEvent for an event that was last recorded in a capture. */
cudaError_t fgv_capture_check_event(uint32_t event);

#endif
