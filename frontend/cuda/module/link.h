/*
 * Linking at run time: parts are collected here, and the host compiles and links them all at once.
 * So what is wrong with a part shows when linking is completed, and not when it is added.
 *
 * CUDA_ERROR_INVALID_HANDLE for what is no linking, or none any more.
 *
 * Threads: any, but one at a time for the same linking.
 */
#ifndef FGV_CUDA_LINK_H
#define FGV_CUDA_LINK_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

struct fgv_link_option {
	uint32_t option; /* a CUjit_option whose value is a number and concerns the code */
	uint32_t value;
};

/* What the host said; each with a NUL. */
struct fgv_link_log {
	char errors[4096];
	char info[4096];
};

/* @owner: the caller's. */
CUresult fgv_link_create(const struct fgv_link_option *options, unsigned count, void *owner,
			 CUlinkState *link);
CUresult fgv_link_owner(CUlinkState link, void **owner);
/* @data is copied. @name for messages, or NULL. Nothing can be added after fgv_link_complete(). */
CUresult fgv_link_add(CUlinkState link, CUjitInputType type, const void *data, size_t len,
		      const char *name);
CUresult fgv_link_add_file(CUlinkState link, CUjitInputType type, const char *path);
/* *image goes with @link. */
CUresult fgv_link_complete(CUlinkState link, void **image, size_t *len, struct fgv_link_log *log);
CUresult fgv_link_destroy(CUlinkState link, void **owner);

#endif
