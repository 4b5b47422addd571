/*
 * Devices, answered from the description that was asked for once; synchronizing with
 * all work; and resetting, which gives everything of this process on the GPU back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/array.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_memory.h"

#define SCHEDULE_FLAGS                                                                             \
	(cudaDeviceScheduleSpin | cudaDeviceScheduleYield | cudaDeviceScheduleBlockingSync)

/* As cudaSetDeviceFlags() set them; atomic. They change nothing: waiting is hybrid. */
static unsigned device_flags;

static cudaError_t get_info(const struct fgv_device_info **info)
{
	return fgv_error_from(fgv_context_info(info));
}

/* The description of @device. */
static cudaError_t find(int device, const struct fgv_device_info **info)
{
	cudaError_t error = get_info(info);

	if (error)
		return error;
	return device < 0 || (uint32_t)device >= (*info)->devices ? cudaErrorInvalidDevice
								  : cudaSuccess;
}

cudaError_t fgv_device_check(int device)
{
	const struct fgv_device_info *info;

	return find(device, &info);
}

static cudaError_t count_devices(int *count)
{
	const struct fgv_device_info *info;
	cudaError_t error;

	if (!count)
		return cudaErrorInvalidValue;
	error = get_info(&info);
	if (!error)
		*count = (int)info->devices;
	return error;
}

FGV_EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
	return fgv_error_set(count_devices(count));
}

FGV_EXPORT cudaError_t cudaGetDevice(int *device)
{
	if (!device)
		return fgv_error_set(cudaErrorInvalidValue);
	*device = fgv_context_get_device();
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaSetDevice(int device)
{
	return fgv_error_set(fgv_error_from(fgv_context_set_device(device)));
}

static bool are_flags(unsigned flags)
{
	unsigned schedule = flags & cudaDeviceScheduleMask;

	if (flags & ~(unsigned)(SCHEDULE_FLAGS | cudaDeviceMapHost | cudaDeviceLmemResizeToMax |
				cudaDeviceSyncMemops))
		return false;
	return !(schedule & (schedule - 1));
}

static cudaError_t set_flags(unsigned flags)
{
	if (!are_flags(flags))
		return cudaErrorInvalidValue;
	__atomic_store_n(&device_flags, flags, __ATOMIC_RELAXED);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	return fgv_error_set(set_flags(flags));
}

FGV_EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	if (!flags)
		return fgv_error_set(cudaErrorInvalidValue);
	*flags = __atomic_load_n(&device_flags, __ATOMIC_RELAXED) | cudaDeviceMapHost;
	return cudaSuccess;
}

static cudaError_t init_device(int device, unsigned device_flags_wanted, unsigned flags)
{
	const struct fgv_device_info *info;
	cudaError_t error = find(device, &info);

	if (!error && (flags & cudaInitDeviceFlagsAreValid))
		error = set_flags(device_flags_wanted);
	return error;
}

FGV_EXPORT cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
	return fgv_error_set(init_device(device, deviceFlags, flags));
}

static cudaError_t get_attribute(int *value, enum cudaDeviceAttr attr, int device)
{
	const struct fgv_device_info *info;
	cudaError_t error;

	if (!value)
		return cudaErrorInvalidValue;
	error = find(device, &info);
	if (error)
		return error;
	if (!fgv_device_has_attribute(info, (int)attr))
		return cudaErrorInvalidValue;
	*value = fgv_device_attribute(info, (CUdevice_attribute)attr);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	return fgv_error_set(get_attribute(value, attr, device));
}

static cudaError_t get_bus_id(char *text, int len, int device)
{
	const struct fgv_device_info *info;
	cudaError_t error;

	if (!text || len <= 0)
		return cudaErrorInvalidValue;
	error = find(device, &info);
	if (error)
		return error;
	if (strlen(info->pci_bus_id) >= (size_t)len)
		return cudaErrorInvalidValue;
	strcpy(text, info->pci_bus_id);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
	return fgv_error_set(get_bus_id(pciBusId, len, device));
}

/* Without a GPU there is no driver, whose version is then 0. */
FGV_EXPORT cudaError_t cudaDriverGetVersion(int *driverVersion)
{
	const struct fgv_device_info *info;

	if (!driverVersion)
		return fgv_error_set(cudaErrorInvalidValue);
	*driverVersion = get_info(&info) ? 0 : (int)info->driver_version;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return fgv_error_set(cudaErrorInvalidValue);
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

static cudaError_t synchronize(void)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_sync_device(lane));
	if (!error)
		fgv_pool_settle(lane);
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceSynchronize(void)
{
	return fgv_error_set(synchronize());
}

/* The session stays; what the process has there goes, after the work that uses it. */
static cudaError_t reset(void)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return fgv_session_reset_dead() ? cudaSuccess : error;
	error = fgv_error_from(fgv_sync_device(lane));
	if (!error) {
		fgv_stream_drain(lane);
		fgv_event_drain(lane);
		fgv_texture_drain(lane);
		fgv_array_drain(lane);
		fgv_registry_unload(lane);
		fgv_memory_drain(lane);
		fgv_pool_drain(lane);
		fgv_graph_memory_drain(lane);
		fgv_hostmem_drain(lane);
		fgv_limit_reset(lane);
		error = fgv_error_from(fgv_sync_device(lane));
	}
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceReset(void)
{
	return fgv_error_set(reset());
}
