/*
 * The digest of an image that is to be sent (common/digest.h). Helpers of the crew share the work
 * where it is large.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_IMAGE_DIGEST_H
#define FGV_CUDA_IMAGE_DIGEST_H

#include "common/digest.h"
#include "frontend/cuda/module/image.h"

/* 0 or -ENOMEM. */
int fgv_image_digest(const struct fgv_image_pieces *image,
		     uint64_t digest[FGV_DIGEST_BYTES / sizeof(uint64_t)]);

#endif
