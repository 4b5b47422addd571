/*
 * Calls that have found no memory while a session of the same VM is ending: what that has is
 * free in a moment, and would be already if its program had used the GPU natively. So such a
 * call is tried again instead of being answered, for FGV_ENDING_WAIT_MS at most; later calls of
 * its lane wait behind it, and nothing else does.
 *
 * That a program has gone is seen by the daemon, which marks its session; the first look may
 * come before the mark, which is waited for a little too.
 *
 * On a GPU that is over-committed a call that the GPU has no memory for waits until others' memory
 * is out (freezer.h), or it is known that this does not help.
 *
 * What waits is bounded: when there is no room for more, all of it is tried for the last time.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_ROOM_H
#define FGV_VGPU_ROOM_H

#include <stdbool.h>
#include <sys/queue.h>
#include "api/gpu_host.h"

#define FGV_ROOM_WAITING_MAX 64
#define FGV_ROOM_BYTES_MAX   (1u << 20)

struct fgv_session;

struct fgv_room_request {
	STAILQ_ENTRY(fgv_room_request) link;
	struct fgv_request request;
	uint64_t since_ns; /* of its first try; 0: behind another call of its lane */
	uint64_t bytes;	   /* that its VM's quota has no room for; 0: it is the GPU that has none */
	uint32_t len;
	uint8_t message[]; /* followed by a NUL */
};

STAILQ_HEAD(fgv_room_list, fgv_room_request);

struct fgv_room {
	struct fgv_room_list list; /* in the order of arrival */
	uint32_t count;
	uint32_t bytes;
	uint32_t in_lane[FGV_LANES_MAX];
	uint64_t seen;	   /* the sessions that were ending at the last try */
	uint64_t tried_ns; /* when that was; fgv_now_ns() */
	bool is_last;	   /* nothing is waited for any more */
};

void fgv_room_init(struct fgv_room *room);
void fgv_room_fini(struct fgv_room *room);

/* Whether a call of @lane must wait behind another. */
static inline bool fgv_room_holds(const struct fgv_room *room, uint32_t lane)
{
	return room->count && room->in_lane[lane];
}

/*
 * Whether memory that a call has not got may come yet; it was tried first at @since_ns
 * (fgv_now_ns()). @bytes as in the struct.
 */
bool fgv_room_may_come(const struct fgv_session *session, uint64_t bytes, uint64_t since_ns);

/* Keeps a copy of a call that has found no memory, or of one behind it. -ENOMEM. */
int fgv_room_add(struct fgv_session *session, const struct fgv_request *request,
		 const uint8_t *message, uint32_t len, uint64_t since_ns, uint64_t bytes);

/* Whether those that wait are worth another try. */
bool fgv_room_is_due(struct fgv_session *session);

/*
 * Starts one: moves all of them to @taken, where they are the caller's, each for free(). What is
 * added from then on waits for the next.
 */
void fgv_room_begin(struct fgv_session *session, struct fgv_room_list *taken);

#endif
