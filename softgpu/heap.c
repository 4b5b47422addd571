/*
 * Chunks of granules, each free or in use. What is known of them lies beside the heap, where
 * no kernel can write: a chunk's first granule and, if it has several, its last one
 * have a tag with its size; all other tags are 0. So neighbours find each other in both
 * directions, and an address that was never given out is told from one that was.
 */
#include "softgpu/heap.h"

#include <stdlib.h>
#include <string.h>

#define GRANULE_BYTES 16u
#define HEAP_MAX      (32ull << 30) /* its granules can be counted */

#define TAG_USED 1u
#define TAG_LAST 2u
#define TAG_SIZE 2 /* bits to shift */

void fgv_softgpu_heap_init(struct heap *heap)
{
	memset(heap, 0, sizeof(*heap));
	pthread_mutex_init(&heap->lock, NULL);
	heap->bytes = FGV_HEAP_BYTES;
}

void fgv_softgpu_heap_fini(struct heap *heap)
{
	free(heap->tags);
	pthread_mutex_destroy(&heap->lock);
}

static uint32_t size_at(const struct heap *heap, uint32_t granule)
{
	return heap->tags[granule] >> TAG_SIZE;
}

static bool is_used(const struct heap *heap, uint32_t granule)
{
	return heap->tags[granule] & TAG_USED;
}

static void set_chunk(struct heap *heap, uint32_t first, uint32_t size, uint32_t used)
{
	if (size > 1)
		heap->tags[first + size - 1] = size << TAG_SIZE | TAG_LAST | used;
	heap->tags[first] = size << TAG_SIZE | used;
}

static void clear_chunk(struct heap *heap, uint32_t first)
{
	uint32_t size = size_at(heap, first);

	heap->tags[first + size - 1] = 0;
	heap->tags[first] = 0;
}

CUresult fgv_softgpu_heap_need(struct heap *heap, struct memory *memory)
{
	CUresult result;

	if (heap->base)
		return CUDA_SUCCESS;
	heap->granules = (uint32_t)(heap->bytes / GRANULE_BYTES);
	heap->tags = calloc(heap->granules, sizeof(*heap->tags));
	if (!heap->tags)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = fgv_softgpu_memory_alloc(memory, heap->bytes, PAGE_BYTES, &heap->base);
	if (result != CUDA_SUCCESS) {
		free(heap->tags);
		heap->tags = NULL;
		return result;
	}
	set_chunk(heap, 0, heap->granules, 0);
	return CUDA_SUCCESS;
}

CUresult fgv_softgpu_heap_resize(struct heap *heap, uint64_t bytes)
{
	if (heap->base || bytes < GRANULE_BYTES || bytes > HEAP_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	heap->bytes = bytes;
	return CUDA_SUCCESS;
}

/* A free chunk of @size granules, or more; false where there is none. */
static bool find_room(struct heap *heap, uint32_t size, uint32_t *found)
{
	uint32_t first = heap->next;

	do {
		if (!is_used(heap, first) && size_at(heap, first) >= size) {
			*found = first;
			return true;
		}
		first += size_at(heap, first);
		if (first == heap->granules)
			first = 0;
	} while (first != heap->next);
	return false;
}

uint64_t fgv_softgpu_heap_alloc(struct heap *heap, uint64_t bytes)
{
	uint64_t address = 0;
	uint32_t first, size, room;

	if (!bytes || bytes > (uint64_t)heap->granules * GRANULE_BYTES)
		return 0;
	size = (uint32_t)((bytes + GRANULE_BYTES - 1) / GRANULE_BYTES);
	pthread_mutex_lock(&heap->lock);
	if (find_room(heap, size, &first)) {
		room = size_at(heap, first);
		clear_chunk(heap, first);
		set_chunk(heap, first, size, TAG_USED);
		if (room > size)
			set_chunk(heap, first + size, room - size, 0);
		heap->next = first + size < heap->granules ? first + size : 0;
		address = heap->base + (uint64_t)first * GRANULE_BYTES;
	}
	pthread_mutex_unlock(&heap->lock);
	return address;
}

/* Frees the chunk and joins it with free neighbours. */
static void free_chunk(struct heap *heap, uint32_t first)
{
	uint32_t size = size_at(heap, first);
	uint32_t behind = first + size;

	clear_chunk(heap, first);
	if (behind < heap->granules && !is_used(heap, behind)) {
		size += size_at(heap, behind);
		clear_chunk(heap, behind);
	}
	if (first > 0 && !is_used(heap, first - 1)) {
		uint32_t before = size_at(heap, first - 1);

		first -= before;
		size += before;
		clear_chunk(heap, first);
	}
	set_chunk(heap, first, size, 0);
	heap->next = first;
}

bool fgv_softgpu_heap_free(struct heap *heap, uint64_t address)
{
	uint64_t offset = address - heap->base;
	bool found = false;

	if (!address)
		return true;
	if (!heap->base || offset % GRANULE_BYTES || offset / GRANULE_BYTES >= heap->granules)
		return false;
	pthread_mutex_lock(&heap->lock);
	if ((heap->tags[offset / GRANULE_BYTES] & (TAG_USED | TAG_LAST)) == TAG_USED) {
		free_chunk(heap, (uint32_t)(offset / GRANULE_BYTES));
		found = true;
	}
	pthread_mutex_unlock(&heap->lock);
	return found;
}
