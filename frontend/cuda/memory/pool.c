/*
 * Pools: a list of them, each with a list of its blocks. A block is memory of the device, in
 * use or kept.
 *
 * Blocks are searched one after another: pools are for programs that use the same few sizes
 * again and again.
 */
#include "frontend/cuda/memory/pool.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "common/util.h"
#include "frontend/client/lane.h"
#include "frontend/cuda/memory/devmem.h"

/* A kept block is given out again for at least this part of its size. */
#define WASTE_PART 2

#define REUSE_RULES 3

struct block {
	LIST_ENTRY(block) link;
	uint64_t address;
	uint64_t bytes;
	uint32_t stream; /* that it was freed in, where it is kept */
	bool is_kept;
};

struct fgv_pool {
	LIST_ENTRY(fgv_pool) link;
	LIST_HEAD(, block) blocks;
	bool is_destroyed; /* and goes with its last block */
	uint32_t device;
	uint32_t accessors; /* atomic: bits of devices */
	int reuse[REUSE_RULES];
	uint64_t max_bytes;
	uint64_t threshold_bytes;
	uint64_t reserved_bytes, reserved_high_bytes; /* of all blocks */
	uint64_t used_bytes, used_high_bytes;	      /* of those in use */
};

static struct {
	pthread_mutex_t mutex;
	LIST_HEAD(, fgv_pool) pools; /* without the default ones */
	struct fgv_pool common[FGV_DEVICES_MAX];
	struct fgv_pool *current[FGV_DEVICES_MAX]; /* NULL: the default one */
	bool is_over[FGV_DEVICES_MAX]; /* atomic: a pool keeps more than its threshold */
} all = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
};

__attribute__((constructor)) static void start(void)
{
	for (uint32_t i = 0; i < FGV_DEVICES_MAX; i++)
		all.common[i] = (struct fgv_pool){.device = i, .reuse = {1, 1, 1}};
}

struct fgv_pool *fgv_pool_default(uint32_t device)
{
	return &all.common[device];
}

static bool is_common(const struct fgv_pool *pool)
{
	return pool >= all.common && pool < all.common + FGV_DEVICES_MAX;
}

static bool is_valid_locked(const struct fgv_pool *pool)
{
	const struct fgv_pool *each;

	LIST_FOREACH(each, &all.pools, link) {
		if (each == pool)
			return !each->is_destroyed;
	}
	return is_common(pool);
}

bool fgv_pool_is_valid(const struct fgv_pool *pool)
{
	bool is_valid;

	pthread_mutex_lock(&all.mutex);
	is_valid = is_valid_locked(pool);
	pthread_mutex_unlock(&all.mutex);
	return is_valid;
}

uint32_t fgv_pool_device(const struct fgv_pool *pool)
{
	uint32_t device = fgv_thread_self.device;

	pthread_mutex_lock(&all.mutex);
	if (is_valid_locked(pool))
		device = pool->device;
	pthread_mutex_unlock(&all.mutex);
	return device;
}

uint32_t fgv_pool_accessors(const struct fgv_pool *pool)
{
	return __atomic_load_n(&pool->accessors, __ATOMIC_RELAXED);
}

void fgv_pool_set_accessor(struct fgv_pool *pool, uint32_t device, bool may)
{
	if (may)
		__atomic_fetch_or(&pool->accessors, 1u << device, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&pool->accessors, ~(1u << device), __ATOMIC_RELAXED);
}

struct fgv_pool *fgv_pool_current(uint32_t device)
{
	struct fgv_pool *pool;

	pthread_mutex_lock(&all.mutex);
	pool = all.current[device];
	pthread_mutex_unlock(&all.mutex);
	return pool ? pool : &all.common[device];
}

CUresult fgv_pool_set_current(uint32_t device, struct fgv_pool *pool)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&all.mutex);
	if (is_valid_locked(pool) && pool->device == device) {
		all.current[device] = pool;
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&all.mutex);
	return res;
}

CUresult fgv_pool_create(uint32_t device, uint64_t max_bytes, struct fgv_pool **pool)
{
	struct fgv_pool *made = calloc(1, sizeof(*made));

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->device = device;
	made->max_bytes = max_bytes;
	for (unsigned i = 0; i < REUSE_RULES; i++)
		made->reuse[i] = 1;
	pthread_mutex_lock(&all.mutex);
	LIST_INSERT_HEAD(&all.pools, made, link);
	pthread_mutex_unlock(&all.mutex);
	*pool = made;
	return CUDA_SUCCESS;
}

/* Gives @block, which is in no use, back to the device. */
static void release_locked(struct fgv_lane *lane, struct fgv_pool *pool, struct block *block)
{
	pool->reserved_bytes -= block->bytes;
	LIST_REMOVE(block, link);
	fgv_post_mem_free(lane, block->address);
	free(block);
}

