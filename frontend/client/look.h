/*
 * A look at the VM, without a session: what the host says of it and one of its GPUs
 * (struct fgv_msg_view). It starts nothing on the host, touches no GPU, and leaves nothing behind
 * in this process, so it may be done before a fork as well as after it.
 *
 * Threads: any.
 */
#ifndef FGV_CLIENT_LOOK_H
#define FGV_CLIENT_LOOK_H

#include <cuda.h>
#include <stddef.h>

#include "api/wire.h"
#include "common/log.h"

/*
 * Asks the host that fgv_connect() would connect to, of GPU number @device. On failure a code as
 * fgv_connect() has them, and @why says it in words. Else all strings and counts in *view are
 * within bounds.
 */
CUresult fgv_look(uint32_t device, struct fgv_msg_view *view, char *why, size_t why_len);

/* The same. A failure is a line in the log: what it means, @failure, and why. */
CUresult fgv_look_and_log(uint32_t device, struct fgv_msg_view *view, enum fgv_log_level level,
			  const char *failure);

#endif
