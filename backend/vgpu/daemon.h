/*
 * What comes from the daemon on FGV_CONTROL_FD, and what it is told (backend/shared.h).
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_DAEMON_H
#define FGV_VGPU_DAEMON_H

#include <cuda.h>

struct fgv_session;

/*
 * Wait for the two messages. 0; -ECONNRESET: the daemon has no use for this process any more;
 * -EBADMSG and others: what came is wrong.
 */
int fgv_daemon_await_prepare(struct fgv_session *session);
int fgv_daemon_await_setup(struct fgv_session *session);

/*
 * The same for what follows the setup of a session with several GPUs, one for each @part.
 * *@peer_fd: the guest's end of its connection.
 */
int fgv_daemon_await_part(struct fgv_session *part, int *peer_fd);

/* How opening the GPU went; the session's reason says why it failed. */
void fgv_daemon_report(const struct fgv_session *session, CUresult status);

/* The sandbox is closed: what it lacks, and the listener, which is the daemon's from now on. */
void fgv_daemon_confined(struct fgv_session *session);

/* By what this process's kernels can be held. Before the sandbox is closed. */
void fgv_daemon_channels(void);

/* The next thing is the welcome. */
void fgv_daemon_serving(void);

#endif
