/*
 * The handlers of the operations on the device and its memory, and of launches. The
 * arguments have been decoded and bounds-checked (api/host.h); what is checked here is
 * their meaning. What lies in the window changes at the guest's will, so whatever is
 * decided on is copied first.
 *
 * A call that makes something first delivers a deferred failure, so that nothing is made
 * whose name the guest would not learn.
 */
#include "backend/vgpu/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/log.h"
#include "common/util.h"

/*
 * What a device may be able to do, but a session can't: of the guest's memory this process
 * has only what is mapped in both, and there is no operation for it.
 */
static const CUdevice_attribute withheld[] = {
	CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
	CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
	CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,
	CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
};

static struct fgv_gpu_stream *stream_of(const struct fgv_object *object)
{
	return object ? object->stream : NULL;
}

CUresult fgv_do_device_info(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_device_info_in *in)
{
	struct fgv_device_info info;
	CUresult status;

	(void)request;
	if (in->device != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (in->info_len < sizeof(info))
		return CUDA_ERROR_INVALID_VALUE;
	status = session->gpu->ops->info(session->gpu, &info);
	if (status != CUDA_SUCCESS)
		return status;
	info.devices = 1;
	info.memory_bytes = fgv_min_u64(info.memory_bytes, session->allowance->memory_bytes);
	if (session->setup.sms)
		info.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] =
			(int)session->setup.sms;
	for (unsigned i = 0; i < FGV_ARRAY_LEN(withheld); i++)
		info.attributes[withheld[i]] = 0;
	info.attributes[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] = session->sharing.keeper != NULL;
	memcpy(in->info, &info, sizeof(info));
	return CUDA_SUCCESS;
}

/* Of memory that may move or of the driver's own. @bytes as allocated. */
static CUresult take_memory(struct fgv_session *session, uint64_t bytes, uint64_t *address)
{
	if (fgv_pieces_are_used(&session->pieces))
		return fgv_pieces_alloc(&session->pieces, bytes, address);
	return session->gpu->ops->mem_alloc(session->gpu, bytes, address);
}

static CUresult give_memory(struct fgv_session *session, uint64_t address, uint64_t bytes,
			    uint64_t charged)
{
	if (fgv_pieces_are_used(&session->pieces))
		return fgv_pieces_free(&session->pieces, address, bytes, charged);
	return session->gpu->ops->mem_free(session->gpu, address, bytes, charged);
}

/* Work is about to use this memory; other work than copies and fills may use all. */
static CUresult touch(struct fgv_session *session, uint64_t address, uint64_t bytes)
{
	if (!session->pieces.missing)
		return CUDA_SUCCESS;
	return fgv_freezer_touch(session, address, bytes);
}

