/*
 * The policy `fair`: start-time fair queuing over the vGPUs (FairGV, sections 3.2 and 3.3).
 * The algorithm is in sfq.c; here it meets the scheduler. Active vGPUs, those in service
 * included, are in the queue; the next is the first in it with a session that waits.
 */
#include "scheduler/policy.h"

#include <stddef.h>

#include "common/util.h"
#include "scheduler/sfq.h"

/* A vGPU's own memory is its node. */
_Static_assert(sizeof(struct fgv_sfq_node) <= sizeof(((struct fgv_policy_vgpu *)0)->own), "room");
_Static_assert(sizeof(struct fgv_sfq) <= sizeof(((struct fgv_policy_gpu *)0)->state), "room");

static struct fgv_sfq *queue_of(const struct fgv_policy_gpu *gpu)
{
	return (struct fgv_sfq *)gpu->state;
}

static struct fgv_sfq_node *node_of(const struct fgv_policy_vgpu *vgpu)
{
	return (struct fgv_sfq_node *)vgpu->own;
}

static struct fgv_policy_vgpu *vgpu_of(struct fgv_sfq_node *node)
{
	return (struct fgv_policy_vgpu *)((char *)node - offsetof(struct fgv_policy_vgpu, own));
}

static void fair_init(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct fgv_sfq *q = queue_of(gpu);

	fgv_sfq_init(q, gpu->room, gpu->params->first_tag);
	q->idle_since_ns = now_ns;
}

static int fair_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	(void)now_ns;
	fgv_sfq_node_init(queue_of(gpu), node_of(vgpu), vgpu->id, vgpu->weight);
	return 0;
}

static void fair_detach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu)
{
	fgv_sfq_node_fini(queue_of(gpu), node_of(vgpu));
}

static void fair_wake(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	fgv_sfq_activate(queue_of(gpu), node_of(vgpu), now_ns);
}

static void fair_sleep(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns)
{
	fgv_sfq_deactivate(queue_of(gpu), node_of(vgpu), now_ns);
}

/* At most as many steps as there are grants out. */
static struct fgv_sfq_node *first_waiting(const struct fgv_sfq *q,
					  const struct fgv_sfq_node *except)
{
	struct fgv_sfq_node *node = fgv_sfq_first(q);

	while (node != NULL && (node == except || vgpu_of(node)->waiting == 0))
		node = fgv_sfq_next(q, node);
	return node;
}

static struct fgv_policy_vgpu *fair_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	struct fgv_sfq_node *node = first_waiting(queue_of(gpu), NULL);

	(void)now_ns;
	return node != NULL ? vgpu_of(node) : NULL;
}

static struct fgv_policy_vgpu *fair_next(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
					 uint64_t used_ns, uint64_t now_ns)
{
	struct fgv_sfq_node *mine = node_of(holder);
	struct fgv_sfq_node *other = first_waiting(queue_of(gpu), mine);

	(void)now_ns;
	if (other == NULL ||
	    fgv_sfq_precedes(mine, fgv_sfq_finish(mine, used_ns), other, other->start))
		return holder;
	return vgpu_of(other);
}

static void fair_charge(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t used_ns,
			uint64_t now_ns)
{
	(void)now_ns;
	fgv_sfq_charge(queue_of(gpu), node_of(vgpu), used_ns);
}

static void fair_set_weight(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint32_t old)
{
	(void)gpu;
	(void)old;
	fgv_sfq_set_weight(node_of(vgpu), vgpu->weight);
}

static bool fair_tags(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
		      struct fgv_policy_tags *tags)
{
	tags->start_ns = node_of(vgpu)->start;
	tags->virtual_ns = queue_of(gpu)->vtime;
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
	.pick = fair_pick,
	.next = fair_next,
	.charge = fair_charge,
	.set_weight = fair_set_weight,
	.tags = fair_tags,
};
