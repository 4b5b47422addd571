/*
 * A window as one side sees it: where it is mapped, its layout, and the one
 * resolver through which every (offset, length) from the other side goes.
 *
 * Threads: a struct fgv_window is written once, then read by all.
 */
#ifndef FGV_SHMRING_WINDOW_H
#define FGV_SHMRING_WINDOW_H

#include "api/wire.h"

struct fgv_window {
	uint8_t *base;
	uint64_t len;
	uint64_t lanes_off;
	uint32_t lanes;
	uint64_t arena_off;
	uint64_t arena_len;
	uint64_t staging_len; /* the arena's first part */
};

/*
 * Lays out a window of @len bytes (a multiple of the page size) with @lanes lanes:
 * the arena takes what the lanes leave, its staging part at most an eighth of it and
 * at most 16 MiB. -EINVAL where it does not fit.
 */
int fgv_window_layout(struct fgv_window *window, uint64_t len, uint32_t lanes);

/* -EINVAL unless the layout that a welcome message carries is consistent. */
int fgv_window_check(const struct fgv_window *window);

/*
 * Host: a new sealed memfd of window->len bytes, formatted: head, and all lanes'
 * rings, from FGV_RING_START. The descriptor, or a negative errno; window->base stays unset.
 */
int fgv_window_create(const struct fgv_window *window);

/*
 * Host: the same for a window of zeros that lies at @off, a multiple of the page size, in a
 * larger memfd, which stays as it is otherwise. 0 or a negative errno.
 */
int fgv_window_format(const struct fgv_window *window, int fd, uint64_t off);

/*
 * Maps window->len bytes of @fd, from @off on, at window->base; a negative errno if it can't,
 * or @fd ends before them.
 */
int fgv_window_map_at(struct fgv_window *window, int fd, uint64_t off);

/* The same for a window that begins where @fd does. */
static inline int fgv_window_map(struct fgv_window *window, int fd)
{
	return fgv_window_map_at(window, fd, 0);
}

void fgv_window_unmap(struct fgv_window *window);

/* The memory at [off, off + len) of the window, or NULL if that is not all inside it. */
static inline void *fgv_window_resolve(const struct fgv_window *window, uint64_t off, uint64_t len)
{
	if (off > window->len || len > window->len - off)
		return NULL;
	return window->base + off;
}

static inline struct fgv_window_head *fgv_window_head(const struct fgv_window *window)
{
	return (struct fgv_window_head *)window->base;
}

/* The parts of lane @lane, which must be below window->lanes. */
static inline uint8_t *fgv_window_lane(const struct fgv_window *window, uint32_t lane)
{
	return window->base + window->lanes_off + (uint64_t)lane * FGV_LANE_BYTES;
}

static inline struct fgv_lane_head *fgv_window_lane_head(const struct fgv_window *window,
							 uint32_t lane)
{
	return (struct fgv_lane_head *)fgv_window_lane(window, lane);
}

static inline struct fgv_slot *fgv_window_requests(const struct fgv_window *window, uint32_t lane)
{
	return (struct fgv_slot *)(fgv_window_lane(window, lane) + FGV_LANE_REQUESTS);
}

static inline struct fgv_slot *fgv_window_replies(const struct fgv_window *window, uint32_t lane)
{
	return (struct fgv_slot *)(fgv_window_lane(window, lane) + FGV_LANE_REPLIES);
}

#endif
