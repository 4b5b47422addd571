/*
 * Spans of addresses in order: of vmem.c, those that are reserved and those where memory is mapped.
 *
 * Threads: whoever has vmem.c's mutex.
 */
#ifndef FGV_CUDA_VMEM_RANGE_H
#define FGV_CUDA_VMEM_RANGE_H

#include <bsd/sys/tree.h>
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/wire.h"

struct fgv_vmem_memory;

struct fgv_vmem_range {
	RB_ENTRY(fgv_vmem_range) link;
	uint64_t start;
	uint64_t len;
	/* Of mappings: */
	struct fgv_vmem_memory *memory;
	uint32_t device;		 /* the memory's */
	uint8_t access[FGV_DEVICES_MAX]; /* CUmemAccess_flags of each device */
};

RB_HEAD(fgv_vmem_ranges, fgv_vmem_range);
RB_PROTOTYPE(fgv_vmem_ranges, fgv_vmem_range, link, )

/* For free(); NULL: no memory. */
struct fgv_vmem_range *fgv_vmem_range_create(uint64_t start, uint64_t len);
/* The one that @address lies in. */
struct fgv_vmem_range *fgv_vmem_range_find(struct fgv_vmem_ranges *ranges, uint64_t address);
/* Whether @range does not wrap, and nothing of @ranges lies there. */
bool fgv_vmem_range_is_free(struct fgv_vmem_ranges *ranges, const struct fgv_vmem_range *range);
/* The first of whole ones that fill the span side by side; or NULL. */
struct fgv_vmem_range *fgv_vmem_range_find_whole(struct fgv_vmem_ranges *ranges, uint64_t address,
						 uint64_t bytes);
/* Bits of the devices that have access to a mapping and are not its memory's. */
uint32_t fgv_vmem_range_others(const struct fgv_vmem_range *mapping);

#endif
