/*
 * What a scheduling policy is: one file with one `const struct fgv_policy` table. The core
 * (sched.c) keeps the sessions, the grants, the accounting and the watchdog; the policy
 * decides which vGPU is next. A new policy is a file policy_<name>.c, its table in
 * policy.c's list, a row in the tests' list, and a line in fairgv-backend.conf(5).
 *
 * Rules for every operation: no clock, no thread, no I/O, no lock; time comes as now_ns,
 * which never moves back. Operations of one scheduler never run at the same time. They must
 * not call the core. Only attach, set_shares and set_priority may allocate or fail. O(log n) or better
 * in the number of vGPUs for all but tick, attach, detach and set_priority.
 *
 * A policy sees vGPUs. The sessions inside one share equally, which is the core's doing.
 *
 * Shapes that the table leaves room for: several grants at once (max_grants; the units of
 * struct fgv_policy_grant say on which multiprocessors, set_units which VM has reserved some),
 * quotas that change with the load (grant), requests and limits (set_shares; pick may answer
 * NULL while somebody waits, and ready_ns says when to ask again), strict priority with gap
 * filling (set_priority, advise, and leave_ns when the urgent one wakes). Placement on several GPUs
 * happens before: one scheduler per GPU, and fgv_sched_load() to choose by. Where turns on several
 * GPUs are to go together, their schedulers agree on that through gangs.h.
 */
#ifndef FGV_SCHEDULER_POLICY_H
#define FGV_SCHEDULER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/gangs.h"
#include "scheduler/params.h"

#define FGV_POLICY_VGPU_BYTES	 80  /* a policy's own memory in each vGPU */
#define FGV_POLICY_STATE_BYTES	 128 /* and for itself */
#define FGV_POLICY_NO_TICK	 UINT64_MAX
#define FGV_POLICY_NEVER_STARVES UINT64_MAX

struct fgv_sfq_room;

/* A vGPU as a policy sees it. All but own[] is the core's, to be read only. */
struct fgv_policy_vgpu {
	uint64_t id;					      /* unique, in order of attachment */
	uint32_t weight;				      /* 1 to FGV_SCHED_WEIGHT_MAX */
	uint32_t priority;				      /* below FGV_SCHED_PRIORITIES */
	struct fgv_sched_shares shares;			      /* nothing, under most policies */
	uint32_t waiting;				      /* sessions that ask for the grant */
	uint32_t holding;				      /* sessions that hold one */
	_Alignas(8) unsigned char own[FGV_POLICY_VGPU_BYTES]; /* zero before attach */
	struct fgv_sched_advice advice;			      /* the last that a session gave */
	uint32_t taken_ns; /* a grant asked back comes back within this, whatever runs */
	uint32_t units;	   /* reserved of params->units; nothing, under most policies */
	uint32_t units_limit; /* 0: all */
	struct fgv_gang_part part; /* of a gang (gangs.h), or of none; the policy tells it things */
};

/* One GPU's scheduler as a policy sees it; @state is the policy's, zero before init. */
struct fgv_policy_gpu {
	_Alignas(8) unsigned char state[FGV_POLICY_STATE_BYTES];
	const struct fgv_sched_params *params;

	/* For one queue (sfq.h): the core has grown it for all vGPUs before their attach. */
	struct fgv_sfq_room *room;

	struct fgv_gangs *gangs; /* that have parts here; NULL: there are none */
	unsigned number;	 /* of this GPU among theirs */
};

/* What a grant carries. The core fills in the defaults, the policy's grant changes them. */
struct fgv_policy_grant {
	uint64_t slice_ns;
	bool is_bounded; /* the slice also ends if nobody else waits; false by default */

	/*
	 * For a holder that may be asked back at any time: work that is not done at most at once
	 * (0: as much as a slice), and whether only work that is expected to be done within the
	 * slice is let through. A process can ignore both; its grant is asked back all the same.
	 */
	uint64_t ahead_ns;
	bool must_fit;

	/* A set of params->units: the multiprocessors that it is for. 0: the whole GPU. */
	uint64_t units;
};

/* The tags of a vGPU under a policy that has such; for tests, figures and statistics. */
struct fgv_policy_tags {
	uint64_t start_ns;
	uint64_t virtual_ns;
};

/* How a vCPU with nothing to do waits. */
enum fgv_policy_wait {
	FGV_POLICY_WAIT_BLOCK, /* spins for a bounded time, then sleeps until woken */
	FGV_POLICY_WAIT_YIELD, /* spins for a bounded time, then lets others run, and so on */
	FGV_POLICY_WAIT_POLL,  /* spins */
};

