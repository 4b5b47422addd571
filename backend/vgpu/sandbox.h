/*
 * What the process gives up, since it serves a guest that may try to take it over. On
 * some machines a kernel can read and write the memory of the process that launched it,
 * so what holds is not this program's care alone but what the process may do at all.
 *
 * Threads: before the process has any (begin), and after the GPU is open (close).
 */
#ifndef FGV_VGPU_SANDBOX_H
#define FGV_VGPU_SANDBOX_H

/*
 * The first thing that the process does: ends with the daemon, can't be traced, keeps
 * no capability but those to change its user. 0 or a negative errno.
 */
int fgv_sandbox_begin(void);

/*
 * Once the GPU is open: becomes nobody, gains no privileges any more, and loses the
 * system calls that serving a guest does not need. Holds for all threads. 0 or a negative
 * errno, and then the process must not serve anybody.
 */
int fgv_sandbox_close(void);

#endif
