/*
 * The soft GPU as gpu_ops. Most of it is a change of names: streams, events, modules
 * and functions are the soft GPU's own, passed through as pointers of another type.
 * What is added: fences, the count of free memory, and in files of their own, modules and arrays.
 *
 * Threads: the dispatcher's; the soft GPU has its own behind softgpu.h.
 */
#include "backend/gpu/soft_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/shared.h"
#include "common/util.h"

/*
 * Where device addresses begin, and how far apart those of two devices are. Linux maps
 * from 2^47 down and, for programs, from 0x5500_0000_0000 up; AddressSanitizer's shadow
 * memory ends below 32 TiB. ThreadSanitizer leaves a program the first 512 GiB.
 */
#ifdef __SANITIZE_THREAD__
#define VA_BASE	  0x001000000000ull
#define VA_DEVICE 0x000400000000ull
#else
#define VA_BASE	  0x200000000000ull
#define VA_DEVICE 0x010000000000ull
#endif

/* One that has passed waits in the list to be used again. */
struct fgv_gpu_fence {
	struct softgpu_point point;
	struct fgv_gpu_fence *next;
};

static struct softgpu_event *event_of(struct fgv_gpu_event *event)
{
	return (struct softgpu_event *)event;
}

static int soft_count(char *why, size_t why_len)
{
	(void)why;
	(void)why_len;
	return FGV_GPU_DEVICES_MAX;
}

static void soft_place(int ordinal, char *place, size_t len)
{
	(void)ordinal;
	snprintf(place, len, "%s", "");
}

static uint32_t soft_peers(int ordinal, int count)
{
	return ((1u << count) - 1) & ~(1u << ordinal);
}

static void soft_divide(int ordinal, struct fgv_units *units)
{
	(void)ordinal;
	*units = (struct fgv_units){.units = FGV_SOFT_UNITS, .each = 1, .lends = 1};
}

static CUresult soft_set_units(struct fgv_gpu *gpu, uint64_t set)
{
	softgpu_set_units(gpu_of(gpu), set);
	return CUDA_SUCCESS;
}

static CUresult soft_open(const struct fgv_gpu_config *config, struct fgv_gpu **gpu)
{
	struct soft *soft = calloc(1, sizeof(*soft));
	struct softgpu_config wanted = {
		.ordinal = config->ordinal,
		.va_base = VA_BASE + VA_DEVICE * (uint64_t)config->ordinal,
		.memory_bytes = config->soft_memory_bytes,
		.va_bytes = VA_DEVICE,
		.engine = config->soft_engine,
		.workers = config->soft_is_divided ? FGV_SOFT_UNITS : 0,
	};
	CUresult status;

	if (!soft)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = softgpu_create(&wanted, &soft->gpu);
	if (status != CUDA_SUCCESS) {
		free(soft);
		return status;
	}
	soft->base.ops = &fgv_gpu_soft;
	soft->ordinal = config->ordinal;
	soft->va_base = wanted.va_base;
	soft->memory_bytes = wanted.memory_bytes;
	soft->purse = config->soft_purse;
	*gpu = &soft->base;
	return CUDA_SUCCESS;
}

static void soft_close(struct fgv_gpu *gpu)
{
	struct soft *soft = (struct soft *)gpu;

	while (soft->free_fences) {
		struct fgv_gpu_fence *fence = soft->free_fences;

		soft->free_fences = fence->next;
		free(fence);
	}
	softgpu_destroy(soft->gpu);
	fgv_soft_count(soft, 0);
	free(soft);
}

static CUresult soft_use(struct fgv_gpu *gpu)
{
	(void)gpu;
	return CUDA_SUCCESS;
}

static void soft_halt(struct fgv_gpu *gpu, bool waits)
{
	if (waits)
		softgpu_halt(gpu_of(gpu));
	else
		softgpu_stop(gpu_of(gpu));
}

static int attribute_of(struct soft *soft, CUdevice_attribute attribute)
{
	int value = 0;

	if (softgpu_attribute(soft->gpu, attribute, &value) != CUDA_SUCCESS)
		return 0;
	return value;
}

