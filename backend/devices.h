/*
 * The GPUs that the daemon shares: which ones key "gpu" comes to on this machine, and the
 * scheduler of each.
 *
 * NVIDIA's driver is asked in a process of its own that ends at once, so that the
 * daemon holds neither its memory nor its threads.
 */
#ifndef FGV_BACKEND_DEVICES_H
#define FGV_BACKEND_DEVICES_H

#include <stdbool.h>
#include "api/wire.h"
#include "backend/config/config.h"
#include "backend/sched/cosched.h"
#include "backend/sched/gpugangs.h"

struct fgv_arbiter;
struct fgv_gpusched;

struct fgv_device {
	bool soft;
	bool is_substitute; /* soft, since no other GPU was found */
	unsigned ordinal;
	char name[256];
	char place[32];		/* on the PCI bus, of a CUDA device */
	uint64_t context_bytes; /* that a context takes of its memory, as measured; 0: not yet */
	struct fgv_units units; /* under a policy that divides its multiprocessors */
	bool reaches_host;	/* all memory of the processes that use it */
	uint32_t peers;		/* bits, by ordinals, of the devices whose memory it can reach */
	struct fgv_device_info info;	 /* as sessions get it, but for what depends on their VM */
	char driver[80];		 /* the version of the host's driver */
	struct fgv_gpusched *sched;	 /* NULL: does not run */
	struct fgv_gpusched *copying[2]; /* FGV_COPY_ENGINES; NULL: not granted by themselves */
	struct fgv_arbiter *arbiter;	 /* of a soft one's engine; the same */
};

struct fgv_devices {
	size_t count;
	struct fgv_cosched cosched; /* while their schedulers run, as are gangs */
	struct fgv_gpugangs gangs;
	struct fgv_device list[FGV_GPU_DEVICES_MAX];
};

/*
 * Finds the devices that @config asks for. On failure a negative errno, @why says
 * what is wrong, and there is nothing to release. @choice tells, on success, which
 * kind was taken and why, for the log.
 */
int fgv_devices_init(struct fgv_devices *devices, const struct fgv_config *config, char *why,
		     size_t why_len, char *choice, size_t choice_len);
void fgv_devices_fini(struct fgv_devices *devices);

/*
 * Starts each device's scheduler, a thread, and a soft one's arbiter, another; 0 or a negative
 * errno, and then none runs.
 */
int fgv_devices_start(struct fgv_devices *devices, const struct fgv_config *config);
/* Stops them; no VM has a share any more, and no process a seat. */
void fgv_devices_stop(struct fgv_devices *devices);

/*
 * Whether the devices have the memory that VMs are given, as fgv_config_check_memory(); what is
 * given twice on purpose is a line in the log.
 */
int fgv_devices_check_memory(const struct fgv_devices *devices, const struct fgv_config *config,
			     char *why, size_t why_len);

/* Whether a policy that divides GPUs can do so as the VMs want, as fgv_config_check_units(). */
int fgv_devices_check_units(const struct fgv_devices *devices, const struct fgv_config *config,
			    char *why, size_t why_len);

/* Whether they stand in for a GPU that was not found. */
static inline bool fgv_devices_are_substitutes(const struct fgv_devices *devices)
{
	return devices->count && devices->list[0].is_substitute;
}

/* What a context takes of @device, as far as is known; nothing on a soft GPU. */
uint64_t fgv_device_context_bytes(const struct fgv_device *device);

/* Process @pid, which used @device, has ended. */
void fgv_device_forget(const struct fgv_device *device, pid_t pid);

#endif
