/*
 * The log of what went wrong, which cudaLogs...() give to the program: the last calls that
 * failed, and what of them FairGV does not have. Messages have numbers, from 0.
 *
 * Threads: any. One mutex inside, held over no callback.
 */
#ifndef FGV_CLIENT_ERRLOG_H
#define FGV_CLIENT_ERRLOG_H

#include <driver_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FGV_ERRLOG_MESSAGES 128 /* that are kept; a power of two, as their numbers wrap around */
#define FGV_ERRLOG_LINE	    200 /* bytes of one, with the newline and a NUL */

/* @call, which stays, returns @error. */
void fgv_errlog_add(cudaError_t error, const char *call);
/* FairGV has no @what, which stays. */
void fgv_errlog_add_missing(const char *what);

/* The number of the oldest message kept, and that of the next one to come. */
uint32_t fgv_errlog_first(void);
uint32_t fgv_errlog_end(void);

/* Message @number as a line with its newline; its length, 0: it is gone, or not there yet. */
size_t fgv_errlog_line(uint32_t number, char line[FGV_ERRLOG_LINE]);

/*
 * Each new message is given to @callback, in the thread that failed, without time and thread.
 * What it causes itself is not logged. NULL: no memory; a handle for removing it.
 */
typedef void (*fgv_errlog_callback)(void *data, cudaLogLevel level, char *message, size_t len);
struct fgv_errlog_listener *fgv_errlog_listen(fgv_errlog_callback callback, void *data);
/* -ENOENT. Another thread may be in the callback still. */
int fgv_errlog_unlisten(struct fgv_errlog_listener *listener);

/* Around a fork: the child, which has errors and no CUDA, must not find the log locked. */
void fgv_errlog_fork_begin(void);
void fgv_errlog_fork_end(void);

#endif
