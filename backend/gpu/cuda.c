/*
 * NVIDIA's driver as gpu_ops. Modules, functions and events are the driver's own,
 * passed through as pointers of another type; streams and fences are in cuda_fence.c.
 *
 * The process uses the device's primary context, which is its own and ends with it.
 * The GPU can only be polled: the driver's blocking wait is a wait of the one thread
 * that must not wait.
 */
#include "backend/gpu/cuda_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"

static int cuda_count(char *why, size_t why_len)
{
	const struct fgv_cuda_driver *driver = fgv_cuda_driver_get(why, why_len);
	int count = 0;

	if (!driver)
		return 0;
	if (driver->device_count(&count) != CUDA_SUCCESS || count <= 0) {
		snprintf(why, why_len, "the CUDA driver finds no device");
		return 0;
	}
	return count;
}

static void cuda_place(int ordinal, char *place, size_t len)
{
	char why[256];
	const struct fgv_cuda_driver *driver = fgv_cuda_driver_get(why, sizeof(why));
	CUdevice device;

	place[0] = '\0';
	if (driver && driver->device_get(&device, ordinal) == CUDA_SUCCESS &&
	    driver->device_pci_bus_id(place, (int)len, device) != CUDA_SUCCESS)
		place[0] = '\0';
}

static CUresult open_context(struct cuda *cuda, int ordinal)
{
	const struct fgv_cuda_driver *driver = cuda->driver;
	CUresult status = driver->device_get(&cuda->device, ordinal);

	if (status == CUDA_SUCCESS)
		status = driver->context_flags(cuda->device, CU_CTX_SCHED_SPIN);
	if (status == CUDA_SUCCESS)
		status = driver->context_retain(&cuda->context, cuda->device);
	if (status != CUDA_SUCCESS)
		return status;
	status = driver->context_set(cuda->context);
	if (status != CUDA_SUCCESS)
		driver->context_release(cuda->device);
	return status;
}

static CUresult cuda_open(const struct fgv_gpu_config *config, struct fgv_gpu **gpu)
{
	struct cuda *cuda = calloc(1, sizeof(*cuda));
	CUresult status = CUDA_ERROR_NOT_INITIALIZED;

	if (!cuda)
		return CUDA_ERROR_OUT_OF_MEMORY;
	cuda->base.ops = &fgv_gpu_cuda;
	cuda->legacy.next = cuda->legacy.previous = &cuda->legacy;
	/* The driver's cache of compiled PTX is a file that sessions would share. */
	setenv("CUDA_CACHE_DISABLE", "1", 1);
	/* Variables are zeroed when a module is loaded, which the gate knows of, not at first use.
	 */
	setenv("CUDA_MODULE_DATA_LOADING", "EAGER", 1);
	cuda->driver = fgv_cuda_driver_get(config->why, config->why_len);
	if (cuda->driver)
		status = open_context(cuda, config->ordinal);
	if (status != CUDA_SUCCESS) {
		free(cuda);
		return status;
	}
	*gpu = &cuda->base;
	return CUDA_SUCCESS;
}

static CUresult cuda_use(struct fgv_gpu *gpu)
{
	struct cuda *cuda = cuda_of(gpu);

	return cuda->driver->context_set(cuda->context);
}

/* The driver sees to what others of its devices reach. */
static void cuda_halt(struct fgv_gpu *gpu, bool waits)
{
	(void)gpu, (void)waits;
}

/* What is on the device goes with the context; only our own memory is left to free. */
static void cuda_close(struct fgv_gpu *gpu)
{
	struct cuda *cuda = cuda_of(gpu);

	fgv_cuda_collect_now(cuda);
	while (cuda->legacy.next != &cuda->legacy)
		fgv_cuda_stream_destroy(gpu, cuda->legacy.next);
	while (cuda->free_events) {
		struct pooled_event *event = cuda->free_events;

		cuda->free_events = event->next;
		cuda->driver->event_destroy(event->handle);
		free(event);
	}
	if (cuda->green)
		cuda->driver->green_destroy(cuda->green);
	cuda->driver->context_release(cuda->device);
	free(cuda);
}

