/*
 * Launching. The configuration is checked here, with the limits of the device and of
 * the kernel, so that the launch can be posted; the codes are those that CUDA 13.0
 * returns on a Hopper GPU.
 */
#include "frontend/cuda/module/launch.h"

#include <string.h>

#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/module/cluster.h"
#include "frontend/cuda/module/module.h"
#include "frontend/cuda/module/occupancy.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/stream.h"

/* Registers go to warps in units of this many for each thread. */
#define REGISTER_UNIT 8

static bool fits(const uint32_t size[3], const int32_t limits[3])
{
	return size[0] && size[1] && size[2] && size[0] <= (uint32_t)limits[0] &&
	       size[1] <= (uint32_t)limits[1] && size[2] <= (uint32_t)limits[2];
}

/* A block that the kernel can't run in: for want of registers, or because it says so. */
static CUresult too_many_threads(const struct fgv_kernel *kernel, uint32_t threads,
				 const struct fgv_device_info *info)
{
	int regs = kernel->info->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS];
	int warp = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	int all = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);

	if (regs <= 0 || warp <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (fgv_align_up(threads, (uint64_t)warp) * fgv_align_up((uint64_t)regs, REGISTER_UNIT) >
	    (uint64_t)all)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return CUDA_ERROR_INVALID_VALUE;
}

/* Whether all blocks of a cooperative launch are there at once. */
static CUresult check_room(const struct fgv_kernel *kernel, const struct fgv_launch *launch,
			   const struct fgv_device_info *info, int threads)
{
	uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	int processors = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	int each = 0;
	CUresult res;

	if (!fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
		return CUDA_ERROR_NOT_SUPPORTED;
	res = fgv_occupancy_of(kernel, threads, launch->shared_bytes, &each);
	if (res)
		return res;
	return blocks > (uint64_t)each * (uint64_t)processors
		       ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
		       : CUDA_SUCCESS;
}

/* What is left of a buffer of arguments, if it is one. */
static bool read_extra(void *const *extra, const uint8_t **buffer, size_t *len)
{
	*buffer = NULL;
	*len = 0;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			*len = *(const size_t *)extra[1];
		else
			return false;
	}
	return true;
}

/*
 * The buffer may be shorter than the parameters are: NCCL fills the beginning of a large one. By
 * itself, as is copying such a buffer: most launches have none, and would pay for the room on the
 * stack.
 */
