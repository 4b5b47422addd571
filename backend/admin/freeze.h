/*
 * The administrator's requests to freeze sessions and to thaw them: of one session or of all of a VM,
 * those that there are. A request that has been carried out already tells how far that is:
 *
 *	{"sessions": [{"session": 7, "vm": "vm1", "state": "frozen", "memory_bytes": ...,
 *		"away_bytes": ..., "stays": {"modules": ..., "arrays": ..., "mapped": ...}}]}
 *
 * And to have the memory of one that is frozen go into a file and come back from there, through a
 * stream that comes with the request (backend/vgpu/store.h), whose other end is the caller's:
 *
 *	{"session": 7, "vm": "vm1", "bytes": ..., "token": "..."}
 *
 * @token, 32 hexadecimal digits, belongs into the file; a session is loaded from the last file that it
 * was saved in. There are no more bytes than that; but for what its guest may have made of the
 * session's process, which is at the other end of the stream and is not to be trusted.
 *
 * States are "freezing", "frozen", "saved", which is in a file, "thawing", "failed" and "running"; and "out", which is running but
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

/* "save" or "load"; the reply, or NULL, with @why. @fd stays the caller's. */
json_t *fgv_admin_file(const struct fgv_sessions *sessions, struct fgv_vms *vms,
		       const json_t *request, int fd, char *why, size_t why_len);

#endif
