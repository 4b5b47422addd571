/*
 * The policy `gemini`: weights between a request and a limit, after Gemini (IEEE TCC 2021,
 * section 3.5) and enforced by the host. A VM's share is its share by weight, but not less
 * than its request and not more than its limit.
 *
 * Three clocks say so, all charged with what was measured:
 *
 * - `due` runs at use / request. A VM whose due time has come is behind its request, and is
 *   served before all that are not, the one with the earliest due time first.
 * - `pace` runs at use / limit. Until its pace time comes a VM is held back, alone or not;
 *   and as long as it has used its limit's part of the sliding window.
 * - The tag of start-time fair queuing (sfq.h) runs at use / weight, and orders the rest.
 *
 * Time in which a VM wants nothing moves `due` and `pace` along, so that idleness earns
 * nothing; time in which it waits does not, so that what it is owed is made up for. What a VM
 * takes beyond its request, as others leave it, would move `due` and its tag ahead without
 * end: both are cut a few slices ahead, or the VM would miss its request, or its share, for
 * as long when the others come back. A use that is itself longer than that counts in full.
 *
 * Before all these come VMs with a bound on latency, the earliest deadline first, as long as
 * they are within their request: `due` is no further ahead than the bound, which is what
 * admission reckons with. Behind them come those that are somewhat further ahead, as happens
 * where work comes at random. The grant is asked back for both. One that has used still more
 * has lost its bound until it is no more ahead, and is served as others are.
 *
 * A VM that is held back is in none of the queues, and so holds up no virtual time.
 */
#include "scheduler/gemini.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/util.h"

/*
 * A token is for a fourth of a slice to four slices; but for one at most while others are
 * active whose bursts are no longer, or from the moment that another comes.
 */
#define QUOTA_RANGE 4

/* A turn for less would be all hand-over. */
#define ALLOWANCE_MIN_NS (100 * FGV_NS_PER_US)

