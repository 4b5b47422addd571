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
	pthread_mutex_init(&images->lock, NULL);
}

static int fd_of(const struct fgv_images *images)
{
	return __atomic_load_n(&images->fd, __ATOMIC_RELAXED);
}

static void leave_locked(struct fgv_images *images)
{
	close(images->fd);
	__atomic_store_n(&images->fd, -1, __ATOMIC_RELAXED);
}

static bool receive_locked(const struct fgv_images *images, struct fgv_images_talk *talk)
{
	struct pollfd wait = {.fd = images->fd, .events = POLLIN};

	if (poll(&wait, 1, PATIENCE_MS) == 1 &&
	    fgv_fds_receive(images->fd, talk->reply, talk->reply_len, &talk->fd) ==
		    (ssize_t)talk->reply_len)
		return true;
	if (talk->fd >= 0)
		close(talk->fd);
	talk->fd = -1;
	return false;
}

static int ask_locked(struct fgv_images *images, struct fgv_images_talk *talk)
{
	talk->fd = -1;
	if (images->fd < 0)
		return -ENOTCONN;
	if (fgv_fds_send(images->fd, talk->request, talk->request_len, &talk->sent_fd,
			 talk->sent_fd >= 0) == 0 &&
	    (!talk->reply || receive_locked(images, talk)))
		return 0;
	leave_locked(images);
	return -ENOTCONN;
}

int fgv_images_ask(struct fgv_images *images, struct fgv_images_talk *talk)
{
	int ret;

	pthread_mutex_lock(&images->lock);
	ret = ask_locked(images, talk);
	pthread_mutex_unlock(&images->lock);
	return ret;
}

/* Whether it was found; then *@fd is its file, or -1. */
static bool ask(struct fgv_images *images, const struct fgv_images_request *request, int *fd)
{
	struct fgv_images_reply reply = {0};
	struct fgv_images_talk talk = {
		.request = request,
		.request_len = sizeof(*request),
		.sent_fd = -1,
		.reply = &reply,
		.reply_len = sizeof(reply),
	};
	int ret = fgv_images_ask(images, &talk);

	*fd = talk.fd;
	return ret == 0 && reply.found == 1;
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

	if (fd_of(images) >= 0 && len >= FGV_IMAGE_KEPT_MIN)
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
	int ret = 0;

	if (image->fd < 0)
		return;
	pthread_mutex_lock(&images->lock);
	if (images->fd >= 0)
		ret = fgv_fds_send(images->fd, &request, sizeof(request), &image->fd, 1);
	/* Where there is too much under way, this one is not kept. */
	if (ret < 0 && ret != -EAGAIN && ret != -ETOOMANYREFS)
		leave_locked(images);
	pthread_mutex_unlock(&images->lock);
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
