/*
 * A second opinion on memory. The quota is kept by each vGPU process for itself; here the daemon
 * compares what the driver says that a process has (nvml.h) with what it was charged, and ends
 * a session that has far more, twice in a row. So what was overlooked in the charging, or a
 * process that its guest has taken over, gets at most the slack, and not the others' memory.
 *
 * What an account says is believed up to the VM's quota; and all sessions of a VM together have no
 * more than the quota and their contexts, whatever their accounts say. Memory that sessions share
 * the driver may count for each of them, while the VM is charged for it once: each may have as
 * much more, and all together as much as is counted several times.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_MEMWATCH_H
#define FGV_BACKEND_MEMWATCH_H

#include <stdbool.h>
#include "backend/config/config.h"
#include "backend/devices.h"
#include "backend/nvml.h"
#include "backend/session.h"
#include "backend/vms.h"

/*
 * What a process may have beyond its charge and its context: memory that it has freed and the
 * driver not yet (256 MiB at most), and what the driver keeps for itself.
 */
#define FGV_MEMWATCH_SLACK (512ull * 1024 * 1024)

/* Processes on one device: of all VMs, those kept ready, and others'. */
#define FGV_MEMWATCH_USES 4096

/* Sessions that are remembered from one look to the next. */
#define FGV_MEMWATCH_SUSPECTS 256

/* One session as it is judged. */
struct fgv_memwatch_claim {
	uint32_t number;
	uint64_t charged_bytes; /* as its account says */
	uint64_t used_bytes;	/* as the driver says; 0: it does not know the process */
	uint64_t shared_bytes;	/* that it shares with others, and is not charged for */
	bool suspect;		/* it was over at the last look */
	bool over;		/* out: it is */
};

/*
 * Marks those of a VM's sessions that have more than they may, by themselves or, of all, the one
 * that has most beyond its charge where together they do. @context_bytes: of one of them;
 * @shared_bytes: that the VM is charged for what they share.
 */
void fgv_memwatch_judge(struct fgv_memwatch_claim *claims, size_t count, uint64_t quota_bytes,
			uint64_t context_bytes, uint64_t shared_bytes);

struct fgv_memwatch {
	const struct fgv_config *config;
	struct fgv_devices *devices;
	struct fgv_sessions *sessions;
	const struct fgv_vms *vms;
	struct fgv_nvml *nvml; /* NULL: there is none, and nothing is watched */
	uint64_t looked_ns;
	bool is_silent[FGV_GPU_DEVICES_MAX];	  /* it was said that NVML does not answer */
	uint32_t suspects[FGV_MEMWATCH_SUSPECTS]; /* sessions that were over at the last look */
	size_t suspect_count;
	struct fgv_nvml_use uses[FGV_MEMWATCH_USES]; /* of the look that goes on */
};

/*
 * Opens NVML, and says once if there is a GPU of NVIDIA's that it can't be asked about. What it
 * learns of a context's size it writes to @devices.
 */
void fgv_memwatch_init(struct fgv_memwatch *watch, const struct fgv_config *config,
		       struct fgv_devices *devices, struct fgv_sessions *sessions,
		       const struct fgv_vms *vms);
void fgv_memwatch_fini(struct fgv_memwatch *watch);

/* When fgv_memwatch_tick() is to be called again; 0: there is nothing to watch. */
uint64_t fgv_memwatch_deadline_ns(const struct fgv_memwatch *watch);
void fgv_memwatch_tick(struct fgv_memwatch *watch);

#endif
