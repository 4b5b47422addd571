/*
 * The dispatcher: takes requests in their order, runs them, sends replies, until the
 * session ends. It never waits for the GPU; where it has nothing to do it spins for
 * a while and then sleeps.
 *
 * Threads: the process's main thread.
 */
#ifndef FGV_VGPU_DISPATCHER_H
#define FGV_VGPU_DISPATCHER_H

struct fgv_session;

/*
 * 0 when the guest or the daemon has gone; a negative errno when the guest broke
 * the rules, which session->reason names.
 */
int fgv_dispatcher_run(struct fgv_session *session);

/* One turn of it, which waits for nothing: how much was done, or a negative errno as above. */
int fgv_dispatcher_turn(struct fgv_session *session);

#endif
