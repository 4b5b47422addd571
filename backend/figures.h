/*
 * What the host measures of its GPUs and shows to guests (nvidia-smi in a VM): temperature, power,
 * clocks and the link. It is asked for when somebody looks, and at most once a second for each GPU,
 * however many look.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_FIGURES_H
#define FGV_BACKEND_FIGURES_H

#include <stdbool.h>
#include <stdint.h>
#include "api/wire.h"
#include "backend/config/config.h"

struct fgv_nvml;

#define FGV_FIGURES_NS 1000000000u /* how old they may be */

struct fgv_figures {
	struct fgv_nvml *nvml; /* NULL: nothing is known of any GPU */
	struct {
		uint64_t read_ns; /* 0: never */
		uint32_t values[FGV_FIGURES];
		bool has_nvlinks; /* is known: */
		uint32_t nvlinks;
	} device[FGV_GPU_DEVICES_MAX];
};

/* @nvml lives longer than @figures, and may be NULL. */
void fgv_figures_init(struct fgv_figures *figures, struct fgv_nvml *nvml);

/*
 * The figures of device @index, which is at @place on the PCI bus; an empty place is a soft GPU's,
 * of which nothing is measured. FGV_FIGURE_UNKNOWN stands for what is not known. @now_ns:
 * fgv_now_ns(). The figures stay what they are until the next call.
 */
const uint32_t *fgv_figures_read(struct fgv_figures *figures, unsigned index, const char *place,
				 uint64_t now_ns);

/* How many NVLinks the same device has to a switch. Asked for once. */
uint32_t fgv_figures_nvlinks(struct fgv_figures *figures, unsigned index, const char *place);

#endif
