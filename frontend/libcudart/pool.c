/*
 * Stream-ordered allocation, and the pools that it comes from. Memory may be used as soon as
 * it is allocated, on this device by all streams.
 */
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph_alloc.h"

/* What the program holds is the pool itself; whether it is one is looked up. */
static struct fgv_pool *pool_of(cudaMemPool_t pool)
{
	return (struct fgv_pool *)pool;
}

static cudaMemPool_t handle_of(struct fgv_pool *pool)
{
	return (cudaMemPool_t)pool;
}

/* A stream that is being captured gets a node, whose memory is the graph's and not a pool's. */
static cudaError_t allocate_on(struct fgv_lane *lane, size_t size, struct fgv_pool *pool,
			       cudaStream_t stream, uint64_t *address)
{
	uint32_t handle;
	cudaError_t error = fgv_error_from(fgv_stream_handle(lane, stream, &handle));

	if (error || !size)
		return error;
	if (lane->recorder)
		return fgv_alloc_capture(lane, size, address);
	return fgv_error_from(fgv_pool_alloc(lane, pool, size, handle, address));
}

static cudaError_t allocate(void **ptr, size_t size, struct fgv_pool *pool, cudaStream_t stream)
{
	struct fgv_lane *lane;
	uint64_t address = 0;
	cudaError_t error;

	if (!ptr || !fgv_pool_is_valid(pool))
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = allocate_on(lane, size, pool, stream, &address);
	fgv_lane_leave(lane);
	if (!error)
		*ptr = (void *)(uintptr_t)address;
	return error;
}

FGV_EXPORT cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
	return fgv_error_set(allocate(devPtr, size, fgv_pool_current(), hStream));
}

FGV_EXPORT cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
					       cudaStream_t stream)
{
	return fgv_error_set(allocate(ptr, size, pool_of(memPool), stream));
}

/* What a launch of a graph has left allocated. */
static cudaError_t release_graphs(struct fgv_lane *lane, uint64_t address, cudaStream_t stream,
				  uint32_t handle)
{
	const struct fgv_graph_place place = {stream, handle};
	cudaError_t error = fgv_graph_memory_free(address, &place);

	if (!error)
		fgv_graph_memory_sweep(lane);
	return error;
}

/* Of a pool, or cudaMalloc()'s, which goes after all work that was queued before. */
static cudaError_t release_on(struct fgv_lane *lane, uint64_t address, cudaStream_t stream)
{
	struct fgv_range_view view = {0};
	uint32_t handle;
	cudaError_t error = fgv_error_from(fgv_stream_handle(lane, stream, &handle));

	if (error)
		return error;
	if (lane->recorder)
		return fgv_alloc_capture_free(lane, address);
	fgv_addrmap_look(address, 1, &view);
	if (view.kind == FGV_RANGE_GRAPH)
		return release_graphs(lane, address, stream, handle);
	if (!fgv_addrmap_remove(address, FGV_RANGE_MEMORY))
		return fgv_error_from(fgv_post_mem_free(lane, address));
	return fgv_error_from(fgv_pool_free(lane, address, handle));
}

static cudaError_t release(void *ptr, cudaStream_t stream)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = release_on(lane, (uint64_t)(uintptr_t)ptr, stream);
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
	return fgv_error_set(release(devPtr, hStream));
}

static cudaError_t get_pool(cudaMemPool_t *pool, int device, struct fgv_pool *(*get)(void))
{
	cudaError_t error = pool ? fgv_device_check(device) : cudaErrorInvalidValue;

	if (!error)
		*pool = handle_of(get());
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
	return fgv_error_set(get_pool(memPool, device, fgv_pool_default));
}

FGV_EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
	return fgv_error_set(get_pool(memPool, device, fgv_pool_current));
}

FGV_EXPORT cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
	cudaError_t error = fgv_device_check(device);

	if (!error)
		error = fgv_error_from(fgv_pool_set_current(pool_of(memPool)));
	return fgv_error_set(error);
}

/* Pools are of the device's own memory; CUDA has some of the host's, and of managed memory. */
static cudaError_t check_place(const struct cudaMemLocation *location,
			       enum cudaMemAllocationType type)
{
	if (!location ||
	    (type != cudaMemAllocationTypePinned && type != cudaMemAllocationTypeManaged))
		return cudaErrorInvalidValue;
	if (type == cudaMemAllocationTypeManaged)
		return FGV_NOT_SUPPORTED("pools of managed memory");
	if (location->type == cudaMemLocationTypeDevice)
		return fgv_device_check(location->id) ? cudaErrorInvalidValue : cudaSuccess;
	if (location->type == cudaMemLocationTypeHost ||
	    location->type == cudaMemLocationTypeHostNuma)
		return FGV_NOT_SUPPORTED("pools of host memory");
	return cudaErrorInvalidValue;
}

static cudaError_t get_pool_at(cudaMemPool_t *pool, const struct cudaMemLocation *location,
			       enum cudaMemAllocationType type, struct fgv_pool *(*get)(void))
{
	cudaError_t error = check_place(location, type);

	return error ? error : get_pool(pool, location->id, get);
}

