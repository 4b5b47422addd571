/*
 * Devices, answered from the description that was asked for once; their flags and limits;
 * synchronizing with all work, and resetting.
 */
#include <string.h>

#include "frontend/cuda/context/ctx.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/limit.h"
#include "frontend/cuda/context/reset.h"
#include "frontend/libcudart/cudart.h"

/* The runtime's programs name devices, not contexts. */
__attribute__((constructor)) static void start(void)
{
	fgv_ctx_imply();
}

static cudaError_t find(int device, const struct fgv_device_info **info)
{
	return fgv_error_from(fgv_context_find_device(device, info));
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
	error = fgv_error_from(fgv_context_info(&info));
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

FGV_EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	return FGV_RESULT(fgv_context_set_flags(flags));
}

FGV_EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	if (!flags)
		return fgv_error_set(cudaErrorInvalidValue);
	*flags = fgv_context_get_flags();
	return cudaSuccess;
}

static cudaError_t init_device(int device, unsigned device_flags, unsigned flags)
{
	const struct fgv_device_info *info;
	cudaError_t error = find(device, &info);

	if (!error && (flags & cudaInitDeviceFlagsAreValid))
		error = fgv_error_from(fgv_context_set_flags(device_flags));
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
	*driverVersion = fgv_context_info(&info) ? 0 : (int)info->driver_version;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return fgv_error_set(cudaErrorInvalidValue);
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaDeviceSynchronize(void)
{
	return FGV_RESULT(fgv_context_synchronize());
}

FGV_EXPORT cudaError_t cudaDeviceReset(void)
{
	return FGV_RESULT(fgv_reset_device());
}

FGV_EXPORT cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
	return FGV_RESULT(fgv_limit_get((CUlimit)limit, pValue));
}

FGV_EXPORT cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	return FGV_RESULT(fgv_limit_set((CUlimit)limit, value));
}
