/*
 * Host memory that the GPU sees: pinned, registered and managed memory, managed variables. It lies
 * in the arena, whose pages are mapped once more where the program has them, and at the same
 * address in the process that serves it. So the program, kernels and copies use the very same
 * pages by the same pointer, and nothing of it is ever copied on the way.
 *
 * Memory that the program had before is registered by putting pages of the arena in its
 * place. That costs a copy, but only so can a kernel be given the program's own pointer, as
 * it may be on every GPU of today. Whole pages change, so what another thread writes beside
 * or into the memory at that very moment may be lost.
 *
 * All of it is known to the address map, too. Where lane is an argument, it is the caller's.
 *
 * Threads: any. One mutex inside, never held over a call of the host.
 */
#ifndef FGV_CUDA_HOSTMEM_H
#define FGV_CUDA_HOSTMEM_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "frontend/cuda/memory/addrmap.h"

struct fgv_lane;

/* Memory of @kind, whole pages; @flags are kept for fgv_hostmem_flags(). */
CUresult fgv_hostmem_alloc(struct fgv_lane *lane, uint64_t bytes, enum fgv_range_kind kind,
			   unsigned flags, uint64_t *address);

/*
 * Waits for all work, then frees it, or with FGV_RANGE_REGISTERED gives the program its memory
 * back. Where no memory of @kind begins: CUDA_ERROR_INVALID_VALUE, or then
 * CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED.
 */
CUresult fgv_hostmem_free(struct fgv_lane *lane, uint64_t address, enum fgv_range_kind kind);

/*
 * In a session with several GPUs memory is the first one's, whose lane the functions here take, and
 * is shown to the others. No lane may be held. Where it can't be shown to all, it is to none of
 * them.
 */
CUresult fgv_hostmem_show(uint64_t address);
/* Before it is freed: waits for the work of the others. What has no memory of @kind is left. */
CUresult fgv_hostmem_hide(uint64_t address, enum fgv_range_kind kind);

/*
 * Makes memory of the program such memory. CUDA_ERROR_INVALID_VALUE where it has none that
 * can be written, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED where a page of it is taken, and
 * CUDA_ERROR_NOT_SUPPORTED where its pages can't change: those shared with other processes, a
 * stack in use, or an address that the host's process has something else at.
 */
CUresult fgv_hostmem_register(struct fgv_lane *lane, uint64_t address, uint64_t bytes,
			      unsigned flags);

/* The flags of the memory of @kind that @address lies in; false: it lies in none. */
bool fgv_hostmem_flags(uint64_t address, enum fgv_range_kind kind, unsigned *flags);

/* What the program has said of a page of managed memory; hints, as nothing is ever moved. */
struct fgv_page_hints {
	uint8_t is_read_mostly;
	uint8_t accessed_by; /* bit 0: the processor, bit 1: the device */
	uint16_t reserved;
	/* enum cudaMemLocationType, 0: nothing was said; and which of them. */
	int32_t preferred_type, preferred_id;
	int32_t prefetched_type, prefetched_id;
};

/*
 * Calls @each with the hints of every page that holds a part of [@address, @address + @bytes).
 * CUDA_ERROR_INVALID_VALUE unless that is in one managed allocation.
 */
CUresult fgv_hostmem_hints(uint64_t address, uint64_t bytes,
			   void (*each)(struct fgv_page_hints *hints, void *arg), void *arg);

/* The first, by address, that was made on @device, but for variables; false: there is none. */
bool fgv_hostmem_first(uint32_t device, uint64_t *address, enum fgv_range_kind *kind);
/* It is this library's own, and stays when devices are reset. */
void fgv_hostmem_keep(uint64_t address);

/*
 * Around a fork. A child gets registered memory as its own, from what it was at the time of
 * this call, and no other.
 */
void fgv_hostmem_fork_begin(void);
void fgv_hostmem_fork_end(bool is_child);

#endif
