/*
 * The handlers of the operations on boxes and arrays; see handlers.c. What lies outside of
 * an array or of device memory the GPU finds out; here it is checked that a box is no larger
 * than the data that comes or goes with it.
 */
#include "backend/vgpu/session.h"

#include <string.h>
#include "common/texel.h"
#include "common/util.h"

/* Bytes; more than any GPU has. */
#define EXTENT_MAX (1ull << 40)

static struct fgv_gpu_stream *stream_of(const struct fgv_object *object)
{
	return object ? object->stream : NULL;
}

/* Bytes of @box; false where nothing on a GPU could be as large. */
static bool box_bytes(const uint64_t box[3], uint64_t *bytes)
{
	return box[0] <= EXTENT_MAX && !__builtin_mul_overflow(box[0], box[1], bytes) &&
	       !__builtin_mul_overflow(*bytes, box[2], bytes);
}

static CUDA_MEMCPY3D copy_of(const uint64_t box[3])
{
	return (CUDA_MEMCPY3D){.WidthInBytes = box[0], .Height = box[1], .Depth = box[2]};
}

/* Host memory that the GPU sees, where all of the box's rows lie in such; else NULL. */
static void *find_mapped(const struct fgv_session *session, const uint64_t at[3],
			 const CUDA_MEMCPY3D *copy)
{
	uint64_t rows, span;

	if (__builtin_mul_overflow(copy->Depth - 1, at[2], &rows) ||
	    __builtin_add_overflow(rows, copy->Height - 1, &rows) ||
	    __builtin_mul_overflow(rows, at[1], &span) ||
	    __builtin_add_overflow(span, copy->WidthInBytes, &span))
		return NULL;
	return fgv_mapped_find(&session->mapped, at[0], span);
}

/* A mipmapped array is none to copy to or from; its levels are. */
static bool set_source(const struct fgv_session *session, CUDA_MEMCPY3D *copy,
		       const struct fgv_object *array, const uint64_t from[3])
{
	if (!array) {
		copy->srcHost = find_mapped(session, from, copy);
		copy->srcMemoryType = copy->srcHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		copy->srcDevice = from[0];
		copy->srcPitch = from[1];
		copy->srcHeight = from[2];
		return true;
	}
	copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy->srcArray = (CUarray)array->array.gpu;
	copy->srcXInBytes = from[0];
	copy->srcY = from[1];
	copy->srcZ = from[2];
	return !array->array.levels_count;
}

static bool set_destination(const struct fgv_session *session, CUDA_MEMCPY3D *copy,
			    const struct fgv_object *array, const uint64_t to[3])
{
	if (!array) {
		copy->dstHost = find_mapped(session, to, copy);
		copy->dstMemoryType = copy->dstHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		copy->dstDevice = to[0];
		copy->dstPitch = to[1];
		copy->dstHeight = to[2];
		return true;
	}
	copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy->dstArray = (CUarray)array->array.gpu;
	copy->dstXInBytes = to[0];
	copy->dstY = to[1];
	copy->dstZ = to[2];
	return !array->array.levels_count;
}

static void set_host_source(CUDA_MEMCPY3D *copy, const void *data)
{
	copy->srcMemoryType = CU_MEMORYTYPE_HOST;
	copy->srcHost = data;
	copy->srcPitch = copy->WidthInBytes;
	copy->srcHeight = copy->Height;
}

CUresult fgv_do_copy_box(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_copy_box_in *in)
{
	CUDA_MEMCPY3D copy = copy_of(in->box);

	if (!box_bytes(in->box, &request->amount) ||
	    !set_source(session, &copy, in->from_array, in->from) ||
	    !set_destination(session, &copy, in->to_array, in->to))
		return CUDA_ERROR_INVALID_VALUE;
	if (!request->amount)
		return CUDA_SUCCESS;
	return session->gpu->ops->copy_box(session->gpu, &copy, stream_of(in->stream));
}

CUresult fgv_do_box_in(struct fgv_session *session, struct fgv_request *request,
		       const struct fgv_box_in_in *in)
{
	CUDA_MEMCPY3D copy = copy_of(in->box);

	if (!box_bytes(in->box, &request->amount) || request->amount != in->data_len ||
	    in->data_len > FGV_DATA_MAX || !set_destination(session, &copy, in->array, in->to))
		return CUDA_ERROR_INVALID_VALUE;
	if (!request->amount)
		return CUDA_SUCCESS;
	set_host_source(&copy, in->data);
	fgv_account_add(&session->account->bytes_in, in->data_len);
	return session->gpu->ops->box_in(session->gpu, &copy, stream_of(in->stream));
}