enum fgv_policy_cosched {
	FGV_POLICY_COSCHED_NONE,
	FGV_POLICY_COSCHED_GPU, /* the GPU's choice wakes and favours the vCPU (algorithms 3, 4) */
	FGV_POLICY_COSCHED_CPU, /* the CPU's choice asks for the vGPU (algorithms 1, 2) */
};

struct fgv_policy {
	const char *name;

	/*
	 * What the policy expects of what drives it, the core and the vGPU processes. By
	 * default (all zero) a grant means: the slice is GPU time, measured; giving back means
	 * drained; a holder with nothing to do gives back.
	 *
	 * time_shared: the slice is time by the clock, giving back means to submit nothing
	 * more while work may still be on the GPU, and the core charges the time that a grant
	 * was held, whatever was reported. This is how schedulers for processors treat a GPU.
	 */
	bool time_shared;
	enum fgv_policy_wait gpu_wait;	 /* a holder without a request; POLL: keeps the grant */
	enum fgv_policy_wait guest_wait; /* the guest's vCPU without a reply */
	enum fgv_policy_cosched cosched;

	/*
	 * Gaps in the work of one are filled with work of others: processes are to learn them,
	 * and to give their grant back as one begins, if it is worth that.
	 */
	bool fills_gaps;

	/* Grants that may be out at once; 0 means one. Ignored where pick is left out. */
	uint32_t max_grants;

	/*
	 * The watchdog's bound under this policy; 0 means that of the parameters, and
	 * FGV_POLICY_NEVER_STARVES that the policy starves on purpose (strict priority).
	 */
	uint64_t starve_ns;

	/*
	 * Once, before any other. state is zero. Left out: nothing to prepare.
	 */
	void (*init)(struct fgv_policy_gpu *gpu, uint64_t now_ns);

	/* Once, as the last; every vGPU has been detached. Left out: nothing to undo. */
	void (*fini)(struct fgv_policy_gpu *gpu);

