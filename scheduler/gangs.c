/*
 * Gangs; see gangs.h. A gang's appointment is `called`: the GPUs on which a part of it is to begin
 * and has not yet. Invariants:
 *
 * - caller[gpu] is the one gang whose `called` has that GPU, or NULL.
 * - Only parts that wait are called, or hold a grant that is about to end.
 * - `holding` has the GPUs whose parts hold a grant, as far as has been told.
 */
#include "scheduler/gangs.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

struct fgv_gang {
	struct fgv_gangs *gangs;
	struct fgv_gang_part *parts[FGV_GANGS_GPUS];
	uint32_t called, holding; /* bits of GPUs */
	uint64_t begin_ns;	  /* of the last appointment */
	uint64_t end_ns;	  /* of the turn */
	bool has_begun;		  /* a part has been granted since the appointment was made */
	uint64_t ticket;	  /* it found a GPU taken: its place in the order; 0: it did not */
	struct fgv_gang_stats stats;
	LIST_ENTRY(fgv_gang) link;
};

struct fgv_gangs {
	struct fgv_gangs_lock lock;
	LIST_HEAD(, fgv_gang) gangs;
	LIST_HEAD(, fgv_gang_part) parts[FGV_GANGS_GPUS];
	struct fgv_gang *caller[FGV_GANGS_GPUS];
	uint64_t call_ns[FGV_GANGS_GPUS]; /* when it is to begin there */
	uint32_t knocks[FGV_GANGS_GPUS];  /* by which GPU, at which ones */
	uint64_t tickets;
};

static void enter(const struct fgv_gangs *gangs)
{
	if (gangs->lock.enter != NULL)
		gangs->lock.enter(gangs->lock.arg);
}

static void leave(const struct fgv_gangs *gangs)
{
	if (gangs->lock.leave != NULL)
		gangs->lock.leave(gangs->lock.arg);
}

static uint32_t bit(unsigned gpu)
{
	return UINT32_C(1) << gpu;
}

/* --- Set-up ------------------------------------------------------------------ */

int fgv_gangs_create(struct fgv_gangs **out, const struct fgv_gangs_lock *lock)
{
	struct fgv_gangs *gangs = calloc(1, sizeof(*gangs));

	if (gangs == NULL)
		return -ENOMEM;
	if (lock != NULL)
		gangs->lock = *lock;
	LIST_INIT(&gangs->gangs);
	for (unsigned i = 0; i < FGV_GANGS_GPUS; i++)
		LIST_INIT(&gangs->parts[i]);
	*out = gangs;
	return 0;
}

void fgv_gangs_destroy(struct fgv_gangs *gangs)
{
	free(gangs);
}

int fgv_gang_create(struct fgv_gang **out, struct fgv_gangs *gangs)
{
	struct fgv_gang *gang = calloc(1, sizeof(*gang));

	if (gang == NULL)
		return -ENOMEM;
	gang->gangs = gangs;
	enter(gangs);
	LIST_INSERT_HEAD(&gangs->gangs, gang, link);
	leave(gangs);
	*out = gang;
	return 0;
}

void fgv_gang_destroy(struct fgv_gang *gang)
{
	struct fgv_gangs *gangs;

	if (gang == NULL)
		return;
	gangs = gang->gangs;
	enter(gangs);
	LIST_REMOVE(gang, link);
	leave(gangs);
	free(gang);
}

void fgv_gang_stats(struct fgv_gang *gang, struct fgv_gang_stats *stats)
{
	enter(gang->gangs);
	*stats = gang->stats;
	leave(gang->gangs);
}

void fgv_gang_join(struct fgv_gang *gang, struct fgv_gang_part *part, unsigned gpu)
{
	struct fgv_gangs *gangs = gang->gangs;

	enter(gangs);
	part->gang = gang;
	part->gpu = gpu;
	part->view = (struct fgv_gang_view){.state = FGV_GANG_IDLE};
	gang->parts[gpu] = part;
	LIST_INSERT_HEAD(&gangs->parts[gpu], part, gpu_link);
	leave(gangs);
}

static void cancel_call(struct fgv_gang *gang, unsigned gpu)
{
	if (!(gang->called & bit(gpu)))
		return;
	gang->called &= ~bit(gpu);
	gang->gangs->caller[gpu] = NULL;
}

static void cancel_calls(struct fgv_gang *gang)
{
	for (unsigned i = 0; i < FGV_GANGS_GPUS; i++)
		cancel_call(gang, i);
}

