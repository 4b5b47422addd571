/*
 * For the tests of coscheduling: a guest, which is a child with a few threads that do what they
 * are told, and looks at what the kernel has of a thread. Root favours by nice; others, as far
 * as the kernel has the means, by slices, or not at all. All checks are Check's assertions.
 */
#ifndef FGV_TEST_COSCHED_CHILD_H
#define FGV_TEST_COSCHED_CHILD_H

#include "tests/unit/backend/sched/gpusched_fake.h"

#define COSCHED_THREADS 3

/* What the child's last thread is to do. */
enum order { ORDER_NONE, ORDER_FORK, ORDER_EXEC, ORDER_END_THREAD, ORDER_SPIN };

/* Shared with the child. */
struct cosched_child {
	pid_t threads[COSCHED_THREADS];
	enum order order;
	pid_t forked;
};

/* As sched_getattr() has it. */
struct cosched_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

extern struct cosched_child *child;
extern pid_t child_pid;
extern struct fgv_cosched cosched;
extern struct fgv_cosched_guest *guest; /* of the child, or NULL */

void cosched_child_start(void);
void cosched_child_stop(void);
void cosched_child_order(enum order order);

struct cosched_attributes cosched_attributes(pid_t thread);
/* This process's, and with it the child's. */
int cosched_usual_nice(void);
/* As this process's main thread. */
bool cosched_is_usual(pid_t thread);
bool cosched_is_favoured(pid_t thread);
/* Whether the child may be given a better nice value; or anything be done for it. */
bool cosched_may_nice(void);
bool cosched_may_favour(void);

#endif
