/*
 * Capturing streams: what is put into them becomes nodes of a graph.
 *
 * CUDA_ERROR_INVALID_VALUE and CUDA_ERROR_INVALID_HANDLE for what is no graph, node or stream, and
 * CUDA's own codes of captures; CUDA_ERROR_ILLEGAL_STATE where a stream is, or is not, captured.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_CAPTURE_H
#define FGV_CUDA_CAPTURE_H

#include <cuda.h>

CUresult fgv_capture_begin(CUstream stream, CUstreamCaptureMode mode);
/* Into the program's @graph, behind its nodes @before, as @edges say; NULL: ordinarily. */
CUresult fgv_capture_begin_to_graph(CUstream stream, CUgraph graph, const CUgraphNode *before,
				    const CUgraphEdgeData *edges, size_t count,
				    CUstreamCaptureMode mode);
/* *@graph is NULL after a failure. */
CUresult fgv_capture_end(CUstream stream, CUgraph *graph);

/*
 * What a program is told of a capture; all but the status may be NULL. Lists are the stream's, and
 * good until it goes on.
 */
struct fgv_capture_info {
	CUstreamCaptureStatus *status;
	unsigned long long *id;
	CUgraph *graph;
	const CUgraphNode **dependencies;
	const CUgraphEdgeData **edges;
	size_t *count;
};

/* CUDA_ERROR_LOSSY_QUERY if edges have data and are not asked for. */
CUresult fgv_capture_get_info(CUstream stream, const struct fgv_capture_info *wanted);

/* What the next node waits for. @flags: of CUstreamUpdateCaptureDependencies_flags. */
CUresult fgv_capture_update(CUstream stream, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
			    size_t count, unsigned flags);

/* Of the calling thread. */
CUresult fgv_capture_exchange_mode(CUstreamCaptureMode *mode);

#endif
