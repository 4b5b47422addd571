/*
 * What the program may ask about a kernel, by what it has for it.
 */
#include "frontend/cuda/module/function.h"

#include <string.h>

#include "frontend/cuda/module/cluster.h"
#include "frontend/cuda/module/occupancy.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/launch.h"

/* The kernel, known in full. */
static cudaError_t need(const void *func, struct fgv_kernel **kernel)
{
	cudaError_t error = fgv_kernel_of(func, kernel);

	return error ? error : fgv_kernel_error(fgv_function_need(kernel));
}

static int of(struct fgv_kernel *kernel, CUfunction_attribute attribute)
{
	int value = 0;

	fgv_function_get_attribute(kernel, attribute, &value);
	return value;
}

static void describe(struct fgv_kernel *kernel, struct cudaFuncAttributes *attr)
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
	attr->maxDynamicSharedSizeBytes =
		of(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
	attr->preferredShmemCarveout =
		of(kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
	attr->clusterDimMustBeSet = of(kernel, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
	attr->requiredClusterWidth = of(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
	attr->requiredClusterHeight = of(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
	attr->requiredClusterDepth = of(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
	attr->nonPortableClusterSizeAllowed =
		of(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
	attr->clusterSchedulingPolicyPreference =
		of(kernel, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
}

FGV_EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	struct fgv_kernel *kernel;
	cudaError_t error;

	if (!attr)
		return fgv_error_set(cudaErrorInvalidValue);
	error = need(func, &kernel);
	if (!error)
		describe(kernel, attr);
	return fgv_error_set(error);
}

static cudaError_t set_attribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	struct fgv_kernel *kernel;
	cudaError_t error = fgv_kernel_of(func, &kernel);

	if (error)
		return error;
	return fgv_kernel_error(
		fgv_function_set_attribute(kernel, (CUfunction_attribute)attr, value));
}

FGV_EXPORT cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr,
					    int value)
{
	return fgv_error_set(set_attribute(func, attr, value));
}

static cudaError_t occupancy(int *blocks, const void *func, int block_size, size_t shared_bytes,
			     unsigned flags)
{
	struct fgv_kernel *kernel;
	cudaError_t error = blocks ? fgv_kernel_of(func, &kernel) : cudaErrorInvalidValue;

	if (error)
		return error;
	return fgv_kernel_error(
		fgv_occupancy_max_blocks(kernel, block_size, shared_bytes, flags, blocks));
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

FGV_EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize,
								 const void *func, int numBlocks,
								 int blockSize)
{
	struct fgv_kernel *kernel;
	cudaError_t error = dynamicSmemSize && numBlocks > 0 && blockSize > 0
				    ? fgv_kernel_of(func, &kernel)
				    : cudaErrorInvalidValue;

	if (!error)
		error = fgv_kernel_error(
			fgv_occupancy_max_shared(kernel, numBlocks, blockSize, dynamicSmemSize));
	return fgv_error_set(error);
}

static cudaError_t ask_clusters(const void *func, const cudaLaunchConfig_t *config, int *result,
				CUresult (*ask)(struct fgv_kernel *kernel,
						const CUlaunchConfig *config, int *result))
{
	struct fgv_kernel *kernel;
	CUlaunchConfig converted;
	cudaError_t error = config && result ? fgv_kernel_of(func, &kernel) : cudaErrorInvalidValue;

	if (error)
		return error;
	fgv_launch_convert(config, &converted);
	return fgv_kernel_error(ask(kernel, &converted, result));
}

FGV_EXPORT cudaError_t cudaOccupancyMaxActiveClusters(int *numClusters, const void *func,
						      const cudaLaunchConfig_t *launchConfig)
{
	return fgv_error_set(
		ask_clusters(func, launchConfig, numClusters, fgv_cluster_count_active));
}

FGV_EXPORT cudaError_t cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func,
							    const cudaLaunchConfig_t *launchConfig)
{
	return fgv_error_set(
		ask_clusters(func, launchConfig, clusterSize, fgv_cluster_find_largest));
}

FGV_EXPORT cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	struct fgv_kernel *kernel;
	cudaError_t error = name ? fgv_kernel_of(func, &kernel) : cudaErrorInvalidValue;

	if (!error)
		*name = kernel->name;
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaFuncGetParamInfo(const void *func, size_t paramIndex,
					    size_t *paramOffset, size_t *paramSize)
{
	struct fgv_kernel *kernel;
	cudaError_t error = paramOffset ? fgv_kernel_of(func, &kernel) : cudaErrorInvalidValue;

	if (!error)
		error = fgv_kernel_error(
			fgv_function_get_param(kernel, paramIndex, paramOffset, paramSize));
	return fgv_error_set(error);
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