static int compare(const struct gemini_entry *a, const struct gemini_entry *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

RB_GENERATE_INTERNAL(gemini_tree, gemini_entry, link, compare, __attribute__((unused)) static)

/* --- Queues ---------------------------------------------------------------- */

static void enter(struct gemini_tree *tree, struct gemini_entry *entry, uint64_t at_ns)
{
	entry->at_ns = at_ns;
	RB_INSERT(gemini_tree, tree, entry);
}

/* Whoever is within its request has its bound. */
static void enter_bound(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t now_ns)
{
	struct gemini *gemini = gemini_of(gpu);
	uint64_t bound_ns = more->vgpu->shares.bound_ns;

	if (bound_ns == 0)
		return;
	if (more->due_ns <= now_ns)
		more->is_spent = false;
	else if (more->due_ns > now_ns + bound_ns)
		more->is_spent = true;
	more->bound_in = more->is_spent ? &gemini->spent : &gemini->urgent;
	enter(more->bound_in, &more->bound, more->is_spent ? more->due_ns : more->deadline_ns);
}

static void leave_bound(struct gemini_vgpu *more)
{
	if (more->bound_in != NULL)
		RB_REMOVE(gemini_tree, more->bound_in, &more->bound);
	more->bound_in = NULL;
}

/* An active VM takes its place: in the queues, or held back. */
static void take_place(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t ready_ns,
		       uint64_t now_ns)
{
	struct gemini *gemini = gemini_of(gpu);

	more->is_back = ready_ns > now_ns;
	if (more->is_back) {
		enter(&gemini->back, &more->entry, ready_ns);
		return;
	}
	fgv_sfq_activate(&gemini->queue, &own_of(more->vgpu)->node, now_ns);
	if (more->vgpu->shares.request != 0)
		enter(&gemini->due, &more->entry, more->due_ns);
	enter_bound(gpu, more, now_ns);
}

/* @request: as it was when it took its place. */
static void leave_place(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint32_t request,
			uint64_t now_ns)
{
	struct gemini *gemini = gemini_of(gpu);

	if (more->is_back) {
		RB_REMOVE(gemini_tree, &gemini->back, &more->entry);
		return;
	}
	leave_bound(more);
	if (request != 0)
		RB_REMOVE(gemini_tree, &gemini->due, &more->entry);
	fgv_sfq_deactivate(&gemini->queue, &own_of(more->vgpu)->node, now_ns);
}

/* Lets in the VMs that were held back long enough, and those that have lost their bound. */
static void let_in(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct gemini_tree *back = &gemini_of(gpu)->back, *spent = &gemini_of(gpu)->spent;
	struct gemini_entry *first;

	while ((first = RB_MIN(gemini_tree, back)) != NULL && first->at_ns <= now_ns) {
		RB_REMOVE(gemini_tree, back, first);
		take_place(gpu, first->vgpu, now_ns, now_ns);
	}
	while ((first = RB_MIN(gemini_tree, spent)) != NULL && first->at_ns <= now_ns) {
		leave_bound(first->vgpu);
		first->vgpu->deadline_ns = now_ns + first->vgpu->vgpu->shares.bound_ns;
		enter_bound(gpu, first->vgpu, now_ns);
	}
}

/* Whether it has a bound, and has used more than that allows, but not much. */
static bool is_lenient(const struct gemini *gemini, const struct gemini_vgpu *more, uint64_t now_ns)
{
	return more->bound_in == &gemini->spent &&
	       more->bound.at_ns <= now_ns + GEMINI_LENIENCE * more->vgpu->shares.bound_ns;
}

/* The first of a tree that waits, at @at_ns at the latest, but for @except. */
static struct fgv_policy_vgpu *first_of(const struct gemini_tree *tree, uint64_t at_ns,
					const struct fgv_policy_vgpu *except)
{
	struct gemini_entry *entry = RB_MIN(gemini_tree, (struct gemini_tree *)tree);

	/* At most as many steps as there are grants out. */
	while (entry != NULL && entry->at_ns <= at_ns &&
	       (entry->vgpu->vgpu == except || entry->vgpu->vgpu->waiting == 0))
		entry = RB_NEXT(gemini_tree, NULL, entry);
	return entry != NULL && entry->at_ns <= at_ns ? entry->vgpu->vgpu : NULL;
}

/* The first that waits and has a bound. */
static struct fgv_policy_vgpu *first_bound(const struct gemini *gemini, uint64_t now_ns,
					   const struct fgv_policy_vgpu *except)
{
	struct fgv_policy_vgpu *vgpu = first_of(&gemini->urgent, UINT64_MAX, except);

	if (vgpu != NULL)
		return vgpu;
	vgpu = first_of(&gemini->spent, UINT64_MAX, except);
	return vgpu != NULL && is_lenient(gemini, more_of(vgpu), now_ns) ? vgpu : NULL;
}

static struct fgv_policy_vgpu *first_by_weight(const struct gemini *gemini,
					       const struct fgv_policy_vgpu *except)
{
	struct fgv_sfq_node *node = fgv_sfq_first(&gemini->queue);

	while (node != NULL && (vgpu_of(node) == except || vgpu_of(node)->waiting == 0))
		node = fgv_sfq_next(&gemini->queue, node);
	return node != NULL ? vgpu_of(node) : NULL;
}

/* --- Tokens ---------------------------------------------------------------- */

/* Brings it up to date whether it is active with brief bursts. */
static void count_brief(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more)
{
	bool is_brief = more->is_active && more->burst.quota_ns <= gpu->params->slice_ns;

	gemini_of(gpu)->brief += (uint64_t)is_brief - more->is_brief;
	more->is_brief = is_brief;
}

/* What one with a bound may use before it has used more than that allows; others, anything. */
static uint64_t allowance_ns(const struct fgv_policy_gpu *gpu, const struct gemini_vgpu *more,
			     uint64_t now_ns)
{
	const struct fgv_sched_shares *shares = &more->vgpu->shares;
	uint64_t ahead_ns = more->due_ns - fgv_min_u64(more->due_ns, now_ns);
	uint64_t left_ns = shares->bound_ns - fgv_min_u64(shares->bound_ns, ahead_ns);

	if (more->bound_in != &gemini_of(gpu)->urgent)
		return UINT64_MAX;
	left_ns = (uint64_t)((unsigned __int128)left_ns * shares->request / FGV_SCHED_WHOLE);
	return fgv_max_u64(left_ns, ALLOWANCE_MIN_NS);
}

static uint64_t token_ns(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t slice_ns)
{
	uint64_t quota_ns = fgv_burst_quota(&more->burst, fgv_max_u64(slice_ns / QUOTA_RANGE, 1),
					    QUOTA_RANGE * slice_ns);

	count_brief(gpu, more);
	if (has_limit(more->vgpu) || gemini_of(gpu)->brief > more->is_brief)
		return fgv_min_u64(quota_ns, slice_ns);
	return quota_ns;
}

/* --- Operations ------------------------------------------------------------ */

static void gemini_init(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct gemini *gemini = gemini_of(gpu);

	fgv_sfq_init(&gemini->queue, gpu->room, gpu->params->first_tag);
	gemini->queue.idle_since_ns = now_ns;
	RB_INIT(&gemini->due);
	RB_INIT(&gemini->back);
	RB_INIT(&gemini->urgent);
	RB_INIT(&gemini->spent);
}

/* Makes or frees the window, as its limit wants. */
static int fit_window(const struct fgv_policy_gpu *gpu, struct gemini_vgpu *more)
{
	if (!has_limit(more->vgpu)) {
		free(more->window);
		more->window = NULL;
	} else if (more->window == NULL) {
		more->window = malloc(sizeof(*more->window));
		if (more->window == NULL)
			return -ENOMEM;
		fgv_window_init(more->window, gpu->params->share_window_ns);
	}
	return 0;
}

static int gemini_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct gemini_vgpu *more = calloc(1, sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	more->vgpu = vgpu;
	if (fit_window(gpu, more) != 0) {
		free(more);
		return -ENOMEM;
	}
	more->entry.id = more->bound.id = vgpu->id;
	more->entry.vgpu = more->bound.vgpu = more;
	more->due_ns = more->pace_ns = more->settled_ns = now_ns;
	fgv_burst_init(&more->burst, gpu->params->slice_ns);
	fgv_sfq_node_init(&gemini_of(gpu)->queue, &own_of(vgpu)->node, vgpu->id, vgpu->weight);
	own_of(vgpu)->more = more;
	return 0;
}

static void gemini_detach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	fgv_sfq_node_fini(&gemini_of(gpu)->queue, &own_of(vgpu)->node);
	free(more_of(vgpu)->window);
	free(more_of(vgpu));
}

