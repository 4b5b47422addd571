/*
 * Capturing streams.
 */
#include "frontend/cuda/graph/capture.h"

#include "frontend/libcudart/cudart.h"

/* The same numbers and the same layout by other names. */
_Static_assert((int)cudaStreamCaptureModeRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED &&
		       (int)cudaStreamCaptureStatusInvalidated ==
			       CU_STREAM_CAPTURE_STATUS_INVALIDATED &&
		       (int)cudaStreamSetCaptureDependencies == CU_STREAM_SET_CAPTURE_DEPENDENCIES,
	       "captures");
_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edges");

FGV_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return FGV_RESULT(fgv_capture_begin(stream, (CUstreamCaptureMode)mode));
}

FGV_EXPORT cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
						     const cudaGraphNode_t *dependencies,
						     const cudaGraphEdgeData *dependencyData,
						     size_t numDependencies,
						     enum cudaStreamCaptureMode mode)
{
	return FGV_RESULT(fgv_capture_begin_to_graph(stream, graph, dependencies,
						     (const CUgraphEdgeData *)dependencyData,
						     numDependencies, (CUstreamCaptureMode)mode));
}

FGV_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	return FGV_RESULT(fgv_capture_end(stream, pGraph));
}

FGV_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
					     enum cudaStreamCaptureStatus *pCaptureStatus)
{
	const struct fgv_capture_info wanted = {.status = (CUstreamCaptureStatus *)pCaptureStatus};

	return FGV_RESULT(fgv_capture_get_info(stream, &wanted));
}

FGV_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
						enum cudaStreamCaptureStatus *captureStatus_out,
						unsigned long long *id_out, cudaGraph_t *graph_out,
						const cudaGraphNode_t **dependencies_out,
						const cudaGraphEdgeData **edgeData_out,
						size_t *numDependencies_out)
{
	const struct fgv_capture_info wanted = {
		.status = (CUstreamCaptureStatus *)captureStatus_out,
		.id = id_out,
		.graph = graph_out,
		.dependencies = dependencies_out,
		.edges = (const CUgraphEdgeData **)edgeData_out,
		.count = numDependencies_out,
	};

	return FGV_RESULT(fgv_capture_get_info(stream, &wanted));
}

FGV_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
							   cudaGraphNode_t *dependencies,
							   const cudaGraphEdgeData *dependencyData,
							   size_t numDependencies,
							   unsigned int flags)
{
	return FGV_RESULT(fgv_capture_update(stream, dependencies,
					     (const CUgraphEdgeData *)dependencyData,
					     numDependencies, flags));
}

FGV_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	return FGV_RESULT(fgv_capture_exchange_mode((CUstreamCaptureMode *)mode));
}