static void fill_attributes(struct cuda *cuda, struct fgv_device_info *info)
{
	_Static_assert(CU_DEVICE_ATTRIBUTE_MAX <= FGV_DEVICE_ATTRIBUTES, "all fit");

	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++) {
		if (cuda->driver->device_attribute(&info->attributes[i], (CUdevice_attribute)i,
						   cuda->device) == CUDA_SUCCESS)
			info->attribute_known[i / 32] |= 1u << (i % 32);
	}
}

/* Where device addresses lie is not known: the driver takes any that the process has free. */
static CUresult cuda_info(struct fgv_gpu *gpu, struct fgv_device_info *info)
{
	struct cuda *cuda = cuda_of(gpu);
	const struct fgv_cuda_driver *driver = cuda->driver;
	size_t memory_bytes = 0;
	int version = 0;
	CUuuid uuid;
	CUresult status;

	memset(info, 0, sizeof(*info));
	status = driver->device_memory(&memory_bytes, cuda->device);
	if (status == CUDA_SUCCESS)
		status = driver->driver_version(&version);
	if (status == CUDA_SUCCESS)
		status = driver->device_name(info->name, sizeof(info->name), cuda->device);
	if (status == CUDA_SUCCESS)
		status = driver->device_pci_bus_id(info->pci_bus_id, sizeof(info->pci_bus_id),
						   cuda->device);
	if (status == CUDA_SUCCESS)
		status = driver->device_uuid(&uuid, cuda->device);
	if (status != CUDA_SUCCESS)
		return status;
	info->memory_bytes = memory_bytes;
	info->driver_version = (uint32_t)version;
	memcpy(info->uuid, uuid.bytes, sizeof(info->uuid));
	fill_attributes(cuda, info);
	return CUDA_SUCCESS;
}

static CUresult cuda_mem_alloc(struct fgv_gpu *gpu, uint64_t bytes, uint64_t *address)
{
	struct cuda *cuda = cuda_of(gpu);
	CUdeviceptr pointer = 0;
	CUresult status;

	fgv_cuda_collect(cuda);
	status = cuda->driver->mem_alloc(&pointer, bytes);
	if (status == CUDA_ERROR_OUT_OF_MEMORY && cuda->garbage) {
		fgv_cuda_collect_now(cuda);
		status = cuda->driver->mem_alloc(&pointer, bytes);
	}
	if (status == CUDA_SUCCESS)
		*address = pointer;
	return status;
}

static CUresult cuda_mem_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes,
			      uint64_t charged)
{
	(void)bytes;
	return fgv_cuda_discard(cuda_of(gpu), GARBAGE_MEMORY, address, charged);
}

static void cuda_reclaim(struct fgv_gpu *gpu)
{
	fgv_cuda_collect_now(cuda_of(gpu));
}

static CUresult cuda_mem_info(struct fgv_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes)
{
	size_t free_size = 0, total_size = 0;
	CUresult status;

	fgv_cuda_collect(cuda_of(gpu));
	status = cuda_of(gpu)->driver->mem_info(&free_size, &total_size);
	*free_bytes = free_size;
	*total_bytes = total_size;
	return status;
}

