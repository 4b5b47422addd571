/*
 * What the daemon tells of its GPUs, VMs and sessions, as JSON values. They are made with jansson,
 * which gives NULL where memory is short, and passes a NULL that it is given on.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_ADMIN_REPORT_H
#define FGV_BACKEND_ADMIN_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include "backend/devices.h"
#include "backend/session.h"
#include "backend/vms.h"
#include "backend/warm.h"

struct fgv_live;

/* What there is to report on and to change. */
struct fgv_admin_scope {
	const struct fgv_devices *devices;
	const struct fgv_sessions *sessions;
	const struct fgv_warm *warm;
	struct fgv_vms *vms;
	struct fgv_live *live;
	bool questions_only; /* what would change something is refused */
};

/*
 * All GPUs, and the VMs called @names, all of which there are (NULL: every VM), with their
 * sessions; with @figures also what they have used. NULL: out of memory.
 */
json_t *fgv_admin_report(const struct fgv_admin_scope *scope, const json_t *names, bool figures);

/* JSON is UTF-8; what a program calls itself may be any bytes, most of which it may keep. */
json_t *fgv_admin_string(const char *text);

#endif
