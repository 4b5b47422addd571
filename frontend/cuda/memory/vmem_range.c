/* Spans of addresses, in a tree by where they start. */
#include "frontend/cuda/memory/vmem_range.h"

#include <stdlib.h>

static int compare(const struct fgv_vmem_range *a, const struct fgv_vmem_range *b)
{
	return a->start < b->start ? -1 : a->start > b->start;
}

RB_GENERATE(fgv_vmem_ranges, fgv_vmem_range, link, compare)

struct fgv_vmem_range *fgv_vmem_range_create(uint64_t start, uint64_t len)
{
	struct fgv_vmem_range *made = calloc(1, sizeof(*made));

	if (made) {
		made->start = start;
		made->len = len;
	}
	return made;
}

struct fgv_vmem_range *fgv_vmem_range_find(struct fgv_vmem_ranges *ranges, uint64_t address)
{
	struct fgv_vmem_range *at = RB_ROOT(ranges);

	while (at && (address < at->start || address - at->start >= at->len))
		at = address < at->start ? RB_LEFT(at, link) : RB_RIGHT(at, link);
	return at;
}

bool fgv_vmem_range_is_free(struct fgv_vmem_ranges *ranges, const struct fgv_vmem_range *range)
{
	struct fgv_vmem_range probe = {.start = range->start};
	struct fgv_vmem_range *next = RB_NFIND(fgv_vmem_ranges, ranges, &probe);

	return range->start + range->len > range->start &&
	       !fgv_vmem_range_find(ranges, range->start) &&
	       (!next || next->start - range->start >= range->len);
}

struct fgv_vmem_range *fgv_vmem_range_find_whole(struct fgv_vmem_ranges *ranges, uint64_t address,
						 uint64_t bytes)
{
	struct fgv_vmem_range *first = fgv_vmem_range_find(ranges, address), *at = first;

	while (at && at->start == address && at->len <= bytes) {
		address += at->len;
		bytes -= at->len;
		if (!bytes)
			return first;
		at = RB_NEXT(fgv_vmem_ranges, ranges, at);
	}
	return NULL;
}

uint32_t fgv_vmem_range_others(const struct fgv_vmem_range *mapping)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < FGV_DEVICES_MAX; i++)
		set |= (uint32_t)(mapping->access[i] != CU_MEM_ACCESS_FLAGS_PROT_NONE) << i;
	return set & ~(1u << mapping->device);
}
