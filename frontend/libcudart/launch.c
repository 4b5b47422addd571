/*
 * Launching. The configuration is checked here, with the limits of the device and of
 * the kernel, so that the launch can be posted; the codes are those that the runtime 13.0
 * returns on a Hopper GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/module/module.h"
#include "frontend/cuda/stream/attributes.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/launch.h"
#include "frontend/libcudart/thread.h"
#include "frontend/libcudart/registration.h"

/* Registers go to warps in units of this many for each thread. */
#define REGISTER_UNIT 8

cudaError_t fgv_kernel_of(const void *func, struct fgv_kernel **kernel)
{
	*kernel = fgv_registration_find(func);
	if (__builtin_expect(*kernel != NULL, 1))
		return cudaSuccess;
	return func ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
}

cudaError_t fgv_kernel_error(CUresult res)
{
	return res == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : fgv_error_from(res);
}

static bool fits(dim3 size, const int32_t limits[3])
{
	return size.x && size.y && size.z && size.x <= (uint32_t)limits[0] &&
	       size.y <= (uint32_t)limits[1] && size.z <= (uint32_t)limits[2];
}

/* A block that the kernel can't run in: for want of registers, or because it says so. */
static cudaError_t too_many_threads(const struct fgv_kernel *kernel, uint32_t threads,
				    const struct fgv_device_info *info)
{
	int regs = kernel->info->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS];
	int warp = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	int all = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);

	if (regs <= 0 || warp <= 0)
		return cudaErrorInvalidValue;
	if (fgv_align_up(threads, (uint64_t)warp) * fgv_align_up((uint64_t)regs, REGISTER_UNIT) >
	    (uint64_t)all)
		return cudaErrorLaunchOutOfResources;
	return cudaErrorInvalidValue;
}

