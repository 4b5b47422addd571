/*
 * What the program may ask about a kernel, and how many of its blocks run at once on a
 * multiprocessor: computed here, by the calculator that the toolkit ships as a header.
 */
#include <cuda_occupancy.h>
#include <string.h>

#include "frontend/cuda/context/device.h"
#include "frontend/cuda/module/module.h"
#include "frontend/libcudart/cudart.h"

#define CARVEOUT_DEFAULT (-1)
#define CARVEOUT_MAX	 100 /* percent */

/* The kernel, known in full, and the device. */
static cudaError_t need(const void *func, struct fgv_kernel **kernel,
			const struct fgv_device_info **info)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_kernel_of(func, kernel);
	CUresult res;

	if (!error)
		error = fgv_enter(&lane);
	if (error)
		return error;
	*info = fgv_device_info();
	res = fgv_kernel_need(lane, *kernel);
	fgv_lane_leave(lane);
	return fgv_kernel_error(res);
}

static int of(const struct fgv_kernel *kernel, CUfunction_attribute attribute)
{
	return kernel->info->attributes[attribute];
}

static int max_dynamic_shared(const struct fgv_kernel *kernel)
{
	return (int)__atomic_load_n(&kernel->max_dynamic_shared, __ATOMIC_RELAXED);
}

static int carveout(const struct fgv_kernel *kernel)
{
	return __atomic_load_n(&kernel->carveout, __ATOMIC_RELAXED);
}

