/*
 * The variants for per-thread default streams (per_thread.c) of what concerns captures, graphs
 * and the attributes of streams.
 */
#include "frontend/libcudart/cudart.h"

/* The header declares them under these names only when compiled that way itself. */
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
						cudaGraphInstantiateParams *params);
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
					       const cudaGraphNode_t *dependencies,
					       const cudaGraphEdgeData *edges, size_t count,
					       enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t dst, cudaStream_t src);
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID id,
					cudaStreamAttrValue *value);
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					  unsigned long long *id, cudaGraph_t *graph,
					  const cudaGraphNode_t **dependencies,
					  const cudaGraphEdgeData **edges, size_t *count);
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int *device);
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID id,
					const cudaStreamAttrValue *value);
cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
						     cudaGraphNode_t *dependencies,
						     const cudaGraphEdgeData *edges, size_t count,
						     unsigned flags);

static cudaStream_t own(cudaStream_t stream)
{
	return stream ? stream : cudaStreamPerThread;
}

FGV_EXPORT cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
							   cudaGraphInstantiateParams *params)
{
	return cudaGraphInstantiateWithParams(exec, graph, params);
}

FGV_EXPORT cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream)
{
	return cudaGraphUpload(exec, own(stream));
}

FGV_EXPORT cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
							  const cudaGraphNode_t *dependencies,
							  const cudaGraphEdgeData *edges,
							  size_t count,
							  enum cudaStreamCaptureMode mode)
{
	return cudaStreamBeginCaptureToGraph(own(stream), graph, dependencies, edges, count, mode);
}

FGV_EXPORT cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t dst, cudaStream_t src)
{
	return cudaStreamCopyAttributes(own(dst), own(src));
}

FGV_EXPORT cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID id,
						   cudaStreamAttrValue *value)
{
	return cudaStreamGetAttribute(own(stream), id, value);
}

FGV_EXPORT cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream,
						     enum cudaStreamCaptureStatus *status,
						     unsigned long long *id, cudaGraph_t *graph,
						     const cudaGraphNode_t **dependencies,
						     const cudaGraphEdgeData **edges, size_t *count)
{
	return cudaStreamGetCaptureInfo(own(stream), status, id, graph, dependencies, edges, count);
}

FGV_EXPORT cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int *device)
{
	return cudaStreamGetDevice(own(stream), device);
}

FGV_EXPORT cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long *id)
{
	return cudaStreamGetId(own(stream), id);
}

FGV_EXPORT cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID id,
						   const cudaStreamAttrValue *value)
{
	return cudaStreamSetAttribute(own(stream), id, value);
}

FGV_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
								cudaGraphNode_t *dependencies,
								const cudaGraphEdgeData *edges,
								size_t count, unsigned flags)
{
	return cudaStreamUpdateCaptureDependencies(own(stream), dependencies, edges, count, flags);
}

FGV_EXPORT cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream,
						   enum cudaStreamCaptureMode mode)
{
	return cudaStreamBeginCapture(own(stream), mode);
}

FGV_EXPORT cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph)
{
	return cudaStreamEndCapture(own(stream), graph);
}

FGV_EXPORT cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream,
						  enum cudaStreamCaptureStatus *status)
{
	return cudaStreamIsCapturing(own(stream), status);
}

FGV_EXPORT cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream)
{
	return cudaGraphLaunch(exec, own(stream));
}
