/*
 * What a VM may see of itself and its GPU: the answer to a look (api/wire.h), made from the
 * accounts, the scheduler's figures and what is known of the device. It starts no process and
 * asks no GPU.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_VIEW_H
#define FGV_BACKEND_VIEW_H

#include <cuda.h>
#include "api/wire.h"

struct fgv_sessions;
struct fgv_vm;

void fgv_view_take(struct fgv_msg_view *view, const struct fgv_vm *vm,
		   const struct fgv_sessions *sessions);

/* The answer that refuses to show anything; @text is cut to what it has room for. */
void fgv_view_refuse(struct fgv_msg_view *view, CUresult status, const char *text);

#endif
