/*
 * struct cudaDeviceProp, which is little more than the attributes by other names.
 */
#include "frontend/libcudart/properties.h"

#include <string.h>

#include "common/util.h"

static const struct fgv_property fields[] = {
#define FIELD(member, name) FGV_PROPERTY(struct cudaDeviceProp, member, name),
#include "frontend/libcudart/properties.def"
	FGV_PROPERTY(struct cudaDeviceProp, deviceNumaConfig, NUMA_CONFIG),
	FGV_PROPERTY(struct cudaDeviceProp, deviceNumaId, NUMA_ID),
	FGV_PROPERTY(struct cudaDeviceProp, mpsEnabled, MPS_ENABLED),
	FGV_PROPERTY(struct cudaDeviceProp, hostNumaId, HOST_NUMA_ID),
	FGV_PROPERTY(struct cudaDeviceProp, gpuPciDeviceID, GPU_PCI_DEVICE_ID),
	FGV_PROPERTY(struct cudaDeviceProp, gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
	FGV_PROPERTY(struct cudaDeviceProp, hostNumaMultinodeIpcSupported,
		     HOST_NUMA_MULTINODE_IPC_SUPPORTED),
};

static void set_field(void *prop, const struct fgv_property *field, int value)
{
	uint8_t *to = (uint8_t *)prop + field->offset;
	uint64_t wide = (uint64_t)(int64_t)value;

	if (field->size == sizeof(wide))
		memcpy(to, &wide, sizeof(wide));
	else
		memcpy(to, &value, sizeof(value));
}

void fgv_properties_set(void *prop, const struct fgv_property *fields_of, size_t count,
			const struct fgv_device_info *info)
{
	for (size_t i = 0; i < count; i++)
		set_field(prop, &fields_of[i], fgv_device_attribute(info, fields_of[i].attribute));
}

cudaError_t fgv_properties_device(int device, const struct fgv_device_info **info)
{
	return fgv_error_from(fgv_context_find_device(device, info));
}

static cudaError_t get_properties(struct cudaDeviceProp *prop, int device)
{
	const struct fgv_device_info *info;
	cudaError_t error;

	if (!prop)
		return cudaErrorInvalidValue;
	error = fgv_properties_device(device, &info);
	if (error)
		return error;
	memset(prop, 0, sizeof(*prop));
	memcpy(prop->name, info->name, sizeof(prop->name));
	memcpy(&prop->uuid, info->uuid, sizeof(prop->uuid));
	prop->totalGlobalMem = info->memory_bytes;
	fgv_properties_set(prop, fields, FGV_ARRAY_LEN(fields), info);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	return fgv_error_set(get_properties(prop, device));
}
