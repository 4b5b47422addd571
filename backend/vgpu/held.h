/*
 * Requests that have been taken from their lanes but can't run yet, because work among them
 * waits for the gate (gate.h); in the order in which they will run. So a lane never waits for
 * the grant: calls that have nothing to do with the order of work go on meanwhile, and
 * a query is answered for what it asks about.
 *
 * What is held is bounded. Where it is full, requests stay in their lanes.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_HELD_H
#define FGV_VGPU_HELD_H

#include <stdbool.h>
#include <sys/queue.h>
#include "api/gpu_host.h"

#define FGV_HELD_MAX	   1024
#define FGV_HELD_BYTES_MAX (4u << 20)

struct fgv_session;

struct fgv_held_request {
	STAILQ_ENTRY(fgv_held_request) link;
	struct fgv_request request;
	uint32_t len;
	uint8_t message[]; /* followed by a NUL */
};

struct fgv_held {
	STAILQ_HEAD(, fgv_held_request) list;
	uint32_t count;
	uint32_t bytes;
	uint32_t frees;			 /* of memory, among them */
	uint32_t in_lane[FGV_LANES_MAX]; /* calls among them */
	/* Whether a launch of a graph, its message as it came, records @event; NULL: none does. */
	bool (*launch_records)(const struct fgv_session *session, const uint8_t *message,
			       uint32_t len, uint32_t event);
	const struct fgv_session *session; /* that it asks */
};

void fgv_held_init(struct fgv_held *held);
void fgv_held_fini(struct fgv_held *held);

static inline bool fgv_held_is_full(const struct fgv_held *held)
{
	return held->count >= FGV_HELD_MAX || held->bytes >= FGV_HELD_BYTES_MAX;
}

enum fgv_held_way {
	FGV_HELD_RUN,	    /* now, ahead of what is held */
	FGV_HELD_HOLD,	    /* behind it */
	FGV_HELD_NOT_READY, /* a query for work that is held */
};

/* What is to be done with a request that comes while others are held. */
enum fgv_held_way fgv_held_judge(const struct fgv_held *held, const struct fgv_request *request,
				 const uint8_t *message, uint32_t len);

/* The properties of an operation that was not checked yet; without a name: there is none. */
const struct fgv_op_info *fgv_held_info(uint16_t op);
/* A handle in a message that was not; 0 where the message is too short to have it. */
uint32_t fgv_held_handle_at(const uint8_t *message, uint32_t len, size_t off);

/* Appends a copy. -ENOMEM. */
int fgv_held_add(struct fgv_held *held, const struct fgv_request *request, const uint8_t *message,
		 uint32_t len);

/* The one that runs next, or NULL; and taking it out, which makes it the caller's, for free(). */
static inline struct fgv_held_request *fgv_held_first(const struct fgv_held *held)
{
	return STAILQ_FIRST(&held->list);
}
struct fgv_held_request *fgv_held_take(struct fgv_held *held);
/* Gives it back: it runs next. */
void fgv_held_put_back(struct fgv_held *held, struct fgv_held_request *entry);

#endif
