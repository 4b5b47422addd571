/*
 * Shared by vmem.c, which has reservations and mappings, and vmem_access.c, which says who may use
 * them.
 *
 * What a part alone changes, it may look at without the mutex: its mappings, but for how often they
 * are viewed, its views, and, in the first part, reservations. Mappings of others stay as long as
 * there is a view of them.
 */
#ifndef FGV_VGPU_VMEM_PRIV_H
#define FGV_VGPU_VMEM_PRIV_H

#include "backend/vgpu/vmem.h"

struct fgv_mapping {
	RB_ENTRY(fgv_mapping) node;
	uint64_t address;
	uint64_t bytes;
	const struct fgv_vmem *owner;
	struct fgv_object *memory;  /* with a reference */
	struct fgv_mapping *viewed; /* of a view, which has no memory: what it is of */
	uint32_t views;		    /* of this one; under the mutex */
	bool is_closed;		    /* it is leaving, or yet to be made; the same */
};

static inline void fgv_vmem_lock(struct fgv_vmem *vmem)
{
	pthread_mutex_lock(&vmem->addresses->mutex);
}

static inline void fgv_vmem_unlock(struct fgv_vmem *vmem)
{
	pthread_mutex_unlock(&vmem->addresses->mutex);
}

/* Whether [@address, @address + @bytes) is something, does not wrap, and is whole granules. */
CUresult fgv_vmem_check_span(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes);

/* The mapping of any part that begins at @address. */
struct fgv_mapping *fgv_vmem_find_locked(struct fgv_vmem *vmem, uint64_t address);
/*
 * The first of whole mappings in @tree that follow each other and fill the span, none closed; or
 * NULL. @is_own: whether all are this part's own.
 */
struct fgv_mapping *fgv_vmem_find_whole_locked(const struct fgv_vmem *vmem,
					       struct fgv_mapping_tree *tree, uint64_t address,
					       uint64_t bytes, bool *is_own);

/* This part's view that begins at @address. */
struct fgv_mapping *fgv_vmem_find_view(struct fgv_vmem *vmem, uint64_t address);
void fgv_vmem_add_view(struct fgv_vmem *vmem, struct fgv_mapping *view);

#endif