static void gemini_wake(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct gemini_vgpu *more = more_of(vgpu);

	fgv_gemini_settle(gpu, more, now_ns - more->settled_ns, now_ns);
	fgv_burst_resume(&more->burst, now_ns);
	more->deadline_ns = now_ns + vgpu->shares.bound_ns;
	more->is_active = true;
	gemini_of(gpu)->active++;
	count_brief(gpu, more);
	take_place(gpu, more, fgv_gemini_allows_ns(gpu, more, now_ns), now_ns);
}

static void gemini_sleep(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct gemini_vgpu *more = more_of(vgpu);

	leave_place(gpu, more, vgpu->shares.request, now_ns);
	more->is_active = false;
	more->settled_ns = now_ns;
	gemini_of(gpu)->active--;
	count_brief(gpu, more);
	fgv_burst_pause(&more->burst, now_ns);
}

static struct fgv_policy_vgpu *gemini_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct gemini *gemini = gemini_of(gpu);
	struct fgv_policy_vgpu *vgpu;

	let_in(gpu, now_ns);
	vgpu = first_bound(gemini, now_ns, NULL);
	if (vgpu == NULL)
		vgpu = first_of(&gemini->due, now_ns, NULL);
	return vgpu != NULL ? vgpu : first_by_weight(gemini, NULL);
}

static uint64_t gemini_ready_ns(const struct fgv_policy_gpu *gpu)
{
	struct gemini_entry *first = RB_MIN(gemini_tree, &gemini_of(gpu)->back);

	return first != NULL ? first->at_ns : FGV_POLICY_NO_TICK;
}

static bool gemini_withholds(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
			     uint64_t now_ns)
{
	const struct gemini_vgpu *more = more_of(vgpu);

	return more->is_back || vgpu->shares.request == 0 ||
	       more->due_ns + gpu->params->starve_ns / 2 > now_ns;
}

/* Whether @holder goes on before @other, both by weight, after another @used_ns. */
static bool stays_first(const struct fgv_policy_vgpu *holder, const struct fgv_policy_vgpu *other,
			uint64_t used_ns)
{
	const struct fgv_sfq_node *mine = &own_of(holder)->node, *its = &own_of(other)->node;

	return fgv_sfq_precedes(mine, fgv_sfq_finish(mine, used_ns), its, its->start);
}

/* Whether @a, which has a bound, is served before @b for that. */
static bool is_before(const struct gemini *gemini, const struct gemini_vgpu *a,
		      const struct gemini_vgpu *b, uint64_t now_ns)
{
	bool is_urgent = a->bound_in == &gemini->urgent;

	if (!is_urgent && !is_lenient(gemini, a, now_ns))
		return false;
	if (b->bound_in == &gemini->urgent)
		return is_urgent && a->deadline_ns < b->deadline_ns;
	return is_urgent || !is_lenient(gemini, b, now_ns) || a->bound.at_ns < b->bound.at_ns;
}

static struct fgv_policy_vgpu *gemini_next(struct fgv_policy_gpu *gpu,
					   struct fgv_policy_vgpu *holder, uint64_t used_ns,
					   uint64_t now_ns)
{
	const struct gemini *gemini = gemini_of(gpu);
	const struct gemini_vgpu *mine = more_of(holder);
	uint32_t request = holder->shares.request;
	uint64_t at_ns = now_ns + used_ns;
	uint64_t due_ns =
		request != 0 ? mine->due_ns + fgv_gemini_at_share(used_ns, request) : UINT64_MAX;
	bool is_out = has_limit(holder) &&
		      mine->pace_ns + fgv_gemini_at_share(used_ns, holder->shares.limit) > at_ns;
	struct fgv_policy_vgpu *other = first_bound(gemini, at_ns, holder);
	struct gemini_entry *back = RB_MIN(gemini_tree, (struct gemini_tree *)&gemini->back);

	if (other != NULL && is_before(gemini, more_of(other), mine, at_ns))
		return other;
	other = first_of(&gemini->due, at_ns, holder);
	if (!is_out && due_ns <= at_ns && (other == NULL || due_ns < more_of(other)->due_ns))
		return holder;
	if (other != NULL)
		return other;
	other = first_by_weight(gemini, holder);
	if (other == NULL && back != NULL && back->at_ns <= at_ns)
		other = back->vgpu->vgpu;
	if (!is_out && (other == NULL || stays_first(holder, other, used_ns)))
		return holder;
	return other;
}

