/*
 * The policy `smguard`: spatial shares, after SMGuard (Yu et al.). vGPUs have the GPU at the
 * same time, each on multiprocessors of its own; which, spatial.c says. Sessions of one vGPU
 * take turns on its multiprocessors.
 *
 * Those that have reserved some, the owners, come first: each as soon as its home is free, which
 * it asks back from whoever has borrowed of it. The others share what is left in turns, by
 * start-time fair queuing, where the service that counts is time multiplied by the part of the
 * GPU. An owner may take more than its home when none of these waits.
 *
 * Where units are lent, every grant ends with its slice or when its holder has nothing to do, so
 * that what each has follows what is wanted. Where they are not, nobody else could use them, and
 * a grant ends only if another session waits.
 */
#include "scheduler/policy.h"

#include <errno.h>
#include <stddef.h>

#include <bsd/sys/queue.h>

#include "common/util.h"
#include "scheduler/sfq.h"
#include "scheduler/spatial.h"

struct own {
	struct fgv_sfq_node node; /* of one without a home */
	struct fgv_spatial_share share;
	TAILQ_ENTRY(own) link; /* of an owner that is active */
};

struct state {
	struct fgv_sfq queue;
	struct fgv_spatial spatial;
	TAILQ_HEAD(, own) owners; /* the one that was served last is the last */
};

_Static_assert(sizeof(struct own) <= sizeof(((struct fgv_policy_vgpu *)0)->own), "room");
_Static_assert(sizeof(struct state) <= sizeof(((struct fgv_policy_gpu *)0)->state), "room");

static struct state *state_of(const struct fgv_policy_gpu *gpu)
{
	return (struct state *)gpu->state;
}

static struct own *own_of(const struct fgv_policy_vgpu *vgpu)
{
	return (struct own *)vgpu->own;
}

static struct fgv_policy_vgpu *vgpu_of(struct own *own)
{
	return (struct fgv_policy_vgpu *)((char *)own - offsetof(struct fgv_policy_vgpu, own));
}

/* Its first member. */
static struct own *own_of_node(struct fgv_sfq_node *node)
{
	return (struct own *)node;
}

static void smguard_init(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct state *state = state_of(gpu);
	const struct fgv_sched_params *params = gpu->params;

	fgv_sfq_init(&state->queue, gpu->room, params->first_tag);
	state->queue.idle_since_ns = now_ns;
	fgv_spatial_init(&state->spatial, params->units ? params->units : 1, params->lends);
	TAILQ_INIT(&state->owners);
}

static int smguard_set_units(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			     uint32_t units, uint32_t limit)
{
	return fgv_spatial_join(&state_of(gpu)->spatial, &own_of(vgpu)->share, units, limit);
}

static uint64_t smguard_units(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu)
{
	const struct fgv_spatial_share *share = &own_of(vgpu)->share;

	return share->home ? share->home : fgv_spatial_pool(&state_of(gpu)->spatial);
}

static uint64_t smguard_held(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu)
{
	(void)gpu;
	return own_of(vgpu)->share.held;
}

static int smguard_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct own *own = own_of(vgpu);
	uint32_t limit = vgpu->units_limit ? vgpu->units_limit : FGV_SPATIAL_UNITS_MAX;
	int err = fgv_spatial_join(&state_of(gpu)->spatial, &own->share, vgpu->units, limit);

	(void)now_ns;
	if (!err)
		fgv_sfq_node_init(&state_of(gpu)->queue, &own->node, vgpu->id, vgpu->weight);
	return err;
}

static void smguard_detach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	fgv_spatial_leave(&state_of(gpu)->spatial, &own_of(vgpu)->share);
	fgv_sfq_node_fini(&state_of(gpu)->queue, &own_of(vgpu)->node);
}

static void smguard_wake(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct state *state = state_of(gpu);
	struct own *own = own_of(vgpu);

	fgv_spatial_wake(&state->spatial, &own->share);
	if (own->share.home)
		TAILQ_INSERT_TAIL(&state->owners, own, link);
	else
		fgv_sfq_activate(&state->queue, &own->node, now_ns);
}

