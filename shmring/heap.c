/*
 * The lane heap's bookkeeping. [tail, head) is in use, going round the end; a
 * request that does not fit before the end takes the rest of it as a gap, which
 * counts as its own.
 */
#include "shmring/heap.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

void fgv_heap_init(struct fgv_heap *heap, uint64_t off, uint32_t len)
{
	memset(heap, 0, sizeof(*heap));
	heap->off = off;
	heap->len = len - len % FGV_CACHE_LINE;
}

/*
 * Where @need bytes would start, and in *gap what they leave unused before the end;
 * -EAGAIN if they don't fit now.
 */
static int64_t place(const struct fgv_heap *heap, uint32_t need, uint32_t *gap)
{
	*gap = 0;
	if (need > heap->len - heap->used)
		return -EAGAIN;
	if (heap->head < heap->tail || need <= heap->len - heap->head)
		return heap->head;
	*gap = heap->len - heap->head;
	return need <= heap->tail ? 0 : -EAGAIN;
}

int fgv_heap_alloc(struct fgv_heap *heap, uint32_t slot, uint32_t bytes, uint64_t *off)
{
	uint32_t need, gap;
	int64_t start;

	if (!bytes || bytes > heap->len || slot >= FGV_REQUEST_SLOTS || heap->taken[slot])
		return -EINVAL;
	need = (uint32_t)fgv_align_up(bytes, FGV_CACHE_LINE);
	if (!heap->used)
		heap->head = heap->tail = 0;
	start = place(heap, need, &gap);
	if (start < 0)
		return (int)start;
	heap->taken[slot] = gap + need;
	heap->used += gap + need;
	heap->head = ((uint32_t)start + need) % heap->len;
	*off = heap->off + (uint64_t)start;
	return 0;
}

void fgv_heap_reclaim(struct fgv_heap *heap, uint32_t slot)
{
	uint32_t taken = heap->taken[slot];

	heap->taken[slot] = 0;
	heap->used -= taken;
	heap->tail = (heap->tail + taken) % heap->len;
}
