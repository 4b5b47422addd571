/*
 * The handlers of the operations on host memory that the GPU sees, be it the guest's or shared by
 * programs of its VM; see handlers.c.
 */
#include "backend/vgpu/session.h"

#include <string.h>

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

CUresult fgv_do_words_make(struct fgv_session *session, struct fgv_request *request,
			   struct fgv_words_make_out *out)
{
	struct fgv_key key;
	void *page;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS)
		status = fgv_sharing_make_words(&session->sharing, &key, &page);
	if (status == CUDA_SUCCESS)
		status = fgv_mapped_adopt(&session->mapped, session->gpu, page);
	if (status != CUDA_SUCCESS)
		return status;
	memcpy(out->key, &key, sizeof(out->key));
	out->address = (uintptr_t)page;
	return CUDA_SUCCESS;
}

CUresult fgv_do_words_open(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_words_open_in *in, struct fgv_words_open_out *out)
{
	struct fgv_key key;
	void *page;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	memcpy(&key, in->key, sizeof(key));
	if (status == CUDA_SUCCESS)
		status = fgv_sharing_open_words(&session->sharing, &key, &page);
	if (status == CUDA_SUCCESS)
		status = fgv_mapped_adopt(&session->mapped, session->gpu, page);
	if (status == CUDA_SUCCESS)
		out->address = (uintptr_t)page;
	return status;
}

/* Other programs, or kernels, may do so at the same time. */
CUresult fgv_do_word_add(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_word_add_in *in, struct fgv_word_add_out *out)
{
	uint64_t *word = NULL;

	(void)request;
	if (in->address % sizeof(*word) == 0)
		word = fgv_mapped_find(&session->mapped, in->address, sizeof(*word));
	if (!word)
		return CUDA_ERROR_INVALID_VALUE;
	out->value = __atomic_add_fetch(word, in->number, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}