static CUresult cuda_host_register(struct fgv_gpu *gpu, void *base, size_t bytes)
{
	return cuda_of(gpu)->driver->host_register(
		base, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
}

static CUresult cuda_host_unregister(struct fgv_gpu *gpu, void *base)
{
	return cuda_of(gpu)->driver->host_unregister(base);
}

/* Finds the stream and announces work to it. */
static CUresult begin(struct cuda *cuda, struct fgv_gpu_stream **stream)
{
	*stream = stream_of(cuda, *stream);
	return fgv_cuda_before_work(cuda, *stream);
}

/* Pageable memory: the driver stages up to 64 KiB before it returns. */
static CUresult cuda_copy_in(struct fgv_gpu *gpu, uint64_t dst, const void *src, size_t bytes,
			     struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->copy_in(dst, src, bytes, stream->handle);
}

static CUresult cuda_copy_out(struct fgv_gpu *gpu, void *dst, uint64_t src, size_t bytes,
			      struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->copy_out(dst, src, bytes, stream->handle);
}

static CUresult cuda_copy_device(struct fgv_gpu *gpu, uint64_t dst, uint64_t src, size_t bytes,
				 struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->copy_device(dst, src, bytes, stream->handle);
}

static CUresult cuda_fill(struct fgv_gpu *gpu, uint64_t dst, uint32_t value, unsigned width,
			  size_t count, struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	switch (width) {
	case 1:
		return cuda->driver->fill_8(dst, (unsigned char)value, count, stream->handle);
	case 2:
		return cuda->driver->fill_16(dst, (unsigned short)value, count, stream->handle);
	case 4:
		return cuda->driver->fill_32(dst, value, count, stream->handle);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult cuda_fill_rows(struct fgv_gpu *gpu, uint64_t dst, size_t pitch, uint8_t value,
			       size_t width, size_t height, struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->fill_rows(dst, pitch, value, width, height, stream->handle);
}

static CUresult cuda_value_write(struct fgv_gpu *gpu, uint64_t address, uint64_t value,
				 unsigned width, unsigned flags, struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	if (width == 4)
		return cuda->driver->value_write_32(stream->handle, address, (uint32_t)value,
						    flags);
	return cuda->driver->value_write_64(stream->handle, address, value, flags);
}

static CUresult cuda_module_unload(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				   uint64_t bytes)
{
	return fgv_cuda_discard(cuda_of(gpu), GARBAGE_MODULE, (uint64_t)(uintptr_t)module, bytes);
}

static CUresult cuda_module_global(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				   const char *name, uint64_t *address, uint64_t *bytes)
{
	CUdeviceptr pointer = 0;
	size_t size = 0;
	CUresult status =
		cuda_of(gpu)->driver->module_global(&pointer, &size, (CUmodule)module, name);

	*address = pointer;
	*bytes = size;
	return status;
}

static CUresult cuda_module_function(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				     const char *name, struct fgv_gpu_function **function)
{
	CUfunction found = NULL;
	CUresult status = cuda_of(gpu)->driver->module_function(&found, (CUmodule)module, name);

	*function = (struct fgv_gpu_function *)found;
	return status;
}

static CUresult cuda_function_param(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				    unsigned index, uint32_t *offset, uint32_t *bytes)
{
	size_t place = 0, size = 0;
	CUresult status =
		cuda_of(gpu)->driver->function_param((CUfunction)function, index, &place, &size);

	*offset = (uint32_t)place;
	*bytes = (uint32_t)size;
	return status;
}

static CUresult cuda_function_attribute(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
					CUfunction_attribute attribute, int *value)
{
	return cuda_of(gpu)->driver->function_attribute(value, attribute, (CUfunction)function);
}

/*
 * What a kernel may use beyond this must be asked for. The guest's runtime keeps what its
 * program asked for and checks a launch against it; the driver is asked when it matters.
 */
#define SHARED_UNASKED (48u * 1024)

CUresult fgv_cuda_allow_shared(struct cuda *cuda, struct fgv_gpu_function *function,
			       uint32_t shared_bytes)
{
	if (shared_bytes <= SHARED_UNASKED)
		return CUDA_SUCCESS;
	return cuda->driver->function_set_attribute((CUfunction)function,
						    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
						    (int)fgv_min_u64(shared_bytes, INT_MAX));
}

/* Makes *@stream the one to launch in, and lets the function have so much shared memory. */
static CUresult begin_launch(struct cuda *cuda, struct fgv_gpu_function *function,
			     uint32_t shared_bytes, struct fgv_gpu_stream **stream)
{
	CUresult status = begin(cuda, stream);

	return status == CUDA_SUCCESS ? fgv_cuda_allow_shared(cuda, function, shared_bytes)
				      : status;
}

static CUresult cuda_launch(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
			    const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			    struct fgv_gpu_stream *stream, void **params)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin_launch(cuda, function, shared_bytes, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->launch((CUfunction)function, grid[0], grid[1], grid[2], block[0],
				    block[1], block[2], shared_bytes, stream->handle, params, NULL);
}

static CUresult cuda_launch_cooperative(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
					const uint32_t grid[3], const uint32_t block[3],
					uint32_t shared_bytes, struct fgv_gpu_stream *stream,
					void **params)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin_launch(cuda, function, shared_bytes, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->launch_cooperative((CUfunction)function, grid[0], grid[1], grid[2],
						block[0], block[1], block[2], shared_bytes,
						stream->handle, params);
}

static CUresult cuda_stream_query(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);

	return fgv_cuda_stream_query(cuda, stream_of(cuda, stream));
}

static CUresult cuda_stream_wait_event(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
				       struct fgv_gpu_event *event)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->stream_wait_event(stream->handle, (CUevent)event, 0);
}

static CUresult cuda_event_create(struct fgv_gpu *gpu, uint32_t flags, struct fgv_gpu_event **event)
{
	CUevent made = NULL;
	CUresult status = cuda_of(gpu)->driver->event_create(&made, flags);

	*event = (struct fgv_gpu_event *)made;
	return status;
}

static CUresult cuda_event_destroy(struct fgv_gpu *gpu, struct fgv_gpu_event *event)
{
	return cuda_of(gpu)->driver->event_destroy((CUevent)event);
}

static CUresult cuda_event_record(struct fgv_gpu *gpu, struct fgv_gpu_event *event,
				  struct fgv_gpu_stream *stream)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = begin(cuda, &stream);

	if (status != CUDA_SUCCESS)
		return status;
	return cuda->driver->event_record((CUevent)event, stream->handle);
}

