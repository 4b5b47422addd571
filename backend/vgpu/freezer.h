/*
 * Freezing a session whose memory may move (docs/design/0028-movable.md): when the daemon says so
 * (struct fgv_allowance), no more requests are taken, the work that there is ends, and all pieces
 * go out to memory of the host, until the daemon says otherwise. The guest's calls take longer.
 *
 *	RUNNING -> DRAINING -> OUT -> FROZEN -> COMING -> RUNNING
 *
 * On a GPU that is over-committed memory goes out and comes in the same way, in turns. What needs
 * memory that the GPU does not have then waits in SHORT until others' is out, and goes back to
 * RUNNING, or to DRAINING if it is others' turn first.
 *
 * What is wanted may change at any time. DRAINING then goes back to RUNNING, and OUT to COMING, from
 * which it may go to OUT again: the host still has all that was out. What has got to the host leaves
 * the GPU while the rest is on its way (freezer_sweep.c).
 *
 * What is FROZEN may go on into a file and come back from there, when the daemon orders it:
 *
 *	FROZEN -> SAVING -> SAVED -> LOADING -> FROZEN
 *
 * SAVING goes back to FROZEN, and LOADING to SAVED, where the other end stops; SAVING also when it is
 * not wanted any more. What is SAVED stays so until it has been loaded.
 *
 * Moving takes its turns as work does: it goes on while the session has the grant of the engine that
 * copies this way.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_FREEZER_H
#define FGV_VGPU_FREEZER_H

#include "backend/shared.h"
#include "backend/vgpu/haul.h"
#include "backend/vgpu/pieces.h"
#include "backend/vgpu/store.h"

struct fgv_session;

enum fgv_freezer_state {
	FGV_FREEZER_RUNNING,
	FGV_FREEZER_DRAINING,
	FGV_FREEZER_OUT,
	FGV_FREEZER_FROZEN,
	FGV_FREEZER_COMING,
	FGV_FREEZER_SHORT,
	FGV_FREEZER_SAVING,
	FGV_FREEZER_SAVED,
	FGV_FREEZER_LOADING,
};

struct fgv_freezer {
	enum fgv_freezer_state state;
	bool has_failed; /* it can't be frozen; until it is not wanted any more */
	struct fgv_haul *haul;
	struct fgv_gpu_fence *fence;
	struct fgv_store store;		     /* what is not empty, in the order of addresses */
	uint8_t token[FGV_TOKEN_BYTES];	     /* of the file that it went into last */
	enum fgv_haul_way way;		     /* of this sweep */
	struct fgv_pieces_cursor at;	     /* of what is moved next */
	uint64_t at_bytes;		     /* of the piece, those before */
	size_t at_store;		     /* the piece's beginning */
	struct fgv_pieces_cursor kept;	     /* out: the host has those before, */
	uint64_t kept_parts;		     /* which were so many parts, */
	struct fgv_pieces_cursor left;	     /* those before this have left the GPU, */
	struct fgv_pieces_cursor leaving;    /* and up to here they do behind the fence, */
	bool is_leaving;		     /* if there is one */
	uint64_t retry_ns;		     /* not before this; 0: at once */
	uint64_t short_address, short_bytes; /* what is to come in, while it is SHORT */
	bool gives_up;			     /* what has no room fails now, once */
};

/* Its threads end, and what it keeps goes. The GPU uses none of it. */
void fgv_freezer_fini(struct fgv_session *session);

/* Whether requests are taken. */
bool fgv_freezer_lets_in(const struct fgv_session *session);

/*
 * As fgv_pieces_touch(), for work that has not begun. FGV_CLOSED: the GPU has no room yet, and the
 * work is to be tried again when requests are taken again.
 */
CUresult fgv_freezer_touch(struct fgv_session *session, uint64_t address, uint64_t bytes);

/* Whether others may make room for what the GPU has none for. */
bool fgv_freezer_may_wait(const struct fgv_session *session);
/*
 * What the session waits for; on a GPU that is not over-committed nobody looks. FGV_ASKS_ROOM:
 * after each try that found none.
 */
void fgv_freezer_ask(struct fgv_session *session, enum fgv_asks asks);

/* While requests are not taken: whether it wants to be told of the first that comes. */
bool fgv_freezer_listens(const struct fgv_session *session);

/* The daemon has sent an order (struct fgv_order), or has gone: then the session is over. */
void fgv_freezer_take_order(struct fgv_session *session);

/* What there is to be waited for beside; its fd is -1 where there is nothing. */
void fgv_freezer_poll(const struct fgv_session *session, struct pollfd *poll);

/* Once in each turn of the loop, before fgv_engines_turn(): how much has changed. */
int fgv_freezer_turn(struct fgv_session *session);

/* After the announcement that the dispatcher sleeps: whether something else is wanted now. */
bool fgv_freezer_has_news(const struct fgv_session *session);

/* How long the dispatcher may sleep at most; UINT64_MAX: as long as it likes. */
uint64_t fgv_freezer_limit_ns(const struct fgv_session *session);

#endif
