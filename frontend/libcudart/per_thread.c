/*
 * What a program calls that is compiled for a default stream of each thread's own
 * (nvcc --default-stream per-thread): the same functions under other names, for which
 * stream 0 is that one.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"

/* The header declares them under these names only when compiled that way itself. */
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream);
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaLaunchKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
				  size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
				     void **args);
cudaError_t cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream);
cudaError_t cudaMallocAsync_ptsz(void **ptr, size_t size, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t pool,
					 cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
					     size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t fn, void *data);
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
				       void *data, unsigned flags);
cudaError_t cudaMemcpyBatchAsync_ptsz(void *const *dsts, const void *const *srcs,
				      const size_t *sizes, size_t count,
				      struct cudaMemcpyAttributes *attributes, size_t *indices,
				      size_t attribute_count, cudaStream_t stream);
cudaError_t cudaMemPrefetchBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t count,
					   struct cudaMemLocation *locations, size_t *indices,
					   size_t location_count, unsigned long long flags,
					   cudaStream_t stream);
cudaError_t cudaMemDiscardBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t count,
					  unsigned long long flags, cudaStream_t stream);
cudaError_t cudaMemDiscardAndPrefetchBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t count,
						     struct cudaMemLocation *locations,
						     size_t *indices, size_t location_count,
						     unsigned long long flags, cudaStream_t stream);
cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
				 cudaStream_t stream);
cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *src, size_t count,
				    size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *src, size_t count,
					 size_t offset, enum cudaMemcpyKind kind,
					 cudaStream_t stream);
cudaError_t cudaMemcpyFromSymbol_ptds(void *dst, const void *symbol, size_t count, size_t offset,
				      enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void *dst, const void *symbol, size_t count,
					   size_t offset, enum cudaMemcpyKind kind,
					   cudaStream_t stream);
cudaError_t cudaMemPrefetchAsync_ptsz(const void *ptr, size_t count,
				      struct cudaMemLocation location, unsigned flags,
				      cudaStream_t stream);
cudaError_t cudaMemset_ptds(void *ptr, int value, size_t count);
cudaError_t cudaMemsetAsync_ptsz(void *ptr, int value, size_t count, cudaStream_t stream);
cudaError_t cudaMemset2D_ptds(void *ptr, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync_ptsz(void *ptr, size_t pitch, int value, size_t width, size_t height,
				   cudaStream_t stream);
cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void *ptr, size_t length,
					  unsigned flags);
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned *flags);
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority);
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags);

static cudaStream_t own(cudaStream_t stream)
{
	return stream ? stream : cudaStreamPerThread;
}

FGV_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
					       void **args, size_t shared, cudaStream_t stream)
{
	return __cudaLaunchKernel(kernel, grid, block, args, shared, own(stream));
}

FGV_EXPORT cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream)
{
	return cudaEventRecord(event, own(stream));
}

FGV_EXPORT cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
						     unsigned flags)
{
	return cudaEventRecordWithFlags(event, own(stream), flags);
}

FGV_EXPORT cudaError_t cudaLaunchKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
					     size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel(func, grid, block, args, shared, own(stream));
}

FGV_EXPORT cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
						void **args)
{
	cudaLaunchConfig_t mine;

	if (!config)
		return cudaLaunchKernelExC(NULL, func, args);
	mine = *config;
	mine.stream = own(config->stream);
	return cudaLaunchKernelExC(&mine, func, args);
}

FGV_EXPORT cudaError_t cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream)
{
	return cudaFreeAsync(ptr, own(stream));
}

FGV_EXPORT cudaError_t cudaMallocAsync_ptsz(void **ptr, size_t size, cudaStream_t stream)
{
	return cudaMallocAsync(ptr, size, own(stream));
}

FGV_EXPORT cudaError_t cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t pool,
						    cudaStream_t stream)
{
	return cudaMallocFromPoolAsync(ptr, size, pool, own(stream));
}

FGV_EXPORT cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count,
				       enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_wait(dst, src, count, kind, cudaStreamPerThread));
}

FGV_EXPORT cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count,
					    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return cudaMemcpyAsync(dst, src, count, kind, own(stream));
}

FGV_EXPORT cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *src, size_t count,
					       size_t offset, enum cudaMemcpyKind kind)
{
	return fgv_error_set(
		fgv_memcpy_to_symbol_wait(symbol, src, count, offset, kind, cudaStreamPerThread));
}

FGV_EXPORT cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *src,
						    size_t count, size_t offset,
						    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return cudaMemcpyToSymbolAsync(symbol, src, count, offset, kind, own(stream));
}

