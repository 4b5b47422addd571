/*
 * Graphs that are ready to be launched, and what of their texts has come so far (api/wire.h).
 *
 * A graph exists once its whole text has been read and the GPU has made it: there are no halves
 * that could be launched. It holds the modules of its kernels, the arrays of its copies, and its
 * events, so none of them can be missing; device memory it does not hold, as a launch does not;
 * host memory that its copies name is looked at again before a launch where some was taken from the
 * session.
 *
 * A launch is one request to the gate, which can't end a slice in the middle of it.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_GRAPH_H
#define FGV_VGPU_GRAPH_H

#include "api/host.h"
#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/forecast.h"
#include "backend/vgpu/graph_text.h"

struct fgv_graph {
	struct fgv_gpu_graph *gpu; /* NULL: the GPU has refused a change */
	uint32_t count;
	uint32_t kernels;      /* of the nodes, those that launch one */
	uint32_t events;       /* those that record events, or wait for them */
	bool uses_host;	       /* some node copies from or to host memory */
	uint64_t mapped_taken; /* of the session's host memory, when it was last looked at */
	uint64_t bytes;	       /* of its text, and of messages that nodes were changed to */
	void *text;	       /* which nodes use, behind pointers to arguments in it */
	uint64_t moved;	       /* bytes, by its copies and fills */
	struct fgv_graph_kept *kept;
	struct fgv_gpu_node *nodes;
	struct fgv_object *home; /* whose conditions it has, with a reference; NULL: none */
	/* Of a home, which is no graph otherwise; NULL: it is none. */
	struct fgv_gpu_home *conditions;
	uint32_t conditions_count;
	bool is_inhabited; /* there is a graph in this home */
};

/* What a lane has sent of a text. */
struct fgv_graph_parts {
	uint8_t *bytes;
	uint64_t len, room;
};

/* Of a session. */
struct fgv_graphs {
	struct fgv_graph_parts parts[FGV_LANES_MAX];
	uint64_t parts_bytes; /* room of all of them */
	uint64_t kept_bytes;  /* of all graphs */
	uint32_t nodes;	      /* of all graphs */
};

void fgv_graphs_fini(struct fgv_graphs *graphs);

/*
 * Keeps @text behind the @offset bytes that there are of @lane. CUDA_ERROR_INVALID_VALUE where
 * there are not so many; CUDA_ERROR_OUT_OF_MEMORY. The parts are forgotten with a failure.
 */
CUresult fgv_graphs_add_part(struct fgv_graphs *graphs, uint32_t lane, uint64_t offset,
			     const void *text, uint32_t len);
void fgv_graphs_drop_parts(struct fgv_graphs *graphs, uint32_t lane);

/*
 * Makes a graph of all of @text, which has @count nodes, in @home or, NULL, in none.
 * CUDA_ERROR_INVALID_VALUE for what is no such text, CUDA_ERROR_OUT_OF_MEMORY beyond the session's
 * limits, CUDA_ERROR_NOT_SUPPORTED for a second graph in a home, and for a loop where sessions
 * can't be held; or the code of a node's request.
 */
CUresult fgv_graph_make(struct fgv_session *session, struct fgv_object *home, const void *text,
			uint64_t len, uint32_t count, struct fgv_graph **graph);
/* Makes a home. */
CUresult fgv_graph_make_home(struct fgv_session *session, struct fgv_graph **home);
/* CUDA_ERROR_INVALID_VALUE: it is no home. */
CUresult fgv_graph_add_condition(struct fgv_session *session, struct fgv_graph *home,
				 uint32_t value, uint32_t flags, uint64_t *condition);
/*
 * Changes the nodes of @text, which takes memory for those whose messages have another length than
 * before, if it @may_grow. After a failure the graph can only be destroyed.
 */
CUresult fgv_graph_update(struct fgv_session *session, struct fgv_graph *graph, const void *text,
			  uint64_t len, bool may_grow);
CUresult fgv_graph_launch(struct fgv_session *session, struct fgv_graph *graph,
			  struct fgv_gpu_stream *stream);
/* The event that node @number records or waits for, as *@op does; NULL: none. */
struct fgv_object *fgv_graph_event(const struct fgv_graph *graph, uint32_t number, uint16_t *op);
/* Whether a launch with this @message, not checked yet, records the event with handle @event. */
bool fgv_graph_launch_records(const struct fgv_session *session, const uint8_t *message,
			      uint32_t len, uint32_t event);
/* Says in @request how much a launch is, and of what kind. */
void fgv_graph_tell(const struct fgv_object *object, struct fgv_request *request);
CUresult fgv_graph_destroy(struct fgv_session *session, struct fgv_graph *graph);

/*
 * What a launch will take by what its nodes take: as long as the longest way through it, and as
 * what fills the GPU. 0: some node's kind was never measured.
 */
uint64_t fgv_graph_predict_ns(struct fgv_graph *graph, const struct fgv_forecast *forecast);

#endif
