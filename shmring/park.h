/*
 * Sleeping and waking across the window. A waiter spins for a bounded time
 * (spin.h), announces that it sleeps, checks once more, and sleeps on its doorbell;
 * who produces rings the doorbell only if the other side has announced it.
 *
 *   sleeper                          producer
 *   fgv_park_announce(&parked)       fgv_ring_publish()       both ordered stores
 *   fgv_ring_peek_ordered()          fgv_park_is_announced()  both ordered loads
 *   fgv_doorbell_wait()              fgv_doorbell_ring()
 *   fgv_park_withdraw(&parked)
 *
 * Each side stores its own word before it loads the other's, in one total order, so
 * that not both can miss: either the sleeper sees the slot or the producer the
 * announcement. models/park.pml has this checked.
 *
 * A doorbell of the local transport is an eventfd. It counts rings, so one that
 * comes early is not lost, and one too many costs one useless turn of a loop.
 * Nothing that the peer does can make these fail or block but fgv_doorbell_wait(),
 * which is meant to, with one exception: a peer that makes its eventfd blocking and
 * fills its counter blocks fgv_doorbell_ring() until it reads the counter, dies with
 * all its copies of the eventfd, or a signal is caught here (without SA_RESTART). The
 * kernel has no write to an eventfd that can't block, so a process that must not be
 * held up by its peer needs such a signal.
 */
#ifndef FGV_SHMRING_PARK_H
#define FGV_SHMRING_PARK_H

#include <stdbool.h>
#include "shmring/barrier.h"

/* What a parked word says. */
enum fgv_park {
	FGV_AWAKE = 0,
	FGV_PARKED = 1,		/* for a message */
	FGV_PARKED_FOR_ROOM = 2 /* for a free slot or room in the heap: a lane's guest only */
};

static inline void fgv_park_announce(uint32_t *parked)
{
	fgv_store_ordered(parked, FGV_PARKED);
}

/*
 * The same for a guest whose request ring or heap is full; it checks once more with
 * fgv_ring_freed_ordered(). It is not rung for each slot that is given back, but when
 * a quarter of the ring has been, or when nothing is left in the ring.
 */
static inline void fgv_park_announce_for_room(uint32_t *parked)
{
	fgv_store_ordered(parked, FGV_PARKED_FOR_ROOM);
}

static inline void fgv_park_withdraw(uint32_t *parked)
{
	fgv_store_release(parked, FGV_AWAKE);
}

static inline bool fgv_park_is_announced(const uint32_t *parked)
{
	return fgv_load_ordered(parked) != FGV_AWAKE;
}

static inline bool fgv_park_is_announced_for_room(const uint32_t *parked)
{
	return fgv_load_ordered(parked) == FGV_PARKED_FOR_ROOM;
}

/* A new eventfd, or a negative errno. Close it with close(). */
int fgv_doorbell_create(void);

/*
 * For a descriptor that the peer has sent: -EINVAL unless it is an eventfd. Makes it
 * nonblocking. Another negative errno where /proc can't be read.
 */
int fgv_doorbell_check(int fd);

/* Wakes the waiter on @fd, or the next one. A full counter is no error. */
void fgv_doorbell_ring(int fd);

/* Forgets the rings so far. Call when awake, before looking for work. */
void fgv_doorbell_clear(int fd);

/*
 * Sleeps until @fd is rung, @hangup_fd (or -1) hangs up or becomes readable, or
 * @timeout_ms is over (negative: no limit). 1 if rung, 0 on time-out,
 * -ECONNRESET if @hangup_fd hung up, -EAGAIN if it has something to read, another
 * negative errno if it can't wait. What comes first in this order is said:
 * -ECONNRESET, -EAGAIN, 1, so that a peer that rings all the time can't hide its end.
 * What the peer published before its end may still be in the ring.
 */
int fgv_doorbell_wait(int fd, int hangup_fd, int64_t timeout_ns);

#endif
