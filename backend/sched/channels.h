/*
 * The channels of a CUDA process, as NVIDIA's resource manager numbers them: by what the daemon
 * holds its kernels (hold.h). The vGPU process learns them while the driver makes them
 * (vgpu/channels.h), and says them to the daemon before it serves anybody.
 *
 * Numbers mean something only together with the open file that made them: with another one, or in
 * another process's, the resource manager knows none of them. So a number that a process has made
 * up leads to its own objects or to nothing.
 */
#ifndef FGV_BACKEND_SCHED_CHANNELS_H
#define FGV_BACKEND_SCHED_CHANNELS_H

#include <stdint.h>

#define FGV_CHANNELS_MAX       64 /* that one control takes */
#define FGV_CHANNEL_GROUPS_MAX 8

struct fgv_channel_group {
	uint32_t client;
	uint32_t group;
};

struct fgv_channel {
	uint32_t client;
	uint32_t channel;
};

/* Those that compute; what copies is not held. */
struct fgv_channels {
	uint32_t client;    /* of the subdevice */
	uint32_t subdevice; /* 0: none was seen, so nothing can be held */
	uint32_t group_count;
	uint32_t channel_count;
	uint32_t is_partial; /* 1: there were more than there is room for */
	uint32_t has_file;   /* 1: their open file comes with this */
	struct fgv_channel_group groups[FGV_CHANNEL_GROUPS_MAX];
	struct fgv_channel channels[FGV_CHANNELS_MAX];
};

#endif
