/*
 * The engines of a GPU: what can be done at once, and is granted by itself
 * (docs/design/0021-engines.md). Each has a gate (gate.h), which numbers the requests that it lets
 * through.
 */
#ifndef FGV_VGPU_ENGINE_H
#define FGV_VGPU_ENGINE_H

#include <stdint.h>

enum fgv_engine { FGV_ENGINE_COMPUTE, FGV_ENGINE_IN, FGV_ENGINE_OUT, FGV_ENGINES };

/* A place in the order of work: of each engine, the number of the last request before it. */
struct fgv_place {
	uint64_t last[FGV_ENGINES];
};

static inline void fgv_place_join(struct fgv_place *place, const struct fgv_place *other)
{
	for (unsigned i = 0; i < FGV_ENGINES; i++) {
		if (place->last[i] < other->last[i])
			place->last[i] = other->last[i];
	}
}

#endif