static void describe(const struct fgv_kernel *kernel, struct cudaFuncAttributes *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->sharedSizeBytes = (size_t)of(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
	attr->constSizeBytes = (size_t)of(kernel, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
	attr->localSizeBytes = (size_t)of(kernel, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
	attr->maxThreadsPerBlock = of(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	attr->numRegs = of(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS);
	attr->ptxVersion = of(kernel, CU_FUNC_ATTRIBUTE_PTX_VERSION);
	attr->binaryVersion = of(kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
	attr->cacheModeCA = of(kernel, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
	attr->maxDynamicSharedSizeBytes = max_dynamic_shared(kernel);
	attr->preferredShmemCarveout = carveout(kernel);
	attr->clusterDimMustBeSet = of(kernel, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
	attr->requiredClusterWidth = of(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
	attr->requiredClusterHeight = of(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
	attr->requiredClusterDepth = of(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
	attr->nonPortableClusterSizeAllowed =
		(int)__atomic_load_n(&kernel->any_cluster, __ATOMIC_RELAXED);
	attr->clusterSchedulingPolicyPreference =
		(int)__atomic_load_n(&kernel->cluster_policy, __ATOMIC_RELAXED);
}

FGV_EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	const struct fgv_device_info *info;
	struct fgv_kernel *kernel;
	cudaError_t error;

	if (!attr)
		return fgv_error_set(cudaErrorInvalidValue);
	error = need(func, &kernel, &info);
	if (!error)
		describe(kernel, attr);
	return fgv_error_set(error);
}

/* The most that a kernel may be allowed: what an opt-in gives, less what it has anyway. */
static int dynamic_shared_limit(const struct fgv_kernel *kernel, const struct fgv_device_info *info)
{
	int all = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

	if (!all)
		all = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	return all - of(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
}

static cudaError_t set_for_clusters(uint32_t *kept, int value, int value_max,
				    const struct fgv_device_info *info)
{
	if (!fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
		return FGV_NOT_SUPPORTED("clusters of blocks");
	if (value < 0 || value > value_max)
		return cudaErrorInvalidValue;
	__atomic_store_n(kept, (uint32_t)value, __ATOMIC_RELAXED);
	return cudaSuccess;
}

/*
 * Kept here and heeded at launch; the host allows a kernel as much shared memory as a
 * launch asks for. The carveout is a hint, which is only remembered.
 */
static cudaError_t set_attribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	const struct fgv_device_info *info;
	struct fgv_kernel *kernel;
	cudaError_t error = need(func, &kernel, &info);

	if (error)
		return error;
	switch (attr) {
	case cudaFuncAttributeMaxDynamicSharedMemorySize:
		if (value < 0 || value > dynamic_shared_limit(kernel, info))
			return cudaErrorInvalidValue;
		__atomic_store_n(&kernel->max_dynamic_shared, (uint32_t)value, __ATOMIC_RELAXED);
		return cudaSuccess;
	case cudaFuncAttributePreferredSharedMemoryCarveout:
		if (value < CARVEOUT_DEFAULT || value > CARVEOUT_MAX)
			return cudaErrorInvalidValue;
		__atomic_store_n(&kernel->carveout, value, __ATOMIC_RELAXED);
		return cudaSuccess;
	case cudaFuncAttributeNonPortableClusterSizeAllowed:
		return set_for_clusters(&kernel->any_cluster, value, 1, info);
	case cudaFuncAttributeClusterSchedulingPolicyPreference:
		return set_for_clusters(&kernel->cluster_policy, value,
					cudaClusterSchedulingPolicyLoadBalancing, info);
	case cudaFuncAttributeClusterDimMustBeSet:
	case cudaFuncAttributeRequiredClusterWidth:
	case cudaFuncAttributeRequiredClusterHeight:
	case cudaFuncAttributeRequiredClusterDepth:
		return FGV_NOT_SUPPORTED("cudaFuncSetAttribute of required clusters");
	default:
		return cudaErrorInvalidValue;
	}
}

FGV_EXPORT cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr,
					    int value)
{
	return fgv_error_set(set_attribute(func, attr, value));
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
	int allowed = max_dynamic_shared(kernel);

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

cudaError_t fgv_occupancy(const struct fgv_kernel *kernel, const struct fgv_device_info *info,
			  int block_size, size_t shared_bytes, int *blocks)
{
	cudaOccDeviceState state = {.cacheConfig = CACHE_PREFER_NONE};
	cudaOccFuncAttributes attributes;
	cudaOccDeviceProp prop;
	cudaOccResult result;

	fill_device(&prop, info);
	fill_function(&attributes, kernel, &prop);
	state.carveoutConfig = carveout(kernel);
	if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &prop, &attributes, &state, block_size,
						    shared_bytes))
		return cudaErrorUnknown;
	*blocks = result.activeBlocksPerMultiprocessor;
	return cudaSuccess;
}

static cudaError_t occupancy(int *blocks, const void *func, int block_size, size_t shared_bytes,
			     unsigned flags)
{
	const struct fgv_device_info *info;
	struct fgv_kernel *kernel;
	cudaError_t error;

	if (!blocks || (flags & ~(unsigned)cudaOccupancyDisableCachingOverride))
		return cudaErrorInvalidValue;
	error = need(func, &kernel, &info);
	if (error)
		return error;
	if (block_size <= 0)
		return cudaErrorInvalidValue;
	return fgv_occupancy(kernel, info, block_size, shared_bytes, blocks);
}

FGV_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks,
								     const void *func,
								     int blockSize,
								     size_t dynamicSMemSize)
{
	return fgv_error_set(
		occupancy(numBlocks, func, blockSize, dynamicSMemSize, cudaOccupancyDefault));
}

FGV_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	return fgv_error_set(occupancy(numBlocks, func, blockSize, dynamicSMemSize, flags));
}

static cudaError_t available_shared(size_t *bytes, const void *func, int blocks, int block_size)
{
	const struct fgv_device_info *info;
	cudaOccDeviceState state = {.cacheConfig = CACHE_PREFER_NONE};
	cudaOccFuncAttributes attributes;
	struct fgv_kernel *kernel;
	cudaOccDeviceProp prop;
	cudaError_t error;

	if (!bytes || blocks <= 0 || block_size <= 0)
		return cudaErrorInvalidValue;
	error = need(func, &kernel, &info);
	if (error)
		return error;
	fill_device(&prop, info);
	fill_function(&attributes, kernel, &prop);
	state.carveoutConfig = carveout(kernel);
	if (cudaOccAvailableDynamicSMemPerBlock(bytes, &prop, &attributes, &state, blocks,
						block_size))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize,
								 const void *func, int numBlocks,
								 int blockSize)
{
	return fgv_error_set(available_shared(dynamicSmemSize, func, numBlocks, blockSize));
}

FGV_EXPORT cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	struct fgv_kernel *kernel;
	cudaError_t error = name ? fgv_kernel_of(func, &kernel) : cudaErrorInvalidValue;

	if (!error)
		*name = kernel->name;
	return fgv_error_set(error);
}

/* The sizes are followed by the offsets. */
static cudaError_t param_info(const void *func, size_t index, size_t *offset, size_t *size)
{
	const struct fgv_device_info *info;
	struct fgv_kernel *kernel;
	cudaError_t error = offset ? need(func, &kernel, &info) : cudaErrorInvalidValue;

	if (error)
		return error;
	if (index >= kernel->info->param_count)
		return cudaErrorInvalidValue;
	*offset = kernel->info->param_sizes[kernel->info->param_count + index];
	if (size)
		*size = kernel->info->param_sizes[index];
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaFuncGetParamInfo(const void *func, size_t paramIndex,
					    size_t *paramOffset, size_t *paramSize)
{
	return fgv_error_set(param_info(func, paramIndex, paramOffset, paramSize));
}

/* What stands for a kernel may take the place of the program's function wherever one is asked for.
 */
FGV_EXPORT cudaError_t cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
	struct fgv_kernel *kernel;
	cudaError_t error = functionPtr ? fgv_kernel_of(symbolPtr, &kernel) : cudaErrorInvalidValue;

	if (!error)
		*functionPtr = (cudaFunction_t)kernel;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
	struct fgv_kernel *kernel;
	cudaError_t error =
		kernelPtr ? fgv_kernel_of(entryFuncAddr, &kernel) : cudaErrorInvalidValue;

	if (!error)
		*kernelPtr = (cudaKernel_t)kernel;
	return fgv_error_set(error);
}

/* All devices that a session has share a kernel's attributes: there is one. */
FGV_EXPORT cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel,
						       enum cudaFuncAttribute attr, int value,
						       int device)
{
	cudaError_t error = fgv_device_check(device);

	return fgv_error_set(error ? error : set_attribute(kernel, attr, value));
}
