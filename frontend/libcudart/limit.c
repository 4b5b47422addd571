/*
 * Limits of the context. The host asks the GPU, and charges the VM for what they take.
 */
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

static cudaError_t set_limit(enum cudaLimit limit, size_t value)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_call_limit_set(lane, (uint32_t)limit, value));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	return fgv_error_set(set_limit(limit, value));
}
