/*
 * The region of a QEMU guest (api/region.h) as the host has it: its memory, and an eventfd
 * for each vector of both peers.
 *
 * The daemon maps the head and the slots, no window. All of the memory is QEMU's and its
 * guest's to write at any time, the host's halves of the slots included.
 *
 * Threads: one.
 */
#ifndef FGV_QEMU_DEVICE_REGION_H
#define FGV_QEMU_DEVICE_REGION_H

#include "api/region.h"
#include "shmring/barrier.h"
#include "shmring/window.h"

#define FGV_REGION_PEERS       2
#define FGV_REGION_VECTORS_MAX (1 + FGV_REGION_WINDOWS_MAX)

struct fgv_region {
	int fd;
	uint64_t len; /* a power of two, as a BAR must be */
	uint32_t windows;
	uint64_t windows_off;
	struct fgv_window layout; /* of each; mapped nowhere */
	uint8_t *base;		  /* of what lies before the windows */
	int bells[FGV_REGION_PEERS][FGV_REGION_VECTORS_MAX];
};

/* How long a region with @windows (at most FGV_REGION_WINDOWS_MAX) of @window_len bytes is. */
uint64_t fgv_region_len(uint32_t windows, uint64_t window_len);

/*
 * A new region, all of whose slots are free. @layout: of its windows. Nobody can change its
 * size. 0, or a negative errno and nothing to release.
 */
int fgv_region_init(struct fgv_region *region, uint32_t windows, const struct fgv_window *layout);
/* The memory goes when nobody else has it any more. */
void fgv_region_fini(struct fgv_region *region);

static inline uint32_t fgv_region_vectors(const struct fgv_region *region)
{
	return 1 + region->windows;
}

static inline struct fgv_region_slot *fgv_region_slot(const struct fgv_region *region, uint32_t w)
{
	return (struct fgv_region_slot *)(region->base + FGV_REGION_SLOTS_OFF) + w;
}

static inline uint64_t fgv_region_window_off(const struct fgv_region *region, uint32_t w)
{
	return region->windows_off + w * region->layout.len;
}

/* Writes the last word of @head, at region->base: its host has left. The guest is to be rung. */
static inline void fgv_region_leave(struct fgv_region_head *head)
{
	/* Pairs with the guest's load when it is rung. */
	fgv_store_release(&head->host_gone, 1);
}

/* Formats window @w for a session; 0 or a negative errno. */
int fgv_region_format(const struct fgv_region *region, uint32_t w);

/* Gives the memory of window @w back: it reads as zeros then. 0 or a negative errno. */
int fgv_region_clean(const struct fgv_region *region, uint32_t w);

#endif
