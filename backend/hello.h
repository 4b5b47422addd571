/*
 * The first message of a guest program, by whatever way it comes, and the last one to it.
 *
 * Threads: any.
 */
#ifndef FGV_BACKEND_HELLO_H
#define FGV_BACKEND_HELLO_H

#include <cuda.h>
#include "api/wire.h"

/*
 * Judges a private copy of a hello of which @len bytes came, more than it has room for or
 * less. Any status but CUDA_SUCCESS refuses it, with the reason in @text. Else its strings end.
 */
CUresult fgv_hello_check(const struct fgv_msg_hello *hello, size_t len, char *text,
			 size_t text_len);

/* The welcome that refuses a program; @text is cut to what it has room for. */
void fgv_hello_refuse(struct fgv_msg_welcome *welcome, CUresult status, const char *text);

/*
 * Tells the program at @fd why its session ends. Lost where nothing is read there: this does
 * not wait.
 */
void fgv_hello_end(int fd, const char *text);

#endif
