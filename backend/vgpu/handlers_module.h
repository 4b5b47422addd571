/*
 * What the handlers of modules have for those of linking.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_HANDLERS_MODULE_H
#define FGV_VGPU_HANDLERS_MODULE_H

#include "backend/vgpu/session.h"

/* A copy of @image, which the guest may change meanwhile, for free(); NULL: no room for it. */
char *fgv_module_copy_image(const struct fgv_session *session, const void *image, uint64_t len);

/*
 * Loads private memory as a module, and unloads it again: what is wrong with it, in words in @log,
 * or FGV_CLOSED.
 */
CUresult fgv_module_try(struct fgv_session *session, struct fgv_request *request, const void *image,
			uint64_t len, char *log, size_t log_len);

#endif
