/*
 * Sequences of launches that come again. While they do, nothing is kept of them but how far they
 * have come in the row that is ready; with the last one it is launched. What came before it is
 * what tells which row to expect. Where another launch comes, those that were put off go the way
 * of all others.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_BATCH_FOLLOW_H
#define FGV_VGPU_BATCH_FOLLOW_H

#include "backend/vgpu/batch.h"

/* Whether the launch is the next one of a sequence that is expected, which it is then part of. */
bool fgv_batch_follow(struct fgv_session *session, const struct fgv_batch_asked *asked);

/* What has come of the sequence is kept as launches, as if none had been expected. */
void fgv_batch_unfollow(struct fgv_session *session);

/* The launches that are kept from batch.first on are a sequence: the cut says so, or a break. */
void fgv_batch_learn(struct fgv_session *session);

/* @entry is about to go. */
void fgv_batch_lose_entry(struct fgv_session *session, const struct fgv_batch_entry *entry);

#endif
