/*
 * The handlers of the operations on device memory and addresses apart from each other, and on
 * memory that programs share; see handlers.c. Memory is charged when it is made, for as long as a
 * handle or a mapping has it; addresses cost nothing but are bounded (vmem.h). What is shared is
 * charged to no session (sharing.h).
 */
#include "backend/vgpu/session.h"

#include <string.h>

CUresult fgv_do_memory_granularity(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_memory_granularity_in *in,
				   struct fgv_memory_granularity_out *out)
{
	size_t bytes = 0;
	CUresult status;

	(void)request;
	if (in->option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	status = session->gpu->ops->memory_granularity(
		session->gpu, (CUmemAllocationGranularity_flags)in->option, &bytes);
	out->bytes = bytes;
	return status;
}

/* Addresses are the session's, and the first part reserves them. */
static CUresult check_first(const struct fgv_session *session)
{
	return session->first ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult fgv_do_address_reserve(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_address_reserve_in *in,
				struct fgv_address_reserve_out *out)
{
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS)
		status = check_first(session);
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_vmem_reserve(&session->vmem, in->size, in->alignment, in->hint, &out->address);
}

CUresult fgv_do_address_free(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_address_free_in *in)
{
	CUresult status = check_first(session);

	(void)request;
	return status ? status : fgv_vmem_free(&session->vmem, in->address);
}

CUresult fgv_do_memory_create(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_create_in *in,
			      struct fgv_memory_create_out *out)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_object *object;
	uint64_t granule;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS)
		status = fgv_vmem_granule(&session->vmem, &granule);
	if (status != CUDA_SUCCESS)
		return status;
	if (!in->size || in->size % granule)
		return CUDA_ERROR_INVALID_VALUE;
	status = fgv_session_add(session, FGV_KIND_MEMORY, in->size, &object);
	if (status != CUDA_SUCCESS)
		return status;
	object->memory.bytes = in->size;
	status = gpu->ops->memory_create(gpu, in->size, &object->memory.gpu);
	if (status != CUDA_SUCCESS) {
		fgv_session_abandon(session, object);
		return status;
	}
	out->memory = object->handle;
	return CUDA_SUCCESS;
}

CUresult fgv_do_memory_release(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_memory_release_in *in)
{
	(void)request;
	return fgv_session_remove(session, in->memory);
}

CUresult fgv_do_memory_map(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_memory_map_in *in)
{
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_vmem_map(&session->vmem, in->address, in->size, in->offset, in->memory);
}

CUresult fgv_do_memory_access(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_access_in *in)
{
	(void)request;
	return fgv_vmem_access(&session->vmem, in->address, in->size, in->flags);
}

/* Work that was queued before may use it yet, so it goes behind that. */
CUresult fgv_do_memory_unmap(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_memory_unmap_in *in)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_gpu_fence *fence;
	CUresult status = fgv_vmem_retire(&session->vmem, in->address, in->size);

	if (status == CUDA_ERROR_INVALID_VALUE)
		return status;
	if (status == CUDA_SUCCESS)
		status = gpu->ops->fence_all(gpu, &fence);
	if (status != CUDA_SUCCESS) {
		fgv_vmem_unmap(&session->vmem, in->address, in->size);
		return status;
	}
	return fgv_session_await_leaving(session, request, fence, in->address, in->size);
}

/* --- What programs share --- */

_Static_assert(sizeof(((struct fgv_memory_import_in *)0)->key) == sizeof(struct fgv_key), "a key");

CUresult fgv_do_memory_share(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_memory_share_in *in, struct fgv_memory_share_out *out)
{
	struct fgv_pieces *pieces = &session->pieces;
	CUresult status = fgv_session_take_deferred(session);
	struct fgv_block *block;
	struct fgv_key key;

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!session->sharing.keeper)
		return CUDA_ERROR_NOT_SUPPORTED;
	block = fgv_pieces_find(pieces, in->address);
	if (!block)
		return CUDA_ERROR_INVALID_VALUE;
	if (!block->is_shared) {
		status = fgv_sharing_export(&session->sharing, block->pieces[0].memory,
					    block->bytes, &key);
		if (status != CUDA_SUCCESS)
			return status;
		fgv_pieces_share(pieces, block, &key);
	}
	memcpy(out->key, &block->key, sizeof(block->key));
	out->offset = in->address - block->address;
	out->size = block->bytes;
	return CUDA_SUCCESS;
}

CUresult fgv_do_memory_export(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_export_in *in,
			      struct fgv_memory_export_out *out)
{
	struct fgv_object *object = in->memory;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!object->memory.is_shared) {
		status = fgv_sharing_export(&session->sharing, object->memory.gpu,
					    object->memory.bytes, &object->memory.key);
		if (status != CUDA_SUCCESS)
			return status;
		object->memory.is_shared = true;
		fgv_quota_release(&session->quota, &object->charge);
	}
	memcpy(out->key, &object->memory.key, sizeof(object->memory.key));
	return CUDA_SUCCESS;
}

CUresult fgv_do_memory_import(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_import_in *in,
			      struct fgv_memory_import_out *out)
{
	struct fgv_object *object;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS)
		status = fgv_session_add(session, FGV_KIND_MEMORY, 0, &object);
	if (status != CUDA_SUCCESS)
		return status;
	memcpy(&object->memory.key, in->key, sizeof(object->memory.key));
	status = fgv_sharing_import(&session->sharing, &object->memory.key, &object->memory.gpu,
				    &object->memory.bytes);
	if (status != CUDA_SUCCESS) {
		fgv_session_abandon(session, object);
		return status;
	}
	object->memory.is_shared = true;
	out->memory = object->handle;
	out->size = object->memory.bytes;
	return CUDA_SUCCESS;
}