/* Whether all blocks of a cooperative launch are there at once. */
static cudaError_t check_room(const struct fgv_kernel *kernel, const struct fgv_launch *launch,
			      const struct fgv_device_info *info, int threads)
{
	uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
	int processors = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	int each = 0;
	cudaError_t error;

	if (!fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
		return cudaErrorNotSupported;
	error = fgv_occupancy(kernel, info, threads, launch->shared_bytes, &each);
	if (error)
		return error;
	return blocks > (uint64_t)each * (uint64_t)processors ? cudaErrorCooperativeLaunchTooLarge
							      : cudaSuccess;
}

static cudaError_t check(const struct fgv_kernel *kernel, const struct fgv_launch *launch,
			 const struct fgv_device_info *info)
{
	const int32_t *limits = info->attributes;
	uint64_t threads;

	if (!fits(launch->grid, &limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X]) ||
	    !fits(launch->block, &limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X]))
		return cudaErrorInvalidValue;
	threads = (uint64_t)launch->block.x * launch->block.y * launch->block.z;
	if (threads > (uint32_t)limits[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return cudaErrorInvalidValue;
	if (threads > (uint32_t)kernel->info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return too_many_threads(kernel, (uint32_t)threads, info);
	if (launch->shared_bytes > __atomic_load_n(&kernel->max_dynamic_shared, __ATOMIC_RELAXED))
		return cudaErrorInvalidValue;
	if (kernel->info->param_count && !launch->args)
		return cudaErrorInvalidValue;
	if (launch->cooperative && !launch->in_clusters)
		return check_room(kernel, launch, info, (int)threads);
	return cudaSuccess;
}

/* The arguments, each padded with zeros to 8 bytes. */
static void copy_args(uint8_t *to, const struct fgv_function_info *info, void *const *args)
{
	for (uint32_t i = 0; i < info->param_count; i++) {
		uint32_t len = info->param_sizes[i];
		uint64_t small = 0;

		if (len == sizeof(small)) {
			memcpy(to, args[i], sizeof(small));
		} else if (len == sizeof(uint32_t)) {
			memcpy(&small, args[i], sizeof(uint32_t));
			memcpy(to, &small, sizeof(small));
		} else if (len) {
			memset(to + (len - 1) / 8 * 8, 0, 8);
			memcpy(to, args[i], len);
		}
		to += fgv_align_up(len, 8);
	}
}

/* Where the arguments go of a launch that is not like most; NULL if there is no room. */
static void *begin_special(struct fgv_lane *lane, const struct fgv_kernel *kernel,
			   const struct fgv_launch *launch, uint32_t stream)
{
	const uint32_t grid[3] = {launch->grid.x, launch->grid.y, launch->grid.z};
	const uint32_t block[3] = {launch->block.x, launch->block.y, launch->block.z};

	if (!launch->in_clusters)
		return fgv_begin_launch_cooperative(lane, kernel->function, grid, block,
						    (uint32_t)launch->shared_bytes, stream,
						    kernel->info->param_count, kernel->args_len);
	return fgv_begin_launch_clusters(
		lane, kernel->function, grid, block, (uint32_t)launch->shared_bytes, stream,
		kernel->info->param_count, launch->cluster, launch->cooperative,
		fgv_cluster_any_size(kernel), fgv_cluster_policy(kernel, launch), kernel->args_len);
}

static cudaError_t post(struct fgv_lane *lane, const struct fgv_kernel *kernel,
			const struct fgv_launch *launch, uint32_t stream)
{
	const uint32_t grid[3] = {launch->grid.x, launch->grid.y, launch->grid.z};
	const uint32_t block[3] = {launch->block.x, launch->block.y, launch->block.z};
	uint32_t shared_bytes = (uint32_t)launch->shared_bytes;
	void *args;

	if (__builtin_expect(lane->recorder != NULL, 0)) {
		lane->recorder->subject = kernel;
		lane->recorder->is_early = launch->early;
	}
	if (__builtin_expect(launch->cooperative || launch->in_clusters, 0))
		args = begin_special(lane, kernel, launch, stream);
	else
		args = fgv_begin_launch(lane, kernel->function, grid, block, shared_bytes, stream,
					kernel->info->param_count, kernel->args_len);
	if (!args)
		return cudaErrorInvalidValue;
	copy_args(args, kernel->info, launch->args);
	fgv_lane_commit(lane);
	return fgv_error_from(fgv_lane_status(lane));
}

static cudaError_t launch_on(struct fgv_lane *lane, struct fgv_kernel *kernel,
			     const struct fgv_launch *launch)
{
	const struct fgv_device_info *info = fgv_device_info();
	cudaError_t error;
	uint32_t stream;
	CUresult res;

	res = fgv_kernel_need(lane, kernel);
	if (res)
		return fgv_kernel_error(res);
	error = check(kernel, launch, info);
	if (!error && launch->in_clusters)
		error = fgv_cluster_check(lane, kernel, launch, info);
	if (!error)
		error = fgv_error_from(fgv_stream_handle(lane, launch->stream, &stream));
	return error ? error : post(lane, kernel, launch, stream);
}

static cudaError_t launch_kernel(const void *func, const struct fgv_launch *launch)
{
	struct fgv_kernel *kernel;
	struct fgv_lane *lane;
	cudaError_t error = fgv_kernel_of(func, &kernel);

	if (!error)
		error = fgv_enter(&lane);
	if (error)
		return error;
	error = launch_on(lane, kernel, launch);
	fgv_lane_leave(lane);
	return error;
}

static inline struct fgv_launch plain(dim3 grid, dim3 block, void **args, size_t shared_bytes,
				      cudaStream_t stream)
{
	return (struct fgv_launch){
		.grid = grid,
		.block = block,
		.shared_bytes = shared_bytes,
		.stream = stream,
		.args = args,
	};
}

FGV_EXPORT cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
					size_t sharedMem, cudaStream_t stream)
{
	const struct fgv_launch launch = plain(gridDim, blockDim, args, sharedMem, stream);

	return fgv_error_set(launch_kernel(func, &launch));
}

FGV_EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
						   void **args, size_t sharedMem,
						   cudaStream_t stream)
{
	struct fgv_launch launch = plain(gridDim, blockDim, args, sharedMem, stream);

	launch.cooperative = true;
	return fgv_error_set(launch_kernel(func, &launch));
}

