/*
 * What CUDA says about a bad pointer is found out here, from the address map, so that the
 * operation can be posted. An address that the map does not know may still be right (addrmap.h):
 * then the GPU is asked, by waiting.
 */
#include "frontend/cuda/memory/fill.h"

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/vmem.h"
#include "frontend/cuda/stream/stream.h"

/* Rows of larger elements have no operation of their own. */
static CUresult post_rows(struct fgv_lane *lane, const struct fgv_fill *fill, uint32_t stream)
{
	CUresult res = CUDA_SUCCESS;

	for (size_t i = 0; i < fill->rows && !res; i++)
		res = fgv_post_fill(lane, fill->address + i * fill->pitch, fill->count, fill->value,
				    fill->element, stream);
	return res;
}

static CUresult post(struct fgv_lane *lane, const struct fgv_fill *fill, uint32_t stream)
{
	if (fill->rows == 1 || fill->element > 1)
		return post_rows(lane, fill, stream);
	return fgv_post_fill_rows(lane, fill->address, fill->pitch, fill->count, fill->rows,
				  fill->value, stream);
}

/* Bytes from the first element to behind the last. False: too many, or rows overlap. */
static bool measure(const struct fgv_fill *fill, uint64_t *span)
{
	uint64_t width;

	return !__builtin_mul_overflow(fill->count, fill->element, &width) &&
	       width <= fill->pitch && fill->pitch % fill->element == 0 &&
	       fill->address % fill->element == 0 &&
	       !__builtin_mul_overflow(fill->pitch, fill->rows - 1, span) &&
	       !__builtin_add_overflow(*span, width, span);
}

static CUresult fill_on(struct fgv_lane *lane, const struct fgv_fill *fill, uint64_t span,
			CUstream stream, bool wait)
{
	struct fgv_range_view view = {0};
	enum fgv_range_fit fit = fgv_addrmap_look(fill->address, span, &view);
	uint32_t handle;
	CUresult res = fgv_stream_handle(lane, stream, &handle);

	if (!res && (!fill->address || fit == FGV_FIT_BEYOND))
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		res = post(lane, fill, handle);
	if (res || lane->recorder)
		return res;
	if (fit == FGV_FIT_UNKNOWN || (wait && fgv_range_is_host(view.kind)))
		res = fgv_sync_stream(lane, handle);
	return res;
}

/*
 * Which device does it for a stream of @device. What is shown to all devices is where the stream
 * is; managed variables are the first one's.
 */
static uint32_t device_for(uint64_t address, uint32_t device)
{
	struct fgv_range_view view;

	if (fgv_addrmap_look(address, 1, &view) == FGV_FIT_UNKNOWN)
		return device;
	if (fgv_range_is_host(view.kind) && view.kind != FGV_RANGE_MANAGED_VARIABLE)
		return device;
	if (view.kind == FGV_RANGE_MAPPED)
		return fgv_vmem_user(address, device);
	return fgv_addrmap_device(address);
}

/* Memory of another device than the stream's: behind what the stream has, and done on return. */
static CUresult fill_elsewhere(const struct fgv_fill *fill, uint64_t span, uint32_t device,
			       CUstream stream)
{
	struct fgv_lane *lane;
	CUresult res = fgv_stream_synchronize(stream);

	if (!res)
		res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	res = fill_on(lane, fill, span, CU_STREAM_LEGACY, false);
	if (!res)
		res = fgv_sync_stream(lane, 0);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_fill_run(const struct fgv_fill *fill, CUstream stream, bool wait)
{
	uint32_t device = fgv_stream_device(stream), there;
	struct fgv_lane *lane;
	uint64_t span;
	CUresult res;

	if (!fill->count || !fill->rows)
		return CUDA_SUCCESS;
	if (!measure(fill, &span))
		return CUDA_ERROR_INVALID_VALUE;
	there = fgv_session_count() > 1 ? device_for(fill->address, device) : device;
	if (there != device)
		return fill_elsewhere(fill, span, there, stream);
	res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	res = fill_on(lane, fill, span, stream, wait);
	fgv_lane_leave(lane);
	return res;
}