static __attribute__((noinline)) CUresult check_extra(const struct fgv_function_info *info,
						      void *const *extra)
{
	const uint8_t *buffer;
	size_t len;

	if (!read_extra(extra, &buffer, &len) || (info->param_count && (!buffer || !len)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult check_args(const struct fgv_function_info *info, const struct fgv_launch *launch)
{
	if (launch->args && launch->extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (launch->extra)
		return check_extra(info, launch->extra);
	return info->param_count && !launch->args ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult check(const struct fgv_kernel *kernel, const struct fgv_launch *launch,
		      const struct fgv_device_info *info)
{
	const int32_t *limits = info->attributes;
	uint64_t threads;
	CUresult res;

	if (!fits(launch->grid, &limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X]) ||
	    !fits(launch->block, &limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X]))
		return CUDA_ERROR_INVALID_VALUE;
	threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	if (threads > (uint32_t)limits[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > (uint32_t)kernel->info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return too_many_threads(kernel, (uint32_t)threads, info);
	if (launch->shared_bytes > __atomic_load_n(&kernel->max_dynamic_shared, __ATOMIC_RELAXED))
		return CUDA_ERROR_INVALID_VALUE;
	res = check_args(kernel->info, launch);
	if (res)
		return res;
	if (launch->cooperative && !launch->in_clusters)
		return check_room(kernel, launch, info, (int)threads);
	return CUDA_SUCCESS;
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

/*
 * The same from a buffer in which they lie as the kernel has them: their sizes are followed by their
 * offsets. What is not in the buffer is zero.
 */
static __attribute__((noinline)) void copy_extra(uint8_t *to, const struct fgv_function_info *info,
						 void *const *extra)
{
	const uint8_t *buffer;
	size_t buffer_len;

	read_extra(extra, &buffer, &buffer_len);
	for (uint32_t i = 0; i < info->param_count; i++) {
		uint32_t offset = info->param_sizes[info->param_count + i];
		size_t room = fgv_align_up(info->param_sizes[i], 8);
		size_t there = buffer_len > offset ? buffer_len - offset : 0;
		size_t len = there < info->param_sizes[i] ? there : info->param_sizes[i];

		if (len)
			memcpy(to, buffer + offset, len);
		memset(to + len, 0, room - len);
		to += room;
	}
}

/* Where the arguments go of a launch that is not like most; NULL if there is no room. */
static void *begin_special(struct fgv_lane *lane, const struct fgv_kernel *kernel,
			   const struct fgv_launch *launch, uint32_t stream)
{
	if (!launch->in_clusters)
		return fgv_begin_launch_cooperative(lane, kernel->function, launch->grid,
						    launch->block, (uint32_t)launch->shared_bytes,
						    stream, kernel->info->param_count,
						    kernel->args_len);
	return fgv_begin_launch_clusters(
		lane, kernel->function, launch->grid, launch->block, (uint32_t)launch->shared_bytes,
		stream, kernel->info->param_count, launch->cluster, launch->cooperative,
		fgv_cluster_any_size(kernel), fgv_cluster_policy(kernel, launch), kernel->args_len);
}

static CUresult post(struct fgv_lane *lane, const struct fgv_kernel *kernel,
		     const struct fgv_launch *launch, uint32_t stream)
{
	uint32_t shared_bytes = (uint32_t)launch->shared_bytes;
	void *args;

	if (__builtin_expect(lane->recorder != NULL, 0)) {
		lane->recorder->subject = kernel->original ? kernel->original : kernel;
		lane->recorder->is_early = launch->early;
		if (launch->has_priority)
			lane->recorder->priority = launch->priority;
	}
	if (__builtin_expect(launch->cooperative || launch->in_clusters, 0))
		args = begin_special(lane, kernel, launch, stream);
	else
		args = fgv_begin_launch(lane, kernel->function, launch->grid, launch->block,
					shared_bytes, stream, kernel->info->param_count,
					kernel->args_len);
	if (!args)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_expect(launch->extra != NULL, 0))
		copy_extra(args, kernel->info, launch->extra);
	else
		copy_args(args, kernel->info, launch->args);
	fgv_lane_commit(lane);
	return fgv_lane_status(lane);
}

static CUresult launch_on(struct fgv_lane *lane, struct fgv_kernel *kernel,
			  const struct fgv_launch *launch)
{
	const struct fgv_device_info *info = fgv_device_info();
	CUresult res = fgv_kernel_need(lane, kernel);
	uint32_t stream;

	if (!res)
		res = check(kernel, launch, info);
	if (!res && launch->in_clusters)
		res = fgv_cluster_check(lane, kernel, launch, info);
	if (!res)
		res = fgv_stream_handle(lane, launch->stream, &stream);
	return res ? res : post(lane, kernel, launch, stream);
}

CUresult fgv_launch_run(struct fgv_kernel *kernel, const struct fgv_launch *launch)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	res = fgv_registry_kernel_on(lane->client->device, &kernel);
	if (!res)
		res = launch_on(lane, kernel, launch);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_launch_extended(struct fgv_kernel *kernel, const CUlaunchConfig *config, void **args,
			     void **extra)
{
	struct fgv_launch launch;
	CUresult res = fgv_launch_read(config, &launch);

	if (res)
		return res;
	launch.args = args;
	launch.extra = extra;
	res = fgv_launch_run(kernel, &launch);
	if (!res && launch.event)
		res = fgv_event_record_behind(launch.event, launch.stream, &launch.event_edge);
	return res;
}
