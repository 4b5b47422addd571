/*
 * For the tests of the daemon's scheduler of a device: one of them, and vGPU processes that
 * are played here and speak grant.h. All checks are Check's assertions. None asserts a time;
 * limits of time are for what hangs.
 */
#ifndef FGV_TEST_GPUSCHED_FAKE_H
#define FGV_TEST_GPUSCHED_FAKE_H

#include <check.h>
#include <unistd.h>
#include "backend/sched/gpusched_priv.h"
#include "common/util.h"

#define SLICE_NS       (200 * FGV_NS_PER_US)
#define STARVE_NS      (60 * FGV_NS_PER_SEC)
#define HANG_LIMIT_SEC 60

/* Waits until @condition, which is asked again and again. */
#define AWAIT(condition)                                                                           \
	do {                                                                                       \
		uint64_t until_ns_ = fgv_now_ns() + HANG_LIMIT_SEC * FGV_NS_PER_SEC;               \
		while (!(condition)) {                                                             \
			ck_assert_msg(fgv_now_ns() < until_ns_, "in vain: %s", #condition);        \
			usleep(50);                                                                \
		}                                                                                  \
	} while (0)

/* The scheduler, with a vGPU of weight 1 for each of four VMs. */
extern struct fgv_gpusched *gpusched;
extern struct fgv_gpusched_vgpu *vgpus[4];

void gpusched_start_with(const struct fgv_policy *policy, uint64_t hang_ns);
/* Under `fair`, nobody is killed for hanging. */
void gpusched_start(void);
/*
 * The same, with slices that no test lives to see the end of: also one that begins late does not
 * end at once, so that what is decided for its end can be foreseen.
 */
void gpusched_start_slow(void);
void gpusched_stop(void);
/* Waits until the scheduler has done all of the turn that it may be in. */
void gpusched_finish_turn(void);
/* GPU time that @vgpu has been charged. */
uint64_t gpusched_used_ns(struct fgv_gpusched_vgpu *vgpu);

struct fake {
	struct fgv_gpusched_session *session;
	struct fgv_grant *grant;
	int bell_fd, sched_bell_fd;
	pid_t pid; /* a child that does nothing but be there */
	uint64_t used_ns;
};

/* A process that does nothing, and ends with the test's. */
pid_t fake_child(void);
/* Like the daemon: what the session keeps is used through copies of its own. */
void fake_attach(struct fake *fake, struct fgv_gpusched_vgpu *vgpu);
/* Ends the process, however it was left. Returns the signal that killed it before, or 0. */
int fake_detach(struct fake *fake, struct fgv_gpusched_stats *last);
bool fake_is_dead(const struct fake *fake);

enum fgv_grant_state fake_state(const struct fake *fake);
uint64_t fake_limit(const struct fake *fake);
bool fake_is_next(const struct fake *fake);
void fake_ring(const struct fake *fake);
void fake_want(struct fake *fake, bool wants);
void fake_report(struct fake *fake, uint64_t used_ns);
/* From BUSY or IDLE; false: the daemon was faster. */
bool fake_move(struct fake *fake, enum fgv_grant_state state);
void fake_give_back(struct fake *fake, bool more);

#define AWAIT_STATE(fake, state) AWAIT(fake_state(fake) == FGV_GRANT_##state)

/* Two that are there, the first holding without limit, as it came when there was nobody. */
extern struct fake one, two;
void fake_one_alone(void);
/* Nobody killed them. */
void fake_both_leave(void);

#endif
