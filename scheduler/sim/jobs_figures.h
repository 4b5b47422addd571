/* The MGB paper's experiment (jobs.h), each filling an empty report. */
#ifndef FGV_SCHEDULER_SIM_JOBS_FIGURES_H
#define FGV_SCHEDULER_SIM_JOBS_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/sim/report.h"

#define JOBS_DRAWS 20

/*
 * By the paper's numbers: mgb-4, mgb-5, mgb-table-2, mgb-table-3 and mgb-table-4. Means over
 * @draws of each mix; -EINVAL for any other name.
 */
bool jobs_figure_known(const char *name);
int jobs_figure_make(const char *name, uint64_t seed, uint32_t draws, struct report *report);

#endif
