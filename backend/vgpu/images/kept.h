/*
 * The images that a VM's keeper has, by their digests. Those that were asked for last stay.
 *
 * Threads: one.
 */
#ifndef FGV_VGPU_IMAGES_KEPT_H
#define FGV_VGPU_IMAGES_KEPT_H

#include <stdbool.h>
#include <sys/queue.h>
#include "common/digest.h"

/* Each has a descriptor. */
#define FGV_KEPT_MAX 512

struct fgv_kept_image {
	TAILQ_ENTRY(fgv_kept_image) link;
	struct fgv_digest digest;
	uint64_t len;
	uint64_t sample;
	uint64_t used_ns;
	int fd;
};

TAILQ_HEAD(fgv_kept_list, fgv_kept_image);

struct fgv_kept {
	struct fgv_kept_list list; /* the one that was used last comes first */
	uint32_t count;
	uint64_t bytes;
	uint64_t bytes_max;
};

void fgv_kept_init(struct fgv_kept *kept, uint64_t bytes_max);
void fgv_kept_fini(struct fgv_kept *kept);

/* Whether any has this length and this sample. */
bool fgv_kept_has_like(const struct fgv_kept *kept, uint64_t len, uint64_t sample);

/* The file of the image with this digest and length, which stays its own; -ENOENT. */
int fgv_kept_find(struct fgv_kept *kept, const struct fgv_digest *digest, uint64_t len,
		  uint64_t now_ns);

/*
 * Takes over @fd, which is closed where it is of no use: 0, -EEXIST, -EFBIG if it is larger than
 * all may be, or -ENOMEM.
 */
int fgv_kept_add(struct fgv_kept *kept, const struct fgv_digest *digest, uint64_t len,
		 uint64_t sample, int fd, uint64_t now_ns);

/* Lets go those that nobody has used since @before_ns. */
void fgv_kept_expire(struct fgv_kept *kept, uint64_t before_ns);

#endif
