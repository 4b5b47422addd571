/*
 * What the files capture*.c share: the captures there are, the streams and the events that take
 * part in them. All of it is guarded by one mutex, which is held by who calls these functions.
 */
#ifndef FGV_LIBCUDART_CAPTURE_STATE_H
#define FGV_LIBCUDART_CAPTURE_STATE_H

#include "frontend/libcudart/capture.h"

/* Nodes of a capture's graph, and how each is waited for. */
struct nodes {
	struct fgv_node **list;
	cudaGraphEdgeData *edges;
	size_t count;
};

struct capture {
	struct capture *next;
	struct fgv_graph *graph;
	bool owns_graph; /* made by the capture; else it is the program's */
	bool is_invalid;
	enum cudaStreamCaptureMode mode;
	const struct fgv_capture_thread *thread; /* that began it */
	uint32_t origin;			 /* the stream that it began in */
	uint32_t first_node;			 /* number of nodes that the graph had before */
	unsigned long long id;
};

/* A stream that is being captured, by the host's handle. */
struct captured_stream {
	struct captured_stream *next;
	struct capture *capture;
	uint32_t handle;
	bool blocking;
	struct nodes last;	/* what its next node waits for */
	cudaGraphNode_t *names; /* of them, as the program was told */
};

/* An event that was last recorded in a capture. */
struct captured_event {
	struct captured_event *next;
	struct capture *capture; /* NULL: it is over */
	uint32_t handle;
	struct nodes last;
};

void fgv_capture_lock(void);
void fgv_capture_unlock(void);

struct captured_stream *fgv_capture_find_stream(uint32_t handle);
/* Whether a blocking stream is being captured, which the legacy stream would wait for. */
bool fgv_capture_has_blocking(void);

/* -ENOMEM. @edges NULL: ordinary ones. */
int fgv_nodes_set(struct nodes *nodes, struct fgv_node *const *list, const cudaGraphEdgeData *edges,
		  size_t count);
/* Adds @more, too; what is waited for in two ways, is so in the stricter one. */
int fgv_nodes_merge(struct nodes *nodes, const struct nodes *more);
/* The kernels among them may be overtaken by who waits for them, as soon as they allow it. */
void fgv_nodes_hasten(struct nodes *nodes);
void fgv_nodes_fini(struct nodes *nodes);

/* NULL: no memory. */
struct capture *fgv_capture_create(struct fgv_graph *graph, bool owns_graph);
struct captured_stream *fgv_capture_join(struct capture *capture, uint32_t handle, bool blocking);
/* With its streams; its events are not forgotten. The graph is the caller's. */
void fgv_capture_destroy(struct capture *capture);

#endif
