/*
 * The host's side of all lanes of a session: which request runs next, giving slots
 * back, and replies.
 *
 * One lane is a history by itself. Between lanes the order is that of tickets, as
 * far as it can be told apart: what a guest thread posted, and returned from, before
 * another thread began to post, runs first (DESIGN: lanes are not independent
 * histories). A request whose ticket is drawn but which is not published yet is not
 * waited for: its call has not returned, so nothing can come after it.
 *
 *	while ((slot = fgv_lanes_next(lanes, &lane))) {
 *		copy and check the message, if it is in the heap
 *		fgv_lanes_release(lanes, lane);
 *		execute, perhaps fgv_lanes_reply(lanes, lane, ...)
 *	}
 *
 * Guarantees, whatever the guest writes:
 *   1. A slot is copied once, and only the copy is handed out.
 *   2. A lane's requests come in the order of its ring, each once.
 *   3. A call does work for at most lanes * (lanes + 1) looks, commonly one, and never
 *      waits.
 *   4. Wrong tickets (repeated, decreasing, missing) change the order in which the
 *      guest's own lanes are served, nothing else.
 * And if the guest draws tickets by counting up by one, from 1, before it publishes:
 *   5. If post a happened before post b, a is handed out before b.
 *
 * Threads: one, the dispatcher's. Owns the doorbells that are attached.
 */
#ifndef FGV_SHMRING_LANES_H
#define FGV_SHMRING_LANES_H

#include <stdbool.h>
#include "shmring/window.h"

struct fgv_lanes;

/* For all lanes of a mapped window, which must outlive it; none attached. NULL: no memory. */
struct fgv_lanes *fgv_lanes_create(const struct fgv_window *window);
/* Closes the doorbells too. */
void fgv_lanes_destroy(struct fgv_lanes *lanes);

/*
 * From now on looks at lane @lane. @doorbell_fd wakes the lane's thread and is closed
 * by fgv_lanes_detach(); -1 for a thread that never sleeps. -EINVAL if there is no
 * such lane, -EEXIST if it is attached: then the descriptor stays the caller's.
 */
int fgv_lanes_attach(struct fgv_lanes *lanes, uint32_t lane, int doorbell_fd);

/*
 * Stops looking at @lane, if it is attached. Requests stay in its ring, and are found
 * there if it is attached again.
 */
void fgv_lanes_detach(struct fgv_lanes *lanes, uint32_t lane);

/*
 * The request that must run next, and its lane: a private copy, good until that
 * lane's fgv_lanes_release(). NULL if there is none. Without a release in between it
 * gives the same one again, or another that has come since and must run earlier.
 */
const struct fgv_slot *fgv_lanes_next(struct fgv_lanes *lanes, uint32_t *lane);

/*
 * The same for a request of operation @op alone, whatever must run before it, and from a lane for
 * which @may returns true.
 */
typedef bool fgv_lanes_may(const void *arg, uint32_t lane);
const struct fgv_slot *fgv_lanes_next_of(struct fgv_lanes *lanes, uint16_t op, fgv_lanes_may *may,
					 const void *arg, uint32_t *lane);

/*
 * Gives the slot of the request that fgv_lanes_next() gave for @lane back to the guest,
 * with what the message took in the heap: the caller has copied it. Wakes a guest that
 * has long waited for room.
 */
void fgv_lanes_release(struct fgv_lanes *lanes, uint32_t lane);

/* Whether there is a request; for a side that has just announced that it will sleep (park.h). */
bool fgv_lanes_any_ordered(const struct fgv_lanes *lanes);

struct fgv_reply {
	uint16_t op; /* of the request, as is call */
	uint32_t call;
	uint64_t status; /* a CUresult */
	const void *data;
	uint32_t len; /* at most FGV_SLOT_INLINE */
};

/*
 * Sends a reply on an attached lane and wakes its thread if that sleeps. -EAGAIN if the
 * ring is full, which only a guest brings about that does not read its replies;
 * -EINVAL if the lane is not attached or the reply too long.
 */
int fgv_lanes_reply(struct fgv_lanes *lanes, uint32_t lane, const struct fgv_reply *reply);

/*
 * Wakes all threads that sleep: what they wait for is to come soon. They look, and sleep
 * again if it does not.
 */
void fgv_lanes_wake(struct fgv_lanes *lanes);

/* How often a doorbell of the lanes was rung. */
uint64_t fgv_lanes_rings(const struct fgv_lanes *lanes);

#endif
