/*
 * How much of something may be taken. A budget may be a part of another, and then all that is
 * taken of it is taken of that, too.
 *
 * Threads: any may take and give back.
 */
#ifndef FGV_COMMON_BUDGET_H
#define FGV_COMMON_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fgv_budget {
	uint64_t used;
	uint64_t max;
	struct fgv_budget *whole; /* NULL: it is none's part */
};

static inline void fgv_budget_give(struct fgv_budget *budget, uint64_t amount)
{
	for (; budget; budget = budget->whole)
		__atomic_sub_fetch(&budget->used, amount, __ATOMIC_RELAXED);
}

/* False: there is not so much left, and nothing was taken. NULL: without a bound. */
static inline bool fgv_budget_take(struct fgv_budget *budget, uint64_t amount)
{
	for (struct fgv_budget *b = budget; b; b = b->whole) {
		uint64_t used = __atomic_add_fetch(&b->used, amount, __ATOMIC_RELAXED);

		if (used <= b->max && used >= amount)
			continue;
		for (struct fgv_budget *back = budget;; back = back->whole) {
			__atomic_sub_fetch(&back->used, amount, __ATOMIC_RELAXED);
			if (back == b)
				return false;
		}
	}
	return true;
}

/* Gives back all that was taken. */
static inline void fgv_budget_close(struct fgv_budget *budget)
{
	fgv_budget_give(budget, budget->used);
}

#endif
