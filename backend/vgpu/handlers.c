/*
 * The handlers of the operations on the device, its memory and its modules. The
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
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
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
	info.memory_bytes = fgv_min_u64(info.memory_bytes, session->accounts->quota_bytes);
	for (unsigned i = 0; i < FGV_ARRAY_LEN(withheld); i++)
		info.attributes[withheld[i]] = 0;
	memcpy(in->info, &info, sizeof(info));
	return CUDA_SUCCESS;
}

/* Allocates what has been charged to the VM. */
static CUresult allocate(struct fgv_session *session, uint64_t bytes, uint64_t *address)
{
	struct fgv_gpu *gpu = session->gpu;
	CUresult status = gpu->ops->mem_alloc(gpu, bytes, address);

	if (status != CUDA_SUCCESS)
		return status;
	if (fgv_quota_add(&session->quota, *address, bytes) < 0) {
		gpu->ops->mem_free(gpu, *address, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult fgv_do_mem_alloc(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_mem_alloc_in *in, struct fgv_mem_alloc_out *out)
{
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (in->size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (fgv_quota_take(&session->quota, in->size) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = allocate(session, in->size, &out->address);
	if (status != CUDA_SUCCESS)
		fgv_quota_give(&session->quota, in->size);
	return status;
}

CUresult fgv_do_mem_free(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_mem_free_in *in)
{
	uint64_t bytes;

	(void)request;
	if (fgv_quota_remove(&session->quota, in->address, &bytes) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	return session->gpu->ops->mem_free(session->gpu, in->address, bytes);
}

CUresult fgv_do_mem_info(struct fgv_session *session, struct fgv_request *request,
			 struct fgv_mem_info_out *out)
{
	uint64_t free_bytes, total_bytes;
	CUresult status = session->gpu->ops->mem_info(session->gpu, &free_bytes, &total_bytes);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	out->free = fgv_min_u64(free_bytes, fgv_quota_left(&session->quota));
	out->total = fgv_min_u64(total_bytes, session->accounts->quota_bytes);
	return CUDA_SUCCESS;
}

CUresult fgv_do_copy_in(struct fgv_session *session, struct fgv_request *request,
			const struct fgv_copy_in_in *in)
{
	if (in->data_len == 0)
		return CUDA_SUCCESS;
	if (in->data_len > FGV_DATA_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	request->amount = in->data_len;
	return session->gpu->ops->copy_in(session->gpu, in->address, in->data, in->data_len,
					  stream_of(in->stream));
}

/* Replies to a copy, which was queued with @status, when it is done. */
static CUresult await_copy(struct fgv_session *session, const struct fgv_request *request,
			   CUresult status, struct fgv_gpu_stream *stream)
{
	struct fgv_gpu_fence *fence;

	if (status == CUDA_SUCCESS)
		status = session->gpu->ops->fence(session->gpu, stream, &fence);
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_session_await_fence(session, request, fence, 0);
}

CUresult fgv_do_copy_in_bulk(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_copy_in_bulk_in *in)
{
	struct fgv_gpu_stream *stream = stream_of(in->stream);
	CUresult status;

	if (in->data_len == 0)
		return CUDA_SUCCESS;
	request->amount = in->data_len;
	status = session->gpu->ops->copy_in_bulk(session->gpu, in->address, in->data, in->data_len,
						 stream);
	return await_copy(session, request, status, stream);
}

CUresult fgv_do_copy_out(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_copy_out_in *in)
{
	struct fgv_gpu_stream *stream = stream_of(in->stream);
	CUresult status;

	if (in->data_len == 0)
		return CUDA_SUCCESS;
	request->amount = in->data_len;
	status = session->gpu->ops->copy_out(session->gpu, in->data, in->address, in->data_len,
					     stream);
	return await_copy(session, request, status, stream);
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

	if (in->size == 0)
		return CUDA_SUCCESS;
	request->amount = in->size;
	if (from && !to)
		return ops->copy_in_bulk(session->gpu, in->to, from, in->size, stream);
	if (to && !from)
		return ops->copy_out(session->gpu, to, in->from, in->size, stream);
	return ops->copy_device(session->gpu, in->to, in->from, in->size, stream);
}

CUresult fgv_do_fill(struct fgv_session *session, struct fgv_request *request,
		     const struct fgv_fill_in *in)
{
	if ((in->width != 1 && in->width != 2 && in->width != 4) ||
	    in->count > UINT64_MAX / in->width)
		return CUDA_ERROR_INVALID_VALUE;
	if (in->count == 0)
		return CUDA_SUCCESS;
	request->amount = in->count * in->width;
	return session->gpu->ops->fill(session->gpu, in->address, in->value, in->width, in->count,
				       stream_of(in->stream));
}

CUresult fgv_do_fill_rows(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_fill_rows_in *in)
{
	if (in->width > in->pitch)
		return CUDA_ERROR_INVALID_VALUE;
	if (in->width == 0 || in->height == 0)
		return CUDA_SUCCESS;
	request->amount = in->width * in->height;
	return session->gpu->ops->fill_rows(session->gpu, in->address, in->pitch,
					    (uint8_t)in->value, in->width, in->height,
					    stream_of(in->stream));
}

/* Loads a private copy of an image as a new object. */
static CUresult load(struct fgv_session *session, const void *image, size_t len,
		     struct fgv_object **module)
{
	struct fgv_gpu_module *loaded;
	struct fgv_object *object;
	char log[512] = "";
	CUresult status =
		session->gpu->ops->module_load(session->gpu, image, len, log, sizeof(log), &loaded);

	if (status != CUDA_SUCCESS) {
		if (*log && session->complaints++ < FGV_COMPLAINTS_MAX)
			fgv_warning(FGV_SESSION_FORMAT ": a module does not load: %s",
				    FGV_SESSION_ARGS(session), log);
		return status;
	}
	object = fgv_handles_add(&session->handles, FGV_KIND_MODULE);
	if (!object) {
		session->gpu->ops->module_unload(session->gpu, loaded);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	object->module.gpu = loaded;
	object->module.image_bytes = len;
	session->image_bytes += len;
	*module = object;
	return CUDA_SUCCESS;
}

CUresult fgv_do_module_load(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_module_load_in *in, struct fgv_module_load_out *out)
{
	struct fgv_object *module;
	CUresult status = fgv_session_take_deferred(session);
	void *image;

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (in->image_len > FGV_IMAGE_MAX || in->image_len > FGV_IMAGES_MAX - session->image_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	image = malloc(in->image_len + 1);
	if (!image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(image, in->image, in->image_len);
	status = load(session, image, in->image_len, &module);
	free(image);
	if (status == CUDA_SUCCESS)
		out->module = module->handle;
	return status;
}

CUresult fgv_do_module_unload(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_module_unload_in *in)
{
	(void)request;
	return fgv_session_remove(session, in->module);
}

/* The name is the message's end, behind which the dispatcher has put a NUL. */
static const char *name_of(const void *name, uint32_t len)
{
	return len > 0 && strlen(name) == len ? name : NULL;
}

/* Asks for the sizes of the parameters of @function, which has none of them yet. */
static CUresult read_params(struct fgv_gpu *gpu, struct fgv_object *function)
{
	uint32_t count = 0, bytes, *sizes = NULL;
	CUresult status;

	while ((status = gpu->ops->function_param(gpu, function->function.gpu, count, &bytes)) ==
	       CUDA_SUCCESS) {
		uint32_t *grown = NULL;

		if (count < FGV_PARAMS_MAX && bytes <= FGV_DATA_MAX - function->function.args_len)
			grown = realloc(sizes, (count + 1) * sizeof(*sizes));
		if (!grown) {
			free(sizes);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		sizes = grown;
		sizes[count++] = bytes;
		function->function.args_len += (uint32_t)fgv_align_up(bytes, 8);
	}
	function->function.param_sizes = sizes;
	function->function.param_count = count;
	return status == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : status;
}

/* Writes struct fgv_function_info to the guest's @info; *len is what it takes. */
static CUresult write_info(struct fgv_gpu *gpu, const struct fgv_object *function, uint8_t *info,
			   uint64_t info_len, uint32_t *len)
{
	struct fgv_function_info head = {
		.param_count = function->function.param_count,
		.param_bytes = function->function.args_len,
	};
	size_t sizes_len = head.param_count * sizeof(uint32_t);

	if (info_len < sizeof(head) + sizes_len)
		return CUDA_ERROR_INVALID_VALUE;
	/* What a driver does not know yet stays 0. */
	for (int i = 0; i < FGV_FUNCTION_ATTRIBUTES; i++)
		gpu->ops->function_attribute(gpu, function->function.gpu, (CUfunction_attribute)i,
					     &head.attributes[i]);
	memcpy(info, &head, sizeof(head));
	if (sizes_len > 0)
		memcpy(info + sizeof(head), function->function.param_sizes, sizes_len);
	*len = (uint32_t)(sizeof(head) + sizes_len);
	return CUDA_SUCCESS;
}

CUresult fgv_do_function_get(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_function_get_in *in, struct fgv_function_get_out *out)
{
	const char *name = name_of(in->name, in->name_len);
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_gpu_function *found;
	struct fgv_object *object;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS && !name)
		status = CUDA_ERROR_NOT_FOUND;
	if (status == CUDA_SUCCESS)
		status = gpu->ops->module_function(gpu, in->module->module.gpu, name, &found);
	if (status != CUDA_SUCCESS)
		return status;
	object = fgv_handles_add(&session->handles, FGV_KIND_FUNCTION);
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->function.gpu = found;
	status = read_params(gpu, object);
	if (status == CUDA_SUCCESS)
		status = write_info(gpu, object, in->info, in->info_len, &out->info_len);
	if (status != CUDA_SUCCESS) {
		fgv_session_remove(session, object);
		return status;
	}
	object->function.next = in->module->module.functions;
	in->module->module.functions = object;
	out->function = object->handle;
	return CUDA_SUCCESS;
}

CUresult fgv_do_global_get(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_global_get_in *in, struct fgv_global_get_out *out)
{
	const char *name = name_of(in->name, in->name_len);

	(void)request;
	if (!name)
		return CUDA_ERROR_NOT_FOUND;
	return session->gpu->ops->module_global(session->gpu, in->module->module.gpu, name,
						&out->address, &out->size);
}

/* Wraps around where the launch will be refused. */
static uint64_t threads(const uint32_t extent[3])
{
	return (uint64_t)extent[0] * extent[1] * extent[2];
}

/* Checks the arguments of a launch, points session->params at them, and says how much it is. */
static CUresult begin_launch(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_launch_in *in)
{
	const struct fgv_object *function = in->function;
	const uint8_t *arg = in->args;

	fgv_account_add(&session->account->launches, 1);
	if (in->param_count != function->function.param_count ||
	    in->args_len != function->function.args_len)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < in->param_count; i++) {
		session->params[i] = (void *)arg;
		arg += fgv_align_up(function->function.param_sizes[i], 8);
	}
	request->subject = function->handle;
	request->amount = threads(in->grid) * threads(in->block);
	return CUDA_SUCCESS;
}

CUresult fgv_do_launch(struct fgv_session *session, struct fgv_request *request,
		       const struct fgv_launch_in *in)
{
	CUresult status = begin_launch(session, request, in);

	if (status != CUDA_SUCCESS)
		return status;
	return session->gpu->ops->launch(session->gpu, in->function->function.gpu, in->grid,
					 in->block, in->shared_bytes, stream_of(in->stream),
					 session->params);
}

CUresult fgv_do_launch_cooperative(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_launch_cooperative_in *in)
{
	const struct fgv_launch_in plain = {
		.function = in->function,
		.param_count = in->param_count,
		.args = in->args,
		.args_len = in->args_len,
		.grid = {in->grid[0], in->grid[1], in->grid[2]},
		.block = {in->block[0], in->block[1], in->block[2]},
	};
	CUresult status = begin_launch(session, request, &plain);

	if (status != CUDA_SUCCESS)
		return status;
	return session->gpu->ops->launch_cooperative(
		session->gpu, in->function->function.gpu, in->grid, in->block, in->shared_bytes,
		stream_of(in->stream), session->params);
}