FGV_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
					  size_t shared, cudaStream_t stream)
{
	const struct fgv_launch launch = plain(grid, block, args, shared, stream);

	return fgv_error_set(launch_kernel(kernel, &launch));
}

/* The handle is the address of what the registry keeps of the kernel. */
FGV_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	struct fgv_kernel *found;
	cudaError_t error = fgv_kernel_of(host, &found);

	if (!error)
		*kernel = (cudaKernel_t)found;
	return fgv_error_set(error);
}

/*
 * Who allows a kernel to begin before the one before it ends does not demand it, and an event that
 * may be recorded early is recorded at the end: it tells a graph how who waits for it may begin.
 */
static cudaError_t apply(const cudaLaunchAttribute *attribute, struct fgv_attributes *attributes,
			 struct fgv_launch *launch)
{
	switch (attribute->id) {
	case cudaLaunchAttributeIgnore:
		return cudaSuccess;
	case cudaLaunchAttributeProgrammaticStreamSerialization:
		launch->early = attribute->val.programmaticStreamSerializationAllowed;
		return cudaSuccess;
	case cudaLaunchAttributeProgrammaticEvent:
		launch->event = attribute->val.programmaticEvent.event;
		launch->event_edge.type = cudaGraphDependencyTypeProgrammatic;
		launch->event_edge.from_port = attribute->val.programmaticEvent.triggerAtBlockStart
						       ? cudaGraphKernelNodePortLaunchCompletion
						       : cudaGraphKernelNodePortProgrammatic;
		return fgv_error_from(
			fgv_event_check(launch->event, attribute->val.programmaticEvent.flags));
	case cudaLaunchAttributeLaunchCompletionEvent:
		launch->event = attribute->val.launchCompletionEvent.event;
		launch->event_edge.from_port = cudaGraphKernelNodePortLaunchCompletion;
		return fgv_error_from(
			fgv_event_check(launch->event, attribute->val.launchCompletionEvent.flags));
	default:
		return fgv_error_from(fgv_attribute_set(attributes, FGV_ATTRIBUTE_LAUNCH,
							(CUlaunchAttributeID)attribute->id,
							(const void *)&attribute->val));
	}
}

cudaError_t fgv_launch_read(const cudaLaunchConfig_t *config, struct fgv_launch *launch)
{
	struct fgv_attributes attributes = {0};
	cudaError_t error = cudaSuccess;

	if (!config || (config->numAttrs && !config->attrs))
		return cudaErrorInvalidValue;
	*launch = (struct fgv_launch){
		.grid = config->gridDim,
		.block = config->blockDim,
		.shared_bytes = config->dynamicSmemBytes,
		.stream = config->stream,
	};
	for (unsigned i = 0; i < config->numAttrs && !error; i++)
		error = apply(&config->attrs[i], &attributes, launch);
	if (error)
		return error;
	launch->cooperative = attributes.cooperative;
	launch->in_clusters = fgv_attributes_have_clusters(&attributes);
	launch->cluster[0] = attributes.cluster.x;
	launch->cluster[1] = attributes.cluster.y;
	launch->cluster[2] = attributes.cluster.z;
	launch->policy = (enum cudaClusterSchedulingPolicy)attributes.cluster_policy;
	return cudaSuccess;
}

static cudaError_t launch_extended(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	struct fgv_launch launch;
	cudaError_t error = fgv_launch_read(config, &launch);

	if (error)
		return error;
	launch.args = args;
	error = launch_kernel(func, &launch);
	if (!error && launch.event)
		error = fgv_error_from(fgv_event_record_behind(launch.event, launch.stream,
							       (const void *)&launch.event_edge));
	return error;
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