static CUresult soft_info(struct fgv_gpu *gpu, struct fgv_device_info *info)
{
	struct soft *soft = (struct soft *)gpu;

	memset(info, 0, sizeof(*info));
	info->memory_bytes = soft->memory_bytes;
	info->va_base = soft->va_base;
	info->va_len = soft->memory_bytes;
	memcpy(info->uuid, "FairGV soft GPU", sizeof(info->uuid));
	info->uuid[15] = (uint8_t)soft->ordinal;
	info->driver_version = CUDA_VERSION;
	snprintf(info->name, sizeof(info->name), "%s", softgpu_name(soft->gpu));
	snprintf(info->pci_bus_id, sizeof(info->pci_bus_id), "%04x:%02x:%02x.0",
		 (unsigned)attribute_of(soft, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) & 0xffff,
		 (unsigned)attribute_of(soft, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) & 0xff,
		 (unsigned)attribute_of(soft, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) & 0xff);
	for (int i = 1; i < FGV_DEVICE_ATTRIBUTES; i++) {
		if (softgpu_attribute(soft->gpu, (CUdevice_attribute)i, &info->attributes[i]) ==
		    CUDA_SUCCESS)
			info->attribute_known[i / 32] |= 1u << (i % 32);
	}
	return CUDA_SUCCESS;
}

