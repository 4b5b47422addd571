/*
 * A ring of slots between one producer and one consumer, in the manner of
 * FastForward (the paper's reference 27): there is no shared head or tail, each
 * slot's own mark says whose it is.
 *
 * Position p (which only counts up, and wraps at 2^32) uses slot p mod size:
 *
 *   mark == p          free: the producer may fill the slot for position p
 *   mark == p + 1      full: the consumer may read position p
 *   mark == p + size   free again, for the next lap
 *
 * The producer's stores to the slot come before its ordered store of the mark,
 * which pairs with the consumer's acquire load in fgv_ring_peek(); the consumer's
 * release of the mark pairs with the producer's acquire load in
 * fgv_ring_reserve(). Publishing is ordered rather than a mere release because the
 * producer reads the other side's parked word next (park.h).
 *
 * The position is private to each side. Neither believes anything else that the
 * other writes: a slot's content is copied once, checked, and the copy used. A
 * hostile peer can at most make a ring look empty, full, or filled with nonsense.
 *
 * Threads: one on each side. struct fgv_ring is one side's private view.
 */
#ifndef FGV_SHMRING_RING_H
#define FGV_SHMRING_RING_H

#include <stdbool.h>
#include "api/wire.h"
#include "shmring/barrier.h"

/*
 * The first position of every ring of a new window. Not 0, so that every lane gets
 * to the wrap-around at 2^32 within its first thousand requests.
 */
#define FGV_RING_START 0xfffffc00u

struct fgv_ring {
	struct fgv_slot *slots;
	uint32_t size;	   /* a power of two, at least 2 */
	uint32_t position; /* next to fill or to read */
};

/* Marks all slots free, the first position being @start. Before anybody uses it. */
void fgv_ring_format(struct fgv_slot *slots, uint32_t size, uint32_t start);

/* One side's view of a formatted ring. */
static inline void fgv_ring_attach(struct fgv_ring *ring, struct fgv_slot *slots, uint32_t size,
				   uint32_t start)
{
	ring->slots = slots;
	ring->size = size;
	ring->position = start;
}

/* Producer: the slot to fill next, NULL while the ring is full. */
static inline struct fgv_slot *fgv_ring_reserve(struct fgv_ring *ring)
{
	struct fgv_slot *slot = &ring->slots[ring->position & (ring->size - 1)];

	return fgv_load_acquire(&slot->mark) == ring->position ? slot : NULL;
}

/*
 * Producer: whether the consumer has given back the slot of @position, which must be
 * one of the last @size that were published.
 */
static inline bool fgv_ring_freed(const struct fgv_ring *ring, uint32_t position)
{
	const struct fgv_slot *slot = &ring->slots[position & (ring->size - 1)];

	return fgv_load_acquire(&slot->mark) == position + ring->size;
}

/* The same, for a side that has just announced that it will sleep until it has room (park.h). */
static inline bool fgv_ring_freed_ordered(const struct fgv_ring *ring, uint32_t position)
{
	const struct fgv_slot *slot = &ring->slots[position & (ring->size - 1)];

	return fgv_load_ordered(&slot->mark) == position + ring->size;
}

/* Producer: hands over the slot that fgv_ring_reserve() gave. */
static inline void fgv_ring_publish(struct fgv_ring *ring)
{
	struct fgv_slot *slot = &ring->slots[ring->position & (ring->size - 1)];

	fgv_store_ordered(&slot->mark, ++ring->position);
}

/* Consumer: the slot to read next, NULL while the ring is empty. */
static inline const struct fgv_slot *fgv_ring_peek(const struct fgv_ring *ring)
{
	const struct fgv_slot *slot = &ring->slots[ring->position & (ring->size - 1)];

	return fgv_load_acquire(&slot->mark) == ring->position + 1 ? slot : NULL;
}

/* The same, for a side that has just announced that it will sleep (park.h). */
static inline const struct fgv_slot *fgv_ring_peek_ordered(const struct fgv_ring *ring)
{
	const struct fgv_slot *slot = &ring->slots[ring->position & (ring->size - 1)];

	return fgv_load_ordered(&slot->mark) == ring->position + 1 ? slot : NULL;
}

/* Consumer: gives back the slot that fgv_ring_peek() gave. */
static inline void fgv_ring_release(struct fgv_ring *ring)
{
	struct fgv_slot *slot = &ring->slots[ring->position & (ring->size - 1)];

	fgv_store_release(&slot->mark, ring->position + ring->size);
	ring->position++;
}

/* The same, for a consumer that then looks whether the producer is parked for room. */
static inline void fgv_ring_release_ordered(struct fgv_ring *ring)
{
	struct fgv_slot *slot = &ring->slots[ring->position & (ring->size - 1)];

	fgv_store_ordered(&slot->mark, ring->position + ring->size);
	ring->position++;
}

#endif
