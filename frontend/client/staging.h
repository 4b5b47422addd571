/*
 * The staging part of the arena, which the host keeps registered with the GPU, in chunks through
 * which bulk copies go. On the way to the GPU a chunk is lent to the host, which gives it back
 * through the window when it has been copied from.
 *
 * Threads: any. A thread that holds chunks and wants more must not wait for others'
 * (two could wait for each other): it takes what there is, and gives back first. So that
 * nobody waits for long, it gets none that others wait for, and none of the last quarter.
 */
#ifndef FGV_CLIENT_STAGING_H
#define FGV_CLIENT_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "frontend/client/client.h"

#define FGV_STAGING_CHUNKS_MAX FGV_STAGING_LOANS

struct fgv_lane;

struct fgv_chunk {
	uint64_t off;	 /* in the window */
	uint32_t index;	 /* as a loan it has the same */
	uint32_t number; /* of the loan */
	uint32_t device; /* the ordinal of the GPU whose window it is in */
};

/* Bytes in a chunk. */
uint64_t fgv_staging_chunk_len(const struct fgv_client *client);

/*
 * If there is none to be had: false, or, for a thread that @holds_none, once one is given back;
 * false then only if the session has ended.
 */
bool fgv_staging_get(struct fgv_lane *lane, bool holds_none, struct fgv_chunk *chunk);
void fgv_staging_put(const struct fgv_chunk *chunk);

/*
 * It is the host's from now on, and comes back by itself once the request is done that is about
 * to be posted with its index and number. If that is not posted after all: fgv_staging_put().
 */
void fgv_staging_lend(struct fgv_chunk *chunk);

#endif
