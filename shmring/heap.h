/*
 * The heap of a lane: where the messages lie that do not fit into their slot. It is
 * filled in turn, like a ring, and what a request took is free again once its slot
 * is: the host copies a message before it gives the slot back. All bookkeeping is
 * the guest's own.
 *
 * Threads: the lane's.
 */
#ifndef FGV_SHMRING_HEAP_H
#define FGV_SHMRING_HEAP_H

#include <stdint.h>
#include "api/wire.h"

struct fgv_heap {
	uint64_t off; /* of the heap in the window */
	uint32_t len;
	uint32_t head;			   /* next byte to give */
	uint32_t tail;			   /* first byte still in use */
	uint32_t used;			   /* bytes from tail to head, gap at the end included */
	uint32_t taken[FGV_REQUEST_SLOTS]; /* bytes that each slot's request took */
};

void fgv_heap_init(struct fgv_heap *heap, uint64_t off, uint32_t len);

/*
 * Room for @bytes for the request in @slot (its index in the ring), aligned to a cache
 * line; at most one per request. 0 and the window offset, or -EAGAIN while earlier
 * requests occupy it, -EINVAL if it can never fit.
 */
int fgv_heap_alloc(struct fgv_heap *heap, uint32_t slot, uint32_t bytes, uint64_t *off);

/* Takes back what the request in @slot took. Call for each slot, in order, once it is free. */
void fgv_heap_reclaim(struct fgv_heap *heap, uint32_t slot);

#endif
