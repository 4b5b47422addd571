/*
 * How long a wait lasts at least, as those before it have lasted of late. A waiter can sleep
 * for the most of that and be awake in time. A shorter one counts at once, a longer one little
 * by little, so that a waiter for now this, now that does not sleep through the shorter.
 *
 * Threads: that of the owner.
 */
#ifndef FGV_SHMRING_USUAL_H
#define FGV_SHMRING_USUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/util.h"

/* It rises by this part of itself, and a little, so that it gets away from 0. */
#define FGV_USUAL_RISE	  8
#define FGV_USUAL_RISE_NS 1000

/* A waiter that has @overslept does not know how long it took, but that the sleep was too long. */
static inline void fgv_usual_note(uint32_t *usual_ns, uint64_t took_ns, bool overslept)
{
	uint64_t change_ns = *usual_ns / FGV_USUAL_RISE;
	uint64_t most_ns = overslept ? *usual_ns - change_ns
				     : *usual_ns + change_ns + FGV_USUAL_RISE_NS;

	*usual_ns = (uint32_t)fgv_min_u64(fgv_min_u64(took_ns, most_ns), UINT32_MAX);
}

/* How long to sleep so as to be awake @margin_ns before that; 0: not worth it. */
static inline uint64_t fgv_usual_rest_ns(uint32_t usual_ns, uint64_t margin_ns)
{
	return usual_ns > 2 * margin_ns ? usual_ns - margin_ns : 0;
}

#endif
