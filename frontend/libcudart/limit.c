/*
 * Limits of the context. The host asks the GPU, and charges the VM for what they take. What
 * one was before it was first set is remembered, as resetting the device sets it back.
 */
#include <pthread.h>

#include "frontend/libcudart/cudart.h"

static cudaError_t get_limit(size_t *value, enum cudaLimit limit)
{
	struct fgv_lane *lane;
	uint64_t got = 0;
	cudaError_t error;

	if (!value)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_error_from(fgv_call_limit_get(lane, (uint32_t)limit, &got));
	fgv_lane_leave(lane);
	if (!error)
		*value = got;
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
	return fgv_error_set(get_limit(pValue, limit));
}

#define LIMITS 16 /* more than there are */

static struct {
	pthread_mutex_t mutex;
	bool is_set[LIMITS];
	uint64_t before[LIMITS];
} limits = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static cudaError_t set_locked(struct fgv_lane *lane, uint32_t limit, uint64_t value)
{
	bool is_first = limit < LIMITS && !limits.is_set[limit];
	cudaError_t error = cudaSuccess;

	if (is_first)
		error = fgv_error_from(fgv_call_limit_get(lane, limit, &limits.before[limit]));
	if (!error)
		error = fgv_error_from(fgv_call_limit_set(lane, limit, value));
	if (!error && is_first)
		limits.is_set[limit] = true;
	return error;
}

static cudaError_t set_limit(enum cudaLimit limit, size_t value)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	pthread_mutex_lock(&limits.mutex);
	error = set_locked(lane, (uint32_t)limit, value);
	pthread_mutex_unlock(&limits.mutex);
	fgv_lane_leave(lane);
	return error;
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

FGV_EXPORT cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	return fgv_error_set(set_limit(limit, value));
}
