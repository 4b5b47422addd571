/*
 * What a process is given to run in: its processors, and numbers in its environment.
 * No state; any thread may call, while nobody changes the environment.
 */
#ifndef FGV_COMMON_ENV_H
#define FGV_COMMON_ENV_H

#include <stdint.h>

/*
 * How many processors the calling thread may run on, at least 1. By sched_getaffinity(); a CPU
 * quota of a control group is not seen.
 */
unsigned fgv_env_processors(void);

/* The decimal number in @variable; @otherwise where there is none from 0 to @max. */
uint64_t fgv_env_number(const char *variable, uint64_t max, uint64_t otherwise);

#endif
