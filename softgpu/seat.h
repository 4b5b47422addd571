/*
 * A process's seat at the one engine of a soft device: a page that this process shares with
 * the arbiter, which decides which process has the engine, and with nobody else. One word is in it:
 *
 *	FREE  --process--> WANTS     has a kernel to run; rings the arbiter
 *	WANTS --arbiter--> BUSY      has the engine; the process is rung
 *	BUSY  --process--> IDLE      the kernel is done, and nobody else is known to wait
 *	IDLE  --process--> BUSY      the next kernel: nobody is asked, nobody is woken
 *	IDLE  --arbiter--> FREE      somebody else wants it; the process is not even woken
 *	BUSY  --arbiter--> ASKED     somebody else wants it
 *	ASKED --process--> FREE      the kernel is done; rings the arbiter
 *	BUSY, ASKED --arbiter--> STOP   the process is held: its kernel stops where it is
 *	STOP  --process--> WANTS     the kernel stands still, and goes on with the next BUSY
 *	STOP  --process--> FREE      the kernel was done by then; both ring the arbiter
 *	WANTS --process--> FREE      the process ends
 *
 * So a process that is alone pays two compare-and-swaps for a kernel. Whose turn it is the
 * arbiter keeps to itself: what a process writes here is a wish, or gives back what it had.
 */
#ifndef FGV_SOFTGPU_SEAT_H
#define FGV_SOFTGPU_SEAT_H

#include <stdbool.h>
#include <stdint.h>

enum softgpu_seat_state {
	SOFTGPU_SEAT_FREE,
	SOFTGPU_SEAT_WANTS,
	SOFTGPU_SEAT_BUSY,
	SOFTGPU_SEAT_ASKED,
	SOFTGPU_SEAT_STOP,
	SOFTGPU_SEAT_IDLE
};

struct softgpu_seat {
	_Alignas(64) uint32_t state; /* enum softgpu_seat_state */
	uint32_t number; /* of its page in the ledger of memory (ledger.h), or behind all pages: it
			    has none; read once, at the beginning */
};

/* A process's way to the engine. The eventfds do not block. */
struct softgpu_engine {
	struct softgpu_seat *seat; /* NULL: the engine is this process's alone */
	int bell_fd;		   /* wakes this process */
	int arbiter_fd;		   /* wakes the arbiter */
};

/* Acquire: pairs with softgpu_seat_move() of the other side. */
static inline uint32_t softgpu_seat_load(const struct softgpu_seat *seat)
{
	return __atomic_load_n(&seat->state, __ATOMIC_ACQUIRE);
}

/* False: it was not in state @from. */
static inline bool softgpu_seat_move(struct softgpu_seat *seat, enum softgpu_seat_state from,
				     enum softgpu_seat_state to)
{
	uint32_t seen = from;

	return __atomic_compare_exchange_n(&seat->state, &seen, (uint32_t)to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#endif
