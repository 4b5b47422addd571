/*
 * Gangs (scheduler/gangs.h) among the schedulers of a host's GPUs, which have a thread each: the
 * lock under which they agree, and their bells, so that one that has something to decide because of
 * another one wakes up.
 *
 * Threads: any. Lock order: a scheduler's own lock first, then this one, under which nothing is
 * waited for.
 */
#ifndef FGV_BACKEND_SCHED_GPUGANGS_H
#define FGV_BACKEND_SCHED_GPUGANGS_H

#include <pthread.h>
#include "backend/sched/bells.h"
#include "scheduler/gangs.h"

struct fgv_gpugangs {
	pthread_mutex_t lock;
	struct fgv_gangs *gangs;
	const struct fgv_bells *bells[FGV_GANGS_GPUS]; /* of those that have joined; or NULL */
};

/* -ENOMEM. */
int fgv_gpugangs_init(struct fgv_gpugangs *gangs);
/* All schedulers have left, and no gang is there any more. */
void fgv_gpugangs_fini(struct fgv_gpugangs *gangs);

/* The scheduler of GPU number @gpu is woken by @bells from now on; and no more. */
void fgv_gpugangs_join(struct fgv_gpugangs *gangs, unsigned gpu, const struct fgv_bells *bells);
void fgv_gpugangs_leave(struct fgv_gpugangs *gangs, unsigned gpu);

/* Wakes the schedulers of @gpus, bits by their numbers. */
void fgv_gpugangs_knock(struct fgv_gpugangs *gangs, uint32_t gpus);

#endif
