/* The administrator's request "set": changes what a VM has of its GPU's time. */
#ifndef FGV_BACKEND_ADMIN_SET_H
#define FGV_BACKEND_ADMIN_SET_H

#include <jansson.h>
#include <stddef.h>
#include "backend/vm.h"

struct ucred;

/*
 * Sets what @request says of @vm: a weight, or a request, a limit and an slo. The reply, or NULL
 * where memory is short for it; or NULL, with one line in @why, which was empty: refused.
 */
json_t *fgv_admin_set(struct fgv_vm *vm, const json_t *request, const struct ucred *peer, char *why,
		      size_t why_len);

#endif
