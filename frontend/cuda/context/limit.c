/*
 * Limits of the context. The host asks the GPU, and charges the VM for what they take. What
 * one was before it was first set is remembered, as resetting the device sets it back.
 */
#include "frontend/cuda/context/limit.h"

#include <pthread.h>

#include "frontend/cuda/context/context.h"

CUresult fgv_limit_get(CUlimit limit, size_t *value)
{
	struct fgv_lane *lane;
	uint64_t got = 0;
	CUresult res;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter(&lane);
	if (res)
		return res;
	res = fgv_call_limit_get(lane, (uint32_t)limit, &got);
	fgv_lane_leave(lane);
	if (!res)
		*value = got;
	return res;
}

#define LIMITS 16 /* more than there are */

static struct {
	pthread_mutex_t mutex;
	bool is_set[LIMITS];
	uint64_t before[LIMITS];
} limits = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static CUresult set_locked(struct fgv_lane *lane, uint32_t limit, uint64_t value)
{
	bool is_first = limit < LIMITS && !limits.is_set[limit];
	CUresult res = CUDA_SUCCESS;

	if (is_first)
		res = fgv_call_limit_get(lane, limit, &limits.before[limit]);
	if (!res)
		res = fgv_call_limit_set(lane, limit, value);
	if (!res && is_first)
		limits.is_set[limit] = true;
	return res;
}

CUresult fgv_limit_set(CUlimit limit, size_t value)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter(&lane);

	if (res)
		return res;
	pthread_mutex_lock(&limits.mutex);
	res = set_locked(lane, (uint32_t)limit, value);
	pthread_mutex_unlock(&limits.mutex);
	fgv_lane_leave(lane);
	return res;
}

void fgv_limit_reset(struct fgv_lane *lane)
{
	pthread_mutex_lock(&limits.mutex);
	for (uint32_t i = 0; i < LIMITS; i++) {
		if (limits.is_set[i])
			fgv_call_limit_set(lane, i, limits.before[i]);
		limits.is_set[i] = false;
	}
	pthread_mutex_unlock(&limits.mutex);
}
