/*
 * What the handlers of modules and their kernels have for each other, and for those of linking.
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

/*
 * A handle for the kernel @name of @module. At @info, which has room for @info_len bytes, *len of
 * them are what the guest has to know of it: a struct fgv_function_info, and the sizes and the
 * offsets of the parameters.
 */
CUresult fgv_function_open(struct fgv_session *session, struct fgv_object *module, const char *name,
			   uint8_t *info, uint64_t info_len, uint32_t *len,
			   struct fgv_object **function);

#endif
