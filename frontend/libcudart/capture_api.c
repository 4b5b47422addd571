/*
 * Beginning and ending captures, and asking about them.
 */
#include <stdlib.h>

#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/capture_state.h"
#include "frontend/libcudart/cudart.h"

/* The stream @stream as the host knows it, found without being taken for work. */
static cudaError_t handle_of(cudaStream_t stream, uint32_t *handle, bool *blocking)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_stream_find(lane, stream, handle, blocking));
	fgv_lane_leave(lane);
	return error;
}

/* The nodes that a program waits for, and how; @edges may be NULL. */
struct named_nodes {
	const cudaGraphNode_t *names;
	const cudaGraphEdgeData *edges;
	size_t count;
};

/* What the node to come is, CUDA does not mind. */
static cudaError_t check_named(const struct fgv_graph *graph, const struct fgv_node *node,
			       const cudaGraphEdgeData *edge)
{
	if (!node || node->graph != graph)
		return cudaErrorInvalidValue;
	if (edge && !fgv_edge_is_good(edge, node->work.params.type, cudaGraphNodeTypeKernel))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

/* The nodes that @named names, all of @graph; for fgv_nodes_fini() in any case. */
static cudaError_t find_nodes(const struct fgv_graph *graph, const struct named_nodes *named,
			      struct nodes *nodes)
{
	cudaError_t error = cudaSuccess;

	for (size_t i = 0; i < named->count && !error; i++) {
		struct fgv_node *node = fgv_node_of(named->names[i]);
		cudaGraphEdgeData edge = {0};
		const struct nodes one = {&node, &edge, 1};

		if (named->edges)
			edge = named->edges[i];
		error = check_named(graph, node, &edge);
		if (!error && fgv_nodes_merge(nodes, &one))
			error = cudaErrorMemoryAllocation;
	}
	return error;
}

static cudaError_t begin_locked(uint32_t handle, bool blocking, enum cudaStreamCaptureMode mode,
				struct fgv_graph *graph, const struct nodes *before)
{
	struct capture *capture;
	struct captured_stream *stream;

	if (fgv_capture_find_stream(handle))
		return cudaErrorIllegalState;
	capture = fgv_capture_create(graph, before == NULL);
	if (!capture)
		return cudaErrorMemoryAllocation;
	capture->mode = mode;
	capture->origin = handle;
	stream = fgv_capture_join(capture, handle, blocking);
	if (!stream || (before && fgv_nodes_merge(&stream->last, before))) {
		fgv_capture_destroy(capture);
		return cudaErrorMemoryAllocation;
	}
	return cudaSuccess;
}

/* With @before the graph is the program's. */
static cudaError_t begin_in(cudaStream_t stream, enum cudaStreamCaptureMode mode,
			    struct fgv_graph *graph, const struct nodes *before)
{
	uint32_t handle;
	bool blocking;
	cudaError_t error;

	if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
		return cudaErrorInvalidValue;
	error = handle_of(stream, &handle, &blocking);
	if (error)
		return error;
	if (!handle)
		return cudaErrorStreamCaptureUnsupported;
	fgv_capture_lock();
	error = begin_locked(handle, blocking, mode, graph, before);
	fgv_capture_unlock();
	return error;
}

FGV_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	struct fgv_graph *graph = fgv_graph_create(true);
	cudaError_t error;

	if (!graph)
		return fgv_error_set(cudaErrorMemoryAllocation);
	error = begin_in(stream, mode, graph, NULL);
	if (error)
		fgv_graph_destroy(graph);
	return fgv_error_set(error);
}

static cudaError_t begin_in_graph(cudaStream_t stream, struct fgv_graph *graph,
				  const struct named_nodes *named, enum cudaStreamCaptureMode mode)
{
	struct nodes before = {0};
	cudaError_t error;

	if (!graph || (named->count && !named->names))
		return cudaErrorInvalidValue;
	error = find_nodes(graph, named, &before);
	if (!error)
		error = begin_in(stream, mode, graph, &before);
	fgv_nodes_fini(&before);
	return error;
}

