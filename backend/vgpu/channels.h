/*
 * Learns by what this process's kernels can be held: the channels that NVIDIA's driver makes, with
 * the numbers of the resource manager (backend/sched/channels.h). This program has a function ioctl() of
 * its own, which the driver's libraries call; it passes everything on, and looks at what was made.
 *
 * Threads: any.
 */
#ifndef FGV_VGPU_CHANNELS_H
#define FGV_VGPU_CHANNELS_H

#include "backend/sched/channels.h"

/*
 * What has been learnt so far. Returns the open file that made them, which stays the driver's; -1:
 * there is none, and nothing can be held.
 */
int fgv_channels_learnt(struct fgv_channels *channels);

/* ioctl(@fd, @request, @data) has returned 0. */
void fgv_channels_look(int fd, unsigned long request, const void *data);

#endif
