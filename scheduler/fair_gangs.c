/*
 * The policy `fair` and gangs (gangs.h, docs/design/0031-gangs.md). Each GPU keeps its own tags. A
 * part that is first begins only together with those of its gang that ask for other GPUs; a gang
 * may have such a GPU if its part there is at most a slice of its own past the first that waits,
 * and past the holder. So a gang goes at the pace of the GPU on which the others leave it least,
 * and nobody gets less of a GPU for it.
 */
#include "scheduler/fair.h"

/* Parts that are passed over at once; behind them the first one gets the GPU. */
#define PASSED_MAX 16

/* What is less than this away is now: less than what it costs to give the GPU to others meanwhile.
 */
static uint64_t near_ns(const struct fgv_policy_gpu *gpu)
{
	return fgv_min_u64(FGV_NS_PER_MS / 2, gpu->params->slice_ns / 4);
}

/* How far a part may be ahead of others as its gang begins: a slice of its own. */
static uint64_t slack(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu)
{
	return gpu->params->slice_ns / vgpu->weight;
}

bool fgv_fair_is_together(struct fgv_policy_vgpu *vgpu)
{
	return vgpu->part.gang != NULL && fgv_gang_is_together(&vgpu->part);
}

struct fgv_policy_vgpu *fgv_fair_called(const struct fgv_policy_gpu *gpu, uint64_t at_ns)
{
	struct fgv_gang_part *part;
	uint64_t call_ns;

	if (gpu->gangs == NULL)
		return NULL;
	part = fgv_gangs_called(gpu->gangs, gpu->number, &call_ns);
	if (part == NULL || call_ns > at_ns + near_ns(gpu) || part->owner->waiting == 0)
		return NULL;
	return part->owner;
}

/* --- Picking ----------------------------------------------------------------- */

struct passed {
	struct fgv_sfq_node *nodes[PASSED_MAX];
	unsigned count;
};

static bool may_begin(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	uint64_t at_ns;

	if (vgpu->part.gang == NULL)
		return true;
	at_ns = fgv_gang_begin_ns(&vgpu->part, near_ns(gpu), now_ns);
	fgv_fair_own(vgpu)->is_passed = at_ns == FGV_GANGS_NEVER;
	return at_ns <= now_ns;
}

/*
 * What @node gets before them, those that were passed over are owed no more than a slice of, be it
 * their own or its. So one that never comes together has no claim to all the time since.
 */
static void forfeit(struct fgv_policy_gpu *gpu, const struct passed *passed,
		    struct fgv_sfq_node *node)
{
	for (unsigned i = 0; i < passed->count; i++) {
		const struct fgv_policy_vgpu *vgpu = fgv_fair_vgpu(passed->nodes[i]);
		uint64_t owed = fgv_max_u64(slack(gpu, vgpu), slack(gpu, fgv_fair_vgpu(node)));

		fgv_sfq_forfeit(fgv_fair_queue(gpu), passed->nodes[i], node->start - owed);
	}
}

/* If none may begin, the GPU is not kept idle for that: the first one gets it. */
struct fgv_policy_vgpu *fgv_fair_pick_gangs(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct fgv_policy_vgpu *called = fgv_fair_called(gpu, now_ns);
	const struct fgv_sfq *queue = fgv_fair_queue(gpu);
	struct fgv_sfq_node *first = fgv_fair_first(queue, NULL), *node;
	struct passed passed = {.count = 0};

	if (called != NULL)
		return called;
	for (node = first; node != NULL && passed.count < PASSED_MAX;
	     node = fgv_sfq_next(queue, node)) {
		if (fgv_fair_vgpu(node)->waiting == 0)
			continue;
		if (may_begin(gpu, fgv_fair_vgpu(node), now_ns)) {
			forfeit(gpu, &passed, node);
			return fgv_fair_vgpu(node);
		}
		passed.nodes[passed.count++] = node;
	}
	return first != NULL ? fgv_fair_vgpu(first) : NULL;
}

void fgv_fair_fit_gangs(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			struct fgv_policy_grant *grant, uint64_t now_ns)
{
	struct fgv_gang_part *called;
	uint64_t end_ns, call_ns;

	if (vgpu->part.gang != NULL) {
		end_ns = fgv_gang_granted(&vgpu->part, grant->slice_ns, near_ns(gpu), now_ns);
		grant->slice_ns = fgv_min_u64(grant->slice_ns, end_ns - now_ns);
	}
	called = fgv_gangs_called(gpu->gangs, gpu->number, &call_ns);
	if (called != NULL && called->owner != vgpu)
		grant->slice_ns = fgv_min_u64(grant->slice_ns,
					      fgv_max_u64(call_ns, now_ns + near_ns(gpu)) - now_ns);
}

/* --- From when on a part may have its GPU ------------------------------------- */

/*
 * Whether another one that waits comes before @vgpu with the tag @start, by more than the slack.
 * One that was passed over is behind for that by up to its own slack, which does not count.
 */
