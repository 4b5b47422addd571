/*
 * The handlers of the operations on host memory that the GPU sees; see handlers.c.
 */
#include "backend/vgpu/session.h"

CUresult fgv_do_host_map(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_host_map_in *in)
{
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_mapped_add(&session->mapped, session->gpu, in->address, in->pages,
			      in->pages_len);
}

/* A part of its own decides what it shows its GPU, but never more than the first one has mapped. */
CUresult fgv_do_host_show(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_host_show_in *in)
{
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!session->first)
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_mapped_share(&session->mapped, session->gpu, &session->first->mapped,
				in->address);
}

/* Nothing new finds it any more; what was queued before may still use it, so it goes after that. */
CUresult fgv_do_host_unmap(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_host_unmap_in *in)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_mapped_range *range = fgv_mapped_take(&session->mapped, in->address);
	struct fgv_gpu_fence *fence;
	CUresult status;

	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	fgv_mapped_retire(range, gpu);
	status = gpu->ops->fence_all(gpu, &fence);
	if (status != CUDA_SUCCESS) {
		fgv_mapped_drop(range, gpu);
		return status;
	}
	return fgv_session_await_unmapping(session, request, fence, range);
}
