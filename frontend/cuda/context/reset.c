/*
 * The list of what there is to give back, in its order: what uses something before what is used.
 */
#include "frontend/cuda/context/reset.h"

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/ctx.h"
#include "frontend/cuda/context/limit.h"
#include "frontend/cuda/context/peer.h"
#include "frontend/cuda/graph/exec_host.h"
#include "frontend/cuda/graph/home.h"
#include "frontend/cuda/memory/array.h"
#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/cuda/memory/host.h"
#include "frontend/cuda/memory/ipc.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/memory/texture.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/own.h"
#include "frontend/cuda/stream/remote.h"
#include "frontend/cuda/stream/stream.h"

static void give_back(struct fgv_lane *lane)
{
	fgv_exec_host_drain(lane);
	fgv_home_drain(lane);
	fgv_remote_drain(lane);
	fgv_stream_drain(lane);
	fgv_event_drain(lane);
	fgv_own_drain(lane);
	fgv_texture_drain(lane);
	fgv_array_drain(lane);
	fgv_registry_unload(lane);
	fgv_memory_drain(lane);
	fgv_pool_drain(lane);
	fgv_graph_memory_drain(lane);
	fgv_limit_reset(lane);
	fgv_peer_reset(lane);
}

static CUresult reset(uint32_t device)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device, &lane);

	if (res)
		return fgv_session_reset_dead() ? CUDA_SUCCESS : res;
	res = fgv_sync_device(lane);
	if (!res) {
		give_back(lane);
		res = fgv_sync_device(lane);
	}
	fgv_lane_leave(lane);
	if (res)
		return res;
	fgv_ipc_drain(device);
	fgv_host_drain(device);
	return CUDA_SUCCESS;
}

CUresult fgv_reset_device(void)
{
	CUresult res = fgv_context_need();

	if (res)
		return fgv_session_reset_dead() ? CUDA_SUCCESS : res;
	return reset(fgv_thread_self.device);
}

__attribute__((constructor)) static void start(void)
{
	fgv_ctx_set_last_end(reset);
}