static CUresult cuda_event_query(struct fgv_gpu *gpu, struct fgv_gpu_event *event)
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status = cuda->driver->event_query((CUevent)event);

	if (status == CUDA_SUCCESS)
		fgv_cuda_flush_event(cuda, (CUevent)event);
	return status;
}

static CUresult cuda_event_elapsed(struct fgv_gpu *gpu, struct fgv_gpu_event *start,
				   struct fgv_gpu_event *end, float *ms)
{
	return cuda_of(gpu)->driver->event_elapsed(ms, (CUevent)start, (CUevent)end);
}

static CUresult cuda_limit_get(struct fgv_gpu *gpu, CUlimit limit, size_t *value)
{
	return cuda_of(gpu)->driver->limit_get(value, limit);
}

/*
 * Lines that stay in the L2 cache beyond their turn would take it away from others, so there
 * are none: as a request to the driver, which may give less, that is in order.
 */
static CUresult cuda_limit_set(struct fgv_gpu *gpu, CUlimit limit, size_t value)
{
	if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_SUCCESS;
	return cuda_of(gpu)->driver->limit_set(limit, value);
}

static int cuda_completion_fd(struct fgv_gpu *gpu)
{
	(void)gpu;
	return -1;
}

static void cuda_arm(struct fgv_gpu *gpu)
{
	(void)gpu;
}

