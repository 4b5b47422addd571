/*
 * Formatting a ring; everything else of it is inline. Called by whoever makes the
 * window, before the other side has it.
 */
#include "shmring/ring.h"

#include <string.h>

void fgv_ring_format(struct fgv_slot *slots, uint32_t size, uint32_t start)
{
	memset(slots, 0, size * sizeof(*slots));
	for (uint32_t i = 0; i < size; i++) {
		uint32_t position = start + i;

		slots[position & (size - 1)].mark = position;
	}
}
