/*
 * Streams and events that the guest makes with handles of its own: it posts their creation and goes
 * on. That this does not fail it makes sure beforehand, by a call that reserves room for so many of
 * a kind in the VM's quota; what it makes beyond that is charged as it comes, and fails like any
 * post where there is no room.
 *
 * What is charged is what is reserved, or what there is where that is more: so nothing that exists
 * is ever free, whatever the guest reserves, returns and makes.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_OWN_H
#define FGV_VGPU_OWN_H

#include "backend/vgpu/handles.h"

struct fgv_session;

/* Of one kind. */
struct fgv_own {
	uint32_t reserved;
	uint32_t used; /* those that there are, with those that have lost their handles */
	struct fgv_charge charge;
};

/*
 * A new object, charged for, of which the caller makes what it stands for. @kind is that of streams
 * or events. CUDA_ERROR_INVALID_HANDLE for a handle that can't be had, CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult fgv_own_add(struct fgv_session *session, enum fgv_kind kind, uint32_t handle,
		     struct fgv_object **object);

/* One such object is going. */
void fgv_own_remove(struct fgv_session *session, enum fgv_kind kind);

#endif
