/*
 * Capturing streams.
 */
#include "frontend/cuda/graph/capture.h"

#include "frontend/libcuda/driver.h"

FGV_EXPORT CUresult cuStreamBeginCapture(CUstream hStream)
{
	return FGV_CALL_ON(hStream, fgv_capture_begin(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

FGV_EXPORT CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	return FGV_CALL_ON(hStream, fgv_capture_begin(hStream, mode));
}

FGV_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
						const CUgraphNode *dependencies,
						const CUgraphEdgeData *dependencyData,
						size_t numDependencies, CUstreamCaptureMode mode)
{
	return FGV_CALL_ON(hStream,
			   fgv_capture_begin_to_graph(hStream, hGraph, dependencies, dependencyData,
						      numDependencies, mode));
}

FGV_EXPORT CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	return FGV_CALL_ON(hStream, fgv_capture_end(hStream, phGraph));
}

static CUresult get_info(CUstream stream, const struct fgv_capture_info *wanted)
{
	return FGV_CALL_ON(stream, fgv_capture_get_info(stream, wanted));
}

FGV_EXPORT CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return get_info(hStream, &(struct fgv_capture_info){.status = captureStatus});
}

FGV_EXPORT CUresult cuStreamGetCaptureInfo(CUstream hStream,
					   CUstreamCaptureStatus *captureStatus_out,
					   cuuint64_t *id_out)
{
	const struct fgv_capture_info wanted = {.status = captureStatus_out,
						.id = (unsigned long long *)id_out};

	return get_info(hStream, &wanted);
}

FGV_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream hStream,
					      CUstreamCaptureStatus *captureStatus_out,
					      cuuint64_t *id_out, CUgraph *graph_out,
					      const CUgraphNode **dependencies_out,
					      size_t *numDependencies_out)
{
	const struct fgv_capture_info wanted = {
		.status = captureStatus_out,
		.id = (unsigned long long *)id_out,
		.graph = graph_out,
		.dependencies = dependencies_out,
		.count = numDependencies_out,
	};

	return get_info(hStream, &wanted);
}

FGV_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream hStream,
					      CUstreamCaptureStatus *captureStatus_out,
					      cuuint64_t *id_out, CUgraph *graph_out,
					      const CUgraphNode **dependencies_out,
					      const CUgraphEdgeData **edgeData_out,
					      size_t *numDependencies_out)
{
	const struct fgv_capture_info wanted = {
		.status = captureStatus_out,
		.id = (unsigned long long *)id_out,
		.graph = graph_out,
		.dependencies = dependencies_out,
		.edges = edgeData_out,
		.count = numDependencies_out,
	};

	return get_info(hStream, &wanted);
}

FGV_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
						      size_t numDependencies, unsigned int flags)
{
	return FGV_CALL_ON(hStream,
			   fgv_capture_update(hStream, dependencies, NULL, numDependencies, flags));
}

FGV_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream,
							 CUgraphNode *dependencies,
							 const CUgraphEdgeData *dependencyData,
							 size_t numDependencies, unsigned int flags)
{
	return FGV_CALL_ON(hStream, fgv_capture_update(hStream, dependencies, dependencyData,
						       numDependencies, flags));
}

FGV_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	return FGV_CALL_ANYWHERE(fgv_capture_exchange_mode(mode));
}
