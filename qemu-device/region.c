/*
 * Regions; see region.h.
 */
#define _GNU_SOURCE
#include "qemu-device/region.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/memory.h"
#include "common/util.h"
#include "shmring/park.h"

/* Windows of whole huge pages are made of such, if the host gives them to shared memory. */
#define WINDOWS_ALIGN (2ull << 20)

static uint64_t windows_off(uint32_t windows)
{
	return fgv_align_up(FGV_REGION_SLOTS_OFF + windows * sizeof(struct fgv_region_slot),
			    WINDOWS_ALIGN);
}

uint64_t fgv_region_len(uint32_t windows, uint64_t window_len)
{
	uint64_t needed = windows_off(windows) + windows * window_len;
	uint64_t len = WINDOWS_ALIGN;

	while (len < needed)
		len *= 2;
	return len;
}

static void write_head(const struct fgv_region *region)
{
	struct fgv_region_head *head = (struct fgv_region_head *)region->base;

	*head = (struct fgv_region_head){
		.magic = FGV_REGION_MAGIC,
		.version = FGV_REGION_VERSION,
		.wire_version = FGV_WIRE_VERSION,
		.windows = region->windows,
		.window_len = region->layout.len,
		.windows_off = region->windows_off,
	};
}

static void close_bells(struct fgv_region *region)
{
	for (unsigned peer = 0; peer < FGV_REGION_PEERS; peer++) {
		for (uint32_t v = 0; v < fgv_region_vectors(region); v++) {
			if (region->bells[peer][v] >= 0)
				close(region->bells[peer][v]);
		}
	}
}

static int open_bells(struct fgv_region *region)
{
	int ret = 0;

	for (unsigned peer = 0; peer < FGV_REGION_PEERS; peer++) {
		for (uint32_t v = 0; v < fgv_region_vectors(region); v++) {
			region->bells[peer][v] = ret ? -1 : fgv_doorbell_create();
			if (!ret && region->bells[peer][v] < 0)
				ret = region->bells[peer][v];
		}
	}
	if (ret)
		close_bells(region);
	return ret;
}

int fgv_region_init(struct fgv_region *region, uint32_t windows, const struct fgv_window *layout)
{
	void *base;
	int ret;

	*region = (struct fgv_region){
		.len = fgv_region_len(windows, layout->len),
		.windows = windows,
		.windows_off = windows_off(windows),
		.layout = *layout,
	};
	ret = open_bells(region);
	if (ret)
		return ret;
	region->fd =
		fgv_memory_create_large("fairgv-region", region->len, region->windows_off, &base);
	if (region->fd < 0) {
		close_bells(region);
		return region->fd;
	}
	region->base = base;
	write_head(region);
	return 0;
}

void fgv_region_fini(struct fgv_region *region)
{
	munmap(region->base, region->windows_off);
	close(region->fd);
	close_bells(region);
}

int fgv_region_format(const struct fgv_region *region, uint32_t w)
{
	return fgv_window_format(&region->layout, region->fd, fgv_region_window_off(region, w));
}

int fgv_region_clean(const struct fgv_region *region, uint32_t w)
{
	if (fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)fgv_region_window_off(region, w), (off_t)region->layout.len))
		return -errno;
	return 0;
}
