/*
 * Registered host memory, and a worker's view of what it may touch. The ranges are a sorted
 * array under host_lock: a worker looks there only when an address is no device address
 * and not in an extent that it used lately.
 */
#include "softgpu/memory.h"

#include <string.h>

#include "common/util.h"

#define EXTENT_PAGES 4096 /* how far a view looks in each direction */

/* Index of the first range that ends behind @address. */
static size_t find_index(const struct memory *memory, uint64_t address)
{
	size_t lo = 0;
	size_t hi = memory->host_count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (memory->host[mid].base + memory->host[mid].bytes <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

CUresult fgv_softgpu_host_add(struct memory *memory, uint64_t base, uint64_t bytes, bool joins)
{
	CUresult result = CUDA_SUCCESS;
	size_t i;

	if (!bytes || base >= ADDRESS_LIMIT || bytes > ADDRESS_LIMIT - base)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&memory->host_lock);
	i = find_index(memory, base);
	if (i < memory->host_count && memory->host[i].base < base + bytes) {
		result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	} else if (memory->host_count == HOST_RANGES) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		memmove(memory->host + i + 1, memory->host + i,
			(memory->host_count - i) * sizeof(*memory->host));
		memory->host[i] = (struct host_range){base, bytes, joins, RANGE_SHOWN};
		memory->host_count++;
	}
	pthread_rwlock_unlock(&memory->host_lock);
	return result;
}

CUresult fgv_softgpu_host_remove(struct memory *memory, uint64_t base)
{
	CUresult result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	size_t i;

	pthread_rwlock_wrlock(&memory->host_lock);
	i = find_index(memory, base);
	if (i < memory->host_count && memory->host[i].base == base) {
		memory->host_count--;
		memmove(memory->host + i, memory->host + i + 1,
			(memory->host_count - i) * sizeof(*memory->host));
		result = CUDA_SUCCESS;
	}
	pthread_rwlock_unlock(&memory->host_lock);
	return result;
}

bool fgv_softgpu_host_set(struct memory *memory, uint64_t base, enum range_state state)
{
	bool found;
	size_t i;

	pthread_rwlock_wrlock(&memory->host_lock);
	i = find_index(memory, base);
	found = i < memory->host_count && memory->host[i].base == base;
	if (found)
		memory->host[i].state = state;
	pthread_rwlock_unlock(&memory->host_lock);
	return found;
}

static bool are_joined(const struct host_range *before, const struct host_range *after)
{
	return before->joins && after->joins && before->base + before->bytes == after->base;
}

/* The ranges that number @i is one with. */
static struct host_range join(const struct memory *memory, size_t i, enum range_state state)
{
	const struct host_range *first = &memory->host[i], *last = first;
	const struct host_range *end = memory->host + memory->host_count;

	while (first > memory->host && are_joined(first - 1, first) && first[-1].state <= state)
		first--;
	while (last + 1 < end && are_joined(last, last + 1) && last[1].state <= state)
		last++;
	return (struct host_range){.base = first->base,
				   .bytes = last->base + last->bytes - first->base};
}

bool fgv_softgpu_host_find(struct memory *memory, uint64_t address, enum range_state state,
			   struct host_range *range)
{
	bool found = false;
	size_t i;

	pthread_rwlock_rdlock(&memory->host_lock);
	i = find_index(memory, address);
	if (i < memory->host_count && memory->host[i].base <= address &&
	    memory->host[i].state <= state) {
		*range = join(memory, i, state);
		found = true;
	}
	pthread_rwlock_unlock(&memory->host_lock);
	return found;
}

static bool is_marked(const struct memory *memory, uint64_t page)
{
	return __atomic_load_n(memory->pages + page, __ATOMIC_RELAXED);
}

/* Are the eight pages from @page on, a multiple of eight, all marked? */
static bool are_marked(const struct memory *memory, uint64_t page)
{
	typedef uint64_t __attribute__((may_alias)) marks;

	uint64_t counts = __atomic_load_n((const marks *)(memory->pages + page), __ATOMIC_RELAXED);

	/* None counts so far that the sum would be carried. */
	return ((counts + 0x7f7f7f7f7f7f7f7f) & 0x8080808080808080) == 0x8080808080808080;
}