FGV_EXPORT cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *memPool,
						struct cudaMemLocation *location,
						enum cudaMemAllocationType type)
{
	return fgv_error_set(get_pool_at(memPool, location, type, fgv_pool_default));
}

FGV_EXPORT cudaError_t cudaMemGetMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
					 enum cudaMemAllocationType type)
{
	return fgv_error_set(get_pool_at(memPool, location, type, fgv_pool_current));
}

FGV_EXPORT cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location,
					 enum cudaMemAllocationType type, cudaMemPool_t memPool)
{
	cudaError_t error = check_place(location, type);

	if (!error)
		error = fgv_error_from(fgv_pool_set_current(pool_of(memPool)));
	return fgv_error_set(error);
}

cudaError_t fgv_pool_check_props(const struct cudaMemPoolProps *props)
{
	cudaError_t error = check_place(&props->location, props->allocType);

	if (!error && props->handleTypes != cudaMemHandleTypeNone)
		return FGV_NOT_SUPPORTED("pools that can be exported");
	return error;
}

static cudaError_t create(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	struct fgv_pool *made;
	cudaError_t error;

	if (!pool || !props)
		return cudaErrorInvalidValue;
	error = fgv_pool_check_props(props);
	if (!error)
		error = fgv_error_from(fgv_pool_create(props->maxSize, &made));
	if (!error)
		*pool = handle_of(made);
	return error;
}

FGV_EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool,
					 const struct cudaMemPoolProps *poolProps)
{
	return fgv_error_set(create(memPool, poolProps));
}

static cudaError_t destroy(struct fgv_pool *pool)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_pool_destroy(lane, pool));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
	return fgv_error_set(destroy(pool_of(memPool)));
}

static cudaError_t trim(struct fgv_pool *pool, size_t keep)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_pool_trim(lane, pool, keep));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
	return fgv_error_set(trim(pool_of(memPool), minBytesToKeep));
}

/* The rules of reuse are an int each, the rest are 64 bits wide. */
static bool is_int(enum cudaMemPoolAttr attribute)
{
	return attribute == cudaMemPoolReuseFollowEventDependencies ||
	       attribute == cudaMemPoolReuseAllowOpportunistic ||
	       attribute == cudaMemPoolReuseAllowInternalDependencies;
}

FGV_EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr,
					       void *value)
{
	uint64_t wanted;

	if (!value)
		return fgv_error_set(cudaErrorInvalidValue);
	wanted = is_int(attr) ? (uint64_t) * (const int *)value : *(const uint64_t *)value;
	return fgv_error_set(fgv_error_from(
		fgv_pool_set_attribute(pool_of(memPool), (CUmemPool_attribute)attr, wanted)));
}

static cudaError_t get_attribute(struct fgv_pool *pool, enum cudaMemPoolAttr attribute, void *value)
{
	uint64_t got;
	CUresult res;

	if (!value)
		return cudaErrorInvalidValue;
	res = fgv_pool_get_attribute(pool, (CUmemPool_attribute)attribute, &got);
	if (!res && is_int(attribute))
		*(int *)value = (int)got;
	else if (!res)
		*(uint64_t *)value = got;
	return fgv_error_from(res);
}

FGV_EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr,
					       void *value)
{
	return fgv_error_set(get_attribute(pool_of(memPool), attr, value));
}

static cudaError_t check_access(const struct cudaMemAccessDesc *access)
{
	cudaError_t error;

	if (access->location.type == cudaMemLocationTypeHost)
		return cudaErrorNotSupported;
	if (access->location.type != cudaMemLocationTypeDevice)
		return cudaErrorInvalidValue;
	error = fgv_device_check(access->location.id);
	if (!error && access->flags != cudaMemAccessFlagsProtReadWrite)
		error = cudaErrorInvalidDevice;
	return error;
}

/* The one device has a pool's memory always, and can't be denied it; the processor never has. */
cudaError_t fgv_pool_check_access(const struct cudaMemAccessDesc *list, size_t count)
{
	cudaError_t error = cudaSuccess;

	for (size_t i = 0; i < count && !error; i++)
		error = check_access(&list[i]);
	return error;
}

FGV_EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool,
					    const struct cudaMemAccessDesc *descList, size_t count)
{
	if ((!descList && count) || !fgv_pool_is_valid(pool_of(memPool)))
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(fgv_pool_check_access(descList, count));
}

/* The processor has none. */
static cudaError_t get_access(enum cudaMemAccessFlags *flags, struct fgv_pool *pool,
			      const struct cudaMemLocation *location)
{
	cudaError_t error = cudaErrorInvalidValue;

	if (!flags || !location || !fgv_pool_is_valid(pool))
		return error;
	if (location->type == cudaMemLocationTypeDevice)
		error = fgv_device_check(location->id);
	else if (location->type == cudaMemLocationTypeHost)
		error = cudaSuccess;
	if (!error)
		*flags = location->type == cudaMemLocationTypeHost
				 ? cudaMemAccessFlagsProtNone
				 : cudaMemAccessFlagsProtReadWrite;
	return error;
}

FGV_EXPORT cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
					    struct cudaMemLocation *location)
{
	return fgv_error_set(get_access(flags, pool_of(memPool), location));
}
