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

#include "frontend/cuda/stream/capturing.h"
#include "frontend/libcudart/graph.h"

struct fgv_lane;

static inline bool fgv_capture_is_used(void)
{
	return fgv_capturing_now();
}

/* What captures keep of a thread. */
struct fgv_capture_thread {
	struct fgv_recorder *recorder; /* takes what it puts into any stream; NULL: nothing does */
	enum cudaStreamCaptureMode mode;
};

extern __thread struct fgv_capture_thread fgv_capture_self;

/* From now on @recorder takes what this thread puts into any stream; NULL: no more. */
void fgv_capture_divert(struct fgv_recorder *recorder);

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

#endif
