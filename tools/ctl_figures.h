/*
 * What VMs and sessions have used, read from the daemon's reports. The daemon reports totals only;
 * what belongs to an interval is the difference of two reports.
 *
 * Threads: any.
 */
#ifndef FGV_TOOLS_CTL_FIGURES_H
#define FGV_TOOLS_CTL_FIGURES_H

#include <jansson.h>
#include <stdint.h>
#include "scheduler/hist.h"

struct fgv_ctl_figures {
	uint64_t gpu_ns;
	uint64_t grants;
	uint64_t overruns;
	uint64_t overrun_ns;
	uint64_t stalls;
	uint64_t favoured;
	uint64_t requests;
	uint64_t round_trips;
	uint64_t launches;
	uint64_t memory_bytes;
	struct fgv_hist wait;
};

/*
 * Of @object, a VM or a session; since @before, the same one in an earlier report, if that is not
 * NULL. All but the use of memory, which is no sum, are differences then. -EPROTO if a figure is
 * missing.
 */
int fgv_ctl_figures_of(const json_t *object, const json_t *before, struct fgv_ctl_figures *f);

/* By how much a figure has grown. A daemon that was started anew counts from 0 again. */
uint64_t fgv_ctl_since(uint64_t later, uint64_t earlier);

/* The element of @array whose value of @key is that of @object, or NULL. */
const json_t *fgv_ctl_find_like(const json_t *array, const json_t *object, const char *key);

/* What all VMs of the GPU of @vm have used, from report @earlier, which may be NULL, to @later. */
uint64_t fgv_ctl_gpu_ns(const json_t *later, const json_t *earlier, const json_t *vm);

#endif