FGV_EXPORT cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
						     const cudaGraphNode_t *dependencies,
						     const cudaGraphEdgeData *dependencyData,
						     size_t numDependencies,
						     enum cudaStreamCaptureMode mode)
{
	const struct named_nodes named = {dependencies, dependencyData, numDependencies};

	return fgv_error_set(begin_in_graph(stream, fgv_graph_of(graph), &named, mode));
}

/* All that was captured has to come before what the stream would do next. */
static cudaError_t check_joined(const struct captured_stream *origin)
{
	const struct capture *capture = origin->capture;
	cudaError_t error =
		fgv_graph_mark_before(capture->graph, origin->last.list, origin->last.count);
	uint32_t index = 0;

	for (const struct fgv_node *each = capture->graph->first; each && !error;
	     each = each->next) {
		if (index++ >= capture->first_node && !each->marked)
			error = cudaErrorStreamCaptureUnjoined;
	}
	return error;
}

/* What a capture that is asked to end in @stream ends with; NULL: there is none to end. */
static cudaError_t end_locked(const struct captured_stream *stream, struct capture **ends)
{
	struct capture *capture = stream ? stream->capture : NULL;

	*ends = NULL;
	if (!capture)
		return cudaErrorIllegalState;
	if (capture->origin != stream->handle) {
		capture->is_invalid = true;
		return cudaErrorStreamCaptureUnmatched;
	}
	*ends = capture;
	if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != &fgv_capture_self)
		return cudaErrorStreamCaptureWrongThread;
	if (capture->is_invalid)
		return cudaErrorStreamCaptureInvalidated;
	return check_joined(stream);
}

static cudaError_t end(cudaStream_t stream, cudaGraph_t *name)
{
	struct fgv_graph *graph = NULL;
	struct capture *capture;
	uint32_t handle;
	bool blocking, owned = false;
	cudaError_t error;

	if (!name)
		return cudaErrorInvalidValue;
	*name = NULL;
	error = handle_of(stream, &handle, &blocking);
	if (error)
		return error;
	fgv_capture_lock();
	error = end_locked(fgv_capture_find_stream(handle), &capture);
	if (capture) {
		graph = capture->graph;
		owned = capture->owns_graph;
		fgv_capture_destroy(capture);
	}
	fgv_capture_unlock();
	if (!error)
		*name = graph->name;
	else if (owned)
		fgv_graph_destroy(graph);
	return error;
}

FGV_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	return fgv_error_set(end(stream, pGraph));
}

static enum cudaStreamCaptureStatus status_of(const struct captured_stream *stream)
{
	if (!stream)
		return cudaStreamCaptureStatusNone;
	return stream->capture->is_invalid ? cudaStreamCaptureStatusInvalidated
					   : cudaStreamCaptureStatusActive;
}

/* What the program is told of a capture; all but the status may be NULL. */
struct capture_info {
	enum cudaStreamCaptureStatus *status;
	unsigned long long *id;
	cudaGraph_t *graph;
	const cudaGraphNode_t **dependencies;
	const cudaGraphEdgeData **edges;
	size_t *count;
};

/* The list is the stream's, and good until it goes on. */
static cudaError_t tell_dependencies(struct captured_stream *stream,
				     const struct capture_info *wanted)
{
	size_t count = stream->last.count;
	cudaGraphNode_t *names = realloc(stream->names, (count + 1) * sizeof(cudaGraphNode_t));

	if (!names)
		return cudaErrorMemoryAllocation;
	stream->names = names;
	if (wanted->dependencies && !wanted->edges &&
	    !fgv_edges_are_plain(stream->last.edges, count))
		return cudaErrorLossyQuery;
	for (size_t i = 0; i < count; i++)
		names[i] = stream->last.list[i]->name;
	if (wanted->dependencies)
		*wanted->dependencies = names;
	if (wanted->edges)
		*wanted->edges = stream->last.edges;
	if (wanted->count)
		*wanted->count = count;
	return cudaSuccess;
}

