/*
 * What the daemon answers its administrator, as JSON:
 *
 *	{"request": "list"}                             GPUs, VMs and their sessions
 *	{"request": "stat", "vms": ["vm1", ...]}        the same with figures
 *	{"request": "set", "vm": "vm1",                 {"changes": [...]}
 *		"settings": {"memory": "2G", ...},
 *		"save": true}
 *	{"request": "reload", "end": true}              the same
 *	{"request": "end", "session": 7}                {"session": 7, "vm": "vm1"}
 *	{"request": "freeze", "session": 7}             {"sessions": [...]}, see freeze.h
 *	{"request": "thaw", "vm": "vm1"}                the same
 *	{"request": "save", "session": 7}               {"session": 7, ...}, see freeze.h; with a stream
 *	{"request": "load", "session": 7,               the same
 *		"token": "..."}
 *
 * "vms", "save" and "end" may be left out: all, and false. Settings are values of the VM's keys in
 * the configuration as they stand there, as strings; "" is the configuration's own. "weight": 3 may
 * stand for {"weight": "3"}. A change is {"vm": ... (null: none), "key": ..., "before": ...,
 * "after": ...}, or {"vm": ..., "event": "added" or "removed"}. Whatever is wrong gives
 * {"error": "..."}, one line, and changes nothing. The keys of a report are in fairgvctl(1), and
 * stay as they are.
 *
 * Figures are totals since the daemon started. Those of a VM include its sessions that have
 * ended, and are taken after its sessions', which therefore never exceed them.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_ADMIN_REPLY_H
#define FGV_BACKEND_ADMIN_REPLY_H

#include <stddef.h>
#include <sys/socket.h>
#include "backend/admin/report.h"

/* The peer that asks, and the descriptor that came with its request: the caller's; -1: none. */
struct fgv_admin_asker {
	const struct ucred *peer;
	int fd;
};

/*
 * The reply to the @len bytes of @request, which @asker sent: a line with its newline, for free().
 * NULL: out of memory.
 */
char *fgv_admin_reply(const struct fgv_admin_scope *scope, const char *request, size_t len,
		      const struct fgv_admin_asker *asker);

/* The reply that says what is wrong. */
__attribute__((format(printf, 1, 2))) char *fgv_admin_refusal(const char *format, ...);

#endif
