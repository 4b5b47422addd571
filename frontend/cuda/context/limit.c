/*
 * Limits of the context. The host asks the GPU, and charges the VM for what they take. What
 * one was before it was first set is remembered, as resetting the device sets it back.
 */
#include "frontend/cuda/context/limit.h"

#include <pthread.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/graph/exec_kept.h"

#define LIMITS 16 /* more than there are */

/* What the host has said of a limit. */
struct limit {
	bool is_known;
	uint64_t value;
	bool is_set;
	uint64_t before; /* it was first set */
};

static struct {
	pthread_mutex_t mutex;
	struct limit all[FGV_DEVICES_MAX][LIMITS];
} limits = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* NULL: there is none such. */
static struct limit *find_locked(const struct fgv_lane *lane, uint32_t limit)
{
	return limit < LIMITS ? &limits.all[lane->client->device][limit] : NULL;
}

/* It changes only where it is set, so it is asked for once. */
static CUresult get_locked(struct fgv_lane *lane, uint32_t limit, uint64_t *value)
{
	struct limit *known = find_locked(lane, limit);
	CUresult res = CUDA_SUCCESS;

	if (known && known->is_known) {
		*value = known->value;
		return res;
	}
	res = fgv_call_limit_get(lane, limit, value);
	if (!res && known) {
		known->value = *value;
		known->is_known = true;
	}
	return res;
}

CUresult fgv_limit_get(CUlimit limit, size_t *value)
{
	struct fgv_lane *lane;
	uint64_t got = 0;
	CUresult res;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	pthread_mutex_lock(&limits.mutex);
	res = get_locked(lane, (uint32_t)limit, &got);
	pthread_mutex_unlock(&limits.mutex);
	fgv_lane_leave(lane);
	if (!res)
		*value = got;
	return res;
}

/* What it is set to is the host's to say. */
static CUresult set_locked(struct fgv_lane *lane, uint32_t limit, uint64_t value)
{
	struct limit *known = find_locked(lane, limit);
	bool is_first = known && !known->is_set;
	uint64_t before = 0;
	CUresult res = is_first ? get_locked(lane, limit, &before) : CUDA_SUCCESS;

	if (!res && known)
		known->is_known = false;
	if (!res) {
		fgv_exec_kept_drop(lane);
		res = fgv_call_limit_set(lane, limit, value);
	}
	if (!res && is_first) {
		known->before = before;
		known->is_set = true;
	}
	return res;
}

CUresult fgv_limit_set(CUlimit limit, size_t value)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

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
		struct limit *limit = find_locked(lane, i);

		if (limit->is_set)
			fgv_call_limit_set(lane, i, limit->before);
		*limit = (struct limit){0};
	}
	pthread_mutex_unlock(&limits.mutex);
}