static CUresult soft_mem_alloc(struct fgv_gpu *gpu, uint64_t bytes, uint64_t *address)
{
	struct soft *soft = (struct soft *)gpu;
	CUresult status;

	if (!fgv_soft_take(soft, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = softgpu_mem_alloc(soft->gpu, bytes, address);
	if (status != CUDA_SUCCESS)
		fgv_soft_give(soft, bytes);
	return status;
}

static CUresult soft_mem_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
			      uint64_t charged)
{
	CUresult status = softgpu_mem_free(gpu_of(gpu), address);

	(void)charged;
	if (status == CUDA_SUCCESS)
		fgv_soft_give((struct soft *)gpu, bytes);
	return status;
}

/* Nothing is put off. */
static void soft_reclaim(struct fgv_gpu *gpu)
{
	(void)gpu;
}

static CUresult soft_mem_info(struct fgv_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct soft *soft = (struct soft *)gpu;

	*total_bytes = soft->memory_bytes;
	*free_bytes = fgv_soft_left(soft);
	return CUDA_SUCCESS;
}

/* Streams and the like take this process's memory, of which a soft GPU's is made. */
static void soft_costs(struct fgv_gpu *gpu, struct fgv_gpu_costs *costs)
{
	struct soft *soft = (struct soft *)gpu;

	*costs = (struct fgv_gpu_costs){
		.granule = SOFTGPU_GRANULE,
		.stream = 256,
		.event = 128,
		.texture = 256,
		.graph = 256,
		.graph_node = 512,
		.threads = (uint64_t)attribute_of(soft, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
			   (uint64_t)attribute_of(
				   soft, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
	};
}

static CUresult soft_host_register(struct fgv_gpu *gpu, void *base, size_t bytes)
{
	return softgpu_host_register(gpu_of(gpu), base, bytes);
}

static CUresult soft_host_retire(struct fgv_gpu *gpu, void *base)
{
	return softgpu_host_retire(gpu_of(gpu), base);
}

static CUresult soft_host_unregister(struct fgv_gpu *gpu, void *base)
{
	return softgpu_host_unregister(gpu_of(gpu), base);
}

static CUresult soft_copy_in(struct fgv_gpu *gpu, uint64_t dst, const void *src, size_t bytes,
			     struct fgv_gpu_stream *stream)
{
	return softgpu_copy_htod_inline(gpu_of(gpu), dst, src, bytes, stream_of(stream));
}

/* In the order of the queue, and at once. */
static CUresult soft_value_write(struct fgv_gpu *gpu, uint64_t address, uint64_t value,
				 unsigned width, unsigned flags, struct fgv_gpu_stream *stream)
{
	(void)flags;
	return softgpu_copy_htod_inline(gpu_of(gpu), address, &value, width, stream_of(stream));
}

static CUresult soft_copy_in_bulk(struct fgv_gpu *gpu, uint64_t dst, const void *src, size_t bytes,
				  struct fgv_gpu_stream *stream)
{
	return softgpu_copy_htod(gpu_of(gpu), dst, src, bytes, stream_of(stream));
}

static CUresult soft_copy_out(struct fgv_gpu *gpu, void *dst, uint64_t src, size_t bytes,
			      struct fgv_gpu_stream *stream)
{
	return softgpu_copy_dtoh(gpu_of(gpu), dst, src, bytes, stream_of(stream));
}

static CUresult soft_copy_device(struct fgv_gpu *gpu, uint64_t dst, uint64_t src, size_t bytes,
				 struct fgv_gpu_stream *stream)
{
	return softgpu_copy_dtod(gpu_of(gpu), dst, src, bytes, stream_of(stream));
}

static CUresult soft_fill(struct fgv_gpu *gpu, uint64_t dst, uint32_t value, unsigned width,
			  size_t count, struct fgv_gpu_stream *stream)
{
	return softgpu_fill(gpu_of(gpu), dst, count * width, value, width, count, 1,
			    stream_of(stream));
}

static CUresult soft_fill_rows(struct fgv_gpu *gpu, uint64_t dst, size_t pitch, uint8_t value,
			       size_t width, size_t height, struct fgv_gpu_stream *stream)
{
	return softgpu_fill(gpu_of(gpu), dst, pitch, value, 1, width, height, stream_of(stream));
}

static CUresult soft_module_unload(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				   uint64_t bytes)
{
	(void)bytes;
	softgpu_module_unload(gpu_of(gpu), (struct softgpu_module *)module);
	return CUDA_SUCCESS;
}

static CUresult soft_module_global(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				   const char *name, uint64_t *address, uint64_t *bytes)
{
	size_t size = 0;
	CUresult status;

	(void)gpu;
	status = softgpu_module_global((struct softgpu_module *)module, name, address, &size);
	*bytes = size;
	return status;
}

static CUresult soft_module_function(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				     const char *name, struct fgv_gpu_function **function)
{
	struct softgpu_function *found = NULL;
	CUresult status;

	(void)gpu;
	status = softgpu_module_function((struct softgpu_module *)module, name, &found);
	*function = (struct fgv_gpu_function *)found;
	return status;
}

static CUresult soft_module_kernels(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				    void (*each)(const char *name, void *arg), void *arg)
{
	(void)gpu;
	softgpu_module_kernels((const struct softgpu_module *)module, each, arg);
	return CUDA_SUCCESS;
}

static const struct softgpu_function_info *info_of(struct fgv_gpu_function *function)
{
	return softgpu_function_info((const struct softgpu_function *)function);
}

static CUresult soft_function_param(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				    unsigned index, uint32_t *offset, uint32_t *bytes)
{
	const struct softgpu_function_info *info = info_of(function);

	(void)gpu;
	if (index >= info->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = info->param_offsets[index];
	*bytes = info->param_sizes[index];
	return CUDA_SUCCESS;
}

static CUresult soft_function_attribute(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
					CUfunction_attribute attribute, int *value)
{
	(void)gpu;
	if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*value = info_of(function)->attributes[attribute];
	return CUDA_SUCCESS;
}

static CUresult soft_launch(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
			    const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			    struct fgv_gpu_stream *stream, void **params)
{
	return softgpu_launch(gpu_of(gpu), (struct softgpu_function *)function, grid, block,
			      shared_bytes, stream_of(stream), params);
}

static CUresult soft_launch_cooperative(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
					const uint32_t grid[3], const uint32_t block[3],
					uint32_t shared_bytes, struct fgv_gpu_stream *stream,
					void **params)
{
	return softgpu_launch_cooperative(gpu_of(gpu), (struct softgpu_function *)function, grid,
					  block, shared_bytes, stream_of(stream), params);
}

/* An engine takes what comes first: nothing that priorities could change. */
static CUresult soft_stream_create(struct fgv_gpu *gpu, uint32_t flags, int32_t priority,
				   struct fgv_gpu_stream **stream)
{
	struct softgpu_stream *made = NULL;
	CUresult status;

	(void)priority;
	status = softgpu_stream_create(gpu_of(gpu), !(flags & CU_STREAM_NON_BLOCKING), &made);
	*stream = (struct fgv_gpu_stream *)made;
	return status;
}

static CUresult soft_stream_destroy(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream)
{
	return softgpu_stream_destroy(gpu_of(gpu), stream_of(stream));
}

static CUresult soft_stream_query(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream)
{
	return softgpu_stream_query(gpu_of(gpu), stream_of(stream));
}

static CUresult soft_stream_wait_event(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
				       struct fgv_gpu_event *event)
{
	return softgpu_stream_wait_event(gpu_of(gpu), stream_of(stream), event_of(event));
}

static CUresult soft_event_create(struct fgv_gpu *gpu, uint32_t flags, struct fgv_gpu_event **event)
{
	struct softgpu_event *made = NULL;
	CUresult status;

	(void)flags;
	status = softgpu_event_create(gpu_of(gpu), &made);
	*event = (struct fgv_gpu_event *)made;
	return status;
}

static CUresult soft_event_destroy(struct fgv_gpu *gpu, struct fgv_gpu_event *event)
{
	softgpu_event_destroy(gpu_of(gpu), event_of(event));
	return CUDA_SUCCESS;
}

static CUresult soft_event_record(struct fgv_gpu *gpu, struct fgv_gpu_event *event,
				  struct fgv_gpu_stream *stream)
{
	return softgpu_event_record(gpu_of(gpu), event_of(event), stream_of(stream));
}

static CUresult soft_event_query(struct fgv_gpu *gpu, struct fgv_gpu_event *event)
{
	return softgpu_event_query(gpu_of(gpu), event_of(event));
}

static CUresult soft_event_elapsed(struct fgv_gpu *gpu, struct fgv_gpu_event *start,
				   struct fgv_gpu_event *end, float *ms)
{
	return softgpu_event_elapsed(gpu_of(gpu), event_of(start), event_of(end), ms);
}

static void soft_fence_put(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence)
{
	struct soft *soft = (struct soft *)gpu;

	fence->next = soft->free_fences;
	soft->free_fences = fence;
}

static CUresult fence_get(struct soft *soft, struct fgv_gpu_fence **fence)
{
	struct fgv_gpu_fence *made = soft->free_fences;
	CUresult fault = softgpu_fault(soft->gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	if (made) {
		soft->free_fences = made->next;
		*fence = made;
		return CUDA_SUCCESS;
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*fence = made;
	return CUDA_SUCCESS;
}

static CUresult soft_fence(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
			   struct fgv_gpu_fence **fence)
{
	CUresult status = fence_get((struct soft *)gpu, fence);

	if (status == CUDA_SUCCESS)
		(*fence)->point = softgpu_point_of(gpu_of(gpu), stream_of(stream));
	return status;
}

static CUresult soft_fence_all(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence)
{
	CUresult status = fence_get((struct soft *)gpu, fence);

	if (status == CUDA_SUCCESS)
		(*fence)->point = softgpu_point_of_all(gpu_of(gpu));
	return status;
}

static CUresult soft_fence_computing(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence)
{
	CUresult status = fence_get((struct soft *)gpu, fence);

	if (status == CUDA_SUCCESS)
		(*fence)->point = softgpu_point_of_computing(gpu_of(gpu));
	return status;
}

static CUresult soft_fence_query(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence)
{
	return softgpu_point_query(gpu_of(gpu), &fence->point);
}

/* Moves up to @room bytes of text to a descriptor, a file in memory. */
static void print_stream(struct softgpu *gpu, unsigned stream, int fd, size_t room)
{
	char text[4096];
	size_t len;

	while (room > 0) {
		len = softgpu_take_text(gpu, stream, text, fgv_min_u64(sizeof(text), room));
		if (!len || write(fd, text, len) < 0)
			return;
		room -= len;
	}
}

static bool soft_print(struct fgv_gpu *gpu, const size_t room[2])
{
	struct softgpu *soft = gpu_of(gpu);

	if (!softgpu_has_text(soft))
		return false;
	print_stream(soft, 0, STDOUT_FILENO, room[0]);
	print_stream(soft, 1, STDERR_FILENO, room[1]);
	return true;
}

static CUresult soft_limit_get(struct fgv_gpu *gpu, CUlimit limit, size_t *value)
{
	return softgpu_limit_get(gpu_of(gpu), limit, value);
}

static CUresult soft_limit_set(struct fgv_gpu *gpu, CUlimit limit, size_t value)
{
	return softgpu_limit_set(gpu_of(gpu), limit, value);
}

static int soft_completion_fd(struct fgv_gpu *gpu)
{
	return softgpu_completion_fd(gpu_of(gpu));
}

static void soft_arm(struct fgv_gpu *gpu)
{
	softgpu_arm(gpu_of(gpu));
}

const struct fgv_gpu_ops fgv_gpu_soft = {
	.name = "soft",
	.count = soft_count,
	.place = soft_place,
	.divide = soft_divide,
	.peers = soft_peers,
	.set_units = soft_set_units,
	.open = soft_open,
	.close = soft_close,
	.use = soft_use,
	.halt = soft_halt,
	.peer_attribute = fgv_soft_peer_attribute,
	.peer_enable = fgv_soft_peer_enable,
	.peer_disable = fgv_soft_peer_disable,
	.info = soft_info,
	.mem_alloc = soft_mem_alloc,
	.mem_free = soft_mem_free,
	.reclaim = soft_reclaim,
	.mem_info = soft_mem_info,
	.costs = soft_costs,
	.memory_granularity = fgv_soft_memory_granularity,
	.address_reserve = fgv_soft_address_reserve,
	.address_free = fgv_soft_address_free,
	.memory_create = fgv_soft_memory_create,
	.memory_release = fgv_soft_memory_release,
	.memory_export = fgv_soft_memory_export,
	.memory_import = fgv_soft_memory_import,
	.memory_map = fgv_soft_memory_map,
	.memory_access = fgv_soft_memory_access,
	.memory_view = fgv_soft_memory_view,
	.memory_unview = fgv_soft_memory_unmap,
	.memory_retire = fgv_soft_memory_retire,
	.memory_unmap = fgv_soft_memory_unmap,
	.host_register = soft_host_register,
	.host_retire = soft_host_retire,
	.host_unregister = soft_host_unregister,
	.copy_in = soft_copy_in,
	.copy_in_bulk = soft_copy_in_bulk,
	.copy_out = soft_copy_out,
	.copy_device = soft_copy_device,
	.fill = soft_fill,
	.fill_rows = soft_fill_rows,
	.value_write = soft_value_write,
	.box_in = fgv_soft_box_in,
	.copy_box = fgv_soft_copy_box,
	.array_cost = fgv_soft_array_cost,
	.array_create = fgv_soft_array_create,
	.array_destroy = fgv_soft_array_destroy,
	.array_level = fgv_soft_array_level,
	.texture_create = fgv_soft_texture_create,
	.surface_create = fgv_soft_surface_create,
	.texture_destroy = fgv_soft_texture_destroy,
	.texture_linear_width = fgv_soft_texture_linear_width,
	.tensor_map = fgv_soft_tensor_map,
	.tensor_map_replace = fgv_soft_tensor_map_replace,
	.module_cost = fgv_soft_module_cost,
	.module_load = fgv_soft_module_load,
	.module_load_placed = fgv_soft_module_load_placed,
	.module_slice = fgv_soft_module_slice,
	.link = fgv_soft_link,
	.links_late = true,
	.module_managed = fgv_soft_module_managed,
	.module_unload = soft_module_unload,
	.module_global = soft_module_global,
	.module_function = soft_module_function,
	.module_kernels = soft_module_kernels,
	.function_param = soft_function_param,
	.function_attribute = soft_function_attribute,
	.launch = soft_launch,
	.launch_cooperative = soft_launch_cooperative,
	.stream_create = soft_stream_create,
	.stream_destroy = soft_stream_destroy,
	.stream_query = soft_stream_query,
	.stream_wait_event = soft_stream_wait_event,
	.event_create = soft_event_create,
	.event_destroy = soft_event_destroy,
	.event_record = soft_event_record,
	.event_query = soft_event_query,
	.event_elapsed = soft_event_elapsed,
	.graph_create = fgv_soft_graph_create,
	.graph_create_in = fgv_soft_graph_create_in,
	.home_create = fgv_soft_home_create,
	.home_condition = fgv_soft_home_condition,
	.home_destroy = fgv_soft_home_destroy,
	.graph_update = fgv_soft_graph_update,
	.graph_launch = fgv_soft_graph_launch,
	.graph_destroy = fgv_soft_graph_destroy,
	.fence = soft_fence,
	.fence_all = soft_fence_all,
	.fence_computing = soft_fence_computing,
	.fence_query = soft_fence_query,
	.fence_put = soft_fence_put,
	.print = soft_print,
	.host_atomics = fgv_soft_host_atomics,
	.limit_get = soft_limit_get,
	.limit_set = soft_limit_set,
	.completion_fd = soft_completion_fd,
	.arm = soft_arm,
};
