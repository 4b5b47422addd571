/*
 * Devices, answered from the description that was asked for once.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/libcuda/driver.h"

CUresult fgv_driver_device(CUdevice device, const struct fgv_device_info **info)
{
	CUresult res = fgv_ctx_status();

	return res ? res : fgv_context_find_device(device, info);
}

FGV_EXPORT CUresult cuDeviceGetCount(int *count)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(0, &info);

	if (res)
		return res;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)info->devices;
	return CUDA_SUCCESS;
}

/* @wanted is where the result goes; NULL is an error, but not the first that is looked for. */
static CUresult find(CUdevice device, const void *wanted, const struct fgv_device_info **info)
{
	CUresult res = fgv_ctx_status();

	if (!res && !wanted)
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : fgv_driver_device(device, info);
}

FGV_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	const struct fgv_device_info *info;
	CUresult res = find(ordinal, device, &info);

	if (!res)
		*device = ordinal;
	return res;
}

FGV_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, len > 0 ? name : NULL, &info);

	if (!res)
		snprintf(name, (size_t)len, "%s", info->name);
	return res;
}

static CUresult get_uuid(CUuuid *uuid, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, uuid, &info);

	if (!res)
		memcpy(uuid->bytes, info->uuid, sizeof(uuid->bytes));
	return res;
}

FGV_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return get_uuid(uuid, dev);
}

/* The id of a partition where the device is one, which a vGPU never is. */
FGV_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	return get_uuid(uuid, dev);
}

FGV_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, bytes, &info);

	if (!res)
		*bytes = info->memory_bytes;
	return res;
}

/* The form of CUDA 2, of 32 bits. */
FGV_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, bytes, &info);

	if (!res)
		*bytes =
			info->memory_bytes > UINT32_MAX ? UINT32_MAX : (unsigned)info->memory_bytes;
	return res;
}

FGV_EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, pi, &info);

	if (!res && !fgv_device_has_attribute(info, (int)attrib))
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*pi = fgv_device_attribute(info, attrib);
	return res;
}

FGV_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, major && minor ? major : NULL, &info);

	if (res)
		return res;
	*major = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	*minor = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	return CUDA_SUCCESS;
}

FGV_EXPORT CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, prop, &info);

	if (res)
		return res;
#define ATTRIBUTE(name) fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_##name)
	*prop = (CUdevprop){
		.maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK),
		.maxThreadsDim = {ATTRIBUTE(MAX_BLOCK_DIM_X), ATTRIBUTE(MAX_BLOCK_DIM_Y),
				  ATTRIBUTE(MAX_BLOCK_DIM_Z)},
		.maxGridSize = {ATTRIBUTE(MAX_GRID_DIM_X), ATTRIBUTE(MAX_GRID_DIM_Y),
				ATTRIBUTE(MAX_GRID_DIM_Z)},
		.sharedMemPerBlock = ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK),
		.totalConstantMemory = ATTRIBUTE(TOTAL_CONSTANT_MEMORY),
		.SIMDWidth = ATTRIBUTE(WARP_SIZE),
		.memPitch = ATTRIBUTE(MAX_PITCH),
		.regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK),
		.clockRate = ATTRIBUTE(CLOCK_RATE),
		.textureAlign = ATTRIBUTE(TEXTURE_ALIGNMENT),
	};
#undef ATTRIBUTE
	return CUDA_SUCCESS;
}

FGV_EXPORT CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, len > 0 ? pciBusId : NULL, &info);

	if (!res && strlen(info->pci_bus_id) >= (size_t)len)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		strcpy(pciBusId, info->pci_bus_id);
	return res;
}

/* "[domain]:[bus]:[device].[function]", "[domain]:[bus]:[device]" or "[bus]:[device].[function]" */
static bool read_bus_id(const char *text, unsigned place[3])
{
	unsigned function = 0;
	int end = 0;

	if (sscanf(text, "%x:%x:%x%n", &place[0], &place[1], &place[2], &end) != 3) {
		place[0] = 0;
		if (sscanf(text, "%x:%x%n", &place[1], &place[2], &end) != 2)
			return false;
	}
	if (text[end] == '.') {
		text += end;
		end = 0;
		if (sscanf(text, ".%x%n", &function, &end) != 1)
			return false;
	}
	return !text[end] && !function;
}

static bool is_at(const struct fgv_device_info *info, const unsigned place[3])
{
	return fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) == (int)place[0] &&
	       fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) == (int)place[1] &&
	       fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) == (int)place[2];
}

FGV_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	const struct fgv_device_info *info;
	unsigned place[3];
	CUresult res = find(0, dev && pciBusId ? dev : NULL, &info);

	if (res)
		return res;
	if (!read_bus_id(pciBusId, place))
		return CUDA_ERROR_INVALID_VALUE;
	for (CUdevice i = 0; !fgv_driver_device(i, &info); i++) {
		if (is_at(info, place)) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

/* Of a machine with Windows. */
FGV_EXPORT CUresult cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, luid && deviceNodeMask ? luid : NULL, &info);

	return res ? res : CUDA_ERROR_NOT_SUPPORTED;
}

/* Only clients of an MPS server that hides processors have any. */
FGV_EXPORT CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = find(dev, type < CU_EXEC_AFFINITY_TYPE_MAX ? pi : NULL, &info);

	if (!res)
		*pi = 0;
	return res;
}