	/*
	 * A vGPU appears, idle: waiting and holding are 0, own[] is zero. A negative errno
	 * refuses it. Left out: nothing to prepare.
	 */
	int (*attach)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);

	/* A vGPU goes; it is idle, after sleep. Left out: nothing to undo. */
	void (*detach)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu);

	/*
	 * An idle vGPU becomes active: its first session asks, waiting is 1. Further sessions
	 * that ask are not announced: pick reads waiting. After a change of policy also for
	 * vGPUs whose sessions hold a grant. Left out together with sleep, if pick is.
	 */
	void (*wake)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);

	/*
	 * An active vGPU becomes idle: no session of it waits or holds. Everything that it
	 * used has been charged. It must not be picked until it wakes.
	 */
	void (*sleep)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);

	/*
	 * From now on, or no more, vgpu claims its part of the GPU also while it is idle: it has work
	 * that it can't ask for, since others have the memory that it needs. Left out: an idle vGPU
	 * claims nothing.
	 */
	void (*claim)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, bool claims,
		      uint64_t now_ns);

	/*
	 * A grant is free and somebody waits: which active vGPU with waiting > 0 gets it? The
	 * answer is granted, now. NULL leaves the grant free until the next event or tick, or
	 * until ready_ns; the watchdog notices a vGPU that waits beside an idle GPU. Left out:
	 * there is no queue, and every session that asks gets a grant at once, without end.
	 */
	struct fgv_policy_vgpu *(*pick)(struct fgv_policy_gpu *gpu, uint64_t now_ns);

	/*
	 * pick has answered NULL: when may it answer otherwise although nothing happens?
	 * FGV_POLICY_NO_TICK: never. Left out: never.
	 */
	uint64_t (*ready_ns)(const struct fgv_policy_gpu *gpu);

	/*
	 * Does vgpu wait because the rules want it to, so that the watchdog has no reason to
	 * object? Left out: no.
	 */
	bool (*withholds)(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
			  uint64_t now_ns);

	/*
	 * Which vGPU would pick give if @holder gave back after another @used_ns and still
	 * wanted more? Must change nothing. Asked shortly before the end of a slice, so that
	 * the successor is awake in time. Wrong answers cost time, not fairness. Left out:
	 * nobody is woken early.
	 */
	struct fgv_policy_vgpu *(*next)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
					uint64_t used_ns, uint64_t now_ns);

	/*
	 * vgpu is about to be granted: change what the grant carries. Likewise if it holds one
	 * without limit, and others come: then only the slice counts. Left out: a slice of the
	 * parameters' length.
	 */
	void (*grant)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
		      struct fgv_policy_grant *grant, uint64_t now_ns);

	/*
	 * vgpu used the GPU for used_ns (time_shared: held it). During a grant or at its end, or
	 * while it waits after one, always before put and sleep. The sum of all is what it used; nothing is charged
	 * twice. Left out: the policy does not care.
	 */
	void (*charge)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t used_ns,
		       uint64_t now_ns);

	/*
	 * A session of vgpu has given its grant back, or what it used after that has been
	 * charged, and it waits. waiting counts it again if it wants more;
	 * if the vGPU has become idle, sleep follows. Left out: pick does not care in which
	 * order grants came back.
	 */
	void (*put)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);

	/*
	 * vgpu has just been woken, or (cosched CPU) its vCPU is about to run on a processor:
	 * must the holders give back now, before their slices end? After true the policy's
	 * next pick should be vgpu. Called with vgpu active only. Left out: never.
	 */
	bool (*preempts)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, bool vcpu_runs,
			 uint64_t now_ns);

	/*
	 * vgpu has just been woken beside @holder, or a further session of @holder itself asks: how
	 * much longer may @holder use the GPU? More than it was told before changes nothing. Left
	 * out: as it was told.
	 */
	uint64_t (*leave_ns)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			     struct fgv_policy_vgpu *vgpu, uint64_t now_ns);

	/*
	 * By when is @holder, whose grant ends at @end_ns or UINT64_MAX, to give back since a gang is
	 * to begin here? UINT64_MAX: goes on. Asked before all decisions. Left out: gangs are
	 * scheduled like other vGPUs.
	 */
	uint64_t (*leave_by_ns)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
				uint64_t end_ns, uint64_t now_ns);

	/*
	 * There is nothing more to decide now; @holder holds until @end_ns, or is NULL: what the
	 * parts of gangs here are to tell the others. Left out together with leave_by_ns.
	 */
	void (*tell_gangs)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
			   uint64_t end_ns, uint64_t now_ns);

	/*
	 * Called at or after the time that the last call returned, first when a vGPU wakes;
	 * returns when to be called next, or FGV_POLICY_NO_TICK: when a vGPU wakes again.
	 * Left out: never called.
	 */
	uint64_t (*tick)(struct fgv_policy_gpu *gpu, uint64_t now_ns);

	/* vgpu->weight has changed, from @old. Left out: weight is read where it is used. */
	void (*set_weight)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint32_t old);

	/*
	 * vgpu->shares have changed, from @old: valid, and admitted. A negative errno leaves
	 * them as they were. Left out: the policy knows no shares, and only a vGPU without any
	 * may be attached.
	 */
	int (*set_shares)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			  const struct fgv_sched_shares *old, uint64_t now_ns);

	/*
	 * vgpu->priority has changed, from @old. A negative errno leaves it as it was. Left out:
	 * the policy knows no priorities, and all vGPUs have FGV_SCHED_PRIORITY_DEFAULT.
	 */
	int (*set_priority)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint32_t old,
			    uint64_t now_ns);

	/*
	 * vgpu, which is idle, is to have so many of params->units reserved, and @limit at most;
	 * they are in it afterwards. A negative errno leaves them as they were. Left out: the policy
	 * divides no multiprocessors.
	 */
	int (*set_units)(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint32_t units,
			 uint32_t limit);

	/*
	 * Which it may have when nothing is lent, and which it has now. Left out, as is set_units:
	 * all, as none are told from others (0).
	 */
	uint64_t (*units)(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu);
	uint64_t (*held)(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu);

	/* The vGPU's tags, or false. Left out: there are none. */
	bool (*tags)(const struct fgv_policy_gpu *gpu, const struct fgv_policy_vgpu *vgpu,
		     struct fgv_policy_tags *tags);
};

extern const struct fgv_policy fgv_policy_fair;
extern const struct fgv_policy fgv_policy_gemini;
extern const struct fgv_policy fgv_policy_fikit;
extern const struct fgv_policy fgv_policy_smguard;
extern const struct fgv_policy fgv_policy_credit_poll;
extern const struct fgv_policy fgv_policy_credit_hs;
extern const struct fgv_policy fgv_policy_strict_co;
extern const struct fgv_policy fgv_policy_none;

/* All of them, ending with NULL; the first is the default. */
extern const struct fgv_policy *const fgv_policies[];

/* By its name, or NULL. */
const struct fgv_policy *fgv_policy_find(const char *name);

#endif
