/*
 * The policy `fair`: start-time fair queuing over the vGPUs (FairGV, sections 3.2 and 3.3).
 * The algorithm is in sfq.c; here it meets the scheduler. Active vGPUs, those in service
 * included, are in the queue; the next is the first in it with a session that waits.
 *
 * A vGPU that was idle and is next does not wait for the end of the holder's slice, but until
 * the holder's tag has passed its own: so bursts of work and the turns between them are as long
 * as the weights say (docs/design/0030-bursts.md).
 *
 * A vGPU that is idle only because others have the memory that it needs gets later what it would
 * have had meanwhile (docs/design/0028-movable.md): of what it uses then it is charged a part,
 * until it has caught up. So it comes more often, but never for so long that others would stand
 * still.
 */
#include "scheduler/fair.h"

#include "common/util.h"

/*
 * How far past the other's tag the holder's turn goes. What it gains is taken off its next turn;
 * but one that gives back a little too early is not picked again, and of two bursts that are
 * nearly equal none is cut just before its end.
 */
#define PAST_NS (FGV_NS_PER_MS / 2)

/* What one that becomes idle may be owed at most. */
#define OWED_SLICES 4

/*
 * One that has the GPU for itself while another pauses keeps no more unfinished work than this on
 * it, so that its turn ends in time when that is back. Enough for a GPU that is never idle.
 */
#define AHEAD_NS (2 * FGV_NS_PER_MS)

/* One that catches up is charged for one of so many parts of what it uses. */
#define CLAIM_PARTS 4

/* What it may have to catch up at most: as much as some turns at the memory may bring. */
#define CLAIM_NS_MAX (10 * FGV_NS_PER_SEC)

static void fair_init(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct fgv_sfq *q = fgv_fair_queue(gpu);

	fgv_sfq_init(q, gpu->room, gpu->params->first_tag);
	q->idle_since_ns = now_ns;
}

static int fair_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	(void)now_ns;
	fgv_sfq_node_init(fgv_fair_queue(gpu), fgv_fair_node(vgpu), vgpu->id, vgpu->weight);
	return 0;
}

static void fair_detach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	fgv_sfq_node_fini(fgv_fair_queue(gpu), fgv_fair_node(vgpu));
}

static void set_back(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, bool is_back)
{
	fgv_fair_of(gpu)->back += (uint32_t)is_back - fgv_fair_own(vgpu)->is_back;
	fgv_fair_own(vgpu)->is_back = is_back;
}

/* What it was owed fades at the rate of the clock, so that long pauses earn nothing. */
static uint64_t owed_tag(const struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	const struct fgv_fair_own *own = fgv_fair_own(vgpu);

	return (own->owed_ns - fgv_min_u64(own->owed_ns, now_ns - own->slept_ns)) / vgpu->weight;
}

/* What it has not caught up fades likewise. */
static void fade_claim(struct fgv_fair_own *own, uint64_t now_ns)
{
	own->claim_ns -= fgv_min_u64(own->claim_ns, now_ns - own->slept_ns);
}

/* From here on it claims what those get that are active. */
static void begin_claim(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_sfq *q = fgv_fair_queue(gpu);
	struct fgv_fair_own *own = fgv_fair_own(vgpu);

	fade_claim(own, now_ns);
	fgv_sfq_activate_owed(q, &own->node, owed_tag(vgpu, now_ns), now_ns);
	fgv_sfq_deactivate(q, &own->node, now_ns);
	own->owed_ns = 0;
	own->slept_ns = now_ns;
}

/* That far the others have come meanwhile. It begins with them, and has the rest to catch up. */
static void end_claim(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_sfq *q = fgv_fair_queue(gpu);
	struct fgv_fair_own *own = fgv_fair_own(vgpu);
	uint64_t behind = fgv_min_u64(fgv_sfq_owed(q, &own->node), CLAIM_NS_MAX);

	own->claim_ns = fgv_min_u64(own->claim_ns + behind * vgpu->weight, CLAIM_NS_MAX);
	fgv_sfq_activate(q, &own->node, now_ns);
	own->slept_ns = now_ns;
}

