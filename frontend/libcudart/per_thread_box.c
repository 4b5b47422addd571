/*
 * The variants for per-thread default streams (per_thread.c) of the copies of boxes and arrays.
 */
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy_box.h"

/* The header declares them under these names only when compiled that way itself. */
cudaError_t cudaMemcpy2D_ptds(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync_ptsz(void *dst, size_t dpitch, const void *src, size_t spitch,
				   size_t width, size_t height, enum cudaMemcpyKind kind,
				   cudaStream_t stream);
cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *p);
cudaError_t cudaMemcpy3DAsync_ptsz(const struct cudaMemcpy3DParms *p, cudaStream_t stream);
cudaError_t cudaMemcpy2DToArray_ptds(cudaArray_t dst, size_t x, size_t y, const void *src,
				     size_t spitch, size_t width, size_t height,
				     enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArrayAsync_ptsz(cudaArray_t dst, size_t x, size_t y, const void *src,
					  size_t spitch, size_t width, size_t height,
					  enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DFromArray_ptds(void *dst, size_t dpitch, cudaArray_const_t src, size_t x,
				       size_t y, size_t width, size_t height,
				       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArrayAsync_ptsz(void *dst, size_t dpitch, cudaArray_const_t src,
					    size_t x, size_t y, size_t width, size_t height,
					    enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DArrayToArray_ptds(cudaArray_t dst, size_t dst_x, size_t dst_y,
					  cudaArray_const_t src, size_t src_x, size_t src_y,
					  size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, struct cudaMemcpy3DBatchOp *ops,
					unsigned long long flags, cudaStream_t stream);
cudaError_t cudaMemcpyArrayToArray_ptds(cudaArray_t dst, size_t dst_x, size_t dst_y,
					cudaArray_const_t src, size_t src_x, size_t src_y,
					size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyToArray_ptds(cudaArray_t dst, size_t x, size_t y, const void *src,
				   size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyToArrayAsync_ptsz(cudaArray_t dst, size_t x, size_t y, const void *src,
					size_t count, enum cudaMemcpyKind kind,
					cudaStream_t stream);
cudaError_t cudaMemcpyFromArray_ptds(void *dst, cudaArray_const_t src, size_t x, size_t y,
				     size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromArrayAsync_ptsz(void *dst, cudaArray_const_t src, size_t x, size_t y,
					  size_t count, enum cudaMemcpyKind kind,
					  cudaStream_t stream);
cudaError_t cudaMemcpy3DPeer_ptds(const struct cudaMemcpy3DPeerParms *p);
cudaError_t cudaMemcpy3DPeerAsync_ptsz(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream);
cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr memory, int value, struct cudaExtent extent);
cudaError_t cudaMemset3DAsync_ptsz(struct cudaPitchedPtr memory, int value,
				   struct cudaExtent extent, cudaStream_t stream);

static struct fgv_when in(cudaStream_t stream)
{
	return (struct fgv_when){stream ? stream : cudaStreamPerThread, false};
}

FGV_EXPORT cudaError_t cudaMemcpy2D_ptds(void *dst, size_t dpitch, const void *src, size_t spitch,
					 size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_2d(dst, dpitch, src, spitch, width, height, kind,
					   (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DAsync_ptsz(void *dst, size_t dpitch, const void *src,
					      size_t spitch, size_t width, size_t height,
					      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return fgv_error_set(
		fgv_memcpy_2d(dst, dpitch, src, spitch, width, height, kind, in(stream)));
}

FGV_EXPORT cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *p)
{
	return fgv_error_set(fgv_memcpy_3d(p, (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy3DAsync_ptsz(const struct cudaMemcpy3DParms *p,
					      cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_3d(p, in(stream)));
}

FGV_EXPORT cudaError_t cudaMemcpy2DToArray_ptds(cudaArray_t dst, size_t x, size_t y,
						const void *src, size_t spitch, size_t width,
						size_t height, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_2d_to_array(dst, x, y, src, spitch, width, height, kind,
						    (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DToArrayAsync_ptsz(cudaArray_t dst, size_t x, size_t y,
						     const void *src, size_t spitch, size_t width,
						     size_t height, enum cudaMemcpyKind kind,
						     cudaStream_t stream)
{
	return fgv_error_set(
		fgv_memcpy_2d_to_array(dst, x, y, src, spitch, width, height, kind, in(stream)));
}

FGV_EXPORT cudaError_t cudaMemcpy2DFromArray_ptds(void *dst, size_t dpitch, cudaArray_const_t src,
						  size_t x, size_t y, size_t width, size_t height,
						  enum cudaMemcpyKind kind)
{
	return fgv_error_set(
		fgv_memcpy_2d_from_array(dst, dpitch, src, x, y, width, height, kind,
					 (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemcpy2DFromArrayAsync_ptsz(void *dst, size_t dpitch,
						       cudaArray_const_t src, size_t x, size_t y,
						       size_t width, size_t height,
						       enum cudaMemcpyKind kind,
						       cudaStream_t stream)
{
	return fgv_error_set(
		fgv_memcpy_2d_from_array(dst, dpitch, src, x, y, width, height, kind, in(stream)));
}

FGV_EXPORT cudaError_t cudaMemcpy2DArrayToArray_ptds(cudaArray_t dst, size_t dst_x, size_t dst_y,
						     cudaArray_const_t src, size_t src_x,
						     size_t src_y, size_t width, size_t height,
						     enum cudaMemcpyKind kind)
{
	return fgv_error_set(
		fgv_memcpy_2d_between_arrays(dst, dst_x, dst_y, src, src_x, src_y, width, height,
					     kind, (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemcpyToArray_ptds(cudaArray_t dst, size_t x, size_t y, const void *src,
					      size_t count, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_to_array(dst, x, y, src, count, kind,
						 (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemcpyToArrayAsync_ptsz(cudaArray_t dst, size_t x, size_t y,
						   const void *src, size_t count,
						   enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_to_array(dst, x, y, src, count, kind, in(stream)));
}

FGV_EXPORT cudaError_t cudaMemcpyFromArray_ptds(void *dst, cudaArray_const_t src, size_t x,
						size_t y, size_t count, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_from_array(dst, src, x, y, count, kind,
						   (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemcpyFromArrayAsync_ptsz(void *dst, cudaArray_const_t src, size_t x,
						     size_t y, size_t count,
						     enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return fgv_error_set(fgv_memcpy_from_array(dst, src, x, y, count, kind, in(stream)));
}

FGV_EXPORT cudaError_t cudaMemcpy3DPeer_ptds(const struct cudaMemcpy3DPeerParms *p)
{
	return cudaMemcpy3DPeerAsync(p, cudaStreamPerThread);
}

FGV_EXPORT cudaError_t cudaMemcpy3DPeerAsync_ptsz(const struct cudaMemcpy3DPeerParms *p,
						  cudaStream_t stream)
{
	return cudaMemcpy3DPeerAsync(p, stream ? stream : cudaStreamPerThread);
}

FGV_EXPORT cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, struct cudaMemcpy3DBatchOp *ops,
						   unsigned long long flags, cudaStream_t stream)
{
	return cudaMemcpy3DBatchAsync(count, ops, flags, stream ? stream : cudaStreamPerThread);
}

FGV_EXPORT cudaError_t cudaMemcpyArrayToArray_ptds(cudaArray_t dst, size_t dst_x, size_t dst_y,
						   cudaArray_const_t src, size_t src_x,
						   size_t src_y, size_t count,
						   enum cudaMemcpyKind kind)
{
	return fgv_error_set(
		fgv_memcpy_between_arrays(dst, dst_x, dst_y, src, src_x, src_y, count, kind,
					  (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr memory, int value,
					 struct cudaExtent extent)
{
	return fgv_error_set(
		fgv_memset_3d(memory, value, extent, (struct fgv_when){cudaStreamPerThread, true}));
}

FGV_EXPORT cudaError_t cudaMemset3DAsync_ptsz(struct cudaPitchedPtr memory, int value,
					      struct cudaExtent extent, cudaStream_t stream)
{
	return fgv_error_set(fgv_memset_3d(memory, value, extent, in(stream)));
}
