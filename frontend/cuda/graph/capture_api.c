/*
 * Beginning and ending captures, and asking about them.
 */
#include "frontend/cuda/graph/capture.h"

#include <stdlib.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/graph/capture_priv.h"
#include "frontend/cuda/stream/capturing.h"
#include "frontend/cuda/stream/stream.h"

/* The name of @stream (stream/capturing.h), found without being taken for work. */
static CUresult name_of(CUstream stream, uint64_t *name, bool *blocking)
{
	struct fgv_lane *lane;
	uint32_t handle;
	CUresult res = fgv_context_enter_on(fgv_stream_device(stream), &lane);

	if (res)
		return res;
	res = fgv_stream_find(lane, stream, &handle, blocking);
	*name = res ? 0 : fgv_capturing_name(lane->client->device, handle);
	fgv_lane_leave(lane);
	return res;
}

/* The nodes that a program waits for, and how; @edges may be NULL. */
struct named_nodes {
	const CUgraphNode *names;
	const CUgraphEdgeData *edges;
	size_t count;
};

/* What the node to come is, CUDA does not mind. */
static CUresult check_named(const struct fgv_graph *graph, const struct fgv_node *node,
			    const CUgraphEdgeData *edge)
{
	if (!node || node->graph != graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (edge && !fgv_edge_is_good(edge, fgv_node_type(node), CU_GRAPH_NODE_TYPE_KERNEL))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* The nodes that @named names, all of @graph; for fgv_nodes_fini() in any case. */
static CUresult find_nodes(const struct fgv_graph *graph, const struct named_nodes *named,
			   struct nodes *nodes)
{
	CUresult res = CUDA_SUCCESS;

	for (size_t i = 0; i < named->count && !res; i++) {
		struct fgv_node *node = fgv_node_of(named->names[i]);
		CUgraphEdgeData edge = {0};
		const struct nodes one = {&node, &edge, 1};

		if (named->edges)
			edge = named->edges[i];
		res = check_named(graph, node, &edge);
		if (!res && fgv_nodes_merge(nodes, &one))
			res = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return res;
}

static CUresult begin_locked(uint64_t stream_name, bool blocking, CUstreamCaptureMode mode,
			     struct fgv_graph *graph, const struct nodes *before)
{
	struct capture *capture;
	struct captured_stream *stream;

	if (fgv_capture_find_stream(stream_name))
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = fgv_capture_create(graph, before == NULL);
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture->mode = mode;
	capture->origin = stream_name;
	stream = fgv_capture_join(capture, stream_name, blocking);
	if (!stream || (before && fgv_nodes_merge(&stream->last, before))) {
		fgv_capture_destroy(capture);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* With @before the graph is the program's. */
static CUresult begin_in(CUstream stream, CUstreamCaptureMode mode, struct fgv_graph *graph,
			 const struct nodes *before)
{
	uint64_t stream_name;
	bool blocking;
	CUresult res;

	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	res = name_of(stream, &stream_name, &blocking);
	if (res)
		return res;
	if (!(uint32_t)stream_name)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	fgv_capture_lock();
	res = begin_locked(stream_name, blocking, mode, graph, before);
	fgv_capture_unlock();
	return res;
}

CUresult fgv_capture_begin(CUstream stream, CUstreamCaptureMode mode)
{
	struct fgv_graph *graph = fgv_graph_make(true);
	CUresult res;

	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = begin_in(stream, mode, graph, NULL);
	if (res)
		fgv_graph_free(graph);
	return res;
}

static CUresult begin_in_graph(CUstream stream, struct fgv_graph *graph,
			       const struct named_nodes *named, CUstreamCaptureMode mode)
{
	struct nodes before = {0};
	CUresult res;

	if (!graph || (named->count && !named->names))
		return CUDA_ERROR_INVALID_VALUE;
	res = find_nodes(graph, named, &before);
	if (!res)
		res = begin_in(stream, mode, graph, &before);
	fgv_nodes_fini(&before);
	return res;
}

CUresult fgv_capture_begin_to_graph(CUstream stream, CUgraph graph, const CUgraphNode *before,
				    const CUgraphEdgeData *edges, size_t count,
				    CUstreamCaptureMode mode)
{
	const struct named_nodes named = {before, edges, count};

	return begin_in_graph(stream, fgv_graph_of(graph), &named, mode);
}

/* All that was captured has to come before what the stream would do next. */
static CUresult check_joined(const struct captured_stream *origin)
{
	const struct capture *capture = origin->capture;
	CUresult res = fgv_graph_mark_before(capture->graph, origin->last.list, origin->last.count);
	uint32_t index = 0;

	for (const struct fgv_node *each = capture->graph->first; each && !res; each = each->next) {
		if (index++ >= capture->first_node && !each->marked)
			res = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	}
	return res;
}

/* What a capture that is asked to end in @stream ends with; NULL: there is none to end. */
static CUresult end_locked(const struct captured_stream *stream, struct capture **ends)
{
	struct capture *capture = stream ? stream->capture : NULL;

	*ends = NULL;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream->name) {
		capture->is_invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	*ends = capture;
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &fgv_capture_self)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return check_joined(stream);
}

CUresult fgv_capture_end(CUstream stream, CUgraph *name)
{
	struct fgv_graph *graph = NULL;
	struct capture *capture;
	uint64_t stream_name;
	bool blocking, owned = false;
	CUresult res;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = NULL;
	res = name_of(stream, &stream_name, &blocking);
	if (res)
		return res;
	fgv_capture_lock();
	res = end_locked(fgv_capture_find_stream(stream_name), &capture);
	if (capture) {
		graph = capture->graph;
		owned = capture->owns_graph;
		fgv_capture_destroy(capture);
	}
	fgv_capture_unlock();
	if (!res)
		*name = graph->name;
	else if (owned)
		fgv_graph_free(graph);
	return res;
}

static CUresult tell_dependencies(struct captured_stream *stream,
				  const struct fgv_capture_info *wanted)
{
	size_t count = stream->last.count;
	CUgraphNode *names = realloc(stream->names, (count + 1) * sizeof(CUgraphNode));

	if (!names)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->names = names;
	if (wanted->dependencies && !wanted->edges &&
	    !fgv_edges_are_plain(stream->last.edges, count))
		return CUDA_ERROR_LOSSY_QUERY;
	for (size_t i = 0; i < count; i++)
		names[i] = stream->last.list[i]->name;
	if (wanted->dependencies)
		*wanted->dependencies = names;
	if (wanted->edges)
		*wanted->edges = stream->last.edges;
	if (wanted->count)
		*wanted->count = count;
	return CUDA_SUCCESS;
}

static CUresult tell_locked(uint64_t stream_name, const struct fgv_capture_info *wanted)
{
	struct captured_stream *stream = fgv_capture_find_stream(stream_name);

	if (!(uint32_t)stream_name && fgv_capture_has_blocking((uint32_t)(stream_name >> 32)))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*wanted->status = fgv_capture_status(stream);
	if (*wanted->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (wanted->edges && !wanted->dependencies)
		return CUDA_ERROR_INVALID_VALUE;
	if (wanted->id)
		*wanted->id = stream->capture->id;
	if (wanted->graph)
		*wanted->graph = stream->capture->graph->name;
	return tell_dependencies(stream, wanted);
}

CUresult fgv_capture_get_info(CUstream stream, const struct fgv_capture_info *wanted)
{
	uint64_t stream_name;
	bool blocking;
	CUresult res;

	if (!wanted->status)
		return CUDA_ERROR_INVALID_VALUE;
	res = name_of(stream, &stream_name, &blocking);
	if (res)
		return res;
	fgv_capture_lock();
	res = tell_locked(stream_name, wanted);
	fgv_capture_unlock();
	return res;
}

static CUresult update_locked(uint64_t stream_name, const struct named_nodes *named, bool replace)
{
	struct captured_stream *stream = fgv_capture_find_stream(stream_name);
	struct nodes nodes = {0};
	CUresult res;

	if (!stream)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (stream->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	res = find_nodes(stream->capture->graph, named, &nodes);
	if (!res) {
		if (replace)
			stream->last.count = 0;
		if (fgv_nodes_merge(&stream->last, &nodes))
			res = CUDA_ERROR_OUT_OF_MEMORY;
	}
	fgv_nodes_fini(&nodes);
	return res;
}

CUresult fgv_capture_update(CUstream stream, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
			    size_t count, unsigned flags)
{
	const struct named_nodes named = {nodes, edges, count};
	uint64_t stream_name;
	bool blocking;
	CUresult res;

	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	res = name_of(stream, &stream_name, &blocking);
	if (res)
		return res;
	fgv_capture_lock();
	res = update_locked(stream_name, &named, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	fgv_capture_unlock();
	return res;
}

CUresult fgv_capture_exchange_mode(CUstreamCaptureMode *mode)
{
	struct fgv_capture_thread *self = &fgv_capture_self;
	CUstreamCaptureMode earlier = self->mode;

	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	self->mode = *mode;
	*mode = earlier;
	return CUDA_SUCCESS;
}
