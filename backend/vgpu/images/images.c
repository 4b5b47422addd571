/*
 * Images; see images.h.
 */
#define _GNU_SOURCE
#include "backend/vgpu/images/images.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "api/wire.h"
#include "backend/fds.h"
#include "backend/shared.h"
#include "backend/vgpu/images/file.h"

/* The keeper looks at its sockets every millisecond, once it has been started. */
#define PATIENCE_MS 1000

void fgv_images_init(struct fgv_images *images, int fd)
{
	images->fd = fd;
}

static void leave(struct fgv_images *images)
{
	close(images->fd);
	images->fd = -1;
}

/* Whether it was found; then *@fd is its file, or -1. */
static bool ask(struct fgv_images *images, const struct fgv_images_request *request, int *fd)
{
	struct pollfd wait = {.fd = images->fd, .events = POLLIN};
	struct fgv_images_reply reply;

	*fd = -1;
	if (images->fd < 0)
		return false;
	if (fgv_fds_send(images->fd, request, sizeof(*request), NULL, 0) == 0 &&
	    poll(&wait, 1, PATIENCE_MS) == 1 &&
	    fgv_fds_receive(images->fd, &reply, sizeof(reply), fd) == sizeof(reply))
		return reply.found == 1;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	leave(images);
	return false;
}

bool fgv_images_know(struct fgv_images *images, uint64_t len, uint64_t sample)
{
	const struct fgv_images_request request = {
		.op = FGV_IMAGES_KNOWN,
		.len = len,
		.sample = sample,
	};
	bool known;
	int fd;

	if (len < FGV_IMAGE_KEPT_MIN)
		return false;
	known = ask(images, &request, &fd);
	if (fd >= 0)
		close(fd);
	return known;
}

int fgv_image_get(struct fgv_images *images, const void *digest, uint64_t len,
		  struct fgv_image *image)
{
	struct fgv_images_request request = {.op = FGV_IMAGES_GET, .len = len};

	*image = (struct fgv_image){.len = len, .fd = -1};
	if (len < FGV_IMAGE_KEPT_MIN)
		return -ENOENT;
	memcpy(request.digest, digest, sizeof(request.digest));
	if (ask(images, &request, &image->fd) && image->fd >= 0)
		image->bytes = fgv_image_file_map(image->fd, len);
	image->is_mapped = image->bytes != NULL;
	if (image->is_mapped)
		return 0;
	fgv_image_fini(image);
	return -ENOENT;
}

static int copy_privately(const void *from, uint64_t len, struct fgv_image *image)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, len);
	copy[len] = '\0';
	*image = (struct fgv_image){.bytes = copy, .len = len, .fd = -1};
	return 0;
}

int fgv_image_copy(const struct fgv_images *images, const void *from, uint64_t len,
		   struct fgv_image *image)
{
	int fd = -1;

	if (images->fd >= 0 && len >= FGV_IMAGE_KEPT_MIN)
		fd = fgv_image_file_create(from, len);
	if (fd < 0)
		return copy_privately(from, len, image);
	*image = (struct fgv_image){.len = len, .fd = fd};
	image->bytes = fgv_image_file_map(fd, len);
	image->is_mapped = image->bytes != NULL;
	if (image->is_mapped)
		return 0;
	fgv_image_fini(image);
	return -ENOMEM;
}

void fgv_image_keep(struct fgv_images *images, const struct fgv_image *image)
{
	const struct fgv_images_request request = {.op = FGV_IMAGES_PUT, .len = image->len};
	int ret;

	if (image->fd < 0 || images->fd < 0)
		return;
	ret = fgv_fds_send(images->fd, &request, sizeof(request), &image->fd, 1);
	/* Where there is too much under way, this one is not kept. */
	if (ret < 0 && ret != -EAGAIN && ret != -ETOOMANYREFS)
		leave(images);
}

void fgv_image_detach(struct fgv_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	image->fd = -1;
}

void fgv_image_fini(struct fgv_image *image)
{
	if (image->is_mapped)
		munmap((void *)image->bytes, image->len + 1);
	else
		free((void *)image->bytes);
	fgv_image_detach(image);
}
