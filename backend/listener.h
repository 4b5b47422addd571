/*
 * The listening socket's file: making it where a dead daemon may have left one, and
 * removing it.
 */
#ifndef FGV_BACKEND_LISTENER_H
#define FGV_BACKEND_LISTENER_H

#include <stddef.h>
#include <sys/stat.h>
#include "backend/loop.h"

/*
 * A socket of @type that listens at @path, whose file gets @mode; non-blocking. Its folder
 * is made where that is missing, and what is missing above. *@made is the file's identity.
 * A negative errno and @why on failure; -EADDRINUSE where somebody listens there.
 */
int fgv_listener_open(const char *path, int type, mode_t mode, struct stat *made, char *why,
		      size_t why_len);

/*
 * The same for a stream socket of mode 0600 whose connections @watch, with its ready set, is to
 * hear of in @loop: watch->fd is the socket.
 */
int fgv_listener_watch(int loop, struct fgv_watch *watch, const char *path, struct stat *made,
		       char *why, size_t why_len);

/* Closes @fd, and removes the file at @path if it is still the one that was made. */
void fgv_listener_close(int fd, const char *path, const struct stat *made);

#endif
