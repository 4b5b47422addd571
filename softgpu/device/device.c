/* A device: made, described, taken down. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/env.h"
#include "common/util.h"
#include "softgpu/device/internal.h"

static CUresult start(struct softgpu *gpu)
{
	CUresult result;

	gpu->completion_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (gpu->completion_fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	result = fgv_textures_init(&gpu->textures);
	if (result != CUDA_SUCCESS)
		return result;
	result = fgv_softgpu_memory_init(&gpu->memory, gpu->config.va_base,
					 gpu->config.memory_bytes);
	if (result != CUDA_SUCCESS)
		return result;
	fgv_peer_init(gpu);
	fgv_softgpu_space_init(&gpu->space, gpu->config.va_base + gpu->config.memory_bytes,
			       gpu->config.va_base + gpu->config.va_bytes);
	result = fgv_workers_start(gpu);
	if (result != CUDA_SUCCESS)
		return result;
	return fgv_queue_start(gpu);
}

#define LONG_KERNEL_NS (10 * FGV_NS_PER_SEC)

CUresult softgpu_create(const struct softgpu_config *config, struct softgpu **gpu)
{
	struct softgpu *g = calloc(1, sizeof(*g));
	CUresult result;

	if (!g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->config = *config;
	if (!g->config.long_kernel_ns)
		g->config.long_kernel_ns = LONG_KERNEL_NS;
	g->completion_fd = -1;
	g->units_count = config->workers ? config->workers : fgv_env_processors();
	if (g->units_count > WORKERS_MAX)
		g->units_count = WORKERS_MAX;
	g->room_max = config->room_bytes ? config->room_bytes : fgv_room_max(g->units_count);
	snprintf(g->name, sizeof(g->name), "FairGV Soft GPU");
	g->programs.max = PROGRAMS_MAX;
	fgv_softgpu_system_init(&g->system);
	pthread_mutex_init(&g->queue_lock, NULL);
	pthread_cond_init(&g->queue_moved, NULL);
	for (unsigned i = 0; i < QUEUES; i++) {
		g->queues[i].gpu = g;
		g->queues[i].tail = &g->queues[i].first;
		pthread_cond_init(&g->queues[i].filled, NULL);
	}
	pthread_mutex_init(&g->job_lock, NULL);
	pthread_cond_init(&g->job_ready, NULL);
	pthread_cond_init(&g->job_moved, NULL);
	pthread_mutex_init(&g->grid_lock, NULL);
	result = start(g);
	if (result == CUDA_SUCCESS)
		*gpu = g;
	else
		softgpu_destroy(g);
	return result;
}

void softgpu_stop(struct softgpu *gpu)
{
	fgv_queue_tell(gpu);
}

/* Threads end; the rest of it stays until it is destroyed. */
void softgpu_halt(struct softgpu *gpu)
{
	fgv_queue_stop(gpu);
	fgv_workers_stop(gpu);
}

/* A kernel that runs is stopped at its next backward branch or barrier. */
void softgpu_destroy(struct softgpu *gpu)
{
	if (!gpu)
		return;
	softgpu_halt(gpu);
	if (gpu->config.engine.seat)
		fgv_engine_leave(&gpu->config.engine);
	fgv_softgpu_system_fini(&gpu->system);
	fgv_textures_fini(&gpu->textures);
	fgv_softgpu_space_fini(&gpu->space);
	fgv_softgpu_memory_fini(&gpu->memory);
	if (gpu->completion_fd >= 0)
		close(gpu->completion_fd);
	pthread_mutex_destroy(&gpu->grid_lock);
	pthread_cond_destroy(&gpu->job_moved);
	pthread_cond_destroy(&gpu->job_ready);
	pthread_mutex_destroy(&gpu->job_lock);
	for (unsigned i = 0; i < QUEUES; i++)
		pthread_cond_destroy(&gpu->queues[i].filled);
	pthread_cond_destroy(&gpu->queue_moved);
	pthread_mutex_destroy(&gpu->queue_lock);
	free(gpu);
}

const char *softgpu_name(const struct softgpu *gpu)
{
	return gpu->name;
}

/* Whatever is not here the device does not have: 0. */
static const struct {
	CUdevice_attribute attribute;
	int value;
} attributes[] = {
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, THREADS_MAX},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, SHARED_DEFAULT_MAX},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, SHARED_MAX},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, SM_SHARED},
	{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, RESERVED_SHARED},
	{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
	{CU_DEVICE_ATTRIBUTE_WARP_SIZE, LANES},
	{CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT32_MAX},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
	{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
	{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
	{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, L2_BYTES},
	{CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, L2_PERSISTING_MAX},
	{CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 128 << 20},
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, SM_THREADS},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, SM_BLOCKS},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CAPABILITY_MAJOR},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CAPABILITY_MINOR},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
	{CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
	{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, QUEUES - COMPUTE_QUEUES},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
	{CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
	{CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
	{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 1 << 27},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131072},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, 16384},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, 16384},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, 16384},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768},
	{CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046},
};

CUresult softgpu_attribute(const struct softgpu *gpu, CUdevice_attribute attribute, int *value)
{
	if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*value = 0;
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*value = (int)gpu->units_count;
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)
		*value = gpu->config.ordinal;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	}
	return CUDA_SUCCESS;
}
