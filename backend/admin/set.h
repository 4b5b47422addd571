/*
 * The administrator's requests that change what the daemon runs: "set", values of a VM, and
 * "reload", the configuration as it is in the file now.
 *
 * Both return the reply, or NULL where memory is short for it; or NULL, with one line in @why,
 * which was empty: refused.
 */
#ifndef FGV_BACKEND_ADMIN_SET_H
#define FGV_BACKEND_ADMIN_SET_H

#include <jansson.h>
#include <stddef.h>
#include "backend/live.h"

struct ucred;

json_t *fgv_admin_set(struct fgv_live *live, const json_t *request, const struct ucred *peer,
		      char *why, size_t why_len);

json_t *fgv_admin_reload(struct fgv_live *live, const json_t *request, const struct ucred *peer,
			 char *why, size_t why_len);

#endif
