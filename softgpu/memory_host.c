/*
 * Registered host memory, and a worker's view of what it may touch. The ranges are a sorted
 * array under host_lock: a worker looks there only when an address is no device address
 * and not in the extent that it used last.
 */
#include "softgpu/memory.h"

#include <string.h>

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

CUresult fgv_softgpu_host_add(struct memory *memory, uint64_t base, uint64_t bytes)
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
		memory->host[i] = (struct host_range){base, bytes};
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

bool fgv_softgpu_host_find(struct memory *memory, uint64_t address, struct host_range *range)
{
	bool found = false;
	size_t i;

	pthread_rwlock_rdlock(&memory->host_lock);
	i = find_index(memory, address);
	if (i < memory->host_count && memory->host[i].base <= address) {
		*range = memory->host[i];
		found = true;
	}
	pthread_rwlock_unlock(&memory->host_lock);
	return found;
}

static bool is_marked(const struct memory *memory, uint64_t page)
{
	return __atomic_load_n(memory->pages + page, __ATOMIC_RELAXED);
}

/* The marked pages around [first, last], as far as EXTENT_PAGES. */
static bool device_extent(struct memory_view *view, uint64_t first, uint64_t last)
{
	const struct memory *memory = view->memory;
	uint64_t lo = first;
	uint64_t hi = last + 1;

	for (uint64_t page = first; page <= last; page++) {
		if (!is_marked(memory, page))
			return false;
	}
	while (lo > 0 && first - lo < EXTENT_PAGES && is_marked(memory, lo - 1))
		lo--;
	while (hi < memory->bytes >> PAGE_SHIFT && hi - last < EXTENT_PAGES &&
	       is_marked(memory, hi))
		hi++;
	view->lo = memory->base + (lo << PAGE_SHIFT);
	view->hi = memory->base + (hi << PAGE_SHIFT);
	return true;
}

bool fgv_softgpu_view_move(struct memory_view *view, uint64_t address, uint64_t bytes)
{
	struct memory *memory = view->memory;
	struct host_range range;

	if (address >= ADDRESS_LIMIT || bytes > ADDRESS_LIMIT - address)
		return false;
	if (address >= memory->base && address - memory->base < memory->bytes) {
		if (bytes > memory->bytes - (address - memory->base))
			return false;
		return device_extent(view, (address - memory->base) >> PAGE_SHIFT,
				     (address + bytes - 1 - memory->base) >> PAGE_SHIFT);
	}
	if (!fgv_softgpu_host_find(memory, address, &range) ||
	    bytes > range.bytes - (address - range.base))
		return false;
	view->lo = range.base;
	view->hi = range.base + range.bytes;
	return true;
}
