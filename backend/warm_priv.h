/* For the files warm*.c alone. */
#ifndef FGV_BACKEND_WARM_PRIV_H
#define FGV_BACKEND_WARM_PRIV_H

#include "backend/warm.h"

/*
 * Starts a process that opens @device and logs to @log_fd; its socket, by which it is spoken with. 0 or
 * a negative errno, and no process.
 */
int fgv_warm_spawn(const struct fgv_warm *warm, unsigned device, int log_fd, pid_t *pid,
		   int *control_fd);

#endif
