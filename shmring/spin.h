/*
 * How long to look before sleeping (hybrid spinning, section 3.2.2 of the paper).
 * Spinning helps while there is a processor to spare; with as many spinners as
 * processors it only keeps the one from running that is waited for, so then the
 * spinner yields, and sleeps sooner.
 *
 *	struct fgv_spin spin = fgv_spin_start();
 *	while (!ready()) {
 *		if (!fgv_spin_again(&spin))
 *			sleep on the doorbell, then fgv_spin_start() again
 *	}
 *
 * Threads: a struct fgv_spin belongs to one; the policy is set once by
 * fgv_spin_init(), which may be called by any number of threads.
 */
#ifndef FGV_SHMRING_SPIN_H
#define FGV_SHMRING_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct fgv_spin {
	uint32_t turns;
	uint64_t deadline_ns; /* 0: not asked for the time yet */
};

/*
 * Reads the processors that this process may use and FAIRGV_SPIN_US (0 to 100000,
 * the time to spin; anything else is ignored). Safe to call again.
 */
void fgv_spin_init(void);

static inline struct fgv_spin fgv_spin_start(void)
{
	return (struct fgv_spin){0, 0};
}

/* The time to spin. */
uint64_t fgv_spin_time_ns(void);

/* Whether there are processors to spare: a thread that spins keeps no other from running. */
bool fgv_spin_is_cheap(void);

/* Pauses for a moment; false once the time to spin is over. */
bool fgv_spin_again(struct fgv_spin *spin);

/* When it began, 0 if that was only a moment ago: the clock is not looked at for moments. */
uint64_t fgv_spin_since_ns(const struct fgv_spin *spin);

/*
 * After fgv_spin_again() has said false: whether to go on with it, for up to a hundred times
 * as long where there are processors to spare. For a thread that knows that what it waits for is
 * under way:
 *
 *	while (fgv_spin_again(&spin) || (under_way() && fgv_spin_longer(&spin)))
 */
bool fgv_spin_longer(const struct fgv_spin *spin);

#endif
