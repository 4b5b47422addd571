/*
 * What only the driver knows of the device, asked for when the program asks.
 */
#include "backend/gpu/cuda_internal.h"

CUresult fgv_cuda_texture_linear_width(struct fgv_gpu *gpu, CUarray_format format,
				       unsigned channels, size_t *texels)
{
	struct cuda *cuda = cuda_of(gpu);

	return cuda->driver->texture_linear_width(texels, format, channels, cuda->device);
}

CUresult fgv_cuda_host_atomics(struct fgv_gpu *gpu, CUatomicOperation operation,
			       unsigned *capabilities)
{
	struct cuda *cuda = cuda_of(gpu);

	if (!cuda->driver->host_atomics)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuda->driver->host_atomics(capabilities, &operation, 1, cuda->device);
}

bool fgv_cuda_reaches_host(int ordinal)
{
	char why[160];
	const struct fgv_cuda_driver *driver = fgv_cuda_driver_get(why, sizeof(why));
	CUdevice device;
	int value = 0;

	return driver && driver->device_get(&device, ordinal) == CUDA_SUCCESS &&
	       driver->device_attribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
					device) == CUDA_SUCCESS &&
	       value;
}
