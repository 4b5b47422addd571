/*
 * Shared by hostmem.c, which has the table, and hostmem_register.c.
 */
#ifndef FGV_CUDA_HOSTMEM_PRIV_H
#define FGV_CUDA_HOSTMEM_PRIV_H

#include <bsd/sys/tree.h>

#include "frontend/client/lane.h"
#include "frontend/cuda/memory/hostmem.h"

struct fgv_hostmem {
	RB_ENTRY(fgv_hostmem) link;
	uint64_t address; /* of what the program asked for */
	uint64_t bytes;
	uint64_t base; /* of the pages that hold it */
	uint64_t len;
	uint64_t off; /* of those in the window */
	enum fgv_range_kind kind;
	unsigned flags;
	uint32_t device;	      /* with whose reset it goes; FGV_DEVICES_MAX: none */
	struct fgv_page_hints *hints; /* of each page; NULL until asked for */
	bool is_in_place;	      /* registered memory: its pages are the window's now */
};

/*
 * Makes it known. CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED where one of its pages belongs to
 * another; CUDA_ERROR_OUT_OF_MEMORY. It is the table's then, or the caller's still.
 */
CUresult fgv_hostmem_insert(struct fgv_hostmem *memory);

/* Takes @memory, which is in the table, out. */
void fgv_hostmem_remove(struct fgv_hostmem *memory);

/* Puts the window's pages in the place of @memory's, not during a fork. Or -errno. */
int fgv_hostmem_put_in_place(struct fgv_hostmem *memory, int window_fd);

/*
 * The window has no room for @bytes more, which is another limit than the GPU's memory: says so,
 * once. Returns CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult fgv_hostmem_short(const struct fgv_client *client, uint64_t bytes);

static inline void *fgv_hostmem_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/*
 * Puts a private copy of the window's pages in the place of @memory's, by way of @from, where
 * they are mapped as well. CUDA_ERROR_OUT_OF_MEMORY, and all is as it was.
 */
CUresult fgv_hostmem_make_private(const struct fgv_hostmem *memory, const void *from);

#endif
