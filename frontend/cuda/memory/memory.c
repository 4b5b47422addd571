/*
 * Device memory: allocating, freeing, asking.
 */
#include "frontend/cuda/memory/memory.h"

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/devmem.h"
#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/cuda/memory/host.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/stream/capturing.h"

CUresult fgv_memory_alloc(CUdeviceptr *address, size_t bytes)
{
	struct fgv_lane *lane;
	uint64_t made;
	CUresult res;

	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_capturing_check_unsafe();
	if (!res)
		res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	res = fgv_devmem_alloc(lane, bytes, FGV_RANGE_MEMORY, &made);
	fgv_lane_leave(lane);
	if (!res)
		*address = made;
	return res;
}

static CUresult free_graphs(struct fgv_lane *lane, uint64_t address)
{
	CUresult res = fgv_graph_memory_free(address, NULL);

	if (!res)
		fgv_graph_memory_sweep(lane);
	return res;
}

/* The memory goes after the work that uses it, and CUDA waits for all. */
static CUresult free_memory(struct fgv_lane *lane, uint64_t address)
{
	CUresult done = fgv_sync_device_seen(lane);
	CUresult res = fgv_post_mem_free(lane, address);

	return done ? done : res;
}

/*
 * What another stream may yet be using of a pool or a graph is waited for in any case, as that
 * gives it out again.
 */
static CUresult release_on(struct fgv_lane *lane, uint64_t address)
{
	struct fgv_range_view view;
	CUresult res;

	/* Off the map before the host may give the same address to another thread. */
	if (!fgv_addrmap_remove(address, FGV_RANGE_MEMORY))
		return free_memory(lane, address);
	if (fgv_addrmap_look(address, 1, &view) == FGV_FIT_UNKNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	if (view.kind != FGV_RANGE_POOLED && view.kind != FGV_RANGE_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_sync_device(lane);
	if (res)
		return res;
	return view.kind == FGV_RANGE_POOLED ? fgv_pool_free(lane, address, 0)
					     : free_graphs(lane, address);
}

static bool is_managed(uint64_t address)
{
	struct fgv_range_view view;

	return fgv_addrmap_look(address, 1, &view) != FGV_FIT_UNKNOWN &&
	       fgv_range_is_managed(view.kind);
}

CUresult fgv_memory_free(CUdeviceptr address)
{
	struct fgv_lane *lane;
	CUresult res = fgv_capturing_check_unsafe();

	if (!res && is_managed(address))
		return fgv_host_free_managed(address);
	if (!res)
		res = fgv_context_enter_on(fgv_addrmap_device(address), &lane);
	if (res)
		return res;
	if (address)
		res = release_on(lane, address);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_memory_info(size_t *free_bytes, size_t *total_bytes)
{
	struct fgv_lane *lane;
	uint64_t free_now, all;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_call_mem_info(lane, &free_now, &all);
	fgv_lane_leave(lane);
	if (res)
		return res;
	if (free_bytes)
		*free_bytes = free_now;
	if (total_bytes)
		*total_bytes = all;
	return CUDA_SUCCESS;
}

static void free_one(uint64_t address, void *lane)
{
	fgv_post_mem_free(lane, address);
}

void fgv_memory_drain(struct fgv_lane *lane)
{
	fgv_addrmap_drain(lane->client->device, FGV_RANGE_MEMORY, free_one, lane);
}