void fgv_gang_leave(struct fgv_gang_part *part)
{
	struct fgv_gang *gang = part->gang;
	struct fgv_gangs *gangs = gang->gangs;

	enter(gangs);
	cancel_call(gang, part->gpu);
	gang->holding &= ~bit(part->gpu);
	gang->parts[part->gpu] = NULL;
	LIST_REMOVE(part, gpu_link);
	part->gang = NULL;
	leave(gangs);
}

struct fgv_gang_part *fgv_gangs_first(struct fgv_gangs *gangs, unsigned gpu)
{
	return LIST_FIRST(&gangs->parts[gpu]);
}

/* --- Appointments ------------------------------------------------------------ */

/* A turn that is over everywhere leaves no calls behind: what was not had in time is asked anew. */
void fgv_gang_tell(struct fgv_gang_part *part, const struct fgv_gang_view *view)
{
	struct fgv_gang *gang = part->gang;
	bool held = part->view.state == FGV_GANG_HOLDING;

	enter(gang->gangs);
	part->view = *view;
	if (view->state == FGV_GANG_HOLDING)
		gang->holding |= bit(part->gpu);
	else
		gang->holding &= ~bit(part->gpu);
	if (view->state == FGV_GANG_IDLE)
		cancel_call(gang, part->gpu);
	if (held && gang->holding == 0 && gang->has_begun)
		cancel_calls(gang);
	leave(gang->gangs);
}

/* What it takes until @part, which is not the one that asks, is or can be there. */
static uint64_t ready_ns(const struct fgv_gang_part *part, uint64_t near_ns, uint64_t now_ns)
{
	const struct fgv_gang_view *view = &part->view;

	if (view->state == FGV_GANG_HOLDING && view->until_ns > now_ns + near_ns)
		return now_ns;
	return view->from_ns;
}

/* Whether a part that waits, or is about to, is to be called for the turn that begins. */
static bool is_to_come(const struct fgv_gang_part *part, uint64_t near_ns, uint64_t now_ns)
{
	return part->view.state == FGV_GANG_WAITING ||
	       (part->view.state == FGV_GANG_HOLDING && part->view.until_ns <= now_ns + near_ns);
}

struct plan {
	uint32_t gpus;	/* on which the gang works, that of the part that asks included */
	uint32_t calls; /* those on which it begins */
	uint64_t at_ns; /* FGV_GANGS_NEVER: it can't */
};

static struct plan make_plan(const struct fgv_gang_part *asks, uint64_t near_ns, uint64_t now_ns)
{
	const struct fgv_gang *gang = asks->gang;
	struct plan plan = {bit(asks->gpu), bit(asks->gpu), now_ns};

	for (unsigned i = 0; i < FGV_GANGS_GPUS; i++) {
		const struct fgv_gang_part *part = gang->parts[i];

		if (part == NULL || part == asks || part->view.state == FGV_GANG_IDLE)
			continue;
		plan.gpus |= bit(i);
		if (is_to_come(part, near_ns, now_ns))
			plan.calls |= bit(i);
		plan.at_ns = fgv_max_u64(plan.at_ns, ready_ns(part, near_ns, now_ns));
	}
	return plan;
}

static bool is_taken(const struct fgv_gang *gang, uint32_t gpus)
{
	for (unsigned i = 0; i < FGV_GANGS_GPUS; i++) {
		const struct fgv_gang *caller = gang->gangs->caller[i];

		if ((gpus & bit(i)) && caller != NULL && caller != gang)
			return true;
	}
	return false;
}

static uint32_t wanted_by(const struct fgv_gang *gang)
{
	uint32_t gpus = 0;

	for (unsigned i = 0; i < FGV_GANGS_GPUS; i++)
		if (gang->parts[i] != NULL && gang->parts[i]->view.state != FGV_GANG_IDLE)
			gpus |= bit(i);
	return gpus;
}

/* Whether one with an older ticket is to have one of @gpus first. */
static bool is_behind(const struct fgv_gang *gang, uint32_t gpus)
{
	const struct fgv_gang *other;

	LIST_FOREACH(other, &gang->gangs->gangs, link)
		if (other != gang && other->ticket != 0 && (wanted_by(other) & gpus) != 0 &&
		    (gang->ticket == 0 || other->ticket < gang->ticket))
			return true;
	return false;
}

static void call(struct fgv_gang *gang, unsigned gpu, uint64_t at_ns)
{
	gang->called |= bit(gpu);
	gang->gangs->caller[gpu] = gang;
	gang->gangs->call_ns[gpu] = at_ns;
}

