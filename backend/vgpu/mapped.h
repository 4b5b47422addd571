/*
 * Host memory that the session's GPU sees: pages of the arena, mapped once more where they
 * lie in the guest program too, so that a pointer means the same to the program, to
 * kernels and here.
 *
 * The guest names the address. Nothing of this process is ever replaced: where something
 * lies already, the guest has to find another.
 *
 * In a session with several GPUs the first part's are mapped, and further parts share them: the
 * pages stay until the last of them has dropped its range.
 *
 * Threads: the dispatcher's; fgv_mapped_share() is another part's.
 */
#ifndef FGV_VGPU_MAPPED_H
#define FGV_VGPU_MAPPED_H

#include <bsd/sys/tree.h>
#include <pthread.h>
#include "backend/gpu/gpu_ops.h"

#define FGV_MAPPED_MAX 16384 /* ranges of one session; the kernel's own limit is 65530 mappings */

struct fgv_mapped_range;
RB_HEAD(fgv_mapped_tree, fgv_mapped_range);

struct fgv_mapped {
	struct fgv_mapped_tree ranges;
	uint32_t count;
	uint64_t taken;	      /* ranges in all, so far */
	pthread_mutex_t lock; /* over changes of ranges, and over what other parts find there */
};

void fgv_mapped_init(struct fgv_mapped *mapped);
/* Takes all of it from @gpu, which must not be using it, and unmaps it. */
void fgv_mapped_fini(struct fgv_mapped *mapped, struct fgv_gpu *gpu);

/*
 * Maps [@pages, @pages + @len), a part of a shared mapping, at @address as well, and shows it to
 * @gpu there. CUDA_ERROR_INVALID_VALUE unless all are whole pages; CUDA_ERROR_ALREADY_MAPPED
 * where this process has something else there; CUDA_ERROR_OUT_OF_MEMORY, or the GPU's code.
 */
CUresult fgv_mapped_add(struct fgv_mapped *mapped, struct fgv_gpu *gpu, uint64_t address,
			void *pages, uint64_t len);

/* Takes over the page at @base, which is mapped where nobody else chose it. As above. */
CUresult fgv_mapped_adopt(struct fgv_mapped *mapped, struct fgv_gpu *gpu, void *base);

/*
 * Shows @gpu, at the same address, the whole range that @of has at @address.
 * CUDA_ERROR_INVALID_VALUE where it has none; CUDA_ERROR_ALREADY_MAPPED where @mapped has it
 * already; CUDA_ERROR_OUT_OF_MEMORY, or the GPU's code.
 */
CUresult fgv_mapped_share(struct fgv_mapped *mapped, struct fgv_gpu *gpu, struct fgv_mapped *of,
			  uint64_t address);

/* Takes the range at @address out, or NULL: it stays mapped until fgv_mapped_drop(). */
struct fgv_mapped_range *fgv_mapped_take(struct fgv_mapped *mapped, uint64_t address);
/* What @gpu is given from now on does not find it, wherever it lies in the work. */
void fgv_mapped_retire(const struct fgv_mapped_range *range, struct fgv_gpu *gpu);
/* Once what was queued before is done, or @gpu has failed. */
void fgv_mapped_drop(struct fgv_mapped_range *range, struct fgv_gpu *gpu);

/* The memory at [@address, @address + @len), or NULL if that is not inside one range. */
void *fgv_mapped_find(const struct fgv_mapped *mapped, uint64_t address, uint64_t len);

#endif