FGV_EXPORT cudaError_t cudaMemcpyFromSymbol_ptds(void *dst, const void *symbol, size_t count,
						 size_t offset, enum cudaMemcpyKind kind)
{
	return fgv_error_set(
		fgv_memcpy_from_symbol_wait(dst, symbol, count, offset, kind, cudaStreamPerThread));
}

FGV_EXPORT cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void *dst, const void *symbol, size_t count,
						      size_t offset, enum cudaMemcpyKind kind,
						      cudaStream_t stream)
{
	return cudaMemcpyFromSymbolAsync(dst, symbol, count, offset, kind, own(stream));
}

FGV_EXPORT cudaError_t cudaMemPrefetchAsync_ptsz(const void *ptr, size_t count,
						 struct cudaMemLocation location, unsigned flags,
						 cudaStream_t stream)
{
	return cudaMemPrefetchAsync(ptr, count, location, flags, own(stream));
}

FGV_EXPORT cudaError_t cudaMemset_ptds(void *ptr, int value, size_t count)
{
	return fgv_error_set(fgv_memset_wait(ptr, count, value, count, 1, cudaStreamPerThread));
}

FGV_EXPORT cudaError_t cudaMemsetAsync_ptsz(void *ptr, int value, size_t count, cudaStream_t stream)
{
	return cudaMemsetAsync(ptr, value, count, own(stream));
}

FGV_EXPORT cudaError_t cudaMemset2D_ptds(void *ptr, size_t pitch, int value, size_t width,
					 size_t height)
{
	return fgv_error_set(
		fgv_memset_wait(ptr, pitch, value, width, height, cudaStreamPerThread));
}

FGV_EXPORT cudaError_t cudaMemset2DAsync_ptsz(void *ptr, size_t pitch, int value, size_t width,
					      size_t height, cudaStream_t stream)
{
	return cudaMemset2DAsync(ptr, pitch, value, width, height, own(stream));
}

FGV_EXPORT cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void *ptr, size_t length,
						     unsigned flags)
{
	return cudaStreamAttachMemAsync(own(stream), ptr, length, flags);
}

FGV_EXPORT cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned *flags)
{
	return cudaStreamGetFlags(own(stream), flags);
}

FGV_EXPORT cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority)
{
	return cudaStreamGetPriority(own(stream), priority);
}

FGV_EXPORT cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream)
{
	return cudaStreamQuery(own(stream));
}

FGV_EXPORT cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
	return cudaStreamSynchronize(own(stream));
}

FGV_EXPORT cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event,
						unsigned flags)
{
	return cudaStreamWaitEvent(own(stream), event, flags);
}

FGV_EXPORT cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *func, dim3 grid, dim3 block,
							void **args, size_t shared,
							cudaStream_t stream)
{
	return cudaLaunchCooperativeKernel(func, grid, block, args, shared, own(stream));
}

FGV_EXPORT cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
	return cudaLaunchHostFunc(own(stream), fn, data);
}

FGV_EXPORT cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream,
						  cudaStreamCallback_t callback, void *data,
						  unsigned flags)
{
	return cudaStreamAddCallback(own(stream), callback, data, flags);
}

FGV_EXPORT cudaError_t cudaMemcpyBatchAsync_ptsz(void *const *dsts, const void *const *srcs,
						 const size_t *sizes, size_t count,
						 struct cudaMemcpyAttributes *attributes,
						 size_t *indices, size_t attribute_count,
						 cudaStream_t stream)
{
	return cudaMemcpyBatchAsync(dsts, srcs, sizes, count, attributes, indices, attribute_count,
				    own(stream));
}

FGV_EXPORT cudaError_t cudaMemPrefetchBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t count,
						      struct cudaMemLocation *locations,
						      size_t *indices, size_t location_count,
						      unsigned long long flags, cudaStream_t stream)
{
	return cudaMemPrefetchBatchAsync(ptrs, sizes, count, locations, indices, location_count,
					 flags, own(stream));
}

FGV_EXPORT cudaError_t cudaMemDiscardBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t count,
						     unsigned long long flags, cudaStream_t stream)
{
	return cudaMemDiscardBatchAsync(ptrs, sizes, count, flags, own(stream));
}

FGV_EXPORT cudaError_t cudaMemDiscardAndPrefetchBatchAsync_ptsz(
	void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locations,
	size_t *indices, size_t location_count, unsigned long long flags, cudaStream_t stream)
{
	return cudaMemDiscardAndPrefetchBatchAsync(ptrs, sizes, count, locations, indices,
						   location_count, flags, own(stream));
}
