/*
 * Pools of device memory, for allocation in the order of streams. Memory that is freed in a
 * stream may be given out at once in the same stream, whose later work comes after the earlier.
 * For that a pool keeps what was freed, without a word to the host. What is more than its release
 * threshold goes back to the device when the program synchronizes next.
 *
 * What a pool keeps counts against the VM's quota. Each device has a default pool and a current
 * one. A lane that is given is one of the pool's device.
 *
 * Threads: any. One mutex inside, never held over a call of the host.
 */
#ifndef FGV_CUDA_POOL_H
#define FGV_CUDA_POOL_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "frontend/cuda/memory/addrmap.h"

struct fgv_lane;
struct fgv_pool;

struct fgv_pool *fgv_pool_default(uint32_t device);

/*
 * The one that allocations on a device come from that name none; CUDA_ERROR_INVALID_VALUE if it is
 * none of that device.
 */
struct fgv_pool *fgv_pool_current(uint32_t device);
CUresult fgv_pool_set_current(uint32_t device, struct fgv_pool *pool);

/* @max_bytes 0: no limit of its own. */
CUresult fgv_pool_create(uint32_t device, uint64_t max_bytes, struct fgv_pool **pool);
/* What it keeps goes at once, what is in use when it is freed. Not the default one. */
CUresult fgv_pool_destroy(struct fgv_lane *lane, struct fgv_pool *pool);

bool fgv_pool_is_valid(const struct fgv_pool *pool);
/* The ordinal of its device; the thread's where it is none. */
uint32_t fgv_pool_device(const struct fgv_pool *pool);

/* Bits of the devices, beside its own, that the program has given access to; and changing them. */
uint32_t fgv_pool_accessors(const struct fgv_pool *pool);
void fgv_pool_set_accessor(struct fgv_pool *pool, uint32_t device, bool may);

/* @stream: the host's handle. */
CUresult fgv_pool_alloc(struct fgv_lane *lane, struct fgv_pool *pool, uint64_t bytes,
			uint32_t stream, uint64_t *address);
/* CUDA_ERROR_INVALID_VALUE unless memory of a pool begins there. */
CUresult fgv_pool_free(struct fgv_lane *lane, uint64_t address, uint32_t stream);

/* Memory of the device that is no pool's; what pools keep is no reason to have none. */
CUresult fgv_pool_ask_device(struct fgv_lane *lane, uint64_t bytes, enum fgv_range_kind kind,
			     uint64_t *address);

/* Gives back what the pool keeps, until at most @keep bytes of the device are its. */
CUresult fgv_pool_trim(struct fgv_lane *lane, struct fgv_pool *pool, uint64_t keep);

/* CUDA_ERROR_INVALID_VALUE: no such pool or attribute, or it can't be set to that. */
CUresult fgv_pool_get_attribute(struct fgv_pool *pool, CUmemPool_attribute attribute,
				uint64_t *value);
CUresult fgv_pool_set_attribute(struct fgv_pool *pool, CUmemPool_attribute attribute,
				uint64_t value);

/* The program has synchronized: gives back what pools keep beyond their thresholds. */
void fgv_pool_settle(struct fgv_lane *lane);

/* Frees all memory of all pools of the lane's device; only the default one is left. */
void fgv_pool_drain(struct fgv_lane *lane);

#endif
