/*
 * Entering, and what is known of the device by then.
 */
#include "frontend/cuda/context/context.h"

#include "frontend/client/sync.h"
#include "frontend/cuda/context/ctx.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/pool.h"

#define SCHEDULE_FLAGS (CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD | CU_CTX_SCHED_BLOCKING_SYNC)
#define OTHER_FLAGS    (CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS)

static struct {
	unsigned flags;	       /* atomic */
	uint32_t cache_config; /* atomic */
} said;

CUresult fgv_context_join(void)
{
	CUresult res = fgv_device_learn();

	if (!res)
		res = fgv_ctx_bind();
	fgv_thread_self.is_ready = !res;
	return res;
}

CUresult fgv_context_enter_on(uint32_t ordinal, struct fgv_lane **lane)
{
	const struct fgv_device_info *info;
	CUresult res;

	if (ordinal == fgv_thread_self.device)
		return fgv_context_enter_any(lane);
	*lane = NULL;
	res = fgv_context_find_device((int)ordinal, &info);
	return res ? res : fgv_lane_enter_on(ordinal, lane);
}

CUresult fgv_context_need(void)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (!res)
		fgv_lane_leave(lane);
	return res;
}

CUresult fgv_context_info(const struct fgv_device_info **info)
{
	return fgv_device_know(info);
}

CUresult fgv_context_find_device(int ordinal, const struct fgv_device_info **info)
{
	CUresult res = fgv_context_info(info);

	if (res)
		return res;
	if (ordinal < 0 || (uint32_t)ordinal >= (*info)->devices)
		return CUDA_ERROR_INVALID_DEVICE;
	return fgv_device_know_of((uint32_t)ordinal, info);
}

int fgv_context_get_device(void)
{
	return (int)fgv_thread_self.device;
}

/* Makes a context, so in a forked child, which can have none, it fails. */
CUresult fgv_context_set_device(int ordinal)
{
	const struct fgv_client *client = fgv_session_existing();
	const struct fgv_device_info *info;
	CUresult res = fgv_context_find_device(ordinal, &info);

	if (res)
		return res;
	if (client && fgv_session_status(client) == CUDA_ERROR_NOT_INITIALIZED)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (fgv_session_count() == 1)
		return fgv_ctx_bind();
	return fgv_ctx_bind_to(ordinal);
}

CUresult fgv_context_synchronize(void)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_sync_device(lane);
	if (!res)
		fgv_pool_settle(lane);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_context_set_flags(unsigned flags)
{
	unsigned schedule = flags & CU_CTX_SCHED_MASK;

	if (flags & ~(unsigned)(SCHEDULE_FLAGS | OTHER_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	if (schedule & (schedule - 1))
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&said.flags, flags, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

unsigned fgv_context_get_flags(void)
{
	return __atomic_load_n(&said.flags, __ATOMIC_RELAXED) | CU_CTX_MAP_HOST;
}

bool fgv_context_is_cache_config(CUfunc_cache config)
{
	return config == CU_FUNC_CACHE_PREFER_NONE || config == CU_FUNC_CACHE_PREFER_SHARED ||
	       config == CU_FUNC_CACHE_PREFER_L1 || config == CU_FUNC_CACHE_PREFER_EQUAL;
}

CUresult fgv_context_set_cache_config(CUfunc_cache config)
{
	CUresult res =
		fgv_context_is_cache_config(config) ? fgv_context_need() : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		__atomic_store_n(&said.cache_config, (uint32_t)config, __ATOMIC_RELAXED);
	return res;
}

CUresult fgv_context_get_cache_config(CUfunc_cache *config)
{
	CUresult res = config ? fgv_context_need() : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*config = (CUfunc_cache)__atomic_load_n(&said.cache_config, __ATOMIC_RELAXED);
	return res;
}
