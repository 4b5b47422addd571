/*
 * The watcher: a thread that sleeps until the guest or the daemon has gone. It tells the
 * dispatcher, and sees to it that the process ends even if the dispatcher is stuck: in
 * the driver behind a kernel without end, or in the doorbell of a guest that has made
 * its eventfd block.
 */
#ifndef FGV_VGPU_WATCH_H
#define FGV_VGPU_WATCH_H

#include <stdbool.h>

struct fgv_session;

/* Starts it. It lasts as long as the process. 0 or a negative errno. */
int fgv_watch_start(struct fgv_session *session);

/*
 * Whether the process may exit as it is. Without its program nothing that is still to be done is of
 * use to anybody; and the kernel, which gives back all of a process's GPU at once, is quicker than
 * taking it down piece by piece. But not of an MPS client, which has to be at rest.
 */
bool fgv_watch_may_leave(const struct fgv_session *session);

#endif
