/*
 * Stream-ordered allocation: from pools, or in streams that are being captured from graphs.
 */
#include "frontend/cuda/stream/ordered.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/stream/capturing.h"
#include "frontend/cuda/stream/stream.h"

/* A stream that is being captured gets a node, whose memory is the graph's and not a pool's. */
static CUresult allocate_on(struct fgv_lane *lane, size_t size, struct fgv_pool *pool,
			    CUstream stream, uint64_t *address)
{
	const struct fgv_capturing *now;
	uint32_t handle;
	CUresult res = fgv_stream_handle(lane, stream, &handle);

	if (res || !size)
		return res;
	now = fgv_capturing_now();
	if (lane->recorder)
		return now ? now->alloc(lane, size, address)
			   : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return fgv_pool_alloc(lane, pool, size, handle, address);
}

CUresult fgv_ordered_alloc(CUdeviceptr *address, size_t bytes, CUmemoryPool name, CUstream stream)
{
	uint32_t device = fgv_stream_device(stream);
	struct fgv_pool *pool = name ? (struct fgv_pool *)name : fgv_pool_current(device);
	struct fgv_lane *lane;
	uint64_t made = 0;
	CUresult res;

	if (!address || !fgv_pool_is_valid(pool))
		return CUDA_ERROR_INVALID_VALUE;
	if (fgv_pool_device(pool) != device)
		return FGV_UNSUPPORTED("allocation in a stream of another device than the pool's");
	res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	res = allocate_on(lane, bytes, pool, stream, &made);
	fgv_lane_leave(lane);
	if (!res)
		*address = made;
	return res;
}

/* What a launch of a graph has left allocated. */
static CUresult release_graphs(struct fgv_lane *lane, uint64_t address, CUstream stream,
			       uint32_t handle)
{
	const struct fgv_graph_place place = {stream, handle};
	CUresult res = fgv_graph_memory_free(address, &place);

	if (!res)
		fgv_graph_memory_sweep(lane);
	return res;
}

/* Of a pool, or cudaMalloc()'s, which goes after all work that was queued before. */
static CUresult release_on(struct fgv_lane *lane, uint64_t address, CUstream stream)
{
	struct fgv_range_view view = {0};
	const struct fgv_capturing *now;
	uint32_t handle;
	CUresult res = fgv_stream_handle(lane, stream, &handle);

	if (res)
		return res;
	now = fgv_capturing_now();
	if (lane->recorder)
		return now ? now->free(lane, address) : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	fgv_addrmap_look(address, 1, &view);
	if (view.kind == FGV_RANGE_GRAPH)
		return release_graphs(lane, address, stream, handle);
	if (!fgv_addrmap_remove(address, FGV_RANGE_MEMORY))
		return fgv_post_mem_free(lane, address);
	return fgv_pool_free(lane, address, handle);
}

CUresult fgv_ordered_free(CUdeviceptr address, CUstream stream)
{
	uint32_t device = fgv_addrmap_device(address);
	struct fgv_lane *lane;
	CUresult res = CUDA_SUCCESS;

	/* Behind the stream, but in another one's order: it is waited for. */
	if (device != fgv_stream_device(stream)) {
		res = fgv_stream_synchronize(stream);
		stream = CU_STREAM_LEGACY;
	}
	if (!res)
		res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	res = release_on(lane, address, stream);
	fgv_lane_leave(lane);
	return res;
}