static void fair_claim(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, bool claims,
		       uint64_t now_ns)
{
	struct fgv_fair_own *own = fgv_fair_own(vgpu);
	bool is_idle = !own->node.active;

	own->claims = claims;
	if (is_idle && claims)
		begin_claim(gpu, vgpu, now_ns);
	else if (is_idle) {
		end_claim(gpu, vgpu, now_ns);
		fgv_sfq_deactivate(fgv_fair_queue(gpu), &own->node, now_ns);
	}
}

static void fair_wake(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct fgv_fair_own *own = fgv_fair_own(vgpu);

	set_back(gpu, vgpu, own->has_run);
	own->granted_ns = own->charged_ns = now_ns; /* it may hold a grant */
	own->is_passed = false;
	if (own->claims) {
		end_claim(gpu, vgpu, now_ns);
		return;
	}
	fade_claim(own, now_ns);
	fgv_sfq_activate_owed(fgv_fair_queue(gpu), &own->node, owed_tag(vgpu, now_ns), now_ns);
}

static void note_pause(struct fgv_fair *fair, const struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	fair->has_paused = true;
	fair->paused_id = vgpu->id;
	fair->paused_ns = now_ns;
}

/* At most some slices: a holder that could not be stopped in time may be far ahead of it. */
static void fair_sleep(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	uint64_t most_ns = fgv_min_u64(OWED_SLICES * gpu->params->slice_ns, UINT32_MAX);
	struct fgv_fair_own *own = fgv_fair_own(vgpu);

	set_back(gpu, vgpu, false);
	if (own->has_run)
		note_pause(fgv_fair_of(gpu), vgpu, now_ns);
	fgv_sfq_deactivate(fgv_fair_queue(gpu), &own->node, now_ns);
	own->slept_ns = now_ns;
	own->owed_ns = 0;
	if (own->claims)
		return; /* all that it is behind counts when it wakes */
	own->owed_ns = (uint32_t)fgv_min_u64(
		most_ns,
		fgv_min_u64(most_ns, fgv_sfq_owed(fgv_fair_queue(gpu), &own->node)) * vgpu->weight);
}

static struct fgv_policy_vgpu *fair_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct fgv_sfq_node *node;

	if (gpu->gangs != NULL)
		return fgv_fair_pick_gangs(gpu, now_ns);
	node = fgv_fair_first(fgv_fair_queue(gpu), NULL);
	return node != NULL ? fgv_fair_vgpu(node) : NULL;
}

/* A part whose gang can't have another GPU. */
static bool fair_withholds(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
			   uint64_t now_ns)
{
	(void)now_ns;
	return gpu->gangs != NULL && fgv_fair_own(vgpu)->is_passed;
}

static struct fgv_policy_vgpu *fair_next(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
					 uint64_t used_ns, uint64_t now_ns)
{
	struct fgv_sfq_node *mine = fgv_fair_node(holder);
	struct fgv_sfq_node *other = fgv_fair_first(fgv_fair_queue(gpu), mine);
	struct fgv_policy_vgpu *called = fgv_fair_called(gpu, now_ns + used_ns);

	if (called != NULL)
		return called;
	if (other == NULL ||
	    fgv_sfq_precedes(mine, fgv_sfq_finish(mine, used_ns), other, other->start))
		return holder;
	return fgv_fair_vgpu(other);
}

/*
 * How much longer @holder's turn lasts for @vgpu, which waits. The holder pays by the clock while
 * others wait, so its tag at any time is known.
 */
static uint64_t turn_left_ns(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *holder,
			     const struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	const struct fgv_fair_own *its = fgv_fair_own(holder);
	uint64_t from = its->node.start, to = fgv_fair_node(vgpu)->start;
	uint64_t behind = fgv_sfq_before(from, to) ? to - from : 0;
	uint64_t end_ns;

	if (behind >= gpu->params->slice_ns)
		return UINT64_MAX;
	end_ns = fgv_max_u64(its->granted_ns + fgv_fair_least_ns(holder, vgpu),
			     its->charged_ns + behind * holder->weight + PAST_NS);
	return end_ns - fgv_min_u64(end_ns, now_ns);
}

