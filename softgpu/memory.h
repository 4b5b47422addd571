/*
 * Device memory: one reservation of addresses, handed out in units that share pages, with a map
 * that tells which pages may be touched; and the ranges of host memory that were registered.
 *
 * The dispatcher allocates, it or an executor frees; workers only ask. Pages are
 * marked before an allocation's address is known to anybody and unmarked when no
 * queued work can use it, so a worker's answer stays true while its kernel runs.
 * The lock guards the list of allocations; the map is read without it.
 */
#ifndef FGV_SOFTGPU_MEMORY_H
#define FGV_SOFTGPU_MEMORY_H

#include <bsd/sys/tree.h>
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/softgpu.h"

#define PAGE_SHIFT    12
#define PAGE_BYTES    (1ull << PAGE_SHIFT)
#define UNIT_BYTES    512ull /* an allocation takes whole ones, and begins with one */
#define HOST_RANGES   4096	   /* registered ranges at most */
#define ADDRESS_LIMIT (1ull << 47) /* what a process can map lies below */
#define EXTENTS_KEPT  8
#define PEERS_MAX     SOFTGPU_PEERS /* memories of other devices */

struct allocation;

struct memory {
	uint64_t base;
	uint64_t bytes;
	uint64_t used_bytes;
	uint8_t *pages;	    /* how many allocations each has a part of; 0: may not be touched */
	uint32_t *granules; /* pages of each granule, for each allocation */
	pthread_mutex_t lock;
	RB_HEAD(allocation_tree, allocation) allocations; /* by address */
	struct allocation *last;			  /* where the search for room goes on */
	pthread_rwlock_t host_lock;
	struct host_range {
		uint64_t base;
		uint64_t bytes;
		bool joins; /* is one with those of this kind that it touches */
		enum range_state {
			RANGE_SHOWN,
			RANGE_RETIRED, /* what was queued before may still use it */
			RANGE_HIDDEN
		} state;
	} * host; /* by base */
	size_t host_count;
	/* Of other devices, by their numbers, that kernels and copies of this one reach; atomic. */
	struct memory *peers[PEERS_MAX];
	/*
	 * Where others reach this memory: returns when nothing uses any more what has just become
	 * untouchable. NULL: nobody else does.
	 */
	void (*await_others)(void *arg);
	void *await_arg;
};

/* A worker's view: the extent that was used last, and those before it. */
struct memory_view {
	uint64_t lo;
	uint64_t hi;
	struct memory *memory;
	struct extent {
		uint64_t lo;
		uint64_t hi;
	} before[EXTENTS_KEPT];
	unsigned oldest;
};

CUresult fgv_softgpu_memory_init(struct memory *memory, uint64_t base, uint64_t bytes);
void fgv_softgpu_memory_fini(struct memory *memory);
/* @align: a power of two, UNIT_BYTES at least and PAGE_BYTES at most. */
CUresult fgv_softgpu_memory_alloc(struct memory *memory, uint64_t bytes, uint64_t align,
				  uint64_t *address);
/*
 * A free in two steps: from the first on nothing new may name the allocation (or
 * CUDA_ERROR_INVALID_VALUE, where none starts there), with the second its memory goes.
 */
CUresult fgv_softgpu_memory_retire(struct memory *memory, uint64_t address);
void fgv_softgpu_memory_free(struct memory *memory, uint64_t address);
CUresult fgv_softgpu_host_add(struct memory *memory, uint64_t base, uint64_t bytes, bool joins);
CUresult fgv_softgpu_host_remove(struct memory *memory, uint64_t base);
/*
 * Taking back in steps, as of an allocation: from RANGE_RETIRED on nothing new may name what begins
 * at @base, from RANGE_HIDDEN on nothing finds it, and then it is removed. False: there is none.
 */
bool fgv_softgpu_host_set(struct memory *memory, uint64_t base, enum range_state state);
/* The range that @address lies in, with those that it joins; all of them in @state or before it. */
bool fgv_softgpu_host_find(struct memory *memory, uint64_t address, enum range_state state,
			   struct host_range *range);
/* May new work name [address, address + bytes): is it inside one allocation or registered range? */
bool fgv_softgpu_memory_inside(struct memory *memory, uint64_t address, uint64_t bytes);
/* The same, or inside an allocation of a peer, which *is_peers says. */
bool fgv_softgpu_memory_reaches(struct memory *memory, uint64_t address, uint64_t bytes,
				bool *is_peers);
/* The peer whose memory @address is in; NULL: there is none, or it is not to be reached. */
struct memory *fgv_softgpu_memory_peer(const struct memory *memory, uint64_t address);
/* May all of it be touched, here or at a peer, by what has begun? */
bool fgv_softgpu_memory_has(struct memory *memory, uint64_t address, uint64_t bytes);
/* Finds what surrounds @address and keeps it in the view; false: nothing may be touched. */
bool fgv_softgpu_view_move(struct memory_view *view, uint64_t address, uint64_t bytes);

/* May [first, end) be touched? */
static inline bool fgv_softgpu_view_has(struct memory_view *view, uint64_t first, uint64_t end)
{
	if (__builtin_expect(first >= view->lo && end <= view->hi && first < end, 1))
		return true;
	return first < end && fgv_softgpu_view_move(view, first, end - first);
}

#endif
