/*
 * Device memory. Addresses are handed out first fit in whole units, starting behind the
 * last one; the pages of a granule become usable with its first allocation and go back to
 * the system with its last. Bytes are zero when they are handed out.
 *
 * memory->lock guards the list and the granules; host_lock the host ranges. Neither is held
 * while the other is taken.
 */
#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"
#include "softgpu/memory.h"

#define GRANULE_SHIFT 21 /* 2 MiB: what one huge page maps */
#define GRANULE_BYTES (1ull << GRANULE_SHIFT)

struct allocation {
	RB_ENTRY(allocation) node;
	uint64_t address;
	uint64_t bytes; /* whole units */
	uint64_t asked; /* what was asked for */
	bool retired;	/* freed, but queued work may still use it */
};

static int compare(const struct allocation *a, const struct allocation *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

RB_GENERATE_INTERNAL(allocation_tree, allocation, node, compare, static __attribute__((unused)))

CUresult fgv_softgpu_memory_init(struct memory *memory, uint64_t base, uint64_t bytes)
{
	uint64_t page_count;
	void *p;

	memset(memory, 0, sizeof(*memory));
	bytes &= ~(GRANULE_BYTES - 1);
	if (!bytes || base & (GRANULE_BYTES - 1) || !base || bytes > ADDRESS_LIMIT - base ||
	    base > ADDRESS_LIMIT)
		return CUDA_ERROR_INVALID_VALUE;
	page_count = bytes >> PAGE_SHIFT;
	p = mmap((void *)(uintptr_t)base, bytes, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory->base = base;
	memory->bytes = bytes;
	memory->pages = mmap(NULL, page_count, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	memory->granules = calloc(bytes >> GRANULE_SHIFT, sizeof(*memory->granules));
	memory->host = calloc(HOST_RANGES, sizeof(*memory->host));
	if (memory->pages == MAP_FAILED || !memory->granules || !memory->host) {
		if (memory->pages == MAP_FAILED)
			memory->pages = NULL;
		fgv_softgpu_memory_fini(memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_init(&memory->lock, NULL);
	pthread_rwlock_init(&memory->host_lock, NULL);
	return CUDA_SUCCESS;
}

void fgv_softgpu_memory_fini(struct memory *memory)
{
	struct allocation *a;

	while ((a = RB_MIN(allocation_tree, &memory->allocations))) {
		RB_REMOVE(allocation_tree, &memory->allocations, a);
		free(a);
	}
	if (memory->pages)
		munmap(memory->pages, memory->bytes >> PAGE_SHIFT);
	free(memory->granules);
	free(memory->host);
	if (memory->bytes)
		munmap((void *)(uintptr_t)memory->base, memory->bytes);
	memory->bytes = 0;
}

static uint64_t page_floor(uint64_t address)
{
	return address & ~(PAGE_BYTES - 1);
}

static uint64_t page_ceil(uint64_t address)
{
	return page_floor(address + PAGE_BYTES - 1);
}

/*
 * @by: 1 or -1. The kernel sees a page's mark with relaxed order: its launch came after the
 * allocation.
 */
static void mark_pages(struct memory *memory, const struct allocation *a, int by)
{
	uint64_t first = (a->address - memory->base) >> PAGE_SHIFT;
	uint64_t end = (page_ceil(a->address + a->bytes) - memory->base) >> PAGE_SHIFT;

	for (uint8_t *page = memory->pages + first; page < memory->pages + end; page++)
		__atomic_store_n(page, (uint8_t)(*page + by), __ATOMIC_RELAXED);
}

/* Pages of the allocation that lie in granule @g. */
static uint32_t pages_in_granule(const struct memory *memory, const struct allocation *a,
				 uint64_t g)
{
	uint64_t start = memory->base + (g << GRANULE_SHIFT);
	uint64_t lo = fgv_max_u64(page_floor(a->address), start);
	uint64_t hi = fgv_min_u64(page_ceil(a->address + a->bytes), start + GRANULE_BYTES);

	return (uint32_t)((hi - lo) >> PAGE_SHIFT);
}

static uint64_t first_granule(const struct memory *memory, const struct allocation *a)
{
	return (a->address - memory->base) >> GRANULE_SHIFT;
}

static uint64_t last_granule(const struct memory *memory, const struct allocation *a)
{
	return (a->address + a->bytes - 1 - memory->base) >> GRANULE_SHIFT;
}

/* Makes all granules of an allocation usable that were not: one call for the whole. */
static bool commit(struct memory *memory, const struct allocation *a)
{
	uint64_t first = first_granule(memory, a);
	uint64_t last = last_granule(memory, a);

	if (mprotect((void *)(uintptr_t)(memory->base + (first << GRANULE_SHIFT)),
		     (last - first + 1) << GRANULE_SHIFT, PROT_READ | PROT_WRITE))
		return false;
	for (uint64_t g = first; g <= last; g++)
		memory->granules[g] += pages_in_granule(memory, a, g);
	return true;
}

static bool is_shared(const struct memory *memory, uint64_t page)
{
	return memory->pages[(page - memory->base) >> PAGE_SHIFT];
}

/* The pages go back to the system; of those that others have a part of, this one is cleared. */
static void clear(const struct memory *memory, const struct allocation *a)
{
	uint64_t end = a->address + a->bytes;
	uint64_t first = page_floor(a->address);
	uint64_t last = page_ceil(end);

	if (is_shared(memory, first)) {
		memset((void *)(uintptr_t)a->address, 0,
		       fgv_min_u64(end, first + PAGE_BYTES) - a->address);
		first += PAGE_BYTES;
	}
	if (last > first && is_shared(memory, last - PAGE_BYTES)) {
		last -= PAGE_BYTES;
		memset((void *)(uintptr_t)last, 0, end - last);
	}
	if (last > first)
		madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED);
}

static void decommit(struct memory *memory, const struct allocation *a)
{
	uint64_t first = first_granule(memory, a);
	uint64_t last = last_granule(memory, a);

	clear(memory, a);
	for (uint64_t g = first; g <= last; g++)
		memory->granules[g] -= pages_in_granule(memory, a, g);
	while (first <= last && memory->granules[first])
		first++;
	while (last > first && memory->granules[last])
		last--;
	/*
	 * Where this fails (too many mappings) the granules stay mapped, empty and
	 * unmarked: nothing can reach them.
	 */
	if (first <= last && !memory->granules[last])
		mprotect((void *)(uintptr_t)(memory->base + (first << GRANULE_SHIFT)),
			 (last - first + 1) << GRANULE_SHIFT, PROT_NONE);
}

/* Room behind @before (NULL: at the start)? */
static bool has_room(struct memory *memory, struct allocation *before, uint64_t bytes,
		     uint64_t align, uint64_t *address)
{
	struct allocation *after = before ? RB_NEXT(allocation_tree, , before)
					  : RB_MIN(allocation_tree, &memory->allocations);
	uint64_t end = after ? after->address : memory->base + memory->bytes;

	*address = fgv_align_up(before ? before->address + before->bytes : memory->base, align);
	return end >= *address && end - *address >= bytes;
}

static bool find_room(struct memory *memory, uint64_t bytes, uint64_t align, uint64_t *address)
{
	struct allocation *a;

	for (a = memory->last; a; a = RB_NEXT(allocation_tree, , a)) {
		if (has_room(memory, a, bytes, align, address))
			return true;
	}
	if (has_room(memory, NULL, bytes, align, address))
		return true;
	RB_FOREACH(a, allocation_tree, &memory->allocations) {
		if (has_room(memory, a, bytes, align, address))
			return true;
	}
	return false;
}

CUresult fgv_softgpu_memory_alloc(struct memory *memory, uint64_t bytes, uint64_t align,
				  uint64_t *address)
{
	struct allocation *a;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > memory->bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a = calloc(1, sizeof(*a));
	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->asked = bytes;
	a->bytes = fgv_align_up(bytes, UNIT_BYTES);
	pthread_mutex_lock(&memory->lock);
	if (find_room(memory, a->bytes, align, &a->address) && commit(memory, a)) {
		RB_INSERT(allocation_tree, &memory->allocations, a);
		memory->last = a;
		memory->used_bytes += a->bytes;
		mark_pages(memory, a, 1);
		*address = a->address;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&memory->lock);
	if (result != CUDA_SUCCESS)
		free(a);
	return result;
}

static struct allocation *find_locked(struct memory *memory, uint64_t address)
{
	struct allocation key = {.address = address};

	return RB_FIND(allocation_tree, &memory->allocations, &key);
}

CUresult fgv_softgpu_memory_retire(struct memory *memory, uint64_t address)
{
	struct allocation *a;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory->lock);
	a = find_locked(memory, address);
	if (a && !a->retired) {
		a->retired = true;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&memory->lock);
	return result;
}

static void free_locked(struct memory *memory, struct allocation *a)
{
	memory->last = RB_PREV(allocation_tree, , a);
	RB_REMOVE(allocation_tree, &memory->allocations, a);
	memory->used_bytes -= a->bytes;
	decommit(memory, a);
	free(a);
}

/*
 * Other devices' kernels may be using it, as far as they have found it before its pages lose their
 * marks; until they are done its addresses and bytes stay what they are.
 */
void fgv_softgpu_memory_free(struct memory *memory, uint64_t address)
{
	struct allocation *a;

	pthread_mutex_lock(&memory->lock);
	a = find_locked(memory, address);
	if (a) {
		mark_pages(memory, a, -1);
		if (memory->await_others) {
			pthread_mutex_unlock(&memory->lock);
			memory->await_others(memory->await_arg);
			pthread_mutex_lock(&memory->lock);
		}
		free_locked(memory, a);
	}
	pthread_mutex_unlock(&memory->lock);
}

/* The allocation that @address may lie in: the last that starts at or before it. */
static bool inside_allocation(struct memory *memory, uint64_t address, uint64_t bytes)
{
	struct allocation key = {.address = address};
	struct allocation *a = RB_NFIND(allocation_tree, &memory->allocations, &key);

	if (!a)
		a = RB_MAX(allocation_tree, &memory->allocations);
	else if (a->address > address)
		a = RB_PREV(allocation_tree, , a);
	return a && !a->retired && address >= a->address && address - a->address <= a->asked &&
	       bytes <= a->asked - (address - a->address);
}

static bool is_inside_allocation(struct memory *memory, uint64_t address, uint64_t bytes)
{
	bool inside;

	pthread_mutex_lock(&memory->lock);
	inside = inside_allocation(memory, address, bytes);
	pthread_mutex_unlock(&memory->lock);
	return inside;
}

bool fgv_softgpu_memory_inside(struct memory *memory, uint64_t address, uint64_t bytes)
{
	struct host_range range;

	if (is_inside_allocation(memory, address, bytes))
		return true;
	return fgv_softgpu_host_find(memory, address, RANGE_SHOWN, &range) &&
	       address >= range.base && bytes <= range.bytes - (address - range.base);
}

bool fgv_softgpu_memory_reaches(struct memory *memory, uint64_t address, uint64_t bytes,
				bool *is_peers)
{
	struct memory *peer;

	*is_peers = false;
	if (fgv_softgpu_memory_inside(memory, address, bytes))
		return true;
	peer = fgv_softgpu_memory_peer(memory, address);
	*is_peers = peer && is_inside_allocation(peer, address, bytes);
	return *is_peers;
}
