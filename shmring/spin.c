/*
 * The policy of spinning. One instance, set by fgv_spin_init() and read by all
 * threads; its fields are independent of each other, so relaxed atomics do.
 */
#define _GNU_SOURCE
#include "shmring/spin.h"

#include <sched.h>

#include "common/env.h"
#include "common/util.h"
#include "shmring/barrier.h"

#define SPIN_US_MAX 100000

/*
 * A turn is one pause instruction, some 10 to 50 ns. The clock costs about as much
 * as a turn, the system call to yield about ten times that.
 */
#define TURNS_PER_CLOCK 32

/* A wake-up then costs no more than a few percent of the wait. */
#define LONGER 100

static struct {
	uint64_t time_ns;
	uint32_t turns_per_yield; /* 0: never yields */
} policy = {20 * FGV_NS_PER_US, TURNS_PER_CLOCK};

void fgv_spin_init(void)
{
	unsigned count = fgv_env_processors();
	uint64_t us = 50;
	uint32_t turns_per_yield = 0;

	/*
	 * A round trip has two spinners, and a soft GPU or the program's other threads
	 * want to run too: below four processors, let them.
	 */
	if (count < 4) {
		us = 20;
		turns_per_yield = count > 1 ? 16 : 1;
	}
	us = fgv_env_number("FAIRGV_SPIN_US", SPIN_US_MAX, us);
	__atomic_store_n(&policy.time_ns, us * FGV_NS_PER_US, __ATOMIC_RELAXED);
	__atomic_store_n(&policy.turns_per_yield, turns_per_yield, __ATOMIC_RELAXED);
}

uint64_t fgv_spin_time_ns(void)
{
	return __atomic_load_n(&policy.time_ns, __ATOMIC_RELAXED);
}

bool fgv_spin_is_cheap(void)
{
	return !__atomic_load_n(&policy.turns_per_yield, __ATOMIC_RELAXED);
}

bool fgv_spin_again(struct fgv_spin *spin)
{
	uint64_t time_ns = fgv_spin_time_ns();
	uint32_t per_yield = __atomic_load_n(&policy.turns_per_yield, __ATOMIC_RELAXED);
	uint32_t turn = spin->turns++;
	bool yields = per_yield && turn % per_yield == per_yield - 1;

	if (!time_ns)
		return false;
	if (yields)
		sched_yield();
	else
		fgv_relax();
	if (!spin->deadline_ns) {
		spin->deadline_ns = fgv_now_ns() + time_ns;
		return true;
	}
	/* A thread that yielded may have been away for long. */
	if (!yields && turn % TURNS_PER_CLOCK)
		return true;
	return fgv_now_ns() < spin->deadline_ns;
}

uint64_t fgv_spin_since_ns(const struct fgv_spin *spin)
{
	return spin->deadline_ns ? spin->deadline_ns - fgv_spin_time_ns() : 0;
}

bool fgv_spin_longer(const struct fgv_spin *spin)
{
	uint64_t time_ns = fgv_spin_time_ns();

	/* fgv_spin_again() has paused, and looked at the clock once in many turns. */
	return spin->deadline_ns && fgv_spin_is_cheap() &&
	       fgv_now_ns() < spin->deadline_ns + LONGER * time_ns;
}
