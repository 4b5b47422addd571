/* Experiments on how a GPU is shared (share.h), each filling an empty report. */
#ifndef FGV_SCHEDULER_SIM_SHARE_FIGURES_H
#define FGV_SCHEDULER_SIM_SHARE_FIGURES_H

#include "scheduler/sim/report.h"
#include "scheduler/sim/share.h"

/*
 * i: kernels of 28 us beside long ones. j: weights of 1:2:3 and kernels of three lengths.
 * k: engines. l: streams whose kernels overlap. bursts: a program that pauses beside a busy one.
 * gangs: turns on several GPUs.
 * crowd: 10 to 10,000 VMs. Each runs under all policies that pick by measured use. -EINVAL for any
 * other name.
 */
bool share_figure_known(const char *name);
int share_figure_make(const char *name, const struct share_params *params, struct report *report);

/* Those of them that have files of their own (share_bursts.c, share_gangs.c). */
int share_figure_bursts(const struct share_params *params, struct report *report);
int share_figure_gangs(const struct share_params *params, struct report *report);

#endif
