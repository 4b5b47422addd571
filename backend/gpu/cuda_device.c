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

CUresult fgv_cuda_peer_attribute(struct fgv_gpu *gpu, struct fgv_gpu *peer,
				 CUdevice_P2PAttribute attribute, int *value)
{
	struct cuda *cuda = cuda_of(gpu);

	return cuda->driver->peer_attribute(value, attribute, cuda->device, cuda_of(peer)->device);
}

/* Of the context of the calling thread, which is @gpu's. */
CUresult fgv_cuda_peer_enable(struct fgv_gpu *gpu, struct fgv_gpu *peer)
{
	return cuda_of(gpu)->driver->peer_enable(cuda_of(peer)->context, 0);
}

CUresult fgv_cuda_peer_disable(struct fgv_gpu *gpu, struct fgv_gpu *peer)
{
	return cuda_of(gpu)->driver->peer_disable(cuda_of(peer)->context);
}

uint32_t fgv_cuda_peers(int ordinal, int count)
{
	char why[160];
	const struct fgv_cuda_driver *driver = fgv_cuda_driver_get(why, sizeof(why));
	CUdevice device, other;
	uint32_t set = 0;

	if (!driver || driver->device_get(&device, ordinal) != CUDA_SUCCESS)
		return 0;
	for (int i = 0; i < count; i++) {
		int can = 0;

		if (i != ordinal && driver->device_get(&other, i) == CUDA_SUCCESS &&
		    driver->peer_attribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device,
					   other) == CUDA_SUCCESS &&
		    can)
			set |= 1u << i;
	}
	return set;
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