CUresult fgv_do_box_in_bulk(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_box_in_bulk_in *in)
{
	struct fgv_gpu_stream *stream = stream_of(in->stream);
	CUDA_MEMCPY3D copy = copy_of(in->box);
	CUresult status;

	if (!box_bytes(in->box, &request->amount) || request->amount != in->data_len ||
	    !request->amount || !fgv_loans_is_free(&session->loans, in->loan) ||
	    !set_destination(session, &copy, in->array, in->to))
		return CUDA_ERROR_INVALID_VALUE;
	set_host_source(&copy, in->data);
	fgv_account_add(&session->account->bytes_in, in->data_len);
	status = session->gpu->ops->copy_box(session->gpu, &copy, stream);
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_loans_add(session, in->loan, in->number, stream);
}

CUresult fgv_do_box_out(struct fgv_session *session, struct fgv_request *request,
			const struct fgv_box_out_in *in)
{
	struct fgv_gpu *gpu = session->gpu;
	CUDA_MEMCPY3D copy = copy_of(in->box);
	struct fgv_gpu_fence *fence;
	CUresult status;

	if (!box_bytes(in->box, &request->amount) || request->amount != in->data_len ||
	    !set_source(session, &copy, in->array, in->from))
		return CUDA_ERROR_INVALID_VALUE;
	if (!request->amount)
		return CUDA_SUCCESS;
	fgv_account_add(&session->account->bytes_out, in->data_len);
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = in->data;
	copy.dstPitch = in->box[0];
	copy.dstHeight = in->box[1];
	status = gpu->ops->copy_box(gpu, &copy, stream_of(in->stream));
	if (status == CUDA_SUCCESS)
		status = gpu->ops->fence(gpu, stream_of(in->stream), &fence);
	if (status != CUDA_SUCCESS)
		return status;
	return fgv_session_await_fence(session, request, fence, 0);
}

/* What the texels of an array take, with its levels; false where it could not exist. */
static bool array_bytes(const struct fgv_array_create_in *in, unsigned texel_bytes, uint64_t *bytes)
{
	*bytes = 0;
	for (unsigned level = 0; level < fgv_max_u64(in->levels, 1); level++) {
		uint64_t size[3], part;

		fgv_texel_level_size(in->size, in->flags, level, size);
		if (!fgv_texel_array_bytes(size, texel_bytes, &part) || part > EXTENT_MAX)
			return false;
		*bytes += part;
	}
	return true;
}

/* Charged is what the GPU says that it takes; the texels are the least. */
static CUresult create(struct fgv_session *session, const struct fgv_array_create_in *in,
		       uint64_t texel_bytes, uint32_t *handle)
{
	const CUDA_ARRAY3D_DESCRIPTOR wanted = {
		.Width = in->size[0],
		.Height = in->size[1],
		.Depth = in->size[2],
		.Format = (CUarray_format)in->format,
		.NumChannels = in->channels,
		.Flags = in->flags,
	};
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_object *array;
	uint64_t bytes = texel_bytes;
	CUresult status = gpu->ops->array_cost(gpu, &wanted, in->levels, &bytes);

	if (status == CUDA_SUCCESS)
		status = fgv_session_add(session, FGV_KIND_ARRAY, fgv_max_u64(bytes, texel_bytes),
					 &array);
	if (status != CUDA_SUCCESS)
		return status;
	status = gpu->ops->array_create(gpu, &wanted, in->levels, &array->array.gpu);
	if (status != CUDA_SUCCESS) {
		fgv_session_abandon(session, array);
		return status;
	}
	array->array.levels_count = in->levels;
	*handle = array->handle;
	return CUDA_SUCCESS;
}

CUresult fgv_do_array_create(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_array_create_in *in, struct fgv_array_create_out *out)
{
	unsigned texel_bytes = fgv_texel_bytes(in->format, in->channels);
	CUresult status = fgv_session_take_deferred(session);
	uint64_t bytes;

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!texel_bytes || !in->size[0] ||
	    in->levels > fgv_texel_levels_max(in->size, in->flags) ||
	    !array_bytes(in, texel_bytes, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return create(session, in, bytes, &out->array);
}

CUresult fgv_do_array_destroy(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_array_destroy_in *in)
{
	(void)request;
	if (!in->array || in->array->array.is_part)
		return CUDA_ERROR_INVALID_HANDLE;
	return fgv_session_remove(session, in->array);
}

CUresult fgv_do_array_level(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_array_level_in *in, struct fgv_array_level_out *out)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_gpu_array *found;
	struct fgv_object *part;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!in->array || in->level >= in->array->array.levels_count)
		return CUDA_ERROR_INVALID_VALUE;
	status = gpu->ops->array_level(gpu, in->array->array.gpu, in->level, &found);
	if (status != CUDA_SUCCESS)
		return status;
	part = fgv_handles_add(&session->handles, FGV_KIND_ARRAY);
	if (!part)
		return CUDA_ERROR_OUT_OF_MEMORY;
	part->array.gpu = found;
	part->array.is_part = true;
	part->array.levels = in->array->array.levels;
	in->array->array.levels = part;
	out->part = part->handle;
	return CUDA_SUCCESS;
}
