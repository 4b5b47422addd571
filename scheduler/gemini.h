/*
 * What the files of the policy `gemini` share: its structures, and the clocks that say which VM is
 * behind a request or ahead of a limit (gemini_clock.c). The policy is in policy_gemini.c.
 */
#ifndef FGV_SCHEDULER_GEMINI_H
#define FGV_SCHEDULER_GEMINI_H

#include <bsd/sys/tree.h>

#include "scheduler/burst.h"
#include "scheduler/policy.h"
#include "scheduler/sfq.h"
#include "scheduler/window.h"

/* A VM with a bound comes before others until it is this many bounds ahead of its request. */
#define GEMINI_LENIENCE 20

/* In a tree, by a time. */
struct gemini_entry {
	RB_ENTRY(gemini_entry) link;
	uint64_t at_ns;
	uint64_t id;
	struct gemini_vgpu *vgpu;
};

RB_HEAD(gemini_tree, gemini_entry);

struct gemini_vgpu {
	struct fgv_policy_vgpu *vgpu;
	struct gemini_entry entry; /* in `due` or in `back`; in neither without a request */
	struct gemini_entry bound; /* in `urgent` or in `spent`; in neither without a bound */
	struct gemini_tree *bound_in;
	bool is_spent; /* its bound: it has used more than that allows, and not paid it back */
	uint64_t deadline_ns;
	bool is_active;
	bool is_back;
	bool is_brief; /* its bursts are of a slice at most */
	uint64_t due_ns, pace_ns;
	uint64_t settled_ns; /* up to when they are right */
	uint64_t run_ns;     /* use since its last token */
	uint64_t granted_ns; /* which it got then */
	struct fgv_burst burst;
	struct fgv_window *window; /* NULL: no limit */
};

/* A vGPU's own memory: the walks of the queue touch no more than this. */
struct gemini_own {
	struct fgv_sfq_node node;
	struct gemini_vgpu *more;
};

struct gemini {
	struct fgv_sfq queue;
	struct gemini_tree due;	   /* those with a request, by their due times */
	struct gemini_tree back;   /* those held back, by the end of that */
	struct gemini_tree urgent; /* those with a bound, by their deadlines; */
	struct gemini_tree spent;  /* that have overused it, by the time that it is good again */
	uint64_t active;
	uint64_t brief; /* of those */
};

_Static_assert(sizeof(struct gemini_own) <= sizeof(((struct fgv_policy_vgpu *)0)->own), "room");
_Static_assert(sizeof(struct gemini) <= sizeof(((struct fgv_policy_gpu *)0)->state), "room");

static inline struct gemini *gemini_of(const struct fgv_policy_gpu *gpu)
{
	return (struct gemini *)gpu->state;
}

static inline struct gemini_own *own_of(const struct fgv_policy_vgpu *vgpu)
{
	return (struct gemini_own *)vgpu->own;
}

static inline struct gemini_vgpu *more_of(const struct fgv_policy_vgpu *vgpu)
{
	return own_of(vgpu)->more;
}

static inline struct fgv_policy_vgpu *vgpu_of(struct fgv_sfq_node *node)
{
	return ((struct gemini_own *)node)->more->vgpu; /* the node is its first member */
}

static inline bool has_limit(const struct fgv_policy_vgpu *vgpu)
{
	return vgpu->shares.limit != FGV_SCHED_WHOLE;
}

/* The time that it takes to use @used_ns with @share of the GPU. */
uint64_t fgv_gemini_at_share(uint64_t used_ns, uint32_t share);

/* @idle_ns up to @now_ns were not wanted: what a clock is behind becomes no more by them. */
void fgv_gemini_settle(const struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t idle_ns,
		       uint64_t now_ns);

/* @more has used @used_ns up to @now_ns: its clocks, its window and its tag. */
void fgv_gemini_charge(struct fgv_policy_gpu *gpu, struct gemini_vgpu *more, uint64_t used_ns,
		       uint64_t now_ns);

/* From when on its limit allows more; @now_ns: already. */
uint64_t fgv_gemini_allows_ns(const struct fgv_policy_gpu *gpu, struct gemini_vgpu *more,
			      uint64_t now_ns);

/* The shares have changed, from @old: what was had counts by the new ones. */
void fgv_gemini_rescale(struct gemini_vgpu *more, const struct fgv_sched_shares *old,
			uint64_t now_ns);

#endif
