/*
 * Credit scheduling as in Xen. Time on the GPU is paid with credit: at each tick, a third
 * of a slice, whoever holds the GPU pays for the whole tick. Every three ticks the period's
 * time is handed out as new credit among the active vGPUs by weight. A vGPU with credit left
 * is UNDER, one without OVER; one that wakes and is UNDER gets a BOOST until it pays. The
 * next is the first of the best class, in turns within a class.
 *
 * Unspent credit is kept up to one period's; a vGPU above that keeps half of it and gets no
 * more until it has paid again. A debt is forgotten beyond one period's. These two, paying
 * by the tick, and looking at classes instead of credit are why the scheme is fair only
 * where slices are used up exactly; it is like that in order to be compared with.
 *
 * Differences from Xen: credit is counted in nanoseconds; the boost reorders the queue but
 * does not cut the slice in progress; one GPU, so no balancing.
 */
#include "scheduler/credit.h"

#include <stddef.h>

#include <bsd/sys/queue.h>

#include "common/util.h"

#define TICKS 3 /* to an accounting period, which is a slice */

enum credit_class { CLASS_BOOST, CLASS_UNDER, CLASS_OVER, CLASS_COUNT };

struct credit_vgpu {
	TAILQ_ENTRY(credit_vgpu) turn; /* in its class, while active */
	TAILQ_ENTRY(credit_vgpu) all;
	struct fgv_policy_vgpu *vgpu;
	int64_t credit_ns;
	uint32_t class;
	bool active;
	bool parked; /* has saved enough */
};

TAILQ_HEAD(credit_queue, credit_vgpu);

struct credit_state {
	struct credit_queue turns[CLASS_COUNT];
	struct credit_queue all;
	struct credit_vgpu *target; /* coscheduled: picked next */
	uint64_t next_ns;	    /* tick */
	uint64_t ticks;
};

_Static_assert(sizeof(struct credit_vgpu) <= sizeof(((struct fgv_policy_vgpu *)0)->own), "room");
_Static_assert(sizeof(struct credit_state) <= sizeof(((struct fgv_policy_gpu *)0)->state), "room");

static struct credit_state *state_of(struct fgv_policy_gpu *gpu)
{
	return (struct credit_state *)gpu->state;
}

static struct credit_vgpu *credit_of(struct fgv_policy_vgpu *vgpu)
{
	return (struct credit_vgpu *)vgpu->own;
}

static void set_class(struct credit_state *state, struct credit_vgpu *cv, uint32_t class)
{
	if (cv->class == class)
		return;
	if (cv->active) {
		TAILQ_REMOVE(&state->turns[cv->class], cv, turn);
		TAILQ_INSERT_TAIL(&state->turns[class], cv, turn);
	}
	cv->class = class;
}

void fgv_credit_init(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct credit_state *state = state_of(gpu);

	for (int i = 0; i < CLASS_COUNT; i++)
		TAILQ_INIT(&state->turns[i]);
	TAILQ_INIT(&state->all);
	state->next_ns = now_ns;
}

int fgv_credit_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct credit_vgpu *cv = credit_of(vgpu);

	(void)now_ns;
	cv->vgpu = vgpu;
	cv->class = CLASS_UNDER;
	TAILQ_INSERT_TAIL(&state_of(gpu)->all, cv, all);
	return 0;
}

void fgv_credit_detach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	TAILQ_REMOVE(&state_of(gpu)->all, credit_of(vgpu), all);
}

void fgv_credit_wake(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct credit_state *state = state_of(gpu);
	struct credit_vgpu *cv = credit_of(vgpu);

	(void)now_ns;
	if (cv->class == CLASS_UNDER)
		cv->class = CLASS_BOOST;
	cv->active = true;
	TAILQ_INSERT_TAIL(&state->turns[cv->class], cv, turn);
}

void fgv_credit_sleep(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct credit_state *state = state_of(gpu);
	struct credit_vgpu *cv = credit_of(vgpu);

	(void)now_ns;
	TAILQ_REMOVE(&state->turns[cv->class], cv, turn);
	cv->active = false;
	if (cv->class == CLASS_BOOST)
		cv->class = CLASS_UNDER;
	if (state->target == cv)
		state->target = NULL;
}

