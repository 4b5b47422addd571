/*
 * What policy_fair.c and fair_gangs.c share: the policy `fair`, and what it does about gangs
 * (gangs.h). Others see policy.h.
 */
#ifndef FGV_SCHEDULER_FAIR_H
#define FGV_SCHEDULER_FAIR_H

#include <stddef.h>

#include "common/util.h"
#include "scheduler/policy.h"
#include "scheduler/sfq.h"

/*
 * A turn that ends early still lasts for so long, or as many times that as the holder's weight is
 * the other's. It is more than both hand-overs of a burst and the idle time after it cost together,
 * so that even beside a flood of empty bursts the holder gets what its weight says.
 */
#define FGV_FAIR_TURN_MIN_NS FGV_NS_PER_MS

/* A vGPU's own memory. */
struct fgv_fair_own {
	struct fgv_sfq_node node; /* first */
	uint64_t granted_ns;
	uint64_t charged_ns; /* the time up to which it has been charged in this turn */
	uint64_t slept_ns;   /* when it became idle, */
	uint32_t owed_ns;    /* and how much it was behind the others then, in its GPU time */
	bool has_run;	     /* has had a turn */
	bool is_back;	     /* has had one, was idle, and has not had another since */
	bool is_passed;	     /* was first, but its gang could not have another GPU */
	bool claims;	     /* is idle only because others have the memory that it needs */
	uint64_t claim_ns;   /* what it has to catch up, in its GPU time */
};

struct fgv_fair {
	struct fgv_sfq queue;
	uint32_t back;	    /* vGPUs that are */
	bool has_paused;    /* a vGPU that had run, */
	uint64_t paused_id; /* the last of these, */
	uint64_t paused_ns; /* and when */
};

_Static_assert(sizeof(struct fgv_fair_own) <= FGV_POLICY_VGPU_BYTES, "room");
_Static_assert(sizeof(struct fgv_fair) <= FGV_POLICY_STATE_BYTES, "room");

static inline struct fgv_fair *fgv_fair_of(const struct fgv_policy_gpu *gpu)
{
	return (struct fgv_fair *)gpu->state;
}

static inline struct fgv_sfq *fgv_fair_queue(const struct fgv_policy_gpu *gpu)
{
	return &fgv_fair_of(gpu)->queue;
}

static inline struct fgv_fair_own *fgv_fair_own(const struct fgv_policy_vgpu *vgpu)
{
	return (struct fgv_fair_own *)vgpu->own;
}

static inline struct fgv_sfq_node *fgv_fair_node(const struct fgv_policy_vgpu *vgpu)
{
	return &fgv_fair_own(vgpu)->node;
}

static inline struct fgv_policy_vgpu *fgv_fair_vgpu(struct fgv_sfq_node *node)
{
	return (struct fgv_policy_vgpu *)((char *)node - offsetof(struct fgv_policy_vgpu, own));
}

/* The first that waits, but for @except. At most as many steps as there are grants out. */
static inline struct fgv_sfq_node *fgv_fair_first(const struct fgv_sfq *q,
						  const struct fgv_sfq_node *except)
{
	struct fgv_sfq_node *node = fgv_sfq_first(q);

	while (node != NULL && (node == except || fgv_fair_vgpu(node)->waiting == 0))
		node = fgv_sfq_next(q, node);
	return node;
}

/* How long a turn of @holder lasts at least that ends early for @vgpu. */
static inline uint64_t fgv_fair_least_ns(const struct fgv_policy_vgpu *holder,
					 const struct fgv_policy_vgpu *vgpu)
{
	return fgv_max_u64(FGV_FAIR_TURN_MIN_NS,
			   FGV_FAIR_TURN_MIN_NS * holder->weight / vgpu->weight);
}

/* --- Gangs; @gpu->gangs is not NULL unless it says so ------------------------ */

struct fgv_policy_vgpu *fgv_fair_pick_gangs(struct fgv_policy_gpu *gpu, uint64_t now_ns);

/* Whose gang has an appointment here by @at_ns, and which waits for that; NULL also without gangs.
 */
struct fgv_policy_vgpu *fgv_fair_called(const struct fgv_policy_gpu *gpu, uint64_t at_ns);

/* The grant that @vgpu gets ends with its gang's turn, or in time for another gang. */
void fgv_fair_fit_gangs(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			struct fgv_policy_grant *grant, uint64_t now_ns);

/* Whether @vgpu, which holds, is a part whose gang has its turn on other GPUs, too. */
bool fgv_fair_is_together(struct fgv_policy_vgpu *vgpu);

uint64_t fgv_fair_leave_by_ns(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			      uint64_t end_ns, uint64_t now_ns);
void fgv_fair_tell_gangs(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			 uint64_t end_ns, uint64_t now_ns);

#endif
