/*
 * Which sessions can be held, and by what (hold.h): decided for each session when its process is
 * about to serve it, and told in the log once for each GPU.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_HOLDING_H
#define FGV_BACKEND_HOLDING_H

#include "backend/config/config.h"
#include "backend/devices.h"
#include "backend/sched/channels.h"
#include "backend/sched/gpusched.h"

/* Of one session, until its process serves it. */
struct fgv_holding {
	struct fgv_channels *channels; /* NULL: nothing was heard */
	int fd;			       /* their open file; -1: none */
};

void fgv_holding_init(struct fgv_holding *holding);
/* The process has said by what it can be held. @fd, or -1, is @holding's from now on. */
void fgv_holding_learn(struct fgv_holding *holding, const struct fgv_channels *channels, int fd);
/*
 * Process @pid is about to serve @session, whose log lines are of @subject. *@told: bits of the
 * devices for which the log says how it is. False: the process can't be used any more.
 */
bool fgv_holding_begin(struct fgv_holding *holding, const struct fgv_config *config,
		       const struct fgv_device *device, struct fgv_gpusched_session *session,
		       pid_t pid, const struct fgv_log_subject *subject, uint32_t *told);
void fgv_holding_fini(struct fgv_holding *holding);

#endif