static void gemini_grant(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			 struct fgv_policy_grant *grant, uint64_t now_ns)
{
	struct gemini_vgpu *more = more_of(vgpu);

	grant->slice_ns =
		fgv_min_u64(token_ns(gpu, more, grant->slice_ns), allowance_ns(gpu, more, now_ns));
	grant->is_bounded = has_limit(vgpu);
	more->run_ns = 0;
	more->settled_ns = more->granted_ns = now_ns;
}

/*
 * A token of more than a slice is for as long as nobody else comes, and any for as long as
 * nobody comes that has a bound, and an earlier deadline.
 */
static uint64_t gemini_leave_ns(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
				struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	uint64_t ran_ns = now_ns - more_of(holder)->granted_ns;

	if (is_before(gemini_of(gpu), more_of(vgpu), more_of(holder), now_ns))
		return 0;
	return gpu->params->slice_ns - fgv_min_u64(gpu->params->slice_ns, ran_ns);
}

static void gemini_charge(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			  uint64_t used_ns, uint64_t now_ns)
{
	struct gemini_vgpu *more = more_of(vgpu);
	struct gemini *gemini = gemini_of(gpu);
	bool is_in_due = more->is_active && !more->is_back && vgpu->shares.request != 0;

	fgv_burst_used(&more->burst, used_ns);
	if (is_in_due)
		RB_REMOVE(gemini_tree, &gemini->due, &more->entry);
	leave_bound(more);
	fgv_gemini_charge(gpu, more, used_ns, now_ns);
	if (is_in_due) {
		enter(&gemini->due, &more->entry, more->due_ns);
		enter_bound(gpu, more, now_ns);
	}
}

static void gemini_put(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct gemini_vgpu *more = more_of(vgpu);
	uint64_t ready_ns = fgv_gemini_allows_ns(gpu, more, now_ns);
	bool is_late = vgpu->shares.bound_ns != 0 && more->deadline_ns <= now_ns;

	if (is_late)
		more->deadline_ns = now_ns + vgpu->shares.bound_ns;
	if (ready_ns <= now_ns && !more->is_back && !is_late)
		return;
	leave_place(gpu, more, vgpu->shares.request, now_ns);
	take_place(gpu, more, ready_ns, now_ns);
}

static void gemini_set_weight(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			      uint32_t old)
{
	(void)gpu;
	(void)old;
	fgv_sfq_set_weight(&own_of(vgpu)->node, vgpu->weight);
}

static int gemini_set_shares(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			     const struct fgv_sched_shares *old, uint64_t now_ns)
{
	struct gemini_vgpu *more = more_of(vgpu);

	if (fit_window(gpu, more) != 0)
		return -ENOMEM;
	if (more->is_active)
		leave_place(gpu, more, old->request, now_ns);
	fgv_gemini_rescale(more, old, now_ns);
	more->deadline_ns = now_ns + vgpu->shares.bound_ns;
	if (more->is_active)
		take_place(gpu, more, fgv_gemini_allows_ns(gpu, more, now_ns), now_ns);
	return 0;
}

static bool gemini_tags(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
			struct fgv_policy_tags *tags)
{
	tags->start_ns = own_of(vgpu)->node.start;
	tags->virtual_ns = gemini_of(gpu)->queue.vtime;
	return true;
}

const struct fgv_policy fgv_policy_gemini = {
	.name = "gemini",
	.gpu_wait = FGV_POLICY_WAIT_BLOCK,
	.guest_wait = FGV_POLICY_WAIT_BLOCK,
	.cosched = FGV_POLICY_COSCHED_GPU,
	.init = gemini_init,
	.attach = gemini_attach,
	.detach = gemini_detach,
	.wake = gemini_wake,
	.sleep = gemini_sleep,
	.pick = gemini_pick,
	.ready_ns = gemini_ready_ns,
	.withholds = gemini_withholds,
	.next = gemini_next,
	.grant = gemini_grant,
	.charge = gemini_charge,
	.put = gemini_put,
	.leave_ns = gemini_leave_ns,
	.set_weight = gemini_set_weight,
	.set_shares = gemini_set_shares,
	.tags = gemini_tags,
};
