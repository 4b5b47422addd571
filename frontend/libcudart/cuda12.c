/*
 * What programs of CUDA 12 call that means something else in 13 (cuda12.txt has the list):
 * other parameters, or structures of other sizes. Each is put in 13's terms. A function that
 * lowers to one that FairGV does not have says so as that one does, which also counts it.
 */
#include "frontend/libcudart/cuda12.h"

#include <string.h>

#include "common/util.h"
#include "frontend/libcudart/properties.h"

/* Reached under its name in 12's version node; stubgen.py finds it by this. */
#define FGV_EXPORT_12 __attribute__((visibility("hidden")))

#define RUNTIME_VERSION 12090

/* Of 13, under their names for programs with a default stream per thread. */
cudaError_t cudaMemPrefetchAsync_ptsz(const void *ptr, size_t count,
				      struct cudaMemLocation location, unsigned flags,
				      cudaStream_t stream);
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					  unsigned long long *id, cudaGraph_t *graph,
					  const cudaGraphNode_t **dependencies,
					  const cudaGraphEdgeData **edges, size_t *count);
cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
						     cudaGraphNode_t *dependencies,
						     const cudaGraphEdgeData *edges, size_t count,
						     unsigned flags);
cudaError_t cudaMemcpyBatchAsync_ptsz(void *const *dsts, const void *const *srcs,
				      const size_t *sizes, size_t count,
				      struct cudaMemcpyAttributes *attrs, size_t *indices,
				      size_t attr_count, cudaStream_t stream);
cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, struct cudaMemcpy3DBatchOp *ops,
					unsigned long long flags, cudaStream_t stream);

