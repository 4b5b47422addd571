/*
 * The images of modules that are loaded: private copies of what lies in the window, or files from
 * the VM's keeper, which keeps them for the VM's next programs.
 *
 * A keeper that does not answer soon is asked nothing more.
 *
 * Threads: the dispatcher's; fgv_images_ask() also those of a session's other GPUs.
 */
#ifndef FGV_VGPU_IMAGES_IMAGES_H
#define FGV_VGPU_IMAGES_IMAGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The way to the keeper. */
struct fgv_images {
	int fd;		      /* atomic; -1: there is none */
	pthread_mutex_t lock; /* from a request to its reply */
};

/* What goes to the keeper and comes back; a descriptor with either is -1 where there is none. */
struct fgv_images_talk {
	const void *request;
	size_t request_len;
	int sent_fd;
	void *reply; /* NULL: there is none */
	size_t reply_len;
	int fd; /* the caller's, that came */
};

/* Takes over @fd. */
void fgv_images_init(struct fgv_images *images, int fd);

/* 0; or -ENOTCONN, as there is no keeper any more. */
int fgv_images_ask(struct fgv_images *images, struct fgv_images_talk *talk);

struct fgv_image {
	const char *bytes; /* followed by a NUL */
	uint64_t len;
	int fd; /* of its file; -1: it is in private memory, or detached */
	bool is_mapped;
};

/* A copy of @len bytes at @from, which may change meanwhile. 0 or -ENOMEM. */
int fgv_image_copy(const struct fgv_images *images, const void *from, uint64_t len,
		   struct fgv_image *image);
/* The one with @digest, if it is kept: 0, -ENOENT. */
int fgv_image_get(struct fgv_images *images, const void *digest, uint64_t len,
		  struct fgv_image *image);
/* Has it kept, if it is worth it. */
void fgv_image_keep(struct fgv_images *images, const struct fgv_image *image);
/* Stays in memory, and takes no descriptor any more. */
void fgv_image_detach(struct fgv_image *image);
void fgv_image_fini(struct fgv_image *image);

/* Whether one of this length and sample may be kept. */
bool fgv_images_know(struct fgv_images *images, uint64_t len, uint64_t sample);

#endif
