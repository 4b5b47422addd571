/*
 * Gangs: VMs whose turns on several GPUs go together. A kernel of a collective waits for its peer
 * on another GPU, so a turn on one GPU alone is spent waiting. Every GPU has a scheduler of its own
 * (sched.h); what they have to agree on is here: which gang is to begin where, and when.
 *
 * A gang has a part on each of its GPUs: its vGPU there. When it is a part's turn, and other parts
 * of the gang ask for their GPUs too, the gang makes an appointment for the earliest time at which
 * it may have all of these. Until then the GPUs go on serving others, with turns that end at that
 * time. Then each part gets its GPU, and all have it until one common end.
 *
 * - Work conserving: a part whose gang asks for no other GPU is served like any vGPU. A GPU never
 *   waits for an appointment while anybody asks for it.
 * - No cyclic wait: an appointment is made on all its GPUs at once, or not at all; a GPU has one at
 *   most, and one that has been made waits for none. A gang that found a GPU taken gets a ticket,
 *   and none that shares a GPU with it makes an appointment before it unless its ticket is older.
 * - Fairness is the policy's, GPU by GPU: it says from when on a part may have its GPU, and a part
 *   pays there for all the time that it holds it. What a part is not given since its gang can't
 *   have another GPU yet is not owed to it later.
 *
 * A pure library. Schedulers that share a struct fgv_gangs may run in threads of their own if the
 * driver gives it a lock; each function takes it once, and calls nothing meanwhile. The functions
 * above "What schedulers say" are the driver's, the others the policy's.
 */
#ifndef FGV_SCHEDULER_GANGS_H
#define FGV_SCHEDULER_GANGS_H

#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#define FGV_GANGS_GPUS	16
#define FGV_GANGS_NEVER UINT64_MAX

struct fgv_gang;
struct fgv_gangs;
struct fgv_policy_vgpu;

/* enter and leave may be NULL where all schedulers run in one thread. */
struct fgv_gangs_lock {
	void (*enter)(void *arg);
	void (*leave)(void *arg);
	void *arg;
};

enum fgv_gang_state { FGV_GANG_IDLE, FGV_GANG_WAITING, FGV_GANG_HOLDING };

/* What the scheduler of its GPU says of a part. */
struct fgv_gang_view {
	enum fgv_gang_state state;
	/*
	 * WAITING: from when on it may have the GPU. HOLDING: likewise again, when its grant has
	 * ended. FGV_GANGS_NEVER: others come first, as things are.
	 */
	uint64_t from_ns;
	uint64_t until_ns; /* HOLDING: when its grant ends, or FGV_GANGS_NEVER */
};

/* A gang's part on one GPU. It lies in its vGPU; all but owner is gangs.c's. */
struct fgv_gang_part {
	struct fgv_gang *gang; /* NULL: it is no part of any */
	struct fgv_policy_vgpu *owner;
	unsigned gpu;
	struct fgv_gang_view view;
	LIST_ENTRY(fgv_gang_part) gpu_link;
};

/* @lock is copied; NULL: none. -ENOMEM. */
int fgv_gangs_create(struct fgv_gangs **out, const struct fgv_gangs_lock *lock);
/* All gangs are gone. NULL is allowed. */
void fgv_gangs_destroy(struct fgv_gangs *gangs);

/* -ENOMEM. */
int fgv_gang_create(struct fgv_gang **out, struct fgv_gangs *gangs);
/* It has no parts. NULL is allowed. */
void fgv_gang_destroy(struct fgv_gang *gang);

struct fgv_gang_stats {
	uint64_t turns;	   /* that it began on several GPUs */
	uint64_t together; /* of these: all parts began within half a millisecond or so */
};

void fgv_gang_stats(struct fgv_gang *gang, struct fgv_gang_stats *stats);

/* --- What schedulers say, and ask -------------------------------------------- */

/* @part, zero so far, is @gang's on GPU number @gpu, below FGV_GANGS_GPUS; and no more. */
void fgv_gang_join(struct fgv_gang *gang, struct fgv_gang_part *part, unsigned gpu);
void fgv_gang_leave(struct fgv_gang_part *part);

/* The parts on GPU @gpu, whose list only its own scheduler changes and walks. */
struct fgv_gang_part *fgv_gangs_first(struct fgv_gangs *gangs, unsigned gpu);

/* As things are now that the scheduler of its GPU has nothing more to decide. */
void fgv_gang_tell(struct fgv_gang_part *part, const struct fgv_gang_view *view);

/*
 * It is @part's turn, now: may it have its GPU? UINT64_MAX: no, its gang can't have another one
 * yet. A later time than now: the gang has an appointment then, and the GPU may be given to others
 * until that. What is less than @near_ns away is now.
 */
uint64_t fgv_gang_begin_ns(struct fgv_gang_part *part, uint64_t near_ns, uint64_t now_ns);

/* @part gets its GPU. When the turn ends, which on several GPUs is at the same time. */
uint64_t fgv_gang_granted(struct fgv_gang_part *part, uint64_t slice_ns, uint64_t near_ns,
			  uint64_t now_ns);

/* Whose appointment GPU @gpu has, which waits there; *@at_ns: when. NULL: nobody's. */
struct fgv_gang_part *fgv_gangs_called(struct fgv_gangs *gangs, unsigned gpu, uint64_t *at_ns);

/*
 * @part waits while its gang has its turn on other GPUs, and may have its own from @from_ns on: it
 * is called then, if enough of the turn is left. Whether it is.
 */
bool fgv_gang_catch_up(struct fgv_gang_part *part, uint64_t from_ns, uint64_t near_ns,
		       uint64_t now_ns);

/* Whether @part holds its GPU in a turn that its gang has on others, too. */
bool fgv_gang_is_together(struct fgv_gang_part *part);

/* The GPUs whose schedulers have something to decide since, as bits, as GPU @gpu has caused it. */
uint32_t fgv_gangs_take_knocks(struct fgv_gangs *gangs, unsigned gpu);

#endif