static void make_appointment(struct fgv_gang *gang, const struct plan *plan, unsigned gpu)
{
	gang->ticket = 0;
	gang->begin_ns = plan->at_ns;
	gang->has_begun = false;
	gang->stats.turns++;
	for (unsigned i = 0; i < FGV_GANGS_GPUS; i++)
		if (plan->calls & bit(i))
			call(gang, i, plan->at_ns);
	gang->gangs->knocks[gpu] |= plan->calls & ~bit(gpu);
}

static uint64_t begin_ns(struct fgv_gang_part *part, uint64_t near_ns, uint64_t now_ns)
{
	struct fgv_gang *gang = part->gang;
	struct plan plan;

	if (gang->called & bit(part->gpu))
		return gang->gangs->call_ns[part->gpu];
	plan = make_plan(part, near_ns, now_ns);
	if (plan.gpus == bit(part->gpu))
		return now_ns;
	if (plan.at_ns == FGV_GANGS_NEVER) {
		gang->ticket = 0;
		return FGV_GANGS_NEVER;
	}
	if (is_taken(gang, plan.calls) || is_behind(gang, plan.gpus)) {
		if (gang->ticket == 0)
			gang->ticket = ++gang->gangs->tickets;
		return FGV_GANGS_NEVER;
	}
	make_appointment(gang, &plan, part->gpu);
	return plan.at_ns;
}

uint64_t fgv_gang_begin_ns(struct fgv_gang_part *part, uint64_t near_ns, uint64_t now_ns)
{
	uint64_t at_ns;

	enter(part->gang->gangs);
	at_ns = begin_ns(part, near_ns, now_ns);
	leave(part->gang->gangs);
	if (at_ns != FGV_GANGS_NEVER && at_ns <= now_ns + near_ns)
		return now_ns;
	return at_ns;
}

/* Whether another part has a turn that goes on. */
static bool is_on(const struct fgv_gang_part *part, uint64_t near_ns, uint64_t now_ns)
{
	const struct fgv_gang *gang = part->gang;

	return (gang->holding & ~bit(part->gpu)) != 0 && gang->end_ns > now_ns + near_ns;
}

uint64_t fgv_gang_granted(struct fgv_gang_part *part, uint64_t slice_ns, uint64_t near_ns,
			  uint64_t now_ns)
{
	struct fgv_gang *gang = part->gang;
	bool was_called;
	uint64_t end_ns;

	enter(gang->gangs);
	was_called = gang->called & bit(part->gpu);
	cancel_call(gang, part->gpu);
	if (!is_on(part, near_ns, now_ns))
		gang->end_ns =
			slice_ns + (was_called ? fgv_max_u64(now_ns, gang->begin_ns) : now_ns);
	if (was_called && gang->called == 0 && now_ns <= gang->begin_ns + near_ns)
		gang->stats.together++;
	gang->holding |= bit(part->gpu);
	gang->has_begun = true;
	end_ns = gang->end_ns;
	leave(gang->gangs);
	return end_ns;
}

struct fgv_gang_part *fgv_gangs_called(struct fgv_gangs *gangs, unsigned gpu, uint64_t *at_ns)
{
	struct fgv_gang_part *part = NULL;

	enter(gangs);
	if (gangs->caller[gpu] != NULL) {
		part = gangs->caller[gpu]->parts[gpu];
		*at_ns = gangs->call_ns[gpu];
	}
	leave(gangs);
	return part;
}

bool fgv_gang_catch_up(struct fgv_gang_part *part, uint64_t from_ns, uint64_t near_ns,
		       uint64_t now_ns)
{
	struct fgv_gang *gang = part->gang;
	bool is_called;

	enter(gang->gangs);
	is_called = from_ns != FGV_GANGS_NEVER && is_on(part, near_ns, now_ns) &&
		    from_ns + near_ns < gang->end_ns && !is_taken(gang, bit(part->gpu)) &&
		    !is_behind(gang, bit(part->gpu));
	if (is_called)
		call(gang, part->gpu, from_ns);
	leave(gang->gangs);
	return is_called;
}

bool fgv_gang_is_together(struct fgv_gang_part *part)
{
	bool is_together;

	enter(part->gang->gangs);
	is_together = (part->gang->holding & ~bit(part->gpu)) != 0;
	leave(part->gang->gangs);
	return is_together;
}

uint32_t fgv_gangs_take_knocks(struct fgv_gangs *gangs, unsigned gpu)
{
	uint32_t knocks;

	enter(gangs);
	knocks = gangs->knocks[gpu];
	gangs->knocks[gpu] = 0;
	leave(gangs);
	return knocks;
}
