/*
 * A list, which is searched from its front: there are few, and they are asked for rarely.
 */
#include "backend/vgpu/images/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fgv_kept_init(struct fgv_kept *kept, uint64_t bytes_max)
{
	*kept = (struct fgv_kept){.bytes_max = bytes_max};
	TAILQ_INIT(&kept->list);
}

static void drop(struct fgv_kept *kept, struct fgv_kept_image *image)
{
	TAILQ_REMOVE(&kept->list, image, link);
	kept->count--;
	kept->bytes -= image->len;
	close(image->fd);
	free(image);
}

void fgv_kept_fini(struct fgv_kept *kept)
{
	while (!TAILQ_EMPTY(&kept->list))
		drop(kept, TAILQ_FIRST(&kept->list));
}

bool fgv_kept_has_like(const struct fgv_kept *kept, uint64_t len, uint64_t sample)
{
	const struct fgv_kept_image *image;

	TAILQ_FOREACH(image, &kept->list, link) {
		if (image->len == len && image->sample == sample)
			return true;
	}
	return false;
}

int fgv_kept_find(struct fgv_kept *kept, const struct fgv_digest *digest, uint64_t len,
		  uint64_t now_ns)
{
	struct fgv_kept_image *image;

	TAILQ_FOREACH(image, &kept->list, link) {
		if (image->len == len && !memcmp(&image->digest, digest, sizeof(*digest)))
			break;
	}
	if (!image)
		return -ENOENT;
	TAILQ_REMOVE(&kept->list, image, link);
	TAILQ_INSERT_HEAD(&kept->list, image, link);
	image->used_ns = now_ns;
	return image->fd;
}

static int refuse(int fd, int why)
{
	close(fd);
	return why;
}

int fgv_kept_add(struct fgv_kept *kept, const struct fgv_digest *digest, uint64_t len,
		 uint64_t sample, int fd, uint64_t now_ns)
{
	struct fgv_kept_image *image;

	if (fgv_kept_find(kept, digest, len, now_ns) >= 0)
		return refuse(fd, -EEXIST);
	if (len > kept->bytes_max)
		return refuse(fd, -EFBIG);
	image = malloc(sizeof(*image));
	if (!image)
		return refuse(fd, -ENOMEM);
	while (kept->bytes > kept->bytes_max - len || kept->count >= FGV_KEPT_MAX)
		drop(kept, TAILQ_LAST(&kept->list, fgv_kept_list));
	*image = (struct fgv_kept_image){
		.digest = *digest,
		.len = len,
		.sample = sample,
		.used_ns = now_ns,
		.fd = fd,
	};
	TAILQ_INSERT_HEAD(&kept->list, image, link);
	kept->count++;
	kept->bytes += len;
	return 0;
}

void fgv_kept_expire(struct fgv_kept *kept, uint64_t before_ns)
{
	struct fgv_kept_image *last;

	while ((last = TAILQ_LAST(&kept->list, fgv_kept_list)) && last->used_ns < before_ns)
		drop(kept, last);
}
