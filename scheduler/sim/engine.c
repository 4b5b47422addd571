/* The virtual clock, see engine.h. */
#include "scheduler/sim/engine.h"

#include <errno.h>
#include <stdlib.h>

int engine_init(struct engine *engine, size_t timers, uint64_t seed)
{
	*engine = (struct engine){.seed = seed};
	engine->heap = calloc(timers + 1, sizeof(*engine->heap)); /* places are from 1 */
	return engine->heap != NULL ? 0 : -ENOMEM;
}

void engine_fini(struct engine *engine)
{
	free(engine->heap);
}

static bool earlier(const struct engine_timer *a, const struct engine_timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void put(struct engine *engine, size_t place, struct engine_timer *timer)
{
	engine->heap[place] = timer;
	timer->place = place;
}

/* Moves @timer from @place up or down to where it belongs. */
static void settle(struct engine *engine, size_t place, struct engine_timer *timer)
{
	while (place > 1 && earlier(timer, engine->heap[place / 2])) {
		put(engine, place, engine->heap[place / 2]);
		place /= 2;
	}
	for (;;) {
		size_t child = 2 * place;

		if (child < engine->count && earlier(engine->heap[child + 1], engine->heap[child]))
			child++;
		if (child > engine->count || !earlier(engine->heap[child], timer))
			break;
		put(engine, place, engine->heap[child]);
		place = child;
	}
	put(engine, place, timer);
}

void engine_set(struct engine *engine, struct engine_timer *timer, uint64_t at_ns)
{
	timer->at_ns = at_ns > engine->now_ns ? at_ns : engine->now_ns;
	timer->order = engine->orders++;
	settle(engine, timer->place != 0 ? timer->place : ++engine->count, timer);
}

void engine_cancel(struct engine *engine, struct engine_timer *timer)
{
	size_t place = timer->place;
	struct engine_timer *last;

	if (place == 0)
		return;
	timer->place = 0;
	last = engine->heap[engine->count--];
	if (last != timer)
		settle(engine, place, last);
}

void engine_run(struct engine *engine, uint64_t until_ns)
{
	while (engine->count > 0 && engine->heap[1]->at_ns <= until_ns) {
		struct engine_timer *timer = engine->heap[1];

		engine_cancel(engine, timer);
		engine->now_ns = timer->at_ns;
		engine->fired++;
		timer->fire(timer->arg);
	}
	engine->now_ns = until_ns;
}

double engine_draw(struct engine *engine)
{
	uint64_t x = engine->seed += 0x9e3779b97f4a7c15ull; /* SplitMix64 */

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	x ^= x >> 31;
	return (double)(x >> 11) / (double)(1ull << 53);
}