static bool has_rival(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
		      const struct fgv_policy_vgpu *holder, uint64_t start)
{
	const struct fgv_sfq *queue = fgv_fair_queue(gpu);
	struct fgv_sfq_node *node;
	uint64_t due = start - slack(gpu, vgpu), at;

	for (node = fgv_sfq_first(queue); node != NULL && fgv_sfq_before(node->start, due);
	     node = fgv_sfq_next(queue, node)) {
		const struct fgv_policy_vgpu *other = fgv_fair_vgpu(node);

		if (other == vgpu || other == holder || other->waiting == 0)
			continue;
		at = node->start + (fgv_fair_own(other)->is_passed ? slack(gpu, other) : 0);
		if (fgv_sfq_before(at, due))
			return true;
	}
	return false;
}

/* When the holder is no more than so far ahead; UINT64_MAX: its turn ends before. */
static uint64_t past_holder_ns(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
			       const struct fgv_policy_vgpu *holder, uint64_t end_ns)
{
	const struct fgv_fair_own *its = fgv_fair_own(holder);
	uint64_t due = fgv_fair_node(vgpu)->start - slack(gpu, vgpu);
	uint64_t behind = fgv_sfq_before(its->node.start, due) ? due - its->node.start : 0;
	uint64_t at_ns;

	if (behind >= gpu->params->slice_ns)
		return FGV_GANGS_NEVER;
	at_ns = its->charged_ns + behind * holder->weight;
	return at_ns <= end_ns ? at_ns : FGV_GANGS_NEVER;
}

static uint64_t from_ns(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
			struct fgv_policy_vgpu *holder, uint64_t end_ns, uint64_t now_ns)
{
	uint64_t at_ns;

	if (has_rival(gpu, vgpu, holder, fgv_fair_node(vgpu)->start))
		return FGV_GANGS_NEVER;
	if (holder == NULL)
		return now_ns;
	at_ns = past_holder_ns(gpu, vgpu, holder, end_ns);
	if (at_ns == FGV_GANGS_NEVER)
		return at_ns;
	/* The turn of another gang is not cut on one of its GPUs. */
	if (fgv_fair_is_together(holder))
		return end_ns;
	at_ns = fgv_max_u64(at_ns,
			    fgv_fair_own(holder)->granted_ns + fgv_fair_least_ns(holder, vgpu));
	return fgv_max_u64(fgv_min_u64(at_ns, end_ns), now_ns);
}

/* When its own grant has ended: whether it may go on with another. */
static uint64_t again_ns(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
			 uint64_t end_ns, uint64_t now_ns)
{
	const struct fgv_fair_own *own = fgv_fair_own(vgpu);
	uint64_t left_ns = end_ns - fgv_min_u64(end_ns, own->charged_ns);

	if (end_ns == FGV_GANGS_NEVER)
		return now_ns;
	if (has_rival(gpu, vgpu, vgpu, fgv_sfq_finish(&own->node, left_ns)))
		return FGV_GANGS_NEVER;
	return fgv_max_u64(end_ns, now_ns);
}

static bool waits(const struct fgv_policy_vgpu *vgpu)
{
	return vgpu->waiting > 0 && vgpu->holding == 0;
}

uint64_t fgv_fair_leave_by_ns(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			      uint64_t end_ns, uint64_t now_ns)
{
	struct fgv_gang_part *called, *part;
	uint64_t call_ns;

	if (fgv_fair_is_together(holder))
		return UINT64_MAX;
	called = fgv_gangs_called(gpu->gangs, gpu->number, &call_ns);
	if (called != NULL)
		return called->owner != holder && waits(called->owner) ? call_ns : UINT64_MAX;
	for (part = fgv_gangs_first(gpu->gangs, gpu->number); part != NULL;
	     part = LIST_NEXT(part, gpu_link)) {
		if (part->owner == holder || !waits(part->owner))
			continue;
		call_ns = from_ns(gpu, part->owner, holder, end_ns, now_ns);
		if (fgv_gang_catch_up(part, call_ns, near_ns(gpu), now_ns))
			return call_ns;
	}
	return UINT64_MAX;
}

static struct fgv_gang_view look(const struct fgv_policy_gpu *gpu,
				 const struct fgv_policy_vgpu *vgpu, struct fgv_policy_vgpu *holder,
				 uint64_t end_ns, uint64_t now_ns)
{
	struct fgv_gang_view view = {.state = FGV_GANG_IDLE};

	if (vgpu->holding > 0) {
		view.state = FGV_GANG_HOLDING;
		view.from_ns = again_ns(gpu, vgpu, end_ns, now_ns);
		view.until_ns = end_ns;
	} else if (vgpu->waiting > 0) {
		view.state = FGV_GANG_WAITING;
		view.from_ns = from_ns(gpu, vgpu, holder, end_ns, now_ns);
	}
	return view;
}

void fgv_fair_tell_gangs(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			 uint64_t end_ns, uint64_t now_ns)
{
	struct fgv_gang_part *part;
	struct fgv_gang_view view;

	for (part = fgv_gangs_first(gpu->gangs, gpu->number); part != NULL;
	     part = LIST_NEXT(part, gpu_link)) {
		view = look(gpu, part->owner, holder, end_ns, now_ns);
		fgv_gang_tell(part, &view);
	}
}