static void smguard_sleep(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct state *state = state_of(gpu);
	struct own *own = own_of(vgpu);

	if (own->share.home)
		TAILQ_REMOVE(&state->owners, own, link);
	else
		fgv_sfq_deactivate(&state->queue, &own->node, now_ns);
	fgv_spatial_sleep(&state->spatial, &own->share);
}

/* One turn at a time: what it has is divided among its sessions by turns. */
static bool is_in_line(struct own *own)
{
	return vgpu_of(own)->waiting > 0 && vgpu_of(own)->holding == 0;
}

/* At most as many steps as there are units. */
static struct own *first_owner(const struct state *state)
{
	struct own *own;

	TAILQ_FOREACH(own, &state->owners, link) {
		if (is_in_line(own) && fgv_spatial_usable(&state->spatial, &own->share))
			return own;
	}
	return NULL;
}

/* At most as many steps as there are grants out, which are no more than units. */
static struct own *first_borrower(const struct state *state)
{
	struct fgv_sfq_node *node = fgv_sfq_first(&state->queue);

	while (node && !is_in_line(own_of_node(node)))
		node = fgv_sfq_next(&state->queue, node);
	return node ? own_of_node(node) : NULL;
}

static struct fgv_policy_vgpu *smguard_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct state *state = state_of(gpu);
	struct own *own = first_owner(state);

	(void)now_ns;
	if (own) {
		TAILQ_REMOVE(&state->owners, own, link);
		TAILQ_INSERT_TAIL(&state->owners, own, link);
		return vgpu_of(own);
	}
	own = first_borrower(state);
	return own && fgv_spatial_usable(&state->spatial, &own->share) ? vgpu_of(own) : NULL;
}

/* Also called for one that has its units, when its slice is to be known. */
static void smguard_grant(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			  struct fgv_policy_grant *grant, uint64_t now_ns)
{
	struct state *state = state_of(gpu);

	(void)now_ns;
	grant->units = fgv_spatial_take(&state->spatial, &own_of(vgpu)->share,
					first_borrower(state) == NULL);
	grant->is_bounded = state->spatial.lends;
}

static void smguard_charge(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			   uint64_t used_ns, uint64_t now_ns)
{
	struct state *state = state_of(gpu);
	struct own *own = own_of(vgpu);
	unsigned has = (unsigned)__builtin_popcountll(own->share.held);
	unsigned all = (unsigned)__builtin_popcountll(state->spatial.all);

	(void)now_ns;
	if (!own->share.home)
		fgv_sfq_charge(&state->queue, &own->node,
			       (uint64_t)((unsigned __int128)used_ns * has / all));
}

static void smguard_put(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	(void)now_ns;
	if (vgpu->holding == 0)
		fgv_spatial_put(&state_of(gpu)->spatial, &own_of(vgpu)->share);
}

static uint64_t smguard_leave_ns(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
				 struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	return fgv_spatial_is_in_way(&own_of(holder)->share, &own_of(vgpu)->share) ? 0 : UINT64_MAX;
}

static void smguard_set_weight(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			       uint32_t old)
{
	(void)gpu;
	(void)old;
	fgv_sfq_set_weight(&own_of(vgpu)->node, vgpu->weight);
}

/* One without a home has no claim to anything, and may wait as long as owners want. */
const struct fgv_policy fgv_policy_smguard = {
	.name = "smguard",
	.gpu_wait = FGV_POLICY_WAIT_BLOCK,
	.guest_wait = FGV_POLICY_WAIT_BLOCK,
	.cosched = FGV_POLICY_COSCHED_GPU,
	.max_grants = FGV_SPATIAL_UNITS_MAX,
	.starve_ns = FGV_POLICY_NEVER_STARVES,
	.init = smguard_init,
	.attach = smguard_attach,
	.detach = smguard_detach,
	.wake = smguard_wake,
	.sleep = smguard_sleep,
	.pick = smguard_pick,
	.grant = smguard_grant,
	.charge = smguard_charge,
	.put = smguard_put,
	.leave_ns = smguard_leave_ns,
	.set_weight = smguard_set_weight,
	.set_units = smguard_set_units,
	.units = smguard_units,
	.held = smguard_held,
};
