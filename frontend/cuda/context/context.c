/*
 * Entering, and what is known of the device by then.
 */
#include "frontend/cuda/context/context.h"

#include "frontend/cuda/context/device.h"

static __thread int current;

CUresult fgv_context_join(void)
{
	struct fgv_lane *lane;
	CUresult res = fgv_lane_enter(&lane);

	if (res)
		return res;
	/* The device's addresses are to be reserved before the program gets one (device.c). */
	res = fgv_device_ask(lane);
	fgv_lane_leave(lane);
	if (res)
		fgv_lane_return();
	return res;
}

CUresult fgv_context_need(void)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter(&lane);

	if (!res)
		fgv_lane_leave(lane);
	return res;
}

CUresult fgv_context_info(const struct fgv_device_info **info)
{
	CUresult res = CUDA_SUCCESS;

	*info = fgv_device_info();
	if (*info)
		return CUDA_SUCCESS;
	res = fgv_context_need();
	if (!res)
		*info = fgv_device_info();
	return res;
}

CUresult fgv_context_find_device(int ordinal, const struct fgv_device_info **info)
{
	CUresult res = fgv_context_info(info);

	if (res)
		return res;
	return ordinal < 0 || (uint32_t)ordinal >= (*info)->devices ? CUDA_ERROR_INVALID_DEVICE
								    : CUDA_SUCCESS;
}

int fgv_context_get_device(void)
{
	return current;
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
	current = ordinal;
	return CUDA_SUCCESS;
}
