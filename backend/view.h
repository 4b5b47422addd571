/*
 * What a VM may see of itself and its GPUs: the answer to a look (api/wire.h), made from the
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

/*
 * Of GPU number @device among those that @vm's programs see. Programs that are placed see one, and
 * what they have of several GPUs is shown as its. The answer refuses a number that is too high.
 */
void fgv_view_take(struct fgv_msg_view *view, const struct fgv_vm *vm,
		   const struct fgv_sessions *sessions, uint32_t device);

/* The answer that refuses to show anything; @text is cut to what it has room for. */
void fgv_view_refuse(struct fgv_msg_view *view, CUresult status, const char *text);

#endif
