/*
 * The handlers of the operations that look for something in a module: a kernel, which they
 * describe, or a variable.
 */
#include "backend/vgpu/handlers_module.h"

#include <stdlib.h>
#include <string.h>
#include "common/util.h"

/* The name is the message's end, behind which the dispatcher has put a NUL. */
static const char *name_of(const void *name, uint32_t len)
{
	return len > 0 && strlen(name) == len ? name : NULL;
}

/*
 * Asks for the sizes of the parameters of @function, which has none of them yet. They are kept
 * for each handle that the guest asks for, and all together are bounded.
 */
static CUresult read_params(struct fgv_session *session, struct fgv_object *function)
{
	uint64_t left = FGV_PARAM_SIZES_MAX - session->param_sizes_bytes;
	struct fgv_gpu *gpu = session->gpu;
	uint32_t count = 0, offset, bytes, *sizes = NULL;
	CUresult status;

	while ((status = gpu->ops->function_param(gpu, function->function.gpu, count, &offset,
						  &bytes)) == CUDA_SUCCESS) {
		uint32_t *grown = NULL;

		if (count < FGV_PARAMS_MAX && (count + 1) * sizeof(*sizes) <= left &&
		    bytes <= FGV_DATA_MAX - function->function.args_len)
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
	session->param_sizes_bytes += count * sizeof(*sizes);
	return status == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : status;
}

/* Without it, it could not be charged for. */
static CUresult read_local(struct fgv_gpu *gpu, struct fgv_object *function)
{
	int bytes = 0;
	CUresult status = gpu->ops->function_attribute(gpu, function->function.gpu,
						       CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &bytes);

	function->function.local_bytes = bytes > 0 ? (uint32_t)bytes : 0;
	return status;
}

static CUresult write_offsets(struct fgv_gpu *gpu, const struct fgv_object *function, uint8_t *to)
{
	CUresult status = CUDA_SUCCESS;
	uint32_t offset = 0, bytes;

	for (uint32_t i = 0; i < function->function.param_count && status == CUDA_SUCCESS; i++) {
		status = gpu->ops->function_param(gpu, function->function.gpu, i, &offset, &bytes);
		memcpy(to + i * sizeof(offset), &offset, sizeof(offset));
	}
	return status;
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

	if (info_len < sizeof(head) + 2 * sizes_len)
		return CUDA_ERROR_INVALID_VALUE;
	/* What a driver does not know stays 0. */
	for (int i = 0; i < FGV_FUNCTION_ATTRIBUTES; i++)
		gpu->ops->function_attribute(gpu, function->function.gpu, (CUfunction_attribute)i,
					     &head.attributes[i]);
	memcpy(info, &head, sizeof(head));
	if (sizes_len > 0)
		memcpy(info + sizeof(head), function->function.param_sizes, sizes_len);
	*len = (uint32_t)(sizeof(head) + 2 * sizes_len);
	return write_offsets(gpu, function, info + sizeof(head) + sizes_len);
}

CUresult fgv_function_open(struct fgv_session *session, struct fgv_object *module, const char *name,
			   uint8_t *info, uint64_t info_len, uint32_t *len,
			   struct fgv_object **function)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_gpu_function *found;
	struct fgv_object *object;
	CUresult status = gpu->ops->module_function(gpu, module->module.gpu, name, &found);

	if (status != CUDA_SUCCESS)
		return status;
	object = fgv_handles_add(&session->handles, FGV_KIND_FUNCTION);
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->function.gpu = found;
	status = read_params(session, object);
	if (status == CUDA_SUCCESS)
		status = read_local(gpu, object);
	if (status == CUDA_SUCCESS)
		status = fgv_slices_open(session, object, name);
	if (status == CUDA_SUCCESS)
		status = write_info(gpu, object, info, info_len, len);
	if (status != CUDA_SUCCESS) {
		fgv_session_remove(session, object);
		return status;
	}
	object->function.module = module;
	object->function.content = fgv_kernels_name(module->module.content, name);
	object->function.next = module->module.functions;
	module->module.functions = object;
	*function = object;
	return CUDA_SUCCESS;
}

CUresult fgv_do_function_get(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_function_get_in *in, struct fgv_function_get_out *out)
{
	const char *name = name_of(in->name, in->name_len);
	CUresult status = fgv_session_take_deferred(session);
	struct fgv_object *function;

	(void)request;
	if (status == CUDA_SUCCESS && !name)
		status = CUDA_ERROR_NOT_FOUND;
	if (status != CUDA_SUCCESS)
		return status;
	status = fgv_function_open(session, in->module, name, in->info, in->info_len,
				   &out->info_len, &function);
	if (status == CUDA_SUCCESS)
		out->function = function->handle;
	return status;
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
