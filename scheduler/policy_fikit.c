/*
 * The policy `fikit`: strict priorities, and the gaps of the more urgent filled with the work of
 * the less urgent, after FIKIT (arXiv 2311.10359, section 3.2, algorithms 1 and 2).
 *
 * Each priority has a queue of start-time fair queuing (sfq.h); the first queue in which anybody
 * waits is served. When a more urgent vGPU wakes, the grant is asked back at once: the paper's
 * early stop by feedback.
 *
 * A vGPU that goes idle and says for how long begins a gap. Until that time a less urgent vGPU
 * gets the grant only if its next work is expected to be done by then, or if it can be taken off
 * the GPU by then, whatever it runs; those that are expected to fit come first. Where it can't be
 * taken off, its grant ends with the gap, too. When the gap has lasted twice as long as was said,
 * the word of the idle one counts no more. The paper takes the longest kernel that fits; here the
 * first that fits is taken, in the order of fair queuing, or a guest would gain by lying about its
 * kernels. Of each priority only the first few are looked at.
 *
 * What sessions say is no more than that: a gap holds up only those that are less urgent, which
 * the idle vGPU could keep from the GPU by computing, and not for longer than GAP_SLICES allow. A
 * filler that says that it fits, and does not, is asked back as any other.
 */
#include "scheduler/policy.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sfq.h"

/* Shorter gaps are not worth the way to another process and back (the paper's value). */
#define GAP_MIN_NS (100 * FGV_NS_PER_US)

/* A gap of more slices is none: it is time for anybody. */
#define GAP_SLICES 4

/* So many of each priority are looked at for one that fits. */
#define LOOKS 8

/* A grant beside which nobody of the same priority waits is for so many slices. */
#define LONG_SLICES 100

/* Of one that may be asked back for a more urgent one: a part of a slice is on the GPU at most. */
#define AHEAD_SHARE 32

struct fikit_level {
	struct fgv_sfq queue;
	struct fgv_sfq_room room;
	const struct fgv_policy_vgpu *gap_of; /* NULL: there is no gap */
	uint64_t gap_end_ns;		      /* as was said */
	uint64_t gap_void_ns;		      /* from when on it is no gap, but idleness */
};

/* Of each vGPU. */
struct fikit_own {
	struct fgv_sfq_node node; /* first */
	uint64_t granted_ns;
	uint64_t tried; /* the gap in which it had its chance, by its number */
	bool is_filling;
};

struct fikit {
	struct fikit_level *levels; /* NULL until the first vGPU comes */
	uint64_t gaps;		    /* that have begun */
};

_Static_assert(sizeof(struct fikit_own) <= sizeof(((struct fgv_policy_vgpu *)0)->own), "room");
_Static_assert(sizeof(struct fikit) <= sizeof(((struct fgv_policy_gpu *)0)->state), "room");

static struct fikit *fikit_of(const struct fgv_policy_gpu *gpu)
{
	return (struct fikit *)gpu->state;
}

static struct fikit_own *own_of(const struct fgv_policy_vgpu *vgpu)
{
	return (struct fikit_own *)vgpu->own;
}

static struct fikit_level *level_of(const struct fgv_policy_gpu *gpu,
				    const struct fgv_policy_vgpu *vgpu)
{
	return &fikit_of(gpu)->levels[vgpu->priority];
}

static struct fgv_policy_vgpu *vgpu_of(struct fgv_sfq_node *node)
{
	return (struct fgv_policy_vgpu *)((char *)node - offsetof(struct fgv_policy_vgpu, own));
}

/* --- Gaps ------------------------------------------------------------------ */

static void begin_gap(struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
		      uint64_t now_ns)
{
	struct fikit_level *level = level_of(gpu, vgpu);
	uint64_t gap_ns = vgpu->advice.gap_ns;

	if (gap_ns < GAP_MIN_NS || gap_ns > GAP_SLICES * gpu->params->slice_ns)
		return;
	level->gap_of = vgpu;
	level->gap_end_ns = now_ns + gap_ns;
	level->gap_void_ns = now_ns + 2 * gap_ns;
	fikit_of(gpu)->gaps++;
}