static uint64_t fair_leave_ns(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			      struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	/* The turn of a gang ends on all its GPUs at the same time. */
	if (gpu->gangs != NULL && fgv_fair_is_together(holder))
		return UINT64_MAX;
	if (!fgv_fair_own(vgpu)->is_back ||
	    fgv_fair_first(fgv_fair_queue(gpu), fgv_fair_node(holder)) != fgv_fair_node(vgpu))
		return UINT64_MAX;
	return turn_left_ns(gpu, holder, vgpu, now_ns);
}

/* Has only @vgpu work, and did another pause within a slice, which is likely to be back soon? */
static bool has_pausing_neighbour(const struct fgv_policy_gpu *gpu,
				  const struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	const struct fgv_fair *fair = fgv_fair_of(gpu);

	return fair->queue.active == 1 && fair->has_paused && fair->paused_id != vgpu->id &&
	       now_ns - fair->paused_ns < gpu->params->slice_ns;
}

static void fair_grant(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
		       struct fgv_policy_grant *grant, uint64_t now_ns)
{
	struct fgv_sfq_node *next;

	if (vgpu->holding > 0)
		return; /* leave_ns says how long */
	set_back(gpu, vgpu, false);
	fgv_fair_own(vgpu)->is_passed = false;
	fgv_fair_own(vgpu)->has_run = true;
	fgv_fair_own(vgpu)->granted_ns = fgv_fair_own(vgpu)->charged_ns = now_ns;
	if (has_pausing_neighbour(gpu, vgpu, now_ns))
		grant->ahead_ns = AHEAD_NS;
	if (gpu->gangs != NULL)
		fgv_fair_fit_gangs(gpu, vgpu, grant, now_ns);
	if (fgv_fair_of(gpu)->back == 0 || (gpu->gangs != NULL && fgv_fair_is_together(vgpu)))
		return;
	next = fgv_fair_first(fgv_fair_queue(gpu), fgv_fair_node(vgpu));
	if (next != NULL && fgv_fair_own(fgv_fair_vgpu(next))->is_back)
		grant->slice_ns = fgv_min_u64(grant->slice_ns,
					      turn_left_ns(gpu, vgpu, fgv_fair_vgpu(next), now_ns));
}

static void fair_charge(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t used_ns,
			uint64_t now_ns)
{
	struct fgv_fair_own *own = fgv_fair_own(vgpu);
	uint64_t waived_ns = fgv_min_u64(own->claim_ns, used_ns - used_ns / CLAIM_PARTS);

	own->charged_ns = now_ns;
	own->claim_ns -= waived_ns;
	fgv_sfq_charge(fgv_fair_queue(gpu), &own->node, used_ns - waived_ns);
}

static void fair_set_weight(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint32_t old)
{
	(void)gpu;
	(void)old;
	fgv_sfq_set_weight(fgv_fair_node(vgpu), vgpu->weight);
}

static bool fair_tags(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
		      struct fgv_policy_tags *tags)
{
	tags->start_ns = fgv_fair_node(vgpu)->start;
	tags->virtual_ns = fgv_fair_queue(gpu)->vtime;
	return true;
}

const struct fgv_policy fgv_policy_fair = {
	.name = "fair",
	.gpu_wait = FGV_POLICY_WAIT_BLOCK,
	.guest_wait = FGV_POLICY_WAIT_BLOCK,
	.cosched = FGV_POLICY_COSCHED_GPU,
	.init = fair_init,
	.attach = fair_attach,
	.detach = fair_detach,
	.wake = fair_wake,
	.sleep = fair_sleep,
	.claim = fair_claim,
	.pick = fair_pick,
	.withholds = fair_withholds,
	.next = fair_next,
	.grant = fair_grant,
	.leave_ns = fair_leave_ns,
	.charge = fair_charge,
	.set_weight = fair_set_weight,
	.leave_by_ns = fgv_fair_leave_by_ns,
	.tell_gangs = fgv_fair_tell_gangs,
	.tags = fair_tags,
};
