/*
 * NVIDIA's MPS, for context = "mps": the daemon runs an MPS control daemon of its own, in
 * folders of its own, and the vGPU processes that start after it are its clients. With
 * context = "isolated" there is nothing to run, and nothing here does anything.
 *
 * MPS is kept by a process between it and the daemon (keeper.h), which starts it again
 * when it dies, and takes it down when the daemon ends, however that ends.
 *
 * Threads: the daemon's main one, which alone may look at the environment: it is changed here.
 */
#ifndef FGV_BACKEND_MPS_MPS_H
#define FGV_BACKEND_MPS_MPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "backend/devices.h"
#include "backend/loop.h"

/* All zero: not started. */
struct fgv_mps {
	struct fgv_watch watch; /* the channel to the keeper; first, so that its address is ours */
	int loop;
	pid_t keeper;
	bool watched;
	bool ready; /* a session may begin; always, where there is no MPS to run */
};

/*
 * From now on neither this process nor what it starts meets an MPS server that somebody
 * else runs on this machine. To be called before the driver is asked for anything.
 */
void fgv_mps_hide(void);

/*
 * Whether @devices can have the context that @config asks for, as far as that can be known
 * without starting MPS. @choice is fgv_devices_init()'s. A negative errno and @why where not.
 */
int fgv_mps_check(const struct fgv_config *config, const struct fgv_devices *devices,
		  const char *choice, char *why, size_t why_len);

/*
 * Starts MPS on @devices and waits until it is ready: @ready_ms for that, and as long
 * again for an MPS that is being taken down at the same @socket. Its folder is @socket with
 * ".mps" behind it. On success the environment leads to it, and the ordinals of @devices
 * are those that its clients see. On failure a negative errno, @why, and nothing runs.
 */
int fgv_mps_start(struct fgv_mps *mps, const struct fgv_config *config, int loop,
		  const char *socket, struct fgv_devices *devices, unsigned ready_ms, char *why,
		  size_t why_len);

/*
 * What starts from now on has as much memory of each device as the largest VM there; whether that is
 * another limit than before. False without MPS.
 */
bool fgv_mps_limit_clients(const struct fgv_config *config, const struct fgv_devices *devices);

/* Takes it down and removes its folder; there are no clients any more. Takes 10 s at most. */
void fgv_mps_stop(struct fgv_mps *mps);

#endif