static void end_gap(struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
		    uint32_t priority)
{
	struct fikit_level *level = &fikit_of(gpu)->levels[priority];

	if (level->gap_of == vgpu)
		level->gap_of = NULL;
}

/* What is left at @now_ns of a gap of @level; UINT64_MAX: there is none. */
static uint64_t left_of(const struct fikit_level *level, uint64_t now_ns)
{
	if (level->gap_of == NULL || now_ns >= level->gap_void_ns)
		return UINT64_MAX;
	return level->gap_end_ns - fgv_min_u64(level->gap_end_ns, now_ns);
}

/* The same of all the gaps in which one of @priority is a filler. */
static uint64_t left_for(const struct fgv_policy_gpu *gpu, uint32_t priority, uint64_t now_ns)
{
	uint64_t left_ns = UINT64_MAX;

	for (uint32_t i = 0; i < priority; i++)
		left_ns = fgv_min_u64(left_ns, left_of(&fikit_of(gpu)->levels[i], now_ns));
	return left_ns;
}

static bool can_be_taken(const struct fgv_policy_vgpu *vgpu, uint64_t left_ns)
{
	return vgpu->taken_ns != UINT32_MAX && vgpu->taken_ns <= left_ns;
}

static bool fits(const struct fgv_policy_vgpu *vgpu, uint64_t left_ns)
{
	return vgpu->advice.next_ns != 0 && vgpu->advice.next_ns <= left_ns;
}

/* --- Queues ---------------------------------------------------------------- */

/* At most as many steps as there are grants out. */
static struct fgv_policy_vgpu *first_waiting(const struct fikit_level *level,
					     const struct fgv_policy_vgpu *except)
{
	struct fgv_sfq_node *node = fgv_sfq_first(&level->queue);

	while (node != NULL && (vgpu_of(node) == except || vgpu_of(node)->waiting == 0))
		node = fgv_sfq_next(&level->queue, node);
	return node != NULL ? vgpu_of(node) : NULL;
}

/* The first of @level that is expected to fit, or that can be taken off the GPU; in this order. */
static struct fgv_policy_vgpu *first_fitting(const struct fgv_policy_gpu *gpu,
					     const struct fikit_level *level, uint64_t left_ns)
{
	struct fgv_sfq_node *node = fgv_sfq_first(&level->queue);
	struct fgv_policy_vgpu *taken = NULL;

	for (int i = 0; i < LOOKS && node != NULL; i++) {
		struct fgv_policy_vgpu *vgpu = vgpu_of(node);
		bool may = vgpu->waiting > 0 && own_of(vgpu)->tried != fikit_of(gpu)->gaps;

		if (may && fits(vgpu, left_ns))
			return vgpu;
		if (may && taken == NULL && can_be_taken(vgpu, left_ns))
			taken = vgpu;
		node = fgv_sfq_next(&level->queue, node);
	}
	return taken;
}

/* --- Operations ------------------------------------------------------------ */

static void fikit_fini(struct fgv_policy_gpu *gpu)
{
	struct fikit *fikit = fikit_of(gpu);

	for (uint32_t i = 0; i < FGV_SCHED_PRIORITIES && fikit->levels != NULL; i++)
		fgv_sfq_room_fini(&fikit->levels[i].room);
	free(fikit->levels);
	fikit->levels = NULL;
}

static int make_levels(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct fikit *fikit = fikit_of(gpu);

	if (fikit->levels != NULL)
		return 0;
	fikit->levels = calloc(FGV_SCHED_PRIORITIES, sizeof(*fikit->levels));
	if (fikit->levels == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < FGV_SCHED_PRIORITIES; i++) {
		struct fikit_level *level = &fikit->levels[i];

		fgv_sfq_room_init(&level->room);
		fgv_sfq_init(&level->queue, &level->room, gpu->params->first_tag);
		level->queue.idle_since_ns = now_ns;
	}
	return 0;
}

