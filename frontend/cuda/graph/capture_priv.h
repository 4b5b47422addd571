/*
 * What the files of captures share: the captures there are, the streams and the events that take
 * part in them.
 *
 * All work of streams asks fgv_stream_handle() for its stream, so that is where a capture is met
 * (stream/capturing.h): the lane gets a recorder (client/recorder.h) until it is left, and what was
 * recorded by then is a node. A call that puts work into a stream needs to do nothing for that.
 * What is no work of a stream but may disturb a capture, allocating above all, asks
 * fgv_capturing_check_unsafe(). Calls that wait for the GPU are stopped on their way to the host.
 */
#ifndef FGV_CUDA_CAPTURE_PRIV_H
#define FGV_CUDA_CAPTURE_PRIV_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "frontend/cuda/graph/graph_priv.h"

struct fgv_lane;

/* What captures keep of a thread. */
struct fgv_capture_thread {
	struct fgv_recorder *recorder; /* takes what it puts into any stream; NULL: nothing does */
	uint32_t device;	       /* of which that is alone */
	CUstreamCaptureMode mode;
};

extern __thread struct fgv_capture_thread fgv_capture_self;

/* From now on @recorder takes what this thread puts into any stream of @device, and no other device
 * may be used; NULL: no more. */
void fgv_capture_divert(struct fgv_recorder *recorder, uint32_t device);

/* A node that does @work, in the stream that is being captured on @lane. */
CUresult fgv_capture_add(struct fgv_lane *lane, const struct fgv_work *work);

/* Shows @visit the graph that the stream is captured into, and what its next node waits for. */
CUresult fgv_capture_visit(struct fgv_lane *lane,
			   CUresult (*visit)(struct fgv_graph *graph, struct fgv_node *const *last,
					     size_t count, void *arg),
			   void *arg);

/* Nodes that allocate and free, in the stream that is being captured on @lane. */
CUresult fgv_capture_alloc(struct fgv_lane *lane, uint64_t bytes, uint64_t *address);
CUresult fgv_capture_free(struct fgv_lane *lane, uint64_t address);

/* Nodes of a capture's graph, and how each is waited for. */
struct nodes {
	struct fgv_node **list;
	CUgraphEdgeData *edges;
	size_t count;
};

struct capture {
	struct capture *next;
	struct fgv_graph *graph;
	bool owns_graph; /* made by the capture; else it is the program's */
	bool is_invalid;
	CUstreamCaptureMode mode;
	const struct fgv_capture_thread *thread; /* that began it */
	uint64_t origin;			 /* name of the stream that it began in */
	uint32_t first_node;			 /* number of nodes that the graph had before */
	unsigned long long id;
};

/* A stream that is being captured. All streams and events of a capture are of one device. */
struct captured_stream {
	struct captured_stream *next;
	struct capture *capture;
	uint64_t name; /* as of stream/capturing.h */
	bool blocking;
	struct nodes last;  /* what its next node waits for */
	CUgraphNode *names; /* of them, as the program was told */
};

/* An event that was last recorded in a capture. */
struct captured_event {
	struct captured_event *next;
	struct capture *capture; /* NULL: it is over */
	uint64_t name;
	struct nodes last;
};

/* The mutex that guards all of it; the caller of what follows holds it. */
void fgv_capture_lock(void);
void fgv_capture_unlock(void);

struct captured_stream *fgv_capture_find_stream(uint64_t name);
/* @stream NULL: it is not being captured. */
CUstreamCaptureStatus fgv_capture_status(const struct captured_stream *stream);
/* Whether a blocking stream of @device is being captured, which its legacy stream would wait for.
 */
bool fgv_capture_has_blocking(uint32_t device);

/* -ENOMEM. @edges NULL: ordinary ones. */
int fgv_nodes_set(struct nodes *nodes, struct fgv_node *const *list, const CUgraphEdgeData *edges,
		  size_t count);
/* Adds @more, too; what is waited for in two ways, is so in the stricter one. */
int fgv_nodes_merge(struct nodes *nodes, const struct nodes *more);
/* The kernels among them may be overtaken by what waits for them, as soon as they allow it. */
void fgv_nodes_hasten(struct nodes *nodes);
void fgv_nodes_fini(struct nodes *nodes);

/* NULL: no memory. */
struct capture *fgv_capture_create(struct fgv_graph *graph, bool owns_graph);
struct captured_stream *fgv_capture_join(struct capture *capture, uint64_t name, bool blocking);
/* With its streams; its events are not forgotten. The graph is the caller's. */
void fgv_capture_destroy(struct capture *capture);

#endif
