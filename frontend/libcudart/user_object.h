/*
 * Objects of the program's that live as long as somebody has references to them: the program, and
 * graphs, with their copies and what is made of them to be launched. Then the program's function
 * for that is called, by a thread of this library, as CUDA says it: it may take locks that are
 * held where the last reference went.
 *
 * Threads: any. One mutex inside.
 */
#ifndef FGV_LIBCUDART_USER_OBJECT_H
#define FGV_LIBCUDART_USER_OBJECT_H

#include <cuda_runtime_api.h>
#include <stdint.h>

struct fgv_user_object;

/* References to one object that a graph has. */
struct fgv_held {
	struct fgv_held *next;
	struct fgv_user_object *object;
	uint64_t count;
};

/* The same references once more. cudaErrorMemoryAllocation, and then there are none. */
cudaError_t fgv_held_copy(const struct fgv_held *held, struct fgv_held **copy);
void fgv_held_release(struct fgv_held *held);

#endif
