/*
 * Launches.
 */
#include "frontend/cuda/module/launch.h"

#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/kernel.h"

static CUresult run(CUfunction f, const struct fgv_launch *launch)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(f, &kernel);

	if (__builtin_expect(launch->args && launch->extra, 0) && !res)
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : fgv_launch_run(kernel, launch);
}

FGV_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
				   unsigned int gridDimZ, unsigned int blockDimX,
				   unsigned int blockDimY, unsigned int blockDimZ,
				   unsigned int sharedMemBytes, CUstream hStream,
				   void **kernelParams, void **extra)
{
	const struct fgv_launch launch = {
		.grid = {gridDimX, gridDimY, gridDimZ},
		.block = {blockDimX, blockDimY, blockDimZ},
		.shared_bytes = sharedMemBytes,
		.stream = hStream,
		.args = kernelParams,
		.extra = extra,
	};

	return FGV_CALL(run(f, &launch));
}

FGV_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
					      unsigned int gridDimY, unsigned int gridDimZ,
					      unsigned int blockDimX, unsigned int blockDimY,
					      unsigned int blockDimZ, unsigned int sharedMemBytes,
					      CUstream hStream, void **kernelParams)
{
	const struct fgv_launch launch = {
		.grid = {gridDimX, gridDimY, gridDimZ},
		.block = {blockDimX, blockDimY, blockDimZ},
		.shared_bytes = sharedMemBytes,
		.stream = hStream,
		.args = kernelParams,
		.cooperative = true,
	};

	return FGV_CALL(run(f, &launch));
}

static CUresult run_extended(const CUlaunchConfig *config, CUfunction f, void **args, void **extra)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(f, &kernel);

	if (!res && args && extra)
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : fgv_launch_extended(kernel, config, args, extra);
}

FGV_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f,
				     void **kernelParams, void **extra)
{
	return FGV_CALL(run_extended(config, f, kernelParams, extra));
}

FGV_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
					  void **kernelParams, void **extra)
{
	CUlaunchConfig own;

	if (!config)
		return cuLaunchKernelEx(config, f, kernelParams, extra);
	own = *config;
	own.hStream = fgv_driver_per_thread(own.hStream);
	return cuLaunchKernelEx(&own, f, kernelParams, extra);
}
