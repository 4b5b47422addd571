/*
 * Objects of the program's that live as long as somebody has references to them: the program, and
 * graphs, with their copies and what is made of them to be launched. Then the program's function
 * for that is called, by a thread of this library, as CUDA says it: it may take locks that are
 * held where the last reference went.
 *
 * CUDA_ERROR_INVALID_VALUE for what is no object, a count of 0 or above INT_MAX, and more
 * references to be dropped than there are.
 *
 * Threads: any. One mutex inside.
 */
#ifndef FGV_CUDA_USER_OBJECT_H
#define FGV_CUDA_USER_OBJECT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_user_object;

/* With @count references of the program's. @flags: CU_USER_OBJECT_NO_DESTRUCTOR_SYNC. */
CUresult fgv_user_object_create(CUuserObject *object, void *data, CUhostFn destroy, unsigned count,
				unsigned flags);
CUresult fgv_user_object_retain(CUuserObject object, unsigned count);
CUresult fgv_user_object_release(CUuserObject object, unsigned count);

/* For the core: references to one object that a graph has. */
struct fgv_held {
	struct fgv_held *next;
	struct fgv_user_object *object;
	uint64_t count;
};

/* @count more in *@held; @move: the program's own. */
CUresult fgv_held_add(struct fgv_held **held, CUuserObject object, unsigned count, bool move);
CUresult fgv_held_drop(struct fgv_held **held, CUuserObject object, unsigned count);
/* The same references once more. CUDA_ERROR_OUT_OF_MEMORY, and then there are none. */
CUresult fgv_held_copy(const struct fgv_held *held, struct fgv_held **copy);
void fgv_held_release(struct fgv_held *held);

#endif