/* Joins the queue of its priority, idle. */
static int join(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	struct fikit_level *level = level_of(gpu, vgpu);
	int err = fgv_sfq_room_grow(&level->room, level->queue.nodes + 1);

	if (err == 0)
		fgv_sfq_node_init(&level->queue, &own_of(vgpu)->node, vgpu->id, vgpu->weight);
	return err;
}

static int fikit_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	int err = make_levels(gpu, now_ns);

	return err != 0 ? err : join(gpu, vgpu);
}

static void fikit_detach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	end_gap(gpu, vgpu, vgpu->priority);
	fgv_sfq_node_fini(&level_of(gpu, vgpu)->queue, &own_of(vgpu)->node);
}

static void fikit_wake(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	end_gap(gpu, vgpu, vgpu->priority);
	fgv_sfq_activate(&level_of(gpu, vgpu)->queue, &own_of(vgpu)->node, now_ns);
}

static void fikit_sleep(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	fgv_sfq_deactivate(&level_of(gpu, vgpu)->queue, &own_of(vgpu)->node, now_ns);
	begin_gap(gpu, vgpu, now_ns);
}

static struct fgv_policy_vgpu *fikit_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct fgv_policy_vgpu *vgpu = NULL;
	uint64_t left_ns = UINT64_MAX;

	for (uint32_t i = 0; i < FGV_SCHED_PRIORITIES && vgpu == NULL; i++) {
		struct fikit_level *level = &fikit_of(gpu)->levels[i];

		if (level->gap_of != NULL && now_ns >= level->gap_void_ns)
			level->gap_of = NULL;
		if (left_ns == UINT64_MAX)
			vgpu = first_waiting(level, NULL);
		else
			vgpu = first_fitting(gpu, level, left_ns);
		left_ns = fgv_min_u64(left_ns, left_of(level, now_ns));
	}
	return vgpu;
}

/* What does not fit into a gap has its time when the gap is void. */
static uint64_t fikit_ready_ns(const struct fgv_policy_gpu *gpu)
{
	const struct fikit *fikit = fikit_of(gpu);
	uint64_t ready_ns = FGV_POLICY_NO_TICK;

	for (uint32_t i = 0; i < FGV_SCHED_PRIORITIES; i++)
		if (fikit->levels[i].gap_of != NULL)
			ready_ns = fgv_min_u64(ready_ns, fikit->levels[i].gap_void_ns);
	return ready_ns;
}

static struct fgv_policy_vgpu *fikit_next(struct fgv_policy_gpu *gpu,
					  struct fgv_policy_vgpu *holder, uint64_t used_ns,
					  uint64_t now_ns)
{
	const struct fgv_sfq_node *mine = &own_of(holder)->node, *its;
	struct fgv_policy_vgpu *other = NULL;

	(void)now_ns;
	for (uint32_t i = 0; i <= holder->priority && other == NULL; i++)
		other = first_waiting(&fikit_of(gpu)->levels[i], holder);
	if (other == NULL)
		return holder;
	its = &own_of(other)->node;
	if (other->priority == holder->priority &&
	    fgv_sfq_precedes(mine, fgv_sfq_finish(mine, used_ns), its, its->start))
		return holder;
	return other;
}

/* Whether another session of the same priority wants the GPU. */
static bool has_equals(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu)
{
	return level_of(gpu, vgpu)->queue.active > 1 || vgpu->waiting + vgpu->holding > 1;
}

static bool has_superiors(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu)
{
	for (uint32_t i = 0; i < vgpu->priority; i++)
		if (fikit_of(gpu)->levels[i].queue.nodes > 0)
			return true;
	return false;
}

