/*
 * Placement: which of several GPUs a program goes to, and what it takes there until it ends. The
 * rules are those of "Effective GPU Sharing Under Compiler Guidance" (MGB; Chen, Porter, Pande):
 * its algorithms 2 and 3, its baselines, and some plain ones. Shared by the daemon, where a task is
 * a session, and by the simulator, where it is a job.
 *
 * A task takes at most what the GPU has, and taking it back gives back exactly that. A
 * decision looks once at each GPU, and at each of its multiprocessors where they count; neither the
 * number of tasks nor that of their blocks matters.
 *
 * Threads: none; the caller serialises.
 */
#ifndef FGV_SCHEDULER_PLACE_H
#define FGV_SCHEDULER_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FGV_PLACE_GPUS_MAX 16
#define FGV_PLACE_SMS_MAX  256
#define FGV_PLACE_SM_MAX   64 /* blocks, and warps, that a multiprocessor holds at most */

/* What a GPU has. */
struct fgv_place_gpu {
	uint64_t memory_bytes;
	uint32_t sms;	    /* multiprocessors; more than FGV_PLACE_SMS_MAX count as so many */
	uint32_t sm_blocks; /* that one holds; the same with FGV_PLACE_SM_MAX */
	uint32_t sm_warps;
};

/* What a task needs, of one GPU. Nothing in it is trusted. */
struct fgv_place_need {
	uint64_t memory_bytes;
	uint64_t blocks;      /* of its kernels, at once; 0: not known, it counts for nothing */
	uint32_t block_warps; /* of one of these */
};

/* Where it may go. */
struct fgv_place_where {
	uint32_t gpus;		    /* a bit for each */
	const uint64_t *free_bytes; /* of each GPU, by number: no more than that; NULL: no limit */
};

/* What a task has taken, in memory of the caller's. */
struct fgv_place_task {
	uint32_t gpu;
	uint32_t block_warps;
	uint64_t memory_bytes;
	uint64_t warps;
	uint8_t blocks[FGV_PLACE_SMS_MAX]; /* of each multiprocessor */
};

struct fgv_place;

/*
 * One rule. All but `fixed` and `cores` put a task only where its memory is free.
 *
 *	fixed	the first GPU that it may go to
 *	mgb2	algorithm 2: the first that has room for all its blocks at once. Its multiprocessors
 *		are filled in turn, as the hardware does it; a task that fills a GPU alone needs an
 *		empty one.
 *	mgb3	algorithm 3: the one with the fewest warps on it; then the fewest tasks
 *	least	the one with the least load (fgv_place_set_load()); then the fewest tasks
 *	memory	the first that has the memory (schedGPU, which looks at nothing else)
 *	single	the first without a task (single assignment, the paper's baseline)
 *	cores	the next one in turn, whatever it has (core-to-GPU, the paper's second): what does
 *		not fit is the program's misfortune
 */
struct fgv_place_rule {
	const char *name;
	/* The GPU for it now, or -1. */
	int (*pick)(const struct fgv_place *place, const struct fgv_place_need *need,
		    const struct fgv_place_where *where);
};

extern const struct fgv_place_rule fgv_place_fixed;
extern const struct fgv_place_rule fgv_place_mgb2;
extern const struct fgv_place_rule fgv_place_mgb3;
extern const struct fgv_place_rule fgv_place_least;
extern const struct fgv_place_rule fgv_place_memory;
extern const struct fgv_place_rule fgv_place_single;
extern const struct fgv_place_rule fgv_place_cores;

/* By its name, of those that the daemon has: fixed, mgb2, mgb3 and least. NULL: none. */
const struct fgv_place_rule *fgv_place_find(const char *name);

/* 1 to FGV_PLACE_GPUS_MAX GPUs, else -EINVAL; -ENOMEM. */
int fgv_place_create(struct fgv_place **place, const struct fgv_place_gpu *gpus, size_t count);
void fgv_place_destroy(struct fgv_place *place);

/*
 * Puts a task, and says in @task where it is and what it takes. -EAGAIN: not before another is
 * taken back, or @where changes; -E2BIG: no GPU where it may go has the memory, even without
 * others.
 */
int fgv_place_put(struct fgv_place *place, const struct fgv_place_rule *rule,
		  const struct fgv_place_need *need, const struct fgv_place_where *where,
		  struct fgv_place_task *task);

/* It is gone. */
void fgv_place_take_back(struct fgv_place *place, const struct fgv_place_task *task);

/* It takes this much memory from now on, which may be more than the others leave. */
void fgv_place_charge(struct fgv_place *place, struct fgv_place_task *task, uint64_t memory_bytes);

/* How busy a GPU is, in units of the caller's. */
void fgv_place_set_load(struct fgv_place *place, uint32_t gpu, uint64_t load);

/* What its tasks take of a GPU. Memory is more than it has under `cores`, or by a charge. */
struct fgv_place_use {
	uint64_t memory_bytes;
	uint64_t warps;
	uint32_t tasks;
};

void fgv_place_look(const struct fgv_place *place, uint32_t gpu, struct fgv_place_use *use);

#endif
