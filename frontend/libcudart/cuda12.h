/*
 * Structures as CUDA 12 has them, where 13 has others. Programs compiled for 12 bring these.
 */
#ifndef FGV_LIBCUDART_CUDA12_H
#define FGV_LIBCUDART_CUDA12_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* What cudaGetDeviceProperties() fills in ends where CUDA 11's ended, _v2 fills all. */
struct fgv_12_device_prop {
	char name[256];
	cudaUUID_t uuid;
	char luid[8];
	unsigned luidDeviceNodeMask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment, texturePitchAlignment;
	int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated;
	int canMapHostMemory, computeMode;
	int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
	int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
	int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
	int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
	int maxSurface1D, maxSurface2D[2], maxSurface3D[3];
	int maxSurface1DLayered[2], maxSurface2DLayered[3];
	int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
	int asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
	int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
	int globalL1CacheSupported, localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
	int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess;
	int concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
	int cooperativeLaunch, cooperativeMultiDeviceLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
	int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	/* Not in CUDA 11. */
	int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
	unsigned gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned memoryPoolSupportedHandleTypes;
	int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
	int unifiedFunctionPointers;
	int reserved[63];
};
_Static_assert(sizeof(struct fgv_12_device_prop) == 1032, "as in CUDA 12");

struct fgv_12_pointer_attributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer;
	void *hostPointer;
};
_Static_assert(sizeof(struct fgv_12_pointer_attributes) == 24, "as in CUDA 12");
_Static_assert(offsetof(struct cudaPointerAttributes, hostPointer) ==
		       offsetof(struct fgv_12_pointer_attributes, hostPointer),
	       "13 has more behind");

/* Of these, 13 has reserved bytes behind what 12 has. */
#define FGV_12_RESOURCE_DESC_BYTES	64
#define FGV_12_RESOURCE_VIEW_DESC_BYTES 48

/*
 * The functions, each fgv_12_ and its name in 12, with 12's parameters; void pointers are to
 * structures of which 12's are smaller.
 */
cudaError_t fgv_12_cudaGetDeviceProperties(void *prop, int device);
cudaError_t fgv_12_cudaGetDeviceProperties_v2(void *prop, int device);
cudaError_t fgv_12_cudaPointerGetAttributes(struct fgv_12_pointer_attributes *attributes,
					    const void *ptr);
cudaError_t fgv_12_cudaRuntimeGetVersion(int *version);
cudaError_t fgv_12_cudaMemAdvise(const void *ptr, size_t count, enum cudaMemoryAdvise advice,
				 int device);
cudaError_t fgv_12_cudaMemPrefetchAsync(const void *ptr, size_t count, int device,
					cudaStream_t stream);
cudaError_t fgv_12_cudaMemPrefetchAsync_ptsz(const void *ptr, size_t count, int device,
					     cudaStream_t stream);
cudaError_t fgv_12_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					    const cudaGraphNode_t *to, size_t count);
cudaError_t fgv_12_cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					       const cudaGraphNode_t *to, size_t count);
cudaError_t fgv_12_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
				    const cudaGraphNode_t *dependencies, size_t count,
				    struct cudaGraphNodeParams *params);
cudaError_t fgv_12_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
				     size_t *count);
cudaError_t fgv_12_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
						size_t *count);
cudaError_t fgv_12_cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
						  size_t *count);
cudaError_t fgv_12_cudaStreamGetCaptureInfo(cudaStream_t stream,
					    enum cudaStreamCaptureStatus *status,
					    unsigned long long *id);
cudaError_t fgv_12_cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream,
						 enum cudaStreamCaptureStatus *status,
						 unsigned long long *id);
cudaError_t fgv_12_cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
					       enum cudaStreamCaptureStatus *status,
					       unsigned long long *id, cudaGraph_t *graph,
					       const cudaGraphNode_t **dependencies, size_t *count);
cudaError_t fgv_12_cudaStreamGetCaptureInfo_v2_ptsz(cudaStream_t stream,
						    enum cudaStreamCaptureStatus *status,
						    unsigned long long *id, cudaGraph_t *graph,
						    const cudaGraphNode_t **dependencies,
						    size_t *count);
cudaError_t fgv_12_cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
						       cudaGraphNode_t *dependencies, size_t count,
						       unsigned flags);
cudaError_t fgv_12_cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
							    cudaGraphNode_t *dependencies,
							    size_t count, unsigned flags);
cudaError_t fgv_12_cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
					struct cudaMemcpyAttributes *attrs, size_t *indices,
					size_t attr_count, size_t *failed, cudaStream_t stream);
cudaError_t fgv_12_cudaMemcpyBatchAsync_ptsz(void **dsts, void **srcs, size_t *sizes, size_t count,
					     struct cudaMemcpyAttributes *attrs, size_t *indices,
					     size_t attr_count, size_t *failed,
					     cudaStream_t stream);
cudaError_t fgv_12_cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *ops,
					  size_t *failed, unsigned long long flags,
					  cudaStream_t stream);
cudaError_t fgv_12_cudaMemcpy3DBatchAsync_ptsz(size_t count, struct cudaMemcpy3DBatchOp *ops,
					       size_t *failed, unsigned long long flags,
					       cudaStream_t stream);
cudaError_t fgv_12_cudaCreateTextureObject(cudaTextureObject_t *object, const void *resource,
					   const struct cudaTextureDesc *texture, const void *view);
cudaError_t fgv_12_cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const void *resource);
cudaError_t fgv_12_cudaGetTextureObjectResourceDesc(void *resource, cudaTextureObject_t object);
cudaError_t fgv_12_cudaGetTextureObjectResourceViewDesc(void *view, cudaTextureObject_t object);
cudaError_t fgv_12_cudaGetSurfaceObjectResourceDesc(void *resource, cudaSurfaceObject_t object);
cudaError_t fgv_12_cudaChooseDevice(int *device, const void *prop);
cudaError_t fgv_12_cudaSetDoubleForDevice(double *value);
cudaError_t fgv_12_cudaSetDoubleForHost(double *value);

#endif