/* How far the marked pages go on before page @lo, which is marked, and not before @end. */
static uint64_t extent_start(const struct memory *memory, uint64_t lo, uint64_t end)
{
	while (lo > end && is_marked(memory, lo - 1)) {
		lo--;
		while (lo % 8 == 0 && lo >= end + 8 && are_marked(memory, lo - 8))
			lo -= 8;
	}
	return lo;
}

/* The same behind page @hi - 1. */
static uint64_t extent_end(const struct memory *memory, uint64_t hi, uint64_t end)
{
	while (hi < end && is_marked(memory, hi)) {
		hi++;
		while (hi % 8 == 0 && hi + 8 <= end && are_marked(memory, hi))
			hi += 8;
	}
	return hi;
}

/* The marked pages around [first, last], as far as EXTENT_PAGES. */
static bool device_extent(const struct memory *memory, uint64_t first, uint64_t last,
			  struct extent *extent)
{
	uint64_t pages = memory->bytes >> PAGE_SHIFT;
	uint64_t lo = first - fgv_min_u64(first, EXTENT_PAGES);
	uint64_t hi = fgv_min_u64(last + 1 + EXTENT_PAGES, pages);

	for (uint64_t page = first; page <= last; page++) {
		if (!is_marked(memory, page))
			return false;
	}
	lo = extent_start(memory, first, lo);
	hi = extent_end(memory, last + 1, hi);
	*extent = (struct extent){memory->base + (lo << PAGE_SHIFT),
				  memory->base + (hi << PAGE_SHIFT)};
	return true;
}

static bool is_within(const struct memory *memory, uint64_t address)
{
	return address >= memory->base && address - memory->base < memory->bytes;
}

struct memory *fgv_softgpu_memory_peer(const struct memory *memory, uint64_t address)
{
	for (unsigned i = 0; i < PEERS_MAX; i++) {
		struct memory *peer = __atomic_load_n(&memory->peers[i], __ATOMIC_ACQUIRE);

		if (peer && is_within(peer, address))
			return peer;
	}
	return NULL;
}

static bool find_device_extent(const struct memory *memory, uint64_t address, uint64_t bytes,
			       struct extent *extent)
{
	if (bytes > memory->bytes - (address - memory->base))
		return false;
	return device_extent(memory, (address - memory->base) >> PAGE_SHIFT,
			     (address + bytes - 1 - memory->base) >> PAGE_SHIFT, extent);
}

static bool find_extent(struct memory *memory, uint64_t address, uint64_t bytes,
			struct extent *extent)
{
	const struct memory *peer;
	struct host_range range;

	if (address >= ADDRESS_LIMIT || bytes > ADDRESS_LIMIT - address)
		return false;
	if (is_within(memory, address))
		return find_device_extent(memory, address, bytes, extent);
	peer = fgv_softgpu_memory_peer(memory, address);
	if (peer)
		return find_device_extent(peer, address, bytes, extent);
	if (!fgv_softgpu_host_find(memory, address, RANGE_RETIRED, &range) ||
	    bytes > range.bytes - (address - range.base))
		return false;
	*extent = (struct extent){range.base, range.base + range.bytes};
	return true;
}

bool fgv_softgpu_memory_has(struct memory *memory, uint64_t address, uint64_t bytes)
{
	struct extent extent;

	return bytes && find_extent(memory, address, bytes, &extent);
}

bool fgv_softgpu_view_move(struct memory_view *view, uint64_t address, uint64_t bytes)
{
	struct extent *place = NULL;
	struct extent found;

	for (unsigned i = 0; i < EXTENTS_KEPT && !place; i++) {
		struct extent *e = &view->before[i];

		if (address >= e->lo && address < e->hi && bytes <= e->hi - address)
			place = e;
	}
	if (place) {
		found = *place;
	} else {
		if (!find_extent(view->memory, address, bytes, &found))
			return false;
		place = &view->before[view->oldest++ % EXTENTS_KEPT];
	}
	*place = (struct extent){view->lo, view->hi};
	view->lo = found.lo;
	view->hi = found.hi;
	return true;
}
