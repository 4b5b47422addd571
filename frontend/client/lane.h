/*
 * A lane as the guest uses it (api/guest.h has what the stubs need of it), and which
 * thread uses which.
 *
 * Every thread that calls CUDA gets a lane of its own until it ends. Where there are
 * more threads than lanes, the rest share the last eighth of them: then a lane is
 * locked from fgv_lane_enter() to fgv_lane_leave(), and a thread that waits for the
 * GPU holds up those it shares with. Everything that is asked of a lane is asked in
 * between:
 *
 *	res = fgv_lane_enter(&lane);
 *	if (!res) {
 *		res = fgv_call_mem_alloc(lane, ...);
 *		fgv_lane_leave(lane);
 *	}
 *
 * Pairs may be nested only on lanes of one's own, so they are not nested at all.
 */
#ifndef FGV_CLIENT_LANE_H
#define FGV_CLIENT_LANE_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "api/gpu_guest.h"
#include "frontend/client/recorder.h"
#include "frontend/client/session.h"
#include "frontend/client/thread.h"
#include "shmring/heap.h"
#include "shmring/ring.h"

/* Requests of one operation, for FAIRGV_STATS. */
struct fgv_op_count {
	uint64_t requests;
	uint64_t round_trips; /* of them: those that were waited for */
	uint32_t usual_ns;    /* that a wait lasts; see shmring/usual.h */
};

/* One writer; whoever prints reads while it counts. */
static inline void fgv_count_up(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* All its owner's; the counts are read by others. */
struct fgv_lane {
	struct fgv_client *client;
	struct fgv_lane_head *head;
	struct fgv_ring requests;
	struct fgv_ring replies;
	uint32_t call;		/* number of the next request */
	uint64_t seen_ticket;	/* atomic: of the newest one whose end is seen, or 0; see sync.h */
	uint32_t idle_stream;	/* has no work before ... */
	uint64_t idle_ticket;	/* ... this one; see sync.c */
	uint32_t reclaimed;	/* position up to which the heap has its bytes back */
	int doorbell;		/* wakes this lane's thread */
	uint32_t room_usual_ns; /* that a wait for room lasts; see shmring/usual.h */

	/* The open request. */
	struct fgv_slot *open; /* NULL: it leads nowhere, as the session has ended */
	uint64_t open_heap;    /* where its message lies, if not in the slot */
	uint32_t open_len;
	uint16_t open_op;
	void *nowhere; /* FGV_MESSAGE_MAX bytes for such requests */

	struct fgv_recorder *recorder; /* takes what is asked of this lane; NULL: none */
	CUresult refused;	       /* what the call that was not sent ends with */

	uint32_t index;
	bool shared;
	uint32_t users;	      /* threads that share it; the pool's */
	pthread_mutex_t lock; /* used if shared */
	struct fgv_heap heap;
	struct fgv_op_count counts[FGV_OP_MAX + 1];
};

/* The lane @index of a mapped window, never used before. NULL: no memory. */
struct fgv_lane *fgv_lane_create(struct fgv_client *client, uint32_t index, bool shared);
void fgv_lane_destroy(struct fgv_lane *lane);

/* A lane of its GPU for this thread, which had none, attached. Logs nothing but a lost session. */
CUresult fgv_lane_take(struct fgv_lane **lane);
/* This thread gives its lane of that GPU back, if it has one; another thread goes on with it. */
void fgv_lane_return(void);

/* The calling thread uses the lane from now on; a shared one, until fgv_lane_leave(). */
void fgv_lane_own(struct fgv_lane *lane);
void fgv_lane_lock(struct fgv_lane *lane);

/* Calls @visit for every lane that was ever attached; the same of one GPU. */
void fgv_lane_visit(void (*visit)(const struct fgv_lane *lane, void *arg), void *arg);
void fgv_lane_visit_of(const struct fgv_client *client,
		       void (*visit)(const struct fgv_lane *lane, void *arg), void *arg);

/* From now on fgv_lane_enter() enters this thread's lane of GPU number @device. */
void fgv_lane_select(uint32_t device);

/*
 * This thread's lane. Connects, and attaches a lane, if need be. Fails with the code
 * of why there is no session, or why it has ended; then *lane is NULL.
 */
static inline CUresult fgv_lane_enter(struct fgv_lane **lane)
{
	struct fgv_lane *own = fgv_thread_self.lane;
	CUresult res;

	*lane = NULL;
	if (__builtin_expect(!own, 0)) {
		res = fgv_lane_take(&own);
		if (res)
			return res;
	}
	res = fgv_session_status(own->client);
	if (__builtin_expect(res != CUDA_SUCCESS, 0))
		return res;
	if (own->shared)
		fgv_lane_lock(own);
	*lane = own;
	return CUDA_SUCCESS;
}

/*
 * The same of GPU number @device, whichever this thread works on. CUDA_ERROR_INVALID_DEVICE: the
 * session has none such.
 */
CUresult fgv_lane_enter_on(uint32_t device, struct fgv_lane **lane);

/* Sleeps until the doorbell is rung, for @limit_ns at most unless negative; whether that was up. */
bool fgv_lane_sleep(struct fgv_lane *lane, int64_t limit_ns);
/* How much of a wait that usually lasts @usual_ns is best slept through; 0: none. */
uint64_t fgv_lane_rest_ns(uint32_t usual_ns);

/* A pause, which a ring ends, and in which the end of the session is noticed. */
void fgv_lane_doze(struct fgv_lane *lane, uint64_t ns);

/* As fgv_lane_wait() for a call without results, of a round trip that has been counted. */
CUresult fgv_lane_wait_more(struct fgv_lane *lane, uint32_t call);

/* Whether fgv_lane_wait() for the oldest call that has not been waited for returns at once. */
static inline bool fgv_lane_is_answered(const struct fgv_lane *lane)
{
	return fgv_ring_peek(&lane->replies);
}

/* For fgv_lane_begin() alone: where the request goes if not to the host; NULL: there. */
void *fgv_lane_begin_recorded(struct fgv_lane *lane, uint16_t op, uint32_t len);
/* For fgv_lane_leave() alone. */
void fgv_lane_leave_recorder(struct fgv_lane *lane);

static inline void fgv_lane_leave(struct fgv_lane *lane)
{
	if (__builtin_expect(lane->recorder != NULL, 0))
		fgv_lane_leave_recorder(lane);
	if (lane->shared)
		pthread_mutex_unlock(&lane->lock);
}

#endif
