/*
 * How the members of struct cudaDeviceProp, of either version of CUDA, are filled in.
 */
#ifndef FGV_LIBCUDART_PROPERTIES_H
#define FGV_LIBCUDART_PROPERTIES_H

#include <stddef.h>

#include "frontend/cuda/context/device.h"
#include "frontend/libcudart/cudart.h"

/* A member that is an attribute by another name. */
struct fgv_property {
	uint16_t offset;
	uint16_t size; /* 4 or 8 bytes */
	CUdevice_attribute attribute;
};

#define FGV_PROPERTY(type, member, name)                                                           \
	{                                                                                          \
		offsetof(type, member), sizeof(((type *)0)->member), CU_DEVICE_ATTRIBUTE_##name    \
	}

/* The description of @device. */
cudaError_t fgv_properties_device(int device, const struct fgv_device_info **info);

void fgv_properties_set(void *prop, const struct fgv_property *fields_of, size_t count,
			const struct fgv_device_info *info);

#endif
