/*
 * The toolkit's calculator, fed with what is known of the device and of a kernel.
 */
#include "frontend/cuda/module/occupancy.h"

#include <cuda_occupancy.h>

#include "frontend/cuda/context/device.h"
#include "frontend/cuda/module/function.h"
#include "frontend/cuda/module/module.h"

struct calculation {
	cudaOccDeviceProp device;
	cudaOccFuncAttributes function;
	cudaOccDeviceState state;
};

static int of(const struct fgv_kernel *kernel, CUfunction_attribute attribute)
{
	return kernel->info->attributes[attribute];
}

static void fill_device(cudaOccDeviceProp *prop, const struct fgv_device_info *info)
{
#define ATTRIBUTE(name) fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_##name)
	*prop = (cudaOccDeviceProp){
		.computeMajor = ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR),
		.computeMinor = ATTRIBUTE(COMPUTE_CAPABILITY_MINOR),
		.maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK),
		.maxThreadsPerMultiprocessor = ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR),
		.regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK),
		.regsPerMultiprocessor = ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR),
		.warpSize = ATTRIBUTE(WARP_SIZE),
		.sharedMemPerBlock = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK),
		.sharedMemPerMultiprocessor =
			(size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
		.numSms = ATTRIBUTE(MULTIPROCESSOR_COUNT),
		.sharedMemPerBlockOptin = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
		.reservedSharedMemPerBlock = (size_t)ATTRIBUTE(RESERVED_SHARED_MEMORY_PER_BLOCK),
	};
#undef ATTRIBUTE
}

/*
 * A limit below what every kernel has anyway counts at its launch, but not here: so
 * the runtime computes it.
 */
static size_t occupancy_shared_limit(const struct fgv_kernel *kernel, const cudaOccDeviceProp *prop)
{
	int anyway = (int)prop->sharedMemPerBlock - of(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
	int allowed = (int)__atomic_load_n(&kernel->max_dynamic_shared, __ATOMIC_RELAXED);

	return (size_t)(allowed > anyway ? allowed : anyway);
}

static void fill_function(cudaOccFuncAttributes *attr, const struct fgv_kernel *kernel,
			  const cudaOccDeviceProp *prop)
{
	*attr = (cudaOccFuncAttributes){
		.maxThreadsPerBlock = of(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
		.numRegs = of(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS),
		.sharedSizeBytes = (size_t)of(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
		.partitionedGCConfig = PARTITIONED_GC_OFF,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes = occupancy_shared_limit(kernel, prop),
		.numBlockBarriers = 1,
	};
}

static void prepare(struct calculation *calculation, const struct fgv_kernel *kernel)
{
	fill_device(&calculation->device, fgv_device_info());
	fill_function(&calculation->function, kernel, &calculation->device);
	calculation->state = (cudaOccDeviceState){
		.cacheConfig = CACHE_PREFER_NONE,
		.carveoutConfig = __atomic_load_n(&kernel->carveout, __ATOMIC_RELAXED),
	};
}

CUresult fgv_occupancy_of(const struct fgv_kernel *kernel, int block_size, size_t shared_bytes,
			  int *blocks)
{
	struct calculation calculation;
	cudaOccResult result;

	prepare(&calculation, kernel);
	if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &calculation.device,
						    &calculation.function, &calculation.state,
						    block_size, shared_bytes))
		return CUDA_ERROR_UNKNOWN;
	*blocks = result.activeBlocksPerMultiprocessor;
	return CUDA_SUCCESS;
}

CUresult fgv_occupancy_max_blocks(struct fgv_kernel *kernel, int block_size, size_t shared_bytes,
				  unsigned flags, int *blocks)
{
	CUresult res;

	if (!blocks || (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_function_need(&kernel);
	if (res)
		return res;
	if (block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_occupancy_of(kernel, block_size, shared_bytes, blocks);
}

CUresult fgv_occupancy_max_shared(struct fgv_kernel *kernel, int blocks, int block_size,
				  size_t *bytes)
{
	struct calculation calculation;
	CUresult res;

	if (!bytes || blocks <= 0 || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_function_need(&kernel);
	if (res)
		return res;
	prepare(&calculation, kernel);
	if (cudaOccAvailableDynamicSMemPerBlock(bytes, &calculation.device, &calculation.function,
						&calculation.state, blocks, block_size))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* The largest of the sizes that fill a multiprocessor best, tried in whole warps. */
static CUresult find_best(const struct fgv_kernel *kernel, CUoccupancyB2DSize shared_of,
			  size_t shared_bytes, int limit, int *best, int *best_blocks)
{
	int warp = fgv_device_attribute(fgv_device_info(), CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	int64_t most_threads = 0;
	int blocks = 0;
	CUresult res;

	*best = *best_blocks = 0;
	if (warp <= 0)
		return CUDA_ERROR_UNKNOWN;
	for (int top = (limit + warp - 1) / warp * warp; top > 0; top -= warp) {
		int size = top < limit ? top : limit;

		res = fgv_occupancy_of(kernel, size, shared_of ? shared_of(size) : shared_bytes,
				       &blocks);
		if (res)
			return res;
		if ((int64_t)size * blocks > most_threads) {
			most_threads = (int64_t)size * blocks;
			*best = size;
			*best_blocks = blocks;
		}
	}
	return CUDA_SUCCESS;
}

CUresult fgv_occupancy_best_block(struct fgv_kernel *kernel, CUoccupancyB2DSize shared_of,
				  size_t shared_bytes, int limit, unsigned flags, int *grid_size,
				  int *block_size)
{
	const struct fgv_device_info *info;
	int most, blocks;
	CUresult res;

	if (!grid_size || !block_size || limit < 0 ||
	    (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_function_need(&kernel);
	if (res)
		return res;
	info = fgv_device_info();
	most = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	if (of(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) < most)
		most = of(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	if (limit && limit < most)
		most = limit;
	res = find_best(kernel, shared_of, shared_bytes, most, block_size, &blocks);
	if (!res)
		*grid_size = blocks *
			     fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	return res;
}
