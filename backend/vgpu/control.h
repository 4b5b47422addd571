/*
 * The guest's connection: the welcome, and then lane messages until it hangs up.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_CONTROL_H
#define FGV_VGPU_CONTROL_H

#include <cuda.h>

struct fgv_session;

/*
 * Says welcome and hands the window over, unless the guest has it; or, with another status,
 * that there is no session and why. 0, or a negative errno where the guest has gone.
 */
int fgv_control_welcome(struct fgv_session *session, CUresult status, const char *text);

/* The same for the window of a further @part; the guest gets @peer_fd, its end of that connection.
 */
int fgv_control_welcome_part(const struct fgv_session *first, const struct fgv_session *part,
			     int peer_fd, const char *text);

/* Tells the program why its session ends, if it still listens. */
void fgv_control_end(struct fgv_session *session, const char *text);

/* Reads the socket if the guest says in the window that it has sent something. */
int fgv_control_look(struct fgv_session *session);

/*
 * Reads and answers what is on the socket. 0; -ECONNRESET: the guest has gone; -EPROTO
 * and the reason: it broke the rules.
 */
int fgv_control_read(struct fgv_session *session);

#endif
