/*
 * The list of what there is to give back, in its order: what uses something before what is used.
 */
#include "frontend/cuda/context/reset.h"

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/ctx.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/context/limit.h"
#include "frontend/cuda/graph/exec_host.h"
#include "frontend/cuda/graph/home.h"
#include "frontend/cuda/memory/array.h"
#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/memory/texture.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/own.h"
#include "frontend/cuda/stream/stream.h"

static void give_back(struct fgv_lane *lane)
{
	fgv_exec_host_drain(lane);
	fgv_home_drain(lane);
	fgv_stream_drain(lane);
	fgv_event_drain(lane);
	fgv_own_drain(lane);
	fgv_texture_drain(lane);
	fgv_array_drain(lane);
	fgv_registry_unload(lane);
	fgv_memory_drain(lane);
	fgv_pool_drain(lane);
	fgv_graph_memory_drain(lane);
	fgv_hostmem_drain(lane);
	fgv_limit_reset(lane);
}

CUresult fgv_reset_device(void)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter(&lane);

	if (res)
		return fgv_session_reset_dead() ? CUDA_SUCCESS : res;
	if (fgv_session_count() > 1) {
		fgv_lane_leave(lane);
		return FGV_UNSUPPORTED("giving back what one of several devices has");
	}
	res = fgv_sync_device(lane);
	if (!res) {
		give_back(lane);
		res = fgv_sync_device(lane);
	}
	fgv_lane_leave(lane);
	return res;
}

__attribute__((constructor)) static void start(void)
{
	fgv_ctx_set_last_end(fgv_reset_device);
}
