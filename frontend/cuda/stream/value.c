/*
 * Values: checked here, done by the host.
 */
#include "frontend/cuda/stream/value.h"

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/stream/stream.h"

#define BATCH_MAX 255

/* Where the value lies; *@is_known: this process knows it. */
static CUresult look(const struct fgv_value *value, bool *is_known, bool *is_host)
{
	struct fgv_range_view view = {0};
	enum fgv_range_fit fit;

	if (!value->address || value->address % value->width)
		return CUDA_ERROR_INVALID_VALUE;
	fit = fgv_addrmap_look(value->address, value->width, &view);
	if (fit == FGV_FIT_BEYOND || fgv_range_is_managed(view.kind))
		return CUDA_ERROR_INVALID_VALUE;
	*is_known = fit == FGV_FIT_INSIDE;
	*is_host = *is_known && fgv_range_is_host(view.kind);
	return CUDA_SUCCESS;
}

static CUresult check_wait(const struct fgv_value *value)
{
	bool is_known, is_host;
	CUresult res = look(value, &is_known, &is_host);

	if (!res &&
	    (value->flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR)
		res = CUDA_ERROR_INVALID_VALUE;
	if (res)
		return res;
	if (value->flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return FGV_UNSUPPORTED("waits that flush remote writes");
	return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_write(const struct fgv_value *value, bool *is_known)
{
	bool is_host;

	/* Nor NO_MEMORY_BARRIER, which these forms of the functions do not have any more. */
	if (value->flags != CU_STREAM_WRITE_VALUE_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	return look(value, is_known, &is_host);
}

static CUresult post_wait(struct fgv_lane *lane, const struct fgv_value *value, uint32_t stream)
{
	if (lane->recorder) {
		fgv_recorder_fail(lane->recorder, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return fgv_post_value_wait(lane, value->address, value->value, value->width, value->flags,
				   stream);
}

CUresult fgv_value_wait(const struct fgv_value *value, CUstream stream)
{
	struct fgv_lane *lane;
	uint32_t handle;
	CUresult res = check_wait(value);

	if (!res)
		res = fgv_context_enter_on(fgv_stream_device(stream), &lane);
	if (res)
		return res;
	res = fgv_stream_handle(lane, stream, &handle);
	if (!res)
		res = post_wait(lane, value, handle);
	fgv_lane_leave(lane);
	return res;
}

/* An address that is not known may still be right, which the GPU must say. */
static CUresult post_write(struct fgv_lane *lane, const struct fgv_value *value, bool is_known,
			   uint32_t stream)
{
	CUresult res;

	if (lane->recorder) {
		fgv_recorder_fail(lane->recorder, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	res = fgv_post_value_write(lane, value->address, value->value, value->width, value->flags,
				   stream);
	return res || is_known ? res : fgv_sync_stream(lane, stream);
}

CUresult fgv_value_write(const struct fgv_value *value, CUstream stream)
{
	struct fgv_lane *lane;
	uint32_t handle;
	bool is_known;
	CUresult res = check_write(value, &is_known);

	if (!res)
		res = fgv_context_enter_on(fgv_stream_device(stream), &lane);
	if (res)
		return res;
	res = fgv_stream_handle(lane, stream, &handle);
	if (!res)
		res = post_write(lane, value, is_known, handle);
	fgv_lane_leave(lane);
	return res;
}

/* Both kinds of operations on values have the same members. */
static struct fgv_value value_of(const CUstreamBatchMemOpParams *params, unsigned width)
{
	return (struct fgv_value){
		.address = params->waitValue.address,
		.value = width == 4 ? params->waitValue.value : params->waitValue.value64,
		.width = width,
		.flags = params->waitValue.flags,
	};
}

/* Barriers there are already between all that a stream does. */
static CUresult run(const CUstreamBatchMemOpParams *params, bool check, CUstream stream)
{
	struct fgv_value four = value_of(params, 4), eight = value_of(params, 8);
	bool is_known;

	switch (params->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return check ? check_wait(&four) : fgv_value_wait(&four, stream);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return check ? check_wait(&eight) : fgv_value_wait(&eight, stream);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return check ? check_write(&four, &is_known) : fgv_value_write(&four, stream);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return check ? check_write(&eight, &is_known) : fgv_value_write(&eight, stream);
	case CU_STREAM_MEM_OP_BARRIER:
		return params->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return FGV_UNSUPPORTED("flushing remote writes in a stream");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult fgv_value_batch(const CUstreamBatchMemOpParams *list, unsigned count, unsigned flags,
			 CUstream stream)
{
	CUresult res = CUDA_SUCCESS;

	if (!list || !count || count > BATCH_MAX || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !res; i++)
		res = run(&list[i], true, stream);
	for (unsigned i = 0; i < count && !res; i++)
		res = run(&list[i], false, stream);
	return res;
}
