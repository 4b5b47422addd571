/*
 * Device addresses that a session has reserved, and what is mapped there: memory that it has made
 * without an address (FGV_KIND_MEMORY), each mapping with a reference to it.
 *
 * The GPU is asked for nothing that it may not be: addresses lie in one reservation, mappings do
 * not overlap, and are unmapped whole. Unmapping takes until the work is done that was queued
 * before. Meanwhile a mapping is leaving: it is there, but for nothing that could be asked of it.
 *
 * Parts of a session have addresses in common, as the process has them: the first part reserves
 * them, and each part maps its own memory there. Another part that is given access has a view of
 * the mapping, which goes as a mapping does, behind that part's own work. A mapping that is viewed
 * is not unmapped; so no part ever has to wait for the work of another one.
 *
 * Sizes and addresses are multiples of the GPU's granularity, or CUDA_ERROR_INVALID_VALUE.
 *
 * Threads: struct fgv_vmem is its part's dispatcher's, struct fgv_addresses has a mutex inside,
 * which is never held while a GPU is asked.
 */
#ifndef FGV_VGPU_VMEM_H
#define FGV_VGPU_VMEM_H

#include <bsd/sys/tree.h>
#include <pthread.h>
#include "backend/vgpu/handles.h"

/* Of one session at a time; mappings and views of one part. */
#define FGV_RESERVATIONS_MAX   4096
#define FGV_RESERVED_BYTES_MAX (16ull << 40)
#define FGV_MAPPINGS_MAX       FGV_MEMORIES_MAX

struct fgv_reservation;
struct fgv_mapping;
RB_HEAD(fgv_reservation_tree, fgv_reservation);
RB_HEAD(fgv_mapping_tree, fgv_mapping);

/* What the parts of a session have in common. */
struct fgv_addresses {
	pthread_mutex_t mutex;
	struct fgv_reservation_tree reservations;
	struct fgv_mapping_tree mappings; /* of all parts */
	uint64_t reserved_bytes;
	uint32_t reservations_count;
};

/* Puts a reference to memory. */
typedef void fgv_vmem_put(struct fgv_object *memory, void *arg);

struct fgv_vmem {
	struct fgv_gpu *gpu;
	struct fgv_addresses *addresses;
	fgv_vmem_put *put;
	void *arg;
	struct fgv_mapping_tree views;
	uint64_t granule;	 /* 0: not asked for yet */
	uint32_t mappings_count; /* with views */
	bool is_alone;		 /* it has no views, and nobody has one of its mappings */
};

void fgv_addresses_init(struct fgv_addresses *addresses);
/* Gives all back to the GPU that they are reserved with; nothing is mapped any more. */
void fgv_addresses_fini(struct fgv_addresses *addresses, struct fgv_gpu *gpu);

void fgv_vmem_init(struct fgv_vmem *vmem, struct fgv_gpu *gpu, struct fgv_addresses *addresses,
		   fgv_vmem_put *put, void *arg);
/* Unmaps all of this part's, also what others view; no GPU uses any of it any more. */
void fgv_vmem_fini(struct fgv_vmem *vmem);

/* The smallest granularity. */
CUresult fgv_vmem_granule(struct fgv_vmem *vmem, uint64_t *bytes);

/* Of the first part alone. @alignment, @hint: as struct fgv_gpu_ops says. */
CUresult fgv_vmem_reserve(struct fgv_vmem *vmem, uint64_t bytes, uint64_t alignment, uint64_t hint,
			  uint64_t *address);
/* CUDA_ERROR_INVALID_VALUE also where something is mapped there. */
CUresult fgv_vmem_free(struct fgv_vmem *vmem, uint64_t address);

CUresult fgv_vmem_map(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint64_t offset,
		      struct fgv_object *memory);
/* What this part's GPU may do. Views are given up by unmapping them, and not in this way. */
CUresult fgv_vmem_access(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint32_t flags);
/*
 * Mappings of this part that nobody views, or its views of others: from now on they are leaving,
 * and fgv_vmem_unmap() them once the GPU does not use them.
 */
CUresult fgv_vmem_retire(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes);
CUresult fgv_vmem_unmap(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes);

#endif
