/*
 * The staging part of the arena, which the host keeps registered with the GPU, in
 * chunks through which bulk copies go.
 *
 * Threads: any. A thread that holds chunks and wants more must not wait for others'
 * (two could wait for each other): it takes what there is, and gives back first. So that
 * nobody waits for long, it gets none that others wait for, and none of the last quarter.
 */
#ifndef FGV_CLIENT_STAGING_H
#define FGV_CLIENT_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "frontend/client/session.h"

#define FGV_STAGING_CHUNKS_MAX 16

/* Bytes in a chunk. */
uint64_t fgv_staging_chunk_len(const struct fgv_client *client);

/*
 * A chunk's offset in the window. If there is none to be had: false, or, for who @holds_none,
 * once one is given back.
 */
bool fgv_staging_get(const struct fgv_client *client, bool holds_none, uint64_t *off);
void fgv_staging_put(const struct fgv_client *client, uint64_t off);

#endif
