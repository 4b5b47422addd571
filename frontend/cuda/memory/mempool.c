/*
 * Pools as the program holds them: the pool itself, and whether it is one is looked up.
 */
#include "frontend/cuda/memory/mempool.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/context/peer.h"
#include "frontend/cuda/memory/pool.h"

static struct fgv_pool *pool_of(CUmemoryPool pool)
{
	return (struct fgv_pool *)pool;
}

static CUmemoryPool handle_of(struct fgv_pool *pool)
{
	return (CUmemoryPool)pool;
}

static CUresult check_device(int ordinal)
{
	const struct fgv_device_info *info;

	return fgv_context_find_device(ordinal, &info);
}

static CUresult get_pool(CUmemoryPool *pool, int ordinal, struct fgv_pool *(*get)(uint32_t))
{
	CUresult res = pool ? check_device(ordinal) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*pool = handle_of(get((uint32_t)ordinal));
	return res;
}

CUresult fgv_mempool_get_default(CUmemoryPool *pool, int ordinal)
{
	return get_pool(pool, ordinal, fgv_pool_default);
}

CUresult fgv_mempool_get_current(CUmemoryPool *pool, int ordinal)
{
	return get_pool(pool, ordinal, fgv_pool_current);
}

CUresult fgv_mempool_set_current(int ordinal, CUmemoryPool pool)
{
	CUresult res = check_device(ordinal);

	return res ? res : fgv_pool_set_current((uint32_t)ordinal, pool_of(pool));
}

/* Pools are of the device's own memory; CUDA has some of the host's, and of managed memory. */
static CUresult check_place(const CUmemLocation *location, CUmemAllocationType type)
{
	if (!location ||
	    (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return FGV_UNSUPPORTED("pools of managed memory");
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return check_device(location->id) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (location->type == CU_MEM_LOCATION_TYPE_HOST ||
	    location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return FGV_UNSUPPORTED("pools of host memory");
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_pool_at(CUmemoryPool *pool, const CUmemLocation *location,
			    CUmemAllocationType type, struct fgv_pool *(*get)(uint32_t))
{
	CUresult res = check_place(location, type);

	return res ? res : get_pool(pool, location->id, get);
}

CUresult fgv_mempool_get_default_at(CUmemoryPool *pool, const CUmemLocation *location,
				    CUmemAllocationType type)
{
	return get_pool_at(pool, location, type, fgv_pool_default);
}

CUresult fgv_mempool_get_current_at(CUmemoryPool *pool, const CUmemLocation *location,
				    CUmemAllocationType type)
{
	return get_pool_at(pool, location, type, fgv_pool_current);
}

CUresult fgv_mempool_set_current_at(const CUmemLocation *location, CUmemAllocationType type,
				    CUmemoryPool pool)
{
	CUresult res = check_place(location, type);

	return res ? res : fgv_pool_set_current((uint32_t)location->id, pool_of(pool));
}

CUresult fgv_mempool_check_props(const CUmemPoolProps *props)
{
	CUresult res = check_place(&props->location, props->allocType);

	if (!res && props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return FGV_UNSUPPORTED("pools that can be exported");
	return res;
}

CUresult fgv_mempool_create(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	struct fgv_pool *made;
	CUresult res;

	if (!pool || !props)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_mempool_check_props(props);
	if (!res)
		res = fgv_pool_create((uint32_t)props->location.id, props->maxSize, &made);
	if (!res)
		*pool = handle_of(made);
	return res;
}

CUresult fgv_mempool_destroy(CUmemoryPool pool)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(fgv_pool_device(pool_of(pool)), &lane);

	if (res)
		return res;
	res = fgv_pool_destroy(lane, pool_of(pool));
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_mempool_trim(CUmemoryPool pool, size_t keep_bytes)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(fgv_pool_device(pool_of(pool)), &lane);

	if (res)
		return res;
	res = fgv_pool_trim(lane, pool_of(pool), keep_bytes);
	fgv_lane_leave(lane);
	return res;
}

/* The rules of reuse are an int each, the rest are 64 bits wide. */
static bool is_int(CUmemPool_attribute attribute)
{
	return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
	       attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
	       attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult fgv_mempool_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				   const void *value)
{
	uint64_t wanted;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	wanted = is_int(attribute) ? (uint64_t) * (const int *)value : *(const uint64_t *)value;
	return fgv_pool_set_attribute(pool_of(pool), attribute, wanted);
}

CUresult fgv_mempool_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	uint64_t got;
	CUresult res;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_pool_get_attribute(pool_of(pool), attribute, &got);
	if (!res && is_int(attribute))
		*(int *)value = (int)got;
	else if (!res)
		*(uint64_t *)value = got;
	return res;
}

/* Of memory of device @own. */
static CUresult check_access(uint32_t own, const CUmemAccessDesc *access)
{
	bool is_own = access->location.id == (int)own;
	CUresult res;

	if (access->location.type == CU_MEM_LOCATION_TYPE_HOST)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	res = check_device(access->location.id);
	if (res || access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return res;
	if (is_own)
		return CUDA_ERROR_INVALID_DEVICE;
	return access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? CUDA_SUCCESS
							      : CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_mempool_give_access(uint32_t device, const CUmemAccessDesc *list, size_t count)
{
	CUresult res = CUDA_SUCCESS;

	for (size_t i = 0; i < count && !res; i++)
		res = check_access(device, &list[i]);
	for (size_t i = 0; i < count && !res; i++) {
		if (list[i].location.id != (int)device && list[i].flags)
			res = fgv_peer_grant(list[i].location.id, (int)device);
	}
	return res;
}

CUresult fgv_mempool_set_access(CUmemoryPool name, const CUmemAccessDesc *list, size_t count)
{
	struct fgv_pool *pool = pool_of(name);
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if ((list || !count) && fgv_pool_is_valid(pool))
		res = fgv_mempool_give_access(fgv_pool_device(pool), list, count);
	for (size_t i = 0; i < count && !res; i++)
		fgv_pool_set_accessor(pool, (uint32_t)list[i].location.id, list[i].flags);
	return res;
}

static CUmemAccess_flags access_of(const struct fgv_pool *pool, uint32_t device)
{
	uint32_t own = fgv_pool_device(pool);
	bool may = device == own ||
		   ((fgv_pool_accessors(pool) >> device & 1) && fgv_peer_is_enabled(device, own));

	return may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

CUresult fgv_mempool_get_access(CUmemAccess_flags *flags, CUmemoryPool pool,
				const CUmemLocation *location)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (!flags || !location || !fgv_pool_is_valid(pool_of(pool)))
		return res;
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		res = check_device(location->id);
	else if (location->type == CU_MEM_LOCATION_TYPE_HOST)
		res = CUDA_SUCCESS;
	if (!res)
		*flags = location->type == CU_MEM_LOCATION_TYPE_HOST
				 ? CU_MEM_ACCESS_FLAGS_PROT_NONE
				 : access_of(pool_of(pool), (uint32_t)location->id);
	return res;
}
