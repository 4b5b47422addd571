/*
 * What the soft GPU says of itself when it is asked.
 */
#include "backend/gpu/soft_internal.h"

#define WHOLE	 (CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64)
#define REDUCED	 (WHOLE | CU_ATOMIC_CAPABILITY_REDUCTION)
#define UNSIGNED (REDUCED | CU_ATOMIC_CAPABILITY_UNSIGNED)
#define INTEGER	 (UNSIGNED | CU_ATOMIC_CAPABILITY_SIGNED)
#define COUNTED                                                                                    \
	(CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_REDUCTION |                         \
	 CU_ATOMIC_CAPABILITY_UNSIGNED)

CUresult fgv_soft_texture_linear_width(struct fgv_gpu *gpu, CUarray_format format,
				       unsigned channels, size_t *texels)
{
	int most = 0;
	CUresult status = softgpu_attribute(
		gpu_of(gpu), CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, &most);

	(void)format;
	(void)channels;
	*texels = (size_t)most;
	return status;
}

/* Its atomic operations are the processor's. */
CUresult fgv_soft_host_atomics(struct fgv_gpu *gpu, CUatomicOperation operation,
			       unsigned *capabilities)
{
	static const unsigned all[CU_ATOMIC_OPERATION_MAX] = {
		[CU_ATOMIC_OPERATION_INTEGER_ADD] = INTEGER,
		[CU_ATOMIC_OPERATION_INTEGER_MIN] = INTEGER,
		[CU_ATOMIC_OPERATION_INTEGER_MAX] = INTEGER,
		[CU_ATOMIC_OPERATION_INTEGER_INCREMENT] = COUNTED,
		[CU_ATOMIC_OPERATION_INTEGER_DECREMENT] = COUNTED,
		[CU_ATOMIC_OPERATION_AND] = REDUCED,
		[CU_ATOMIC_OPERATION_OR] = REDUCED,
		[CU_ATOMIC_OPERATION_XOR] = REDUCED,
		[CU_ATOMIC_OPERATION_EXCHANGE] = WHOLE,
		[CU_ATOMIC_OPERATION_CAS] = WHOLE,
		[CU_ATOMIC_OPERATION_FLOAT_ADD] = REDUCED,
	};

	(void)gpu;
	*capabilities = all[operation];
	return CUDA_SUCCESS;
}

/* All of it is this process's memory. */
CUresult fgv_soft_peer_attribute(struct fgv_gpu *gpu, struct fgv_gpu *peer,
				 CUdevice_P2PAttribute attribute, int *value)
{
	(void)gpu, (void)peer;
	*value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
		 attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult fgv_soft_peer_enable(struct fgv_gpu *gpu, struct fgv_gpu *peer)
{
	return softgpu_peer_enable(gpu_of(gpu), gpu_of(peer));
}

CUresult fgv_soft_peer_disable(struct fgv_gpu *gpu, struct fgv_gpu *peer)
{
	return softgpu_peer_disable(gpu_of(gpu), gpu_of(peer));
}
