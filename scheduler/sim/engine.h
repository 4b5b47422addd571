/*
 * The virtual clock: timers in a heap, fired in order of time and, at the same time, in the
 * order in which they were set.
 */
#ifndef FGV_SCHEDULER_SIM_ENGINE_H
#define FGV_SCHEDULER_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_timer {
	uint64_t at_ns;
	uint64_t order;
	void (*fire)(void *arg);
	void *arg;
	size_t place; /* in the heap, from 1; 0: not set */
};

struct engine {
	uint64_t now_ns;
	uint64_t orders;
	size_t count;
	struct engine_timer **heap;
	uint64_t fired;
	uint64_t seed;
};

/* Room for @timers that are set at the same time. -ENOMEM. */
int engine_init(struct engine *engine, size_t timers, uint64_t seed);
void engine_fini(struct engine *engine);

static inline void engine_timer_init(struct engine_timer *timer, void (*fire)(void *), void *arg)
{
	*timer = (struct engine_timer){.fire = fire, .arg = arg};
}

/* Sets @timer, anew if it is set already. */
void engine_set(struct engine *engine, struct engine_timer *timer, uint64_t at_ns);
void engine_cancel(struct engine *engine, struct engine_timer *timer);

/* Fires all that is due up to @until_ns, which is then the time. */
void engine_run(struct engine *engine, uint64_t until_ns);

/* A random number from 0 to 1. */
double engine_draw(struct engine *engine);

#endif
