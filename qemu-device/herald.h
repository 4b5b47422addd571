/*
 * Tells a QEMU guest of the daemon's end where the daemon can't: a process for each
 * region, the daemon's own program started again under the name FGV_HERALD. When its channel
 * to the daemon is closed it writes the last word into the region's head (api/region.h),
 * rings the guest, and ends. A daemon that leaves a region in order does that itself.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_QEMU_DEVICE_HERALD_H
#define FGV_QEMU_DEVICE_HERALD_H

#include <stdbool.h>
#include <sys/types.h>
#include "qemu-device/region.h"

#define FGV_HERALD "fairgv-herald"

struct fgv_herald {
	pid_t pid;	/* 0: there is none */
	int channel_fd; /* nothing is sent */
};

/* @vm: its name, for the log. 0 or a negative errno. */
int fgv_herald_start(struct fgv_herald *herald, const struct fgv_region *region, const char *vm);
/* Without a word to the guest. */
void fgv_herald_end(struct fgv_herald *herald);
/* After processes have ended: whether it is one of those, which it should not be. */
bool fgv_herald_has_died(struct fgv_herald *herald);

/* Whether this process was started as a herald; then main() is fgv_herald_run(). */
bool fgv_herald_asked(int argc, char **argv);
int fgv_herald_run(char **argv);

#endif
