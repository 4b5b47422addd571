/*
 * The watchdog: does the policy let a runnable vGPU wait beyond reason? It does not know
 * the policy's rules, so it holds it against the ideal: GPU time given away counts as
 * service to every active vGPU by its weight, and one that has waited long and is far behind
 * that is starved. `service` is the ideal service per weight so far; `owed` what a vGPU had
 * less than that (negative: more), both in GPU ns per weight, scaled by 2^SHIFT.
 *
 * A grant counts as two slices at the most: the policy answers for the decision, not for a
 * request of a minute. Each grant settles what was owed; a surplus stays until the others
 * have caught up, so waiting after an overrun is no starvation. A vGPU that waits beside an
 * idle GPU is starved whatever it is owed; unless the policy says that its rules make it wait.
 */
#include "scheduler/sched_priv.h"

#include "common/util.h"

#define SHIFT	 10
#define USED_MAX (1ull << 50) /* 13 days; longer ones count as this */
#define ROUNDS	 4	      /* so many turns of everybody may pass a vGPU beside the bound */
#define LOOK_AT	 128	      /* so many that wait are looked at per quarter of the bound */

static void update_owed(struct fgv_sched_vgpu *vgpu)
{
	uint64_t service = vgpu->sched->service;

	vgpu->owed += (int64_t)(service - vgpu->seen_service);
	vgpu->seen_service = service;
}

void fgv_sched_watch_charge(struct fgv_sched_vgpu *vgpu, uint64_t used_ns)
{
	struct fgv_sched *sched = vgpu->sched;
	uint64_t given_ns = fgv_min_u64(used_ns, 2 * fgv_min_u64(sched->params.slice_ns, USED_MAX));

	used_ns = fgv_min_u64(used_ns, USED_MAX);
	sched->service += (given_ns << SHIFT) / fgv_max_u64(sched->load.active_weight, 1);
	update_owed(vgpu);
	vgpu->owed -= (int64_t)((used_ns << SHIFT) / vgpu->pub.weight);
	if (vgpu->owed < -(int64_t)(USED_MAX << SHIFT))
		vgpu->owed = -(int64_t)(USED_MAX << SHIFT);
}

void fgv_sched_watch_wait(struct fgv_sched_vgpu *vgpu, uint64_t now_ns)
{
	if (vgpu->pub.holding > 0 || vgpu->pub.waiting > 1)
		return;
	vgpu->passed_since_ns = now_ns;
	update_owed(vgpu);
	if (vgpu->owed > 0)
		vgpu->owed = 0;
}

void fgv_sched_watch_grant(struct fgv_sched_vgpu *vgpu)
{
	vgpu->starved_told = false;
	update_owed(vgpu);
	if (vgpu->owed > 0)
		vgpu->owed = 0;
}

static uint64_t bound_of(const struct fgv_sched *sched)
{
	if (sched->params.starve_ns == 0)
		return FGV_POLICY_NEVER_STARVES;
	return sched->policy->starve_ns != 0 ? sched->policy->starve_ns : sched->params.starve_ns;
}

void fgv_sched_watch_reset(struct fgv_sched *sched, uint64_t now_ns)
{
	struct fgv_sched_vgpu *vgpu;

	LIST_FOREACH(vgpu, &sched->vgpus, link) {
		vgpu->passed_since_ns = now_ns;
		vgpu->seen_service = sched->service;
		vgpu->owed = 0;
		vgpu->starved_told = false;
	}
	sched->free_since_ns = now_ns;
	sched->watch_ns = now_ns + bound_of(sched) / 4;
}

/* How long the GPU has served others beyond their due while @vgpu waited. */
static uint64_t behind_ns(struct fgv_sched_vgpu *vgpu)
{
	uint64_t weight = fgv_max_u64(vgpu->sched->load.active_weight, 1);

	update_owed(vgpu);
	if (vgpu->owed <= 0)
		return 0;
	return (uint64_t)(((unsigned __int128)vgpu->owed * weight) >> SHIFT);
}

static uint64_t owed_ns(const struct fgv_sched_vgpu *vgpu)
{
	if (vgpu->owed <= 0)
		return 0;
	return (uint64_t)(((unsigned __int128)vgpu->owed * vgpu->pub.weight) >> SHIFT);
}

static bool starved(struct fgv_sched_vgpu *vgpu, uint64_t bound_ns, uint64_t now_ns)
{
	struct fgv_sched *sched = vgpu->sched;
	uint64_t since_ns = vgpu->passed_since_ns;
	uint64_t turns = ROUNDS * sched->load.active_weight / vgpu->pub.weight;

	if (vgpu->pub.holding > 0 || vgpu->starved_told || now_ns - since_ns < bound_ns)
		return false;
	if (sched->policy->withholds != NULL &&
	    sched->policy->withholds(&sched->gpu, &vgpu->pub, now_ns))
		return false;
	if (sched->load.holding == 0)
		return now_ns - fgv_max_u64(since_ns, sched->free_since_ns) >= bound_ns;
	return behind_ns(vgpu) >= bound_ns + turns * sched->params.slice_ns;
}

uint64_t fgv_sched_watch_ns(const struct fgv_sched *sched)
{
	if (sched->load.waiting == 0 || bound_of(sched) == FGV_POLICY_NEVER_STARVES)
		return FGV_SCHED_NEVER;
	return sched->watch_ns;
}

/* The next that has waited for longer than the bound; NULL: all of these have been looked at. */
static struct fgv_sched_session *next_to_look_at(struct fgv_sched *sched, uint64_t bound_ns,
						 uint64_t now_ns)
{
	struct fgv_sched_session *session = sched->watch_from;

	sched->watch_from = NULL;
	if (session == NULL)
		session = TAILQ_FIRST(&sched->waiting);
	if (session == NULL || now_ns - session->since_ns < bound_ns)
		return NULL; /* those behind it ask for less long */
	sched->watch_from = TAILQ_NEXT(session, state_link);
	return session;
}

static void report(struct fgv_sched_session *session, struct fgv_sched_decision *d)
{
	session->vgpu->starved_told = true;
	session->vgpu->gone.starved++;
	*d = (struct fgv_sched_decision){
		.action = FGV_SCHED_STARVED,
		.session = session,
		.owed_ns = owed_ns(session->vgpu),
	};
}

bool fgv_sched_watch_decide(struct fgv_sched *sched, uint64_t now_ns, struct fgv_sched_decision *d)
{
	uint64_t bound_ns = bound_of(sched);
	struct fgv_sched_session *session;
	unsigned int looked_at = 0;

	if (now_ns < fgv_sched_watch_ns(sched))
		return false;
	do {
		session = next_to_look_at(sched, bound_ns, now_ns);
		if (session == NULL)
			break;
		if (starved(session->vgpu, bound_ns, now_ns)) {
			report(session, d);
			return true;
		}
	} while (sched->watch_from != NULL && ++looked_at < LOOK_AT);
	sched->watch_ns = now_ns + fgv_max_u64(bound_ns / 4, 1);
	return false;
}
