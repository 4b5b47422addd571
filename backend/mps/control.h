/*
 * NVIDIA's MPS control daemon as a child of the keeper, and all that comes of it: the MPS
 * servers that it starts, and the commands that it is given.
 *
 * Whatever MPS leaves behind becomes the keeper's child, too (it is their subreaper), so
 * all of MPS is gone when there are no children any more.
 *
 * Threads: the keeper's only one. What waits here turns the keeper's event loop.
 */
#ifndef FGV_BACKEND_MPS_CONTROL_H
#define FGV_BACKEND_MPS_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Watches for children in @loop, and blocks all signals for good. Where *@told_to_end
 * becomes true, no command is waited for any longer. 0 or a negative errno.
 */
int fgv_mps_control_init(int loop, const bool *told_to_end);

/* Starts the control daemon, in the environment of this process. 0 or a negative errno. */
int fgv_mps_control_start(void);
bool fgv_mps_control_runs(void);

/* The last line that it or one of its servers logged; "" where there is none. */
const char *fgv_mps_control_said(void);
/* Says how it ended. */
void fgv_mps_control_explain(char *text, size_t len);

/*
 * Gives it a command, a line of text, as its own program does that. 0, and what that printed
 * is in *@answer until the next one; -EIO: it refused, -ETIMEDOUT, or why it can't be asked.
 */
int fgv_mps_control_command(const char *text, uint64_t deadline_ns, const char **answer);

/*
 * Waits for the end of all children, those included that their own parents leave to us,
 * and sends each of them @signal meanwhile (0: none). False: not before @deadline_ns.
 */
bool fgv_mps_control_end(int signal, uint64_t deadline_ns);

#endif
