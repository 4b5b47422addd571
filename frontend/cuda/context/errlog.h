/*
 * The log of what went wrong, which cudaLogs...() give to the program: the last calls that
 * failed, and what of them FairGV does not have. Messages have numbers, from 0.
 *
 * Threads: any. One mutex inside, held over no callback.
 */
#ifndef FGV_CUDA_ERRLOG_H
#define FGV_CUDA_ERRLOG_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frontend/client/stats.h"

#define FGV_ERRLOG_MESSAGES 128 /* that are kept; a power of two, as their numbers wrap around */
#define FGV_ERRLOG_LINE	    200 /* bytes of one, with the newline and a NUL */

/* @call returns @code, which its face calls @error; both texts stay. */
void fgv_errlog_add(int code, const char *error, const char *call);

/* FairGV does not have this: logs and counts it. @unsupported stays. */
void fgv_errlog_unsupported(struct fgv_unsupported *unsupported);
/* The same without a line on stderr. */
void fgv_errlog_unsupported_quietly(struct fgv_unsupported *unsupported);

/*
 * CUDA_ERROR_NOT_SUPPORTED, logged and counted: for what a function does not have of what it is
 * asked for. @what names it, as a stub's name does a function.
 */
#define FGV_UNSUPPORTED(what)                                                                      \
	({                                                                                         \
		static struct fgv_unsupported unsupported_part = {.name = (what)};                 \
                                                                                                   \
		fgv_errlog_unsupported(&unsupported_part);                                         \
		CUDA_ERROR_NOT_SUPPORTED;                                                          \
	})

/* The number of the oldest message kept, and that of the next one to come. */
uint32_t fgv_errlog_first(void);
uint32_t fgv_errlog_end(void);

/* Message @number as a line with its newline; its length, 0: it is gone, or not there yet. */
size_t fgv_errlog_line(uint32_t number, char line[FGV_ERRLOG_LINE]);

/*
 * Each new message is given to @callback, in the thread that failed, without time and thread.
 * What it causes itself is not logged. NULL: no memory; a handle for removing it.
 */
struct fgv_errlog_listener *fgv_errlog_listen(CUlogsCallback callback, void *data);
/* -ENOENT. Another thread may be in the callback still. */
int fgv_errlog_unlisten(struct fgv_errlog_listener *listener);

/*
 * The messages from @iterator on, from the oldest without one, which then is behind them. Where
 * messages are missing, a first line says so. CUDA_ERROR_INVALID_VALUE where nothing can be
 * written.
 */
CUresult fgv_errlog_dump_to_file(CUlogIterator *iterator, const char *path);
/* Into *@size bytes at @buffer, with a NUL, the newest that fit; *@size becomes their length. */
CUresult fgv_errlog_dump_to_memory(CUlogIterator *iterator, char *buffer, size_t *size);

/* Around a fork: the child, which has errors and no CUDA, must not find the log locked. */
void fgv_errlog_fork_begin(void);
void fgv_errlog_fork_end(void);

#endif
