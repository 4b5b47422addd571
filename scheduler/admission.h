/*
 * Whether bounds on latency can be kept together: those of VMs that are each served earliest
 * deadline first within their requests, and may use what their request gives in the time of
 * their bound at once. In any time of the length of a bound, all whose bounds are no longer
 * may then want their requests' part of it; beside that, one other may have the GPU for so
 * long as it takes to get it back.
 */
#ifndef FGV_SCHEDULER_ADMISSION_H
#define FGV_SCHEDULER_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/params.h"

/* Sorts @shares by their bounds. Those without a bound count for nothing. */
bool fgv_admission_keeps(struct fgv_sched_shares *shares, size_t count, uint64_t blocking_ns);

#endif