/* The first that waits, at its place behind @except; at most as many misses as grants. */
static struct fgv_policy_vgpu *first_waiting(struct credit_state *state,
					     const struct credit_vgpu *except)
{
	struct credit_vgpu *cv;

	for (int class = 0; class < CLASS_COUNT; class ++)
		TAILQ_FOREACH(cv, &state->turns[class], turn)
			if (cv != except && cv->vgpu->waiting > 0)
				return cv->vgpu;
	return NULL;
}

struct fgv_policy_vgpu *fgv_credit_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct credit_state *state = state_of(gpu);
	struct credit_vgpu *target = state->target;

	(void)now_ns;
	state->target = NULL;
	if (target != NULL && target->vgpu->waiting > 0)
		return target->vgpu;
	return first_waiting(state, NULL);
}

struct fgv_policy_vgpu *fgv_credit_next(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
					uint64_t used_ns, uint64_t now_ns)
{
	struct fgv_policy_vgpu *other = first_waiting(state_of(gpu), credit_of(holder));
	const struct credit_vgpu *target = state_of(gpu)->target;

	(void)used_ns;
	(void)now_ns;
	if (target != NULL && target->vgpu->waiting > 0)
		return target->vgpu;
	if (other == NULL)
		return holder;
	/* It goes to the tail of its class, so only a better class lets it go on. */
	return credit_of(holder)->class < credit_of(other)->class ? holder : other;
}

/* To the tail of its class, however much of its slice it has used. */
void fgv_credit_put(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct credit_state *state = state_of(gpu);
	struct credit_vgpu *cv = credit_of(vgpu);

	(void)now_ns;
	TAILQ_REMOVE(&state->turns[cv->class], cv, turn);
	TAILQ_INSERT_TAIL(&state->turns[cv->class], cv, turn);
}

static void account(struct credit_state *state, struct credit_vgpu *cv, int64_t period_ns)
{
	if (cv->credit_ns < 0) {
		set_class(state, cv, CLASS_OVER);
		if (cv->credit_ns < -period_ns)
			cv->credit_ns = -period_ns;
		return;
	}
	if (cv->class == CLASS_OVER)
		set_class(state, cv, CLASS_UNDER);
	if (cv->credit_ns > period_ns) {
		cv->credit_ns /= 2;
		cv->parked = true;
	}
}

static void pay(struct credit_state *state, int64_t tick_ns)
{
	struct credit_vgpu *cv;

	TAILQ_FOREACH(cv, &state->all, all) {
		if (cv->vgpu->holding == 0)
			continue;
		cv->credit_ns -= tick_ns;
		cv->parked = false;
		if (cv->class == CLASS_BOOST)
			set_class(state, cv, CLASS_UNDER);
	}
}

static void hand_out(struct credit_state *state, uint64_t period_ns)
{
	uint64_t weights = 0;
	struct credit_vgpu *cv;

	TAILQ_FOREACH(cv, &state->all, all)
		if (cv->active && !cv->parked)
			weights += cv->vgpu->weight;
	TAILQ_FOREACH(cv, &state->all, all) {
		if (cv->active && !cv->parked)
			cv->credit_ns += (int64_t)(period_ns * cv->vgpu->weight / weights);
		account(state, cv, (int64_t)period_ns);
	}
}

static bool anybody_active(struct credit_state *state)
{
	for (int class = 0; class < CLASS_COUNT; class ++)
		if (!TAILQ_EMPTY(&state->turns[class]))
			return true;
	return false;
}

uint64_t fgv_credit_tick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct credit_state *state = state_of(gpu);
	uint64_t tick_ns = fgv_max_u64(gpu->params->slice_ns / TICKS, 1);

	if (!anybody_active(state))
		return FGV_POLICY_NO_TICK;
	if (now_ns < state->next_ns)
		return state->next_ns;
	pay(state, (int64_t)tick_ns);
	if (++state->ticks % TICKS == 0)
		hand_out(state, TICKS * tick_ns);
	/* A tick that comes late is not made up for. */
	state->next_ns += tick_ns;
	if (state->next_ns <= now_ns)
		state->next_ns = now_ns + tick_ns;
	return state->next_ns;
}

bool fgv_credit_coschedule(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	struct credit_state *state = state_of(gpu);
	struct credit_vgpu *mine = credit_of(vgpu), *cv;

	if (vgpu->waiting == 0)
		return false;
	TAILQ_FOREACH(cv, &state->all, all)
		if (cv != mine && cv->active && cv->credit_ns > mine->credit_ns)
			return false;
	state->target = mine;
	return true;
}
