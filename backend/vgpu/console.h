/*
 * Text that kernels print, on its way to the guest. It comes out of descriptors 1 and 2 of
 * this process: the CUDA driver writes it there, and the soft GPU does the same. So they
 * are files in memory, of a size that can't grow; what does not fit is lost. The
 * process's own log goes where descriptor 2 led before.
 *
 * The guest learns from its window that there is text, and fetches it.
 *
 * Threads: the dispatchers of a session's parts, which take the lock; the driver's may write.
 */
#ifndef FGV_VGPU_CONSOLE_H
#define FGV_VGPU_CONSOLE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct fgv_session;

#define FGV_CONSOLE_BYTES (4u << 20) /* of each of the two */

struct fgv_console_file {
	const char *text; /* NULL: not open */
	size_t taken;	  /* of it by the guest */
	size_t end;	  /* of it, when last looked at */
};

struct fgv_console {
	pthread_mutex_t lock;
	struct fgv_console_file files[2]; /* standard output, standard error */
};

/* Takes descriptors 1 and 2. A negative errno. */
int fgv_console_init(struct fgv_console *console);

/* To be called when something is seen to be done: tells the guest if there is text. */
void fgv_console_look(struct fgv_session *session);

/* Moves up to @room bytes to @text, from standard output or standard error; how many. */
size_t fgv_console_take(struct fgv_console *console, unsigned file, void *text, size_t room);

#endif
