/* The clocks of the policy `gemini`; what they are for is in policy_gemini.c. */
#include "scheduler/gemini.h"

#include "common/util.h"

/* How many tokens `due` and the tag may be ahead. */
#define TOKENS_AHEAD 2

uint64_t fgv_gemini_at_share(uint64_t used_ns, uint32_t share)
{
	unsigned __int128 scaled = (unsigned __int128)used_ns * FGV_SCHED_WHOLE;

	return (uint64_t)((scaled + share - 1) / share);
}

/* @idle_ns up to @now_ns were not wanted: what a clock is behind becomes no more by them. */
static void pass_idle(uint64_t *clock_ns, uint64_t idle_ns, uint64_t now_ns)
{
	if (*clock_ns < now_ns)
		*clock_ns += fgv_min_u64(idle_ns, now_ns - *clock_ns);
}

/* What is not made up for in so long a time is forgotten. */
static void forget(const struct fgv_policy_gpu *gpu, uint64_t *clock_ns, uint64_t now_ns)
{
	uint64_t memory_ns = fgv_max_u64(gpu->params->share_window_ns, gpu->params->starve_ns);

	if (now_ns > memory_ns)
		*clock_ns = fgv_max_u64(*clock_ns, now_ns - memory_ns);
}

void fgv_gemini_settle(const struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t idle_ns,
		       uint64_t now_ns)
{
	pass_idle(&more->due_ns, idle_ns, now_ns);
	pass_idle(&more->pace_ns, idle_ns, now_ns);
	forget(gpu, &more->due_ns, now_ns);
	forget(gpu, &more->pace_ns, now_ns);
	more->settled_ns = now_ns;
}

/* How far ahead a VM may be, in GPU time. */
static uint64_t ahead_ns(const struct fgv_policy_gpu *gpu, const struct gemini_vgpu *more)
{
	uint64_t token_ns = fgv_max_u64(gpu->params->slice_ns, more->burst.quota_ns);

	return fgv_max_u64(TOKENS_AHEAD * token_ns, more->run_ns);
}

/* Nobody is kept waiting by one that is alone: that counts against no request. */
static void charge_due(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t used_ns,
		       uint64_t now_ns)
{
	uint32_t request = more->vgpu->shares.request;
	uint64_t most_ns = now_ns;

	if (request == 0)
		return;
	if (gemini_of(gpu)->active > 1)
		most_ns += fgv_max_u64(fgv_gemini_at_share(ahead_ns(gpu, more), request),
				       2 * GEMINI_LENIENCE * more->vgpu->shares.bound_ns);
	most_ns = fgv_max_u64(most_ns, more->due_ns);
	more->due_ns = fgv_min_u64(more->due_ns + fgv_gemini_at_share(used_ns, request), most_ns);
}

static void charge_pace(struct gemini_vgpu *more, uint64_t used_ns, uint64_t now_ns)
{
	if (more->window == NULL)
		return;
	more->pace_ns += fgv_gemini_at_share(used_ns, more->vgpu->shares.limit);
	fgv_window_add(more->window, used_ns, now_ns);
}

static void charge_tag(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t used_ns)
{
	struct fgv_sfq *queue = &gemini_of(gpu)->queue;
	struct fgv_sfq_node *node = &own_of(more->vgpu)->node;
	uint64_t most = queue->vtime + ahead_ns(gpu, more) / node->weight;
	uint64_t room = fgv_sfq_before(node->start, most) ? most - node->start : 0;

	fgv_sfq_charge(queue, node, fgv_min_u64(used_ns, room * node->weight));
}

uint64_t fgv_gemini_allows_ns(const struct fgv_policy_gpu *gpu, struct gemini_vgpu *more,
			      uint64_t now_ns)
{
	uint64_t window_ns = gpu->params->share_window_ns, cap_ns;

	if (more->window == NULL)
		return now_ns;
	cap_ns = (uint64_t)((unsigned __int128)window_ns * more->vgpu->shares.limit /
			    FGV_SCHED_WHOLE);
	return fgv_max_u64(more->pace_ns,
			   fgv_window_below(more->window, fgv_max_u64(cap_ns, 1), now_ns));
}

/* What a clock is ahead is use that was had: it takes another time at another share. */
static void rescale(uint64_t *clock_ns, uint32_t old, uint32_t share, uint64_t now_ns)
{
	unsigned __int128 ahead;

	if (old == share)
		return;
	if (old == 0 || share == 0 || *clock_ns <= now_ns) {
		*clock_ns = now_ns;
		return;
	}
	ahead = (unsigned __int128)(*clock_ns - now_ns) * old / share;
	*clock_ns = now_ns + (uint64_t)ahead;
}

void fgv_gemini_rescale(struct gemini_vgpu *more, const struct fgv_sched_shares *old,
			uint64_t now_ns)
{
	rescale(&more->due_ns, old->request, more->vgpu->shares.request, now_ns);
	rescale(&more->pace_ns, old->limit, more->vgpu->shares.limit, now_ns);
}

void fgv_gemini_charge(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t used_ns,
		       uint64_t now_ns)
{
	uint64_t held_ns = now_ns - more->settled_ns;

	more->run_ns += used_ns;
	charge_due(gpu, more, used_ns, now_ns);
	charge_pace(more, used_ns, now_ns);
	charge_tag(gpu, more, used_ns);
	/* Time that it had the GPU and did not use it is idle time. */
	fgv_gemini_settle(gpu, more, held_ns - fgv_min_u64(held_ns, used_ns), now_ns);
}
