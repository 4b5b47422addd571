/*
 * Device addresses that a session has reserved, and what is mapped there: memory that it has made
 * without an address (FGV_KIND_MEMORY), each mapping with a reference to it.
 *
 * The GPU is asked for nothing that it may not be: addresses lie in one reservation, mappings do
 * not overlap, and are unmapped whole. Unmapping takes until the work is done that was queued
 * before. Meanwhile a mapping is leaving: it is there, but for nothing that could be asked of it.
 *
 * Sizes and addresses are multiples of the GPU's granularity, or CUDA_ERROR_INVALID_VALUE.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_VMEM_H
#define FGV_VGPU_VMEM_H

#include <bsd/sys/tree.h>
#include "backend/vgpu/handles.h"

/* Of one session at a time. */
#define FGV_RESERVATIONS_MAX   4096
#define FGV_RESERVED_BYTES_MAX (16ull << 40)
#define FGV_MAPPINGS_MAX       FGV_MEMORIES_MAX

struct fgv_reservation;
struct fgv_mapping;
RB_HEAD(fgv_reservation_tree, fgv_reservation);
RB_HEAD(fgv_mapping_tree, fgv_mapping);

/* Puts a reference to memory. */
typedef void fgv_vmem_put(struct fgv_object *memory, void *arg);

struct fgv_vmem {
	struct fgv_gpu *gpu;
	fgv_vmem_put *put;
	void *arg;
	struct fgv_reservation_tree reservations;
	struct fgv_mapping_tree mappings;
	uint64_t granule; /* 0: not asked for yet */
	uint64_t reserved_bytes;
	uint32_t reservations_count, mappings_count;
};

void fgv_vmem_init(struct fgv_vmem *vmem, struct fgv_gpu *gpu, fgv_vmem_put *put, void *arg);
/* Unmaps all and gives all addresses back; the GPU uses none of it. */
void fgv_vmem_fini(struct fgv_vmem *vmem);

/* The smallest granularity. */
CUresult fgv_vmem_granule(struct fgv_vmem *vmem, uint64_t *bytes);

/* @alignment, @hint: as struct fgv_gpu_ops says. */
CUresult fgv_vmem_reserve(struct fgv_vmem *vmem, uint64_t bytes, uint64_t alignment, uint64_t hint,
			  uint64_t *address);
/* CUDA_ERROR_INVALID_VALUE also where something is mapped there. */
CUresult fgv_vmem_free(struct fgv_vmem *vmem, uint64_t address);

CUresult fgv_vmem_map(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint64_t offset,
		      struct fgv_object *memory);
CUresult fgv_vmem_access(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint32_t flags);
/* From now on they are leaving, and fgv_vmem_unmap() them once the GPU does not use them. */
CUresult fgv_vmem_retire(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes);
CUresult fgv_vmem_unmap(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes);

#endif
