/*
 * Launches in clusters of blocks, and what the driver says of them.
 */
#include "backend/gpu/cuda_internal.h"

#define ATTRIBUTES_MAX 3

/* The driver's form of a launch; it holds pointers into itself. */
struct extended {
	CUlaunchConfig config;
	CUlaunchAttribute attributes[ATTRIBUTES_MAX];
};

static CUlaunchAttribute *add(struct extended *extended, CUlaunchAttributeID id)
{
	CUlaunchAttribute *attribute = &extended->attributes[extended->config.numAttrs++];

	*attribute = (CUlaunchAttribute){.id = id};
	return attribute;
}

static void describe(const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
		     const struct fgv_gpu_clusters *how, struct extended *extended)
{
	CUlaunchAttribute *size;

	extended->config = (CUlaunchConfig){
		.gridDimX = grid[0],
		.gridDimY = grid[1],
		.gridDimZ = grid[2],
		.blockDimX = block[0],
		.blockDimY = block[1],
		.blockDimZ = block[2],
		.sharedMemBytes = shared_bytes,
		.attrs = extended->attributes,
	};
	if (how->size[0] || how->size[1] || how->size[2]) {
		size = add(extended, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
		size->value.clusterDim.x = how->size[0];
		size->value.clusterDim.y = how->size[1];
		size->value.clusterDim.z = how->size[2];
	}
	if (how->cooperative)
		add(extended, CU_LAUNCH_ATTRIBUTE_COOPERATIVE)->value.cooperative = 1;
	if (how->policy != CU_CLUSTER_SCHEDULING_POLICY_DEFAULT)
		add(extended, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
			->value.clusterSchedulingPolicyPreference = how->policy;
}

CUresult fgv_cuda_allow_clusters(struct cuda *cuda, struct fgv_gpu_function *function,
				 uint32_t shared_bytes, bool any_size)
{
	CUresult status = fgv_cuda_allow_shared(cuda, function, shared_bytes);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->function_set_attribute(
		(CUfunction)function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
		any_size);
}

CUresult fgv_cuda_launch_clusters(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				  const uint32_t grid[3], const uint32_t block[3],
				  uint32_t shared_bytes, struct fgv_gpu_stream *stream,
				  const struct fgv_gpu_clusters *how, void **params)
{
	struct cuda *cuda = cuda_of(gpu);
	struct extended extended;
	CUresult status;

	stream = stream_of(cuda, stream);
	status = fgv_cuda_before_work(cuda, stream);
	if (status == CUDA_SUCCESS)
		status = fgv_cuda_allow_clusters(cuda, function, shared_bytes, how->any_size);
	if (status != CUDA_SUCCESS)
		return status;
	describe(grid, block, shared_bytes, how, &extended);
	extended.config.hStream = stream->handle;
	return cuda->driver->launch_extended(&extended.config, (CUfunction)function, params, NULL);
}

CUresult fgv_cuda_clusters_active(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				  const uint32_t grid[3], const uint32_t block[3],
				  uint32_t shared_bytes, const struct fgv_gpu_clusters *how,
				  int *count)
{
	struct cuda *cuda = cuda_of(gpu);
	struct extended extended;
	CUresult status = fgv_cuda_allow_clusters(cuda, function, shared_bytes, how->any_size);

	if (status != CUDA_SUCCESS)
		return status;
	describe(grid, block, shared_bytes, how, &extended);
	return cuda->driver->clusters_active(count, (CUfunction)function, &extended.config);
}

CUresult fgv_cuda_clusters_largest(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				   const uint32_t grid[3], const uint32_t block[3],
				   uint32_t shared_bytes, bool any_size, int *size)
{
	const struct fgv_gpu_clusters how = {.any_size = any_size};
	struct cuda *cuda = cuda_of(gpu);
	struct extended extended;
	CUresult status = fgv_cuda_allow_clusters(cuda, function, shared_bytes, any_size);

	if (status != CUDA_SUCCESS)
		return status;
	describe(grid, block, shared_bytes, &how, &extended);
	return cuda->driver->clusters_largest(size, (CUfunction)function, &extended.config);
}