static cudaError_t tell_locked(uint32_t handle, const struct capture_info *wanted)
{
	struct captured_stream *stream = fgv_capture_find_stream(handle);

	if (!handle && fgv_capture_has_blocking())
		return cudaErrorStreamCaptureImplicit;
	*wanted->status = status_of(stream);
	if (*wanted->status != cudaStreamCaptureStatusActive)
		return cudaSuccess;
	if (wanted->edges && !wanted->dependencies)
		return cudaErrorInvalidValue;
	if (wanted->id)
		*wanted->id = stream->capture->id;
	if (wanted->graph)
		*wanted->graph = stream->capture->graph->name;
	return tell_dependencies(stream, wanted);
}

static cudaError_t tell(cudaStream_t stream, const struct capture_info *wanted)
{
	uint32_t handle;
	bool blocking;
	cudaError_t error;

	if (!wanted->status)
		return cudaErrorInvalidValue;
	error = handle_of(stream, &handle, &blocking);
	if (error)
		return error;
	fgv_capture_lock();
	error = tell_locked(handle, wanted);
	fgv_capture_unlock();
	return error;
}

FGV_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
					     enum cudaStreamCaptureStatus *pCaptureStatus)
{
	const struct capture_info wanted = {.status = pCaptureStatus};

	return fgv_error_set(tell(stream, &wanted));
}

FGV_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
						enum cudaStreamCaptureStatus *captureStatus_out,
						unsigned long long *id_out, cudaGraph_t *graph_out,
						const cudaGraphNode_t **dependencies_out,
						const cudaGraphEdgeData **edgeData_out,
						size_t *numDependencies_out)
{
	const struct capture_info wanted = {captureStatus_out, id_out,	     graph_out,
					    dependencies_out,  edgeData_out, numDependencies_out};

	return fgv_error_set(tell(stream, &wanted));
}

static cudaError_t update_locked(uint32_t handle, const struct named_nodes *named, bool replace)
{
	struct captured_stream *stream = fgv_capture_find_stream(handle);
	struct nodes nodes = {0};
	cudaError_t error;

	if (!stream)
		return cudaErrorIllegalState;
	if (stream->capture->is_invalid)
		return cudaErrorStreamCaptureInvalidated;
	error = find_nodes(stream->capture->graph, named, &nodes);
	if (!error) {
		if (replace)
			stream->last.count = 0;
		if (fgv_nodes_merge(&stream->last, &nodes))
			error = cudaErrorMemoryAllocation;
	}
	fgv_nodes_fini(&nodes);
	return error;
}

static cudaError_t update(cudaStream_t stream, const struct named_nodes *named, unsigned flags)
{
	uint32_t handle;
	bool blocking;
	cudaError_t error;

	if (flags > cudaStreamSetCaptureDependencies || (named->count && !named->names))
		return cudaErrorInvalidValue;
	error = handle_of(stream, &handle, &blocking);
	if (error)
		return error;
	fgv_capture_lock();
	error = update_locked(handle, named, flags == cudaStreamSetCaptureDependencies);
	fgv_capture_unlock();
	return error;
}

FGV_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
							   cudaGraphNode_t *dependencies,
							   const cudaGraphEdgeData *dependencyData,
							   size_t numDependencies,
							   unsigned int flags)
{
	const struct named_nodes named = {dependencies, dependencyData, numDependencies};

	return fgv_error_set(update(stream, &named, flags));
}

FGV_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	struct fgv_capture_thread *self = &fgv_capture_self;
	int earlier = self->mode;

	if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
		return fgv_error_set(cudaErrorInvalidValue);
	self->mode = (int)*mode;
	*mode = (enum cudaStreamCaptureMode)earlier;
	return cudaSuccess;
}