const struct fgv_gpu_ops fgv_gpu_cuda = {
	.name = "cuda",
	.count = cuda_count,
	.place = cuda_place,
	.divide = fgv_cuda_divide,
	.peers = fgv_cuda_peers,
	.set_units = fgv_cuda_set_units,
	.open = cuda_open,
	.close = cuda_close,
	.use = cuda_use,
	.halt = cuda_halt,
	.peer_attribute = fgv_cuda_peer_attribute,
	.peer_enable = fgv_cuda_peer_enable,
	.peer_disable = fgv_cuda_peer_disable,
	.info = cuda_info,
	.mem_alloc = cuda_mem_alloc,
	.mem_free = cuda_mem_free,
	.reclaim = cuda_reclaim,
	.mem_info = cuda_mem_info,
	.costs = fgv_cuda_costs,
	.memory_granularity = fgv_cuda_memory_granularity,
	.address_reserve = fgv_cuda_address_reserve,
	.address_free = fgv_cuda_address_free,
	.memory_create = fgv_cuda_memory_create,
	.memory_release = fgv_cuda_memory_release,
	.memory_export = fgv_cuda_memory_export,
	.memory_import = fgv_cuda_memory_import,
	.memory_map = fgv_cuda_memory_map,
	.memory_access = fgv_cuda_memory_access,
	.memory_view = fgv_cuda_memory_access,
	.memory_unview = fgv_cuda_memory_unview,
	.memory_unmap = fgv_cuda_memory_unmap,
	.host_register = cuda_host_register,
	.host_unregister = cuda_host_unregister,
	.registers_for_all = true,
	.copy_in = cuda_copy_in,
	.copy_in_bulk = cuda_copy_in,
	.copy_out = cuda_copy_out,
	.copy_device = cuda_copy_device,
	.fill = cuda_fill,
	.fill_rows = cuda_fill_rows,
	.value_write = cuda_value_write,
	.box_in = fgv_cuda_copy_box,
	.copy_box = fgv_cuda_copy_box,
	.array_cost = fgv_cuda_array_cost,
	.array_create = fgv_cuda_array_create,
	.array_destroy = fgv_cuda_array_destroy,
	.array_level = fgv_cuda_array_level,
	.texture_create = fgv_cuda_texture_create,
	.surface_create = fgv_cuda_surface_create,
	.texture_destroy = fgv_cuda_texture_destroy,
	.texture_linear_width = fgv_cuda_texture_linear_width,
	.tensor_map = fgv_cuda_tensor_map,
	.tensor_map_replace = fgv_cuda_tensor_map_replace,
	.module_cost = fgv_cuda_module_cost,
	.module_load = fgv_cuda_module_load,
	.module_load_placed = fgv_cuda_module_load_placed,
	.module_slice = fgv_cuda_module_slice,
	.link = fgv_cuda_link,
	.module_managed = fgv_cuda_module_managed,
	.module_unload = cuda_module_unload,
	.module_global = cuda_module_global,
	.module_function = cuda_module_function,
	.module_kernels = fgv_cuda_module_kernels,
	.function_param = cuda_function_param,
	.function_attribute = cuda_function_attribute,
	.launch = cuda_launch,
	.launch_cooperative = cuda_launch_cooperative,
	.launch_clusters = fgv_cuda_launch_clusters,
	.clusters_active = fgv_cuda_clusters_active,
	.clusters_largest = fgv_cuda_clusters_largest,
	.stream_create = fgv_cuda_stream_create,
	.stream_destroy = fgv_cuda_stream_destroy,
	.stream_query = cuda_stream_query,
	.stream_wait_event = cuda_stream_wait_event,
	.event_create = cuda_event_create,
	.event_destroy = cuda_event_destroy,
	.event_record = cuda_event_record,
	.event_query = cuda_event_query,
	.event_elapsed = cuda_event_elapsed,
	.graph_create = fgv_cuda_graph_create,
	.graph_create_in = fgv_cuda_graph_create_in,
	.home_create = fgv_cuda_home_create,
	.home_condition = fgv_cuda_home_condition,
	.home_destroy = fgv_cuda_home_destroy,
	.graph_update = fgv_cuda_graph_update,
	.graph_launch = fgv_cuda_graph_launch,
	.graph_destroy = fgv_cuda_graph_destroy,
	.fence = fgv_cuda_fence,
	.fence_all = fgv_cuda_fence_all,
	.fence_computing = fgv_cuda_fence_computing,
	.fence_query = fgv_cuda_fence_query,
	.fence_put = fgv_cuda_fence_put,
	.print = fgv_cuda_print,
	.host_atomics = fgv_cuda_host_atomics,
	.limit_get = cuda_limit_get,
	.limit_set = cuda_limit_set,
	.completion_fd = cuda_completion_fd,
	.arm = cuda_arm,
};