static void trim_locked(struct fgv_lane *lane, struct fgv_pool *pool, uint64_t keep)
{
	struct block *block = LIST_FIRST(&pool->blocks), *next;

	for (; block && pool->reserved_bytes > keep; block = next) {
		next = LIST_NEXT(block, link);
		if (block->is_kept)
			release_locked(lane, pool, block);
	}
}

/* A destroyed pool ends with its last block. */
static void drop_if_empty_locked(struct fgv_pool *pool)
{
	if (!pool->is_destroyed || !LIST_EMPTY(&pool->blocks))
		return;
	LIST_REMOVE(pool, link);
	free(pool);
}

CUresult fgv_pool_destroy(struct fgv_lane *lane, struct fgv_pool *pool)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&all.mutex);
	if (!is_common(pool) && is_valid_locked(pool)) {
		if (all.current[pool->device] == pool)
			all.current[pool->device] = NULL;
		pool->is_destroyed = true;
		trim_locked(lane, pool, 0);
		drop_if_empty_locked(pool);
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&all.mutex);
	return res;
}

CUresult fgv_pool_trim(struct fgv_lane *lane, struct fgv_pool *pool, uint64_t keep)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&all.mutex);
	if (is_valid_locked(pool)) {
		trim_locked(lane, pool, keep);
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&all.mutex);
	return res;
}

static void use_locked(struct fgv_pool *pool, struct block *block)
{
	block->is_kept = false;
	pool->used_bytes += block->bytes;
	pool->used_high_bytes = fgv_max_u64(pool->used_high_bytes, pool->used_bytes);
}

/* The smallest kept block that will do. */
static struct block *find_kept_locked(struct fgv_pool *pool, uint64_t bytes, uint32_t stream)
{
	struct block *block, *best = NULL;

	LIST_FOREACH(block, &pool->blocks, link) {
		if (block->is_kept && block->stream == stream && block->bytes >= bytes &&
		    block->bytes / WASTE_PART <= bytes && (!best || block->bytes < best->bytes))
			best = block;
	}
	return best;
}

/* CUDA_ERROR_NOT_FOUND: there is none. */
static CUresult take_kept(struct fgv_pool *pool, uint64_t bytes, uint32_t stream, uint64_t *address)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;
	struct block *block;

	pthread_mutex_lock(&all.mutex);
	if (is_valid_locked(pool)) {
		block = find_kept_locked(pool, bytes, stream);
		res = CUDA_ERROR_NOT_FOUND;
		if (block &&
		    !fgv_addrmap_add_on(pool->device, block->address, bytes, FGV_RANGE_POOLED)) {
			use_locked(pool, block);
			*address = block->address;
			res = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&all.mutex);
	return res;
}

static CUresult add_block(struct fgv_pool *pool, struct block *block)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&all.mutex);
	if (is_valid_locked(pool)) {
		LIST_INSERT_HEAD(&pool->blocks, block, link);
		pool->reserved_bytes += block->bytes;
		pool->reserved_high_bytes =
			fgv_max_u64(pool->reserved_high_bytes, pool->reserved_bytes);
		use_locked(pool, block);
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&all.mutex);
	return res;
}

CUresult fgv_pool_ask_device(struct fgv_lane *lane, uint64_t bytes, enum fgv_range_kind kind,
			     uint64_t *address)
{
	CUresult res = fgv_devmem_alloc(lane, bytes, kind, address);
	uint32_t device = lane->client->device;
	struct fgv_pool *pool;

	if (res != CUDA_ERROR_OUT_OF_MEMORY)
		return res;
	pthread_mutex_lock(&all.mutex);
	trim_locked(lane, &all.common[device], 0);
	LIST_FOREACH(pool, &all.pools, link) {
		if (pool->device == device)
			trim_locked(lane, pool, 0);
	}
	pthread_mutex_unlock(&all.mutex);
	return fgv_devmem_alloc(lane, bytes, kind, address);
}

static CUresult grow(struct fgv_lane *lane, struct fgv_pool *pool, uint64_t bytes,
		     uint64_t *address)
{
	struct block *block = malloc(sizeof(*block));
	CUresult res = CUDA_ERROR_OUT_OF_MEMORY;

	if (!block)
		return res;
	*block = (struct block){.bytes = bytes};
	if (!pool->max_bytes || bytes <= pool->max_bytes)
		res = fgv_pool_ask_device(lane, bytes, FGV_RANGE_POOLED, &block->address);
	if (!res) {
		res = add_block(pool, block);
		if (res) {
			fgv_addrmap_remove(block->address, FGV_RANGE_POOLED);
			fgv_post_mem_free(lane, block->address);
		}
	}
	if (res)
		free(block);
	else
		*address = block->address;
	return res;
}

CUresult fgv_pool_alloc(struct fgv_lane *lane, struct fgv_pool *pool, uint64_t bytes,
			uint32_t stream, uint64_t *address)
{
	CUresult res = take_kept(pool, bytes, stream, address);

	return res == CUDA_ERROR_NOT_FOUND ? grow(lane, pool, bytes, address) : res;
}

