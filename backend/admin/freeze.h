/*
 * The administrator's requests to freeze sessions and to thaw them: of one session or of all of a VM,
 * those that there are. A request that has been carried out already tells how far that is:
 *
 *	{"sessions": [{"session": 7, "vm": "vm1", "state": "frozen", "memory_bytes": ...,
 *		"away_bytes": ..., "stays": {"modules": ..., "arrays": ..., "mapped": ...}}]}
 *
 * States are "freezing", "frozen", "thawing", "failed" and "running"; and "out", which is running but
 * for the memory, for which others have their turn.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_ADMIN_FREEZE_H
#define FGV_BACKEND_ADMIN_FREEZE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "backend/session.h"
#include "backend/vms.h"

/* NULL: it runs, and all of its memory is where it is used. */
const char *fgv_admin_frozen_name(const struct fgv_session *session);

/* The reply; or NULL, with @why. Where one of several can't be frozen, none is that was not. */
json_t *fgv_admin_freeze(const struct fgv_sessions *sessions, struct fgv_vms *vms,
			 const json_t *request, bool freezes, char *why, size_t why_len);

#endif