static const struct fgv_property fields[] = {
#define FIELD(member, name) FGV_PROPERTY(struct fgv_12_device_prop, member, name),
#include "frontend/libcudart/properties.def"
	FGV_PROPERTY(struct fgv_12_device_prop, clockRate, CLOCK_RATE),
	FGV_PROPERTY(struct fgv_12_device_prop, deviceOverlap, GPU_OVERLAP),
	FGV_PROPERTY(struct fgv_12_device_prop, kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
	FGV_PROPERTY(struct fgv_12_device_prop, computeMode, COMPUTE_MODE),
	FGV_PROPERTY(struct fgv_12_device_prop, maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
	FGV_PROPERTY(struct fgv_12_device_prop, memoryClockRate, MEMORY_CLOCK_RATE),
	FGV_PROPERTY(struct fgv_12_device_prop, singleToDoublePrecisionPerfRatio,
		     SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
	FGV_PROPERTY(struct fgv_12_device_prop, cooperativeMultiDeviceLaunch,
		     COOPERATIVE_MULTI_DEVICE_LAUNCH),
};

static cudaError_t get_properties(void *to, size_t bytes, int device)
{
	const struct fgv_device_info *info;
	struct fgv_12_device_prop prop = {.name = ""};
	cudaError_t error;

	if (!to)
		return cudaErrorInvalidValue;
	error = fgv_properties_device(device, &info);
	if (error)
		return error;
	memcpy(prop.name, info->name, sizeof(prop.name));
	memcpy(&prop.uuid, info->uuid, sizeof(prop.uuid));
	prop.totalGlobalMem = info->memory_bytes;
	fgv_properties_set(&prop, fields, FGV_ARRAY_LEN(fields), info);
	memcpy(to, &prop, bytes);
	return cudaSuccess;
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGetDeviceProperties(void *prop, int device)
{
	return fgv_error_set(get_properties(
		prop, offsetof(struct fgv_12_device_prop, hostRegisterSupported), device));
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGetDeviceProperties_v2(void *prop, int device)
{
	return fgv_error_set(get_properties(prop, sizeof(struct fgv_12_device_prop), device));
}

FGV_EXPORT_12 cudaError_t
fgv_12_cudaPointerGetAttributes(struct fgv_12_pointer_attributes *attributes, const void *ptr)
{
	struct cudaPointerAttributes all;
	cudaError_t error = cudaPointerGetAttributes(attributes ? &all : NULL, ptr);

	if (!error)
		memcpy(attributes, &all, sizeof(*attributes));
	return error;
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return fgv_error_set(cudaErrorInvalidValue);
	*version = RUNTIME_VERSION;
	return cudaSuccess;
}

/* 12 says -1 for the processor. */
static struct cudaMemLocation location_of(int device)
{
	return (struct cudaMemLocation){
		.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost
						  : cudaMemLocationTypeDevice,
		.id = device == cudaCpuDeviceId ? 0 : device,
	};
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaMemAdvise(const void *ptr, size_t count,
					       enum cudaMemoryAdvise advice, int device)
{
	return cudaMemAdvise(ptr, count, advice, location_of(device));
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaMemPrefetchAsync(const void *ptr, size_t count, int device,
						      cudaStream_t stream)
{
	return cudaMemPrefetchAsync(ptr, count, location_of(device), 0, stream);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaMemPrefetchAsync_ptsz(const void *ptr, size_t count,
							   int device, cudaStream_t stream)
{
	return cudaMemPrefetchAsync_ptsz(ptr, count, location_of(device), 0, stream);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGraphAddDependencies(cudaGraph_t graph,
							  const cudaGraphNode_t *from,
							  const cudaGraphNode_t *to, size_t count)
{
	return cudaGraphAddDependencies(graph, from, to, NULL, count);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGraphRemoveDependencies(cudaGraph_t graph,
							     const cudaGraphNode_t *from,
							     const cudaGraphNode_t *to,
							     size_t count)
{
	return cudaGraphRemoveDependencies(graph, from, to, NULL, count);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
						  const cudaGraphNode_t *dependencies, size_t count,
						  struct cudaGraphNodeParams *params)
{
	return cudaGraphAddNode(node, graph, dependencies, NULL, count, params);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
						   cudaGraphNode_t *to, size_t *count)
{
	return cudaGraphGetEdges(graph, from, to, NULL, count);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGraphNodeGetDependencies(cudaGraphNode_t node,
							      cudaGraphNode_t *dependencies,
							      size_t *count)
{
	return cudaGraphNodeGetDependencies(node, dependencies, NULL, count);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
								cudaGraphNode_t *dependents,
								size_t *count)
{
	return cudaGraphNodeGetDependentNodes(node, dependents, NULL, count);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaStreamGetCaptureInfo(cudaStream_t stream,
							  enum cudaStreamCaptureStatus *status,
							  unsigned long long *id)
{
	return cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream,
							       enum cudaStreamCaptureStatus *status,
							       unsigned long long *id)
{
	return cudaStreamGetCaptureInfo_ptsz(stream, status, id, NULL, NULL, NULL, NULL);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaStreamGetCaptureInfo_v2(
	cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
	cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
	return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaStreamGetCaptureInfo_v2_ptsz(
	cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
	cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
	return cudaStreamGetCaptureInfo_ptsz(stream, status, id, graph, dependencies, NULL, count);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
								     cudaGraphNode_t *dependencies,
								     size_t count, unsigned flags)
{
	return cudaStreamUpdateCaptureDependencies(stream, dependencies, NULL, count, flags);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaStreamUpdateCaptureDependencies_ptsz(
	cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count, unsigned flags)
{
	return cudaStreamUpdateCaptureDependencies_ptsz(stream, dependencies, NULL, count, flags);
}

/* Which of a batch has failed 13 does not tell; 12's word for all or none of them is this. */
static cudaError_t batch_done(cudaError_t error, size_t *failed)
{
	if (error && failed)
		*failed = SIZE_MAX;
	return error;
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes,
						      size_t count,
						      struct cudaMemcpyAttributes *attrs,
						      size_t *indices, size_t attr_count,
						      size_t *failed, cudaStream_t stream)
{
	return batch_done(cudaMemcpyBatchAsync(dsts, (const void *const *)srcs, sizes, count, attrs,
					       indices, attr_count, stream),
			  failed);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaMemcpyBatchAsync_ptsz(void **dsts, void **srcs, size_t *sizes,
							   size_t count,
							   struct cudaMemcpyAttributes *attrs,
							   size_t *indices, size_t attr_count,
							   size_t *failed, cudaStream_t stream)
{
	return batch_done(cudaMemcpyBatchAsync_ptsz(dsts, (const void *const *)srcs, sizes, count,
						    attrs, indices, attr_count, stream),
			  failed);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaMemcpy3DBatchAsync(size_t count,
							struct cudaMemcpy3DBatchOp *ops,
							size_t *failed, unsigned long long flags,
							cudaStream_t stream)
{
	return batch_done(cudaMemcpy3DBatchAsync(count, ops, flags, stream), failed);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaMemcpy3DBatchAsync_ptsz(size_t count,
							     struct cudaMemcpy3DBatchOp *ops,
							     size_t *failed,
							     unsigned long long flags,
							     cudaStream_t stream)
{
	return batch_done(cudaMemcpy3DBatchAsync_ptsz(count, ops, flags, stream), failed);
}

/* @from, as 13 has it; NULL if there is none. */
static const struct cudaResourceDesc *widen(struct cudaResourceDesc *desc, const void *from)
{
	if (!from)
		return NULL;
	memset(desc, 0, sizeof(*desc));
	memcpy(desc, from, FGV_12_RESOURCE_DESC_BYTES);
	return desc;
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaCreateTextureObject(cudaTextureObject_t *object,
							 const void *resource,
							 const struct cudaTextureDesc *texture,
							 const void *view)
{
	struct cudaResourceViewDesc view_desc = {.format = cudaResViewFormatNone};
	struct cudaResourceDesc desc;

	if (view)
		memcpy(&view_desc, view, FGV_12_RESOURCE_VIEW_DESC_BYTES);
	return cudaCreateTextureObject(object, widen(&desc, resource), texture,
				       view ? &view_desc : NULL);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaCreateSurfaceObject(cudaSurfaceObject_t *object,
							 const void *resource)
{
	struct cudaResourceDesc desc;

	return cudaCreateSurfaceObject(object, widen(&desc, resource));
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGetTextureObjectResourceDesc(void *resource,
								  cudaTextureObject_t object)
{
	struct cudaResourceDesc desc;
	cudaError_t error = cudaGetTextureObjectResourceDesc(resource ? &desc : NULL, object);

	if (!error)
		memcpy(resource, &desc, FGV_12_RESOURCE_DESC_BYTES);
	return error;
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGetTextureObjectResourceViewDesc(void *view,
								      cudaTextureObject_t object)
{
	struct cudaResourceViewDesc desc;
	cudaError_t error = cudaGetTextureObjectResourceViewDesc(view ? &desc : NULL, object);

	if (!error)
		memcpy(view, &desc, FGV_12_RESOURCE_VIEW_DESC_BYTES);
	return error;
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaGetSurfaceObjectResourceDesc(void *resource,
								  cudaSurfaceObject_t object)
{
	struct cudaResourceDesc desc;
	cudaError_t error = cudaGetSurfaceObjectResourceDesc(resource ? &desc : NULL, object);

	if (!error)
		memcpy(resource, &desc, FGV_12_RESOURCE_DESC_BYTES);
	return error;
}

/* Of 13's only what both have is looked at: it says which device is like @prop. */
FGV_EXPORT_12 cudaError_t fgv_12_cudaChooseDevice(int *device, const void *prop)
{
	struct cudaDeviceProp wanted = {.name = ""};
	const struct fgv_12_device_prop *old = prop;

	if (!old)
		return cudaChooseDevice(device, NULL);
	wanted.major = old->major;
	wanted.minor = old->minor;
	wanted.totalGlobalMem = old->totalGlobalMem;
	wanted.multiProcessorCount = old->multiProcessorCount;
	return cudaChooseDevice(device, &wanted);
}

/* Every device that there is has doubles of its own. */
FGV_EXPORT_12 cudaError_t fgv_12_cudaSetDoubleForDevice(double *value)
{
	return value ? cudaSuccess : fgv_error_set(cudaErrorInvalidValue);
}

FGV_EXPORT_12 cudaError_t fgv_12_cudaSetDoubleForHost(double *value)
{
	return value ? cudaSuccess : fgv_error_set(cudaErrorInvalidValue);
}
