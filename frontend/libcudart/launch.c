/*
 * Launching by what the program has for a kernel: the address of a function of its own, or the
 * kernel itself. Kernels and functions of the runtime are the driver's.
 */
#include "frontend/cuda/module/launch.h"

#include <stdlib.h>

#include "frontend/cuda/module/registry.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/launch.h"
#include "frontend/libcudart/registration.h"
#include "frontend/libcudart/thread.h"

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "attributes of launches");

static cudaError_t why_none(const void *func)
{
	return func ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
}

cudaError_t fgv_kernel_of(const void *func, struct fgv_kernel **kernel)
{
	*kernel = fgv_registration_find(func);
	return __builtin_expect(*kernel != NULL, 1) ? cudaSuccess : why_none(func);
}

cudaError_t fgv_kernel_error(CUresult res)
{
	return res == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : fgv_error_from(res);
}

static inline struct fgv_launch plain(dim3 grid, dim3 block, void **args, size_t shared_bytes,
				      cudaStream_t stream)
{
	return (struct fgv_launch){
		.grid = {grid.x, grid.y, grid.z},
		.block = {block.x, block.y, block.z},
		.shared_bytes = shared_bytes,
		.stream = stream,
		.args = args,
	};
}

static inline cudaError_t run(struct fgv_kernel *kernel, const void *func,
			      const struct fgv_launch *launch)
{
	CUresult res;

	if (__builtin_expect(!kernel, 0))
		return why_none(func);
	res = fgv_launch_run(kernel, launch);
	return __builtin_expect(res != CUDA_SUCCESS, 0) ? fgv_kernel_error(res) : cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
					size_t sharedMem, cudaStream_t stream)
{
	const struct fgv_launch launch = plain(gridDim, blockDim, args, sharedMem, stream);

	return fgv_error_set(run(fgv_registration_find(func), func, &launch));
}

FGV_EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
						   void **args, size_t sharedMem,
						   cudaStream_t stream)
{
	struct fgv_launch launch = plain(gridDim, blockDim, args, sharedMem, stream);

	launch.cooperative = true;
	return fgv_error_set(run(fgv_registration_find(func), func, &launch));
}

/* Most are kernels by themselves here, as the compiler's code has asked for them before. */
FGV_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
					  size_t shared, cudaStream_t stream)
{
	const struct fgv_launch launch = plain(grid, block, args, shared, stream);
	struct fgv_kernel *found = fgv_registry_kernel(kernel);

	if (__builtin_expect(!found, 0))
		found = fgv_registration_kernel(kernel);
	return fgv_error_set(run(found, kernel, &launch));
}

FGV_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	struct fgv_kernel *found;
	cudaError_t error = fgv_kernel_of(host, &found);

	if (!error)
		*kernel = (cudaKernel_t)found;
	return fgv_error_set(error);
}

/* No kernel may have more shared memory than fits into the driver's number of its bytes. */
void fgv_launch_convert(const cudaLaunchConfig_t *config, CUlaunchConfig *converted)
{
	*converted = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = config->dynamicSmemBytes > UINT32_MAX
					  ? UINT32_MAX
					  : (unsigned)config->dynamicSmemBytes,
		.hStream = config->stream,
		.attrs = (CUlaunchAttribute *)config->attrs,
		.numAttrs = config->numAttrs,
	};
}

static cudaError_t launch_extended(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	struct fgv_kernel *kernel;
	CUlaunchConfig converted;
	cudaError_t error = config ? fgv_kernel_of(func, &kernel) : cudaErrorInvalidValue;

	if (error)
		return error;
	fgv_launch_convert(config, &converted);
	return fgv_kernel_error(fgv_launch_extended(kernel, &converted, args, NULL));
}

FGV_EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
					   void **args)
{
	return fgv_error_set(launch_extended(config, func, args));
}

static void forget_configs(void)
{
	struct fgv_cudart_thread *self = &fgv_cudart_self;

	free(self->configs);
	self->configs = NULL;
	self->config_count = self->config_room = 0;
}

static __thread struct fgv_thread_part part = {.end = forget_configs};

/*
 * kernel<<<...>>>(args) pushes the configuration, evaluates the arguments, which may
 * launch kernels themselves, and pops it. 0 for success.
 */
FGV_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
						cudaStream_t stream)
{
	struct fgv_cudart_thread *self = &fgv_cudart_self;
	uint32_t room = self->config_room ? self->config_room * 2 : 4;
	struct fgv_launch_config *more;

	if (self->config_count == self->config_room) {
		if (fgv_thread_add(&part))
			return fgv_error_set(cudaErrorMemoryAllocation);
		more = realloc(self->configs, room * sizeof(*more));
		if (!more)
			return fgv_error_set(cudaErrorMemoryAllocation);
		self->configs = more;
		self->config_room = room;
	}
	self->configs[self->config_count++] =
		(struct fgv_launch_config){grid, block, shared, stream};
	return 0;
}

FGV_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
						  void *stream)
{
	struct fgv_cudart_thread *self = &fgv_cudart_self;
	const struct fgv_launch_config *config;

	if (!self->config_count)
		return fgv_error_set(cudaErrorMissingConfiguration);
	config = &self->configs[--self->config_count];
	*grid = config->grid;
	*block = config->block;
	*shared = config->shared_bytes;
	*(cudaStream_t *)stream = config->stream;
	return cudaSuccess;
}