/* Allocates, where the VM has room for it wherever it will lie. */
static CUresult allocate(struct fgv_session *session, uint64_t bytes, struct fgv_charge *ahead,
			 uint64_t *address)
{
	CUresult status = take_memory(session, bytes, address);

	fgv_quota_release(&session->quota, ahead);
	if (status != CUDA_SUCCESS)
		return status;
	if (fgv_quota_add(&session->quota, *address, bytes) < 0) {
		give_memory(session, *address, bytes, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult fgv_do_mem_alloc(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_mem_alloc_in *in, struct fgv_mem_alloc_out *out)
{
	CUresult status = fgv_session_take_deferred(session);
	struct fgv_charge ahead = {0};

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (in->size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* Not more than a few blocks can be taken that the VM then proves to have no room for. */
	if (fgv_quota_reserve(&session->quota, &ahead, in->size) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return allocate(session, in->size, &ahead, &out->address);
}

CUresult fgv_do_mem_free(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_mem_free_in *in)
{
	uint64_t bytes, charged;

	(void)request;
	if (fgv_quota_remove(&session->quota, in->address, &bytes, &charged) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	return give_memory(session, in->address, bytes, charged);
}

CUresult fgv_do_mem_info(struct fgv_session *session, struct fgv_request *request,
			 struct fgv_mem_info_out *out)
{
	uint64_t free_bytes, total_bytes;
	CUresult status = session->gpu->ops->mem_info(session->gpu, &free_bytes, &total_bytes);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	/* What an ending session has can be had: a request for it waits (room.h). */
	free_bytes = fgv_min_u64(free_bytes + fgv_quota_returning(&session->quota), total_bytes);
	/* As can what others have of a GPU that is over-committed. */
	if (fgv_freezer_may_wait(session))
		free_bytes = total_bytes;
	out->free = fgv_min_u64(free_bytes, fgv_quota_left(&session->quota));
	out->total = fgv_min_u64(total_bytes, session->allowance->memory_bytes);
	return CUDA_SUCCESS;
}

CUresult fgv_do_host_atomics(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_host_atomics_in *in, struct fgv_host_atomics_out *out)
{
	(void)request;
	if (in->operation >= CU_ATOMIC_OPERATION_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return session->gpu->ops->host_atomics(session->gpu, (CUatomicOperation)in->operation,
					       &out->capabilities);
}

CUresult fgv_do_copy_in(struct fgv_session *session, struct fgv_request *request,
			const struct fgv_copy_in_in *in)
{
	CUresult status;

	if (in->data_len == 0)
		return CUDA_SUCCESS;
	if (in->data_len > FGV_DATA_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	status = touch(session, in->address, in->data_len);
	if (status != CUDA_SUCCESS)
		return status;
	request->amount = in->data_len;
	fgv_account_add(&session->account->bytes_in, in->data_len);
	return session->gpu->ops->copy_in(session->gpu, in->address, in->data, in->data_len,
					  stream_of(in->stream));
}

CUresult fgv_do_copy_in_bulk(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_copy_in_bulk_in *in)
{
	struct fgv_gpu_stream *stream = stream_of(in->stream);
	CUresult status;

	if (in->data_len == 0 || !fgv_loans_is_free(&session->loans, in->loan))
		return CUDA_ERROR_INVALID_VALUE;
	status = touch(session, in->address, in->data_len);
	if (status != CUDA_SUCCESS)
		return status;
	request->amount = in->data_len;
	fgv_account_add(&session->account->bytes_in, in->data_len);
	status = session->gpu->ops->copy_in_bulk(session->gpu, in->address, in->data, in->data_len,
						 stream);
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_loans_add(session, in->loan, in->number, stream);
}

CUresult fgv_do_copy_out(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_copy_out_in *in)
{
	struct fgv_gpu_stream *stream = stream_of(in->stream);
	struct fgv_gpu_fence *fence;
	CUresult status;

	if (in->data_len == 0)
		return CUDA_SUCCESS;
	status = touch(session, in->address, in->data_len);
	if (status != CUDA_SUCCESS)
		return status;
	request->amount = in->data_len;
	fgv_account_add(&session->account->bytes_out, in->data_len);
	status = session->gpu->ops->copy_out(session->gpu, in->data, in->address, in->data_len,
					     stream);
	if (status == CUDA_SUCCESS)
		status = session->gpu->ops->fence(session->gpu, stream, &fence);
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_session_await_fence(session, request, fence, 0);
}

/* Host memory is named to the GPU as such; for it there are faster ways than between places on it.
 */
CUresult fgv_do_copy_device(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_copy_device_in *in)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	struct fgv_gpu_stream *stream = stream_of(in->stream);
	const void *from = fgv_mapped_find(&session->mapped, in->from, in->size);
	void *to = fgv_mapped_find(&session->mapped, in->to, in->size);
	CUresult status;

	if (in->size == 0)
		return CUDA_SUCCESS;
	status = touch(session, in->from, in->size);
	if (status == CUDA_SUCCESS)
		status = touch(session, in->to, in->size);
	if (status != CUDA_SUCCESS)
		return status;
	request->amount = in->size;
	if (from && !to)
		fgv_account_add(&session->account->bytes_in, in->size);
	if (to && !from)
		fgv_account_add(&session->account->bytes_out, in->size);
	if (from && !to)
		return ops->copy_in_bulk(session->gpu, in->to, from, in->size, stream);
	if (to && !from)
		return ops->copy_out(session->gpu, to, in->from, in->size, stream);
	return ops->copy_device(session->gpu, in->to, in->from, in->size, stream);
}

CUresult fgv_do_fill(struct fgv_session *session, struct fgv_request *request,
		     const struct fgv_fill_in *in)
{
	CUresult status;

	if ((in->width != 1 && in->width != 2 && in->width != 4) ||
	    in->count > UINT64_MAX / in->width)
		return CUDA_ERROR_INVALID_VALUE;
	if (in->count == 0)
		return CUDA_SUCCESS;
	status = touch(session, in->address, in->count * in->width);
	if (status != CUDA_SUCCESS)
		return status;
	request->amount = in->count * in->width;
	return session->gpu->ops->fill(session->gpu, in->address, in->value, in->width, in->count,
				       stream_of(in->stream));
}

CUresult fgv_do_fill_rows(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_fill_rows_in *in)
{
	uint64_t bytes;
	CUresult status;

	if (in->width > in->pitch)
		return CUDA_ERROR_INVALID_VALUE;
	if (in->width == 0 || in->height == 0)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(in->pitch, in->height, &bytes))
		bytes = UINT64_MAX;
	status = touch(session, in->address, bytes);
	if (status != CUDA_SUCCESS)
		return status;
	request->amount = in->width * in->height;
	return session->gpu->ops->fill_rows(session->gpu, in->address, in->pitch,
					    (uint8_t)in->value, in->width, in->height,
					    stream_of(in->stream));
}

/* Wraps around where the launch will be refused. */
/* What is launched: all kinds of launches are checked and counted alike. */
struct launch {
	const struct fgv_object *function;
	const uint32_t *grid, *block;
	const void *args;
	uint32_t args_len, param_count;
};

#define LAUNCH_OF(in)                                                                              \
	(&(struct launch){                                                                         \
		.function = (in)->function,                                                        \
		.grid = (in)->grid,                                                                \
		.block = (in)->block,                                                              \
		.args = (in)->args,                                                                \
		.args_len = (in)->args_len,                                                        \
		.param_count = (in)->param_count,                                                  \
	})

/*
 * Checks the arguments of a launch, points session->params at them, and says how much it is.
 * Inline: then @in is not put together.
 */
static inline __attribute__((always_inline)) CUresult
begin_launch(struct fgv_session *session, struct fgv_request *request, const struct launch *in)
{
	const struct fgv_object *function = in->function;
	const uint8_t *arg = in->args;

	if (function->function.local_bytes > session->local_bytes) {
		CUresult status = fgv_session_grow_local(session, function->function.local_bytes);

		if (status != CUDA_SUCCESS)
			return status;
	}
	if (!request->is_again)
		fgv_account_add(&session->account->launches, 1);
	if (in->param_count != function->function.param_count ||
	    in->args_len != function->function.args_len)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < in->param_count; i++) {
		session->params[i] = (void *)arg;
		arg += fgv_align_up(function->function.param_sizes[i], 8);
	}
	request->subject = function->handle;
	request->amount = fgv_extent(in->grid) * fgv_extent(in->block);
	return CUDA_SUCCESS;
}

CUresult fgv_do_launch(struct fgv_session *session, struct fgv_request *request,
		       const struct fgv_launch_in *in)
{
	CUresult status = begin_launch(session, request, LAUNCH_OF(in));

	if (status != CUDA_SUCCESS)
		return status;
	if (in->function->function.sliced)
		return fgv_slices_launch(session, request, in);
	return fgv_batch_launch(session, in->function, in->grid, in->block, in->shared_bytes,
				in->stream);
}

CUresult fgv_do_launch_cooperative(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_launch_cooperative_in *in)
{
	CUresult status = begin_launch(session, request, LAUNCH_OF(in));

	if (status != CUDA_SUCCESS)
		return status;
	fgv_slices_pass(session, in->function, in->grid, in->block, "its blocks run all at once");
	return session->gpu->ops->launch_cooperative(session->gpu, in->function->function.gpu,
						     in->grid, in->block, in->shared_bytes,
						     stream_of(in->stream), session->params);
}

/* How a guest wants its blocks grouped, as far as this GPU can do so at all. */
static CUresult read_clusters(const struct fgv_session *session, const uint32_t size[3],
			      uint32_t any_size, uint32_t policy, struct fgv_gpu_clusters *how)
{
	if (!session->gpu->ops->launch_clusters)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (policy > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
		return CUDA_ERROR_INVALID_VALUE;
	*how = (struct fgv_gpu_clusters){
		.size = {size[0], size[1], size[2]},
		.any_size = any_size,
		.policy = (CUclusterSchedulingPolicy)policy,
	};
	return CUDA_SUCCESS;
}

CUresult fgv_do_launch_clusters(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_launch_clusters_in *in)
{
	struct fgv_gpu_clusters how;
	CUresult status = read_clusters(session, in->cluster, in->any_size, in->policy, &how);

	if (status == CUDA_SUCCESS)
		status = begin_launch(session, request, LAUNCH_OF(in));
	if (status != CUDA_SUCCESS)
		return status;
	how.cooperative = in->cooperative;
	fgv_slices_pass(session, in->function, in->grid, in->block, "its blocks run in clusters");
	return session->gpu->ops->launch_clusters(session->gpu, in->function->function.gpu,
						  in->grid, in->block, in->shared_bytes,
						  stream_of(in->stream), &how, session->params);
}

CUresult fgv_do_clusters_active(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_clusters_active_in *in,
				struct fgv_clusters_active_out *out)
{
	struct fgv_gpu_clusters how;
	CUresult status = read_clusters(session, in->cluster, in->any_size, in->policy, &how);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	return session->gpu->ops->clusters_active(session->gpu, in->function->function.gpu,
						  in->grid, in->block, in->shared_bytes, &how,
						  &out->count);
}

CUresult fgv_do_clusters_largest(struct fgv_session *session, struct fgv_request *request,
				 const struct fgv_clusters_largest_in *in,
				 struct fgv_clusters_largest_out *out)
{
	(void)request;
	if (!session->gpu->ops->clusters_largest)
		return CUDA_ERROR_NOT_SUPPORTED;
	return session->gpu->ops->clusters_largest(session->gpu, in->function->function.gpu,
						   in->grid, in->block, in->shared_bytes,
						   in->any_size, &out->size);
}