static void fikit_grant(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			struct fgv_policy_grant *grant, uint64_t now_ns)
{
	uint64_t left_ns = left_for(gpu, vgpu->priority, now_ns);
	struct fikit_own *own = own_of(vgpu);

	own->granted_ns = now_ns;
	own->is_filling = left_ns != UINT64_MAX;
	if (has_superiors(gpu, vgpu))
		grant->ahead_ns = fgv_max_u64(grant->slice_ns / AHEAD_SHARE, 1);
	if (own->is_filling && !can_be_taken(vgpu, left_ns)) {
		grant->slice_ns = fgv_max_u64(fgv_min_u64(grant->slice_ns, left_ns), 1);
		grant->is_bounded = grant->must_fit = true;
	} else if (!has_equals(gpu, vgpu)) {
		grant->slice_ns *= LONG_SLICES;
	}
}

static void fikit_charge(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t used_ns,
			 uint64_t now_ns)
{
	(void)now_ns;
	fgv_sfq_charge(&level_of(gpu, vgpu)->queue, &own_of(vgpu)->node, used_ns);
}

/* A filler that has more to do found that it does not fit, or was asked back: it had its chance. */
static void fikit_put(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	struct fikit_own *own = own_of(vgpu);

	(void)now_ns;
	if (own->is_filling && vgpu->waiting > 0)
		own->tried = fikit_of(gpu)->gaps;
	own->is_filling = false;
}

static uint64_t fikit_leave_ns(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			       struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	uint64_t ran_ns = now_ns - own_of(holder)->granted_ns;

	if (vgpu->priority != holder->priority)
		return vgpu->priority < holder->priority ? 0 : UINT64_MAX;
	return gpu->params->slice_ns - fgv_min_u64(gpu->params->slice_ns, ran_ns);
}

static void fikit_set_weight(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint32_t old)
{
	(void)gpu;
	(void)old;
	fgv_sfq_set_weight(&own_of(vgpu)->node, vgpu->weight);
}

/* It begins at the virtual time of its new queue. */
static int fikit_set_priority(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			      uint32_t old, uint64_t now_ns)
{
	struct fikit_level *from = &fikit_of(gpu)->levels[old], *to = level_of(gpu, vgpu);
	struct fgv_sfq_node *node = &own_of(vgpu)->node;
	bool is_active = node->active;

	if (fgv_sfq_room_grow(&to->room, to->queue.nodes + 1) != 0)
		return -ENOMEM;
	end_gap(gpu, vgpu, old);
	if (is_active)
		fgv_sfq_deactivate(&from->queue, node, now_ns);
	fgv_sfq_node_fini(&from->queue, node);
	fgv_sfq_node_init(&to->queue, node, vgpu->id, vgpu->weight);
	if (is_active)
		fgv_sfq_activate(&to->queue, node, now_ns);
	return 0;
}

static bool fikit_tags(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
		       struct fgv_policy_tags *tags)
{
	tags->start_ns = own_of(vgpu)->node.start;
	tags->virtual_ns = level_of(gpu, vgpu)->queue.vtime;
	return true;
}

const struct fgv_policy fgv_policy_fikit = {
	.name = "fikit",
	.gpu_wait = FGV_POLICY_WAIT_BLOCK,
	.guest_wait = FGV_POLICY_WAIT_BLOCK,
	.cosched = FGV_POLICY_COSCHED_GPU,
	.fills_gaps = true,
	.starve_ns = FGV_POLICY_NEVER_STARVES,
	.fini = fikit_fini,
	.attach = fikit_attach,
	.detach = fikit_detach,
	.wake = fikit_wake,
	.sleep = fikit_sleep,
	.pick = fikit_pick,
	.ready_ns = fikit_ready_ns,
	.next = fikit_next,
	.grant = fikit_grant,
	.charge = fikit_charge,
	.put = fikit_put,
	.leave_ns = fikit_leave_ns,
	.set_weight = fikit_set_weight,
	.set_priority = fikit_set_priority,
	.tags = fikit_tags,
};
