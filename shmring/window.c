/*
 * Making, checking and mapping a window. The host calls fgv_window_layout(),
 * fgv_window_create() or fgv_window_format(), and fgv_window_map(), the guest
 * fgv_window_check() and fgv_window_map().
 */
#define _GNU_SOURCE
#include "shmring/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "shmring/ring.h"

#define STAGING_MAX   (12ull << 20)
#define STAGING_SHARE 8

static bool is_paged(uint64_t v)
{
	return !(v % FGV_PAGE_BYTES);
}

int fgv_window_layout(struct fgv_window *window, uint64_t len, uint32_t lanes)
{
	uint64_t arena_off = FGV_PAGE_BYTES + (uint64_t)lanes * FGV_LANE_BYTES;
	uint64_t share;

	if (!lanes || lanes > FGV_LANES_MAX || !is_paged(len) || len > INT64_MAX ||
	    len <= arena_off)
		return -EINVAL;
	*window = (struct fgv_window){
		.len = len,
		.lanes_off = FGV_PAGE_BYTES,
		.lanes = lanes,
		.arena_off = arena_off,
		.arena_len = len - arena_off,
	};
	share = window->arena_len / STAGING_SHARE;
	window->staging_len = fgv_min_u64(share - share % FGV_PAGE_BYTES, STAGING_MAX);
	return 0;
}

int fgv_window_check(const struct fgv_window *window)
{
	uint64_t lanes_len = (uint64_t)window->lanes * FGV_LANE_BYTES;

	if (!window->lanes || window->lanes > FGV_LANES_MAX)
		return -EINVAL;
	if (!is_paged(window->len) || !is_paged(window->lanes_off) ||
	    !is_paged(window->arena_off) || !is_paged(window->arena_len) ||
	    !is_paged(window->staging_len))
		return -EINVAL;
	if (window->len > INT64_MAX || window->lanes_off < FGV_PAGE_BYTES)
		return -EINVAL;
	if (window->arena_off > window->len || window->lanes_off > window->arena_off ||
	    lanes_len > window->arena_off - window->lanes_off)
		return -EINVAL;
	if (window->arena_len > window->len - window->arena_off ||
	    window->staging_len > window->arena_len)
		return -EINVAL;
	return 0;
}

static void fill(const struct fgv_window *window)
{
	struct fgv_window_head *head = fgv_window_head(window);

	head->magic = FGV_WINDOW_MAGIC;
	head->version = FGV_WIRE_VERSION;
	for (uint32_t i = 0; i < window->lanes; i++) {
		fgv_ring_format(fgv_window_requests(window, i), FGV_REQUEST_SLOTS, FGV_RING_START);
		fgv_ring_format(fgv_window_replies(window, i), FGV_REPLY_SLOTS, FGV_RING_START);
	}
}

int fgv_window_format(const struct fgv_window *window, int fd, uint64_t off)
{
	struct fgv_window mapped = *window;
	int err = fgv_window_map_at(&mapped, fd, off);

	if (err)
		return err;
	fill(&mapped);
	fgv_window_unmap(&mapped);
	return 0;
}

/* Formats it, then takes from everybody the right to resize it under a mapping. */
static int format_and_seal(const struct fgv_window *window, int fd)
{
	int err;

	if (ftruncate(fd, (off_t)window->len))
		return -errno;
	err = fgv_window_format(window, fd, 0);
	if (err)
		return err;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	return 0;
}

int fgv_window_create(const struct fgv_window *window)
{
	int err = fgv_window_check(window);
	int fd;

	if (err)
		return err;
	fd = memfd_create("fairgv-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	err = format_and_seal(window, fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int fgv_window_map_at(struct fgv_window *window, int fd, uint64_t off)
{
	struct stat st;
	uint64_t size;
	void *base;

	if (fstat(fd, &st))
		return -errno;
	size = (uint64_t)st.st_size;
	if (!window->len || st.st_size < 0 || off > size || window->len > size - off)
		return -EINVAL;
	base = mmap(NULL, window->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)off);
	if (base == MAP_FAILED)
		return -errno;
	window->base = base;
	return 0;
}

void fgv_window_unmap(struct fgv_window *window)
{
	if (window->base)
		munmap(window->base, window->len);
	window->base = NULL;
}