/* The block in use at @address, and its pool. */
static struct block *find_in(struct fgv_pool *pool, uint64_t address)
{
	struct block *block;

	LIST_FOREACH(block, &pool->blocks, link) {
		if (block->address == address && !block->is_kept)
			return block;
	}
	return NULL;
}

static struct block *find_locked(uint32_t device, uint64_t address, struct fgv_pool **pool)
{
	struct block *block = find_in(&all.common[device], address);

	*pool = &all.common[device];
	if (block)
		return block;
	LIST_FOREACH(*pool, &all.pools, link) {
		block = (*pool)->device == device ? find_in(*pool, address) : NULL;
		if (block)
			return block;
	}
	return NULL;
}

CUresult fgv_pool_free(struct fgv_lane *lane, uint64_t address, uint32_t stream)
{
	struct fgv_pool *pool;
	struct block *block;

	pthread_mutex_lock(&all.mutex);
	block = find_locked(lane->client->device, address, &pool);
	if (block) {
		fgv_addrmap_remove(address, FGV_RANGE_POOLED);
		pool->used_bytes -= block->bytes;
		block->is_kept = true;
		block->stream = stream;
		if (pool->is_destroyed)
			release_locked(lane, pool, block);
		else if (pool->reserved_bytes > pool->threshold_bytes)
			__atomic_store_n(&all.is_over[pool->device], true, __ATOMIC_RELAXED);
		drop_if_empty_locked(pool);
	}
	pthread_mutex_unlock(&all.mutex);
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool is_reuse(CUmemPool_attribute attribute)
{
	return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	       attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

/* NULL: none that has such a place. */
static uint64_t *place_of(struct fgv_pool *pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold_bytes;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved_bytes;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high_bytes;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used_bytes;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high_bytes;
	default:
		return NULL;
	}
}

CUresult fgv_pool_get_attribute(struct fgv_pool *pool, CUmemPool_attribute attribute,
				uint64_t *value)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;
	uint64_t *place;

	pthread_mutex_lock(&all.mutex);
	if (is_valid_locked(pool)) {
		place = place_of(pool, attribute);
		if (place)
			*value = *place;
		else if (is_reuse(attribute))
			*value = (uint64_t)pool->reuse[attribute - 1];
		if (place || is_reuse(attribute))
			res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&all.mutex);
	return res;
}

static CUresult set_locked(struct fgv_pool *pool, CUmemPool_attribute attribute, uint64_t value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold_bytes = value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (value)
			return CUDA_ERROR_INVALID_VALUE;
		*place_of(pool, attribute) = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH
						     ? pool->used_bytes
						     : pool->reserved_bytes;
		return CUDA_SUCCESS;
	default:
		if (!is_reuse(attribute))
			return CUDA_ERROR_INVALID_VALUE;
		pool->reuse[attribute - 1] = value != 0;
		return CUDA_SUCCESS;
	}
}

CUresult fgv_pool_set_attribute(struct fgv_pool *pool, CUmemPool_attribute attribute,
				uint64_t value)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&all.mutex);
	if (is_valid_locked(pool))
		res = set_locked(pool, attribute, value);
	pthread_mutex_unlock(&all.mutex);
	return res;
}

void fgv_pool_settle(struct fgv_lane *lane)
{
	uint32_t device = lane->client->device;
	struct fgv_pool *pool;

	if (__builtin_expect(!__atomic_load_n(&all.is_over[device], __ATOMIC_RELAXED), 1))
		return;
	pthread_mutex_lock(&all.mutex);
	__atomic_store_n(&all.is_over[device], false, __ATOMIC_RELAXED);
	trim_locked(lane, &all.common[device], all.common[device].threshold_bytes);
	LIST_FOREACH(pool, &all.pools, link) {
		if (pool->device == device)
			trim_locked(lane, pool, pool->threshold_bytes);
	}
	pthread_mutex_unlock(&all.mutex);
}

static void drain_locked(struct fgv_lane *lane, struct fgv_pool *pool)
{
	struct block *block;

	while ((block = LIST_FIRST(&pool->blocks))) {
		fgv_addrmap_remove(block->address, FGV_RANGE_POOLED);
		release_locked(lane, pool, block);
	}
	pool->used_bytes = 0;
}

void fgv_pool_drain(struct fgv_lane *lane)
{
	uint32_t device = lane->client->device;
	struct fgv_pool *pool, *next;

	pthread_mutex_lock(&all.mutex);
	all.current[device] = NULL;
	drain_locked(lane, &all.common[device]);
	for (pool = LIST_FIRST(&all.pools); pool; pool = next) {
		next = LIST_NEXT(pool, link);
		if (pool->device != device)
			continue;
		drain_locked(lane, pool);
		pool->is_destroyed = true;
		drop_if_empty_locked(pool);
	}
	pthread_mutex_unlock(&all.mutex);
}
