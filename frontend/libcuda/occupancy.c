/*
 * How much of a kernel runs at once.
 */
#include "frontend/cuda/module/occupancy.h"

#include "frontend/cuda/module/cluster.h"
#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/kernel.h"

static CUresult max_blocks(int *blocks, CUfunction func, int block_size, size_t shared_bytes,
			   unsigned flags)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(func, &kernel);

	return res ? res
		   : fgv_occupancy_max_blocks(kernel, block_size, shared_bytes, flags, blocks);
}

FGV_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
								int blockSize,
								size_t dynamicSMemSize)
{
	return FGV_CALL(
		max_blocks(numBlocks, func, blockSize, dynamicSMemSize, CU_OCCUPANCY_DEFAULT));
}

FGV_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	return FGV_CALL(max_blocks(numBlocks, func, blockSize, dynamicSMemSize, flags));
}

static CUresult best_block(CUfunction func, CUoccupancyB2DSize shared_of, size_t shared_bytes,
			   int limit, unsigned flags, int *grid_size, int *block_size)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(func, &kernel);

	return res ? res
		   : fgv_occupancy_best_block(kernel, shared_of, shared_bytes, limit, flags,
					      grid_size, block_size);
}

FGV_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize,
						     CUfunction func,
						     CUoccupancyB2DSize blockSizeToDynamicSMemSize,
						     size_t dynamicSMemSize, int blockSizeLimit)
{
	return FGV_CALL(best_block(func, blockSizeToDynamicSMemSize, dynamicSMemSize,
				   blockSizeLimit, CU_OCCUPANCY_DEFAULT, minGridSize, blockSize));
}

FGV_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(
	int *minGridSize, int *blockSize, CUfunction func,
	CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit,
	unsigned int flags)
{
	return FGV_CALL(best_block(func, blockSizeToDynamicSMemSize, dynamicSMemSize,
				   blockSizeLimit, flags, minGridSize, blockSize));
}

static CUresult max_shared(size_t *bytes, CUfunction func, int blocks, int block_size)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(func, &kernel);

	return res ? res : fgv_occupancy_max_shared(kernel, blocks, block_size, bytes);
}

FGV_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize,
							    CUfunction func, int numBlocks,
							    int blockSize)
{
	return FGV_CALL(max_shared(dynamicSmemSize, func, numBlocks, blockSize));
}

static CUresult count_clusters(int *count, CUfunction func, const CUlaunchConfig *config)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(func, &kernel);

	return res ? res : fgv_cluster_count_active(kernel, config, count);
}

FGV_EXPORT CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
						 const CUlaunchConfig *config)
{
	return FGV_CALL(count_clusters(numClusters, func, config));
}

static CUresult find_largest(int *size, CUfunction func, const CUlaunchConfig *config)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(func, &kernel);

	return res ? res : fgv_cluster_find_largest(kernel, config, size);
}

FGV_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
						       const CUlaunchConfig *config)
{
	return FGV_CALL(find_largest(clusterSize, func, config));
}
