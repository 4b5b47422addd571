/*
 * How a GPU is shared, without the guests' processors: sessions with streams that put kernels
 * and copies on the engines of one GPU, slices that end by draining or by holding, and the
 * project's own scheduler, one for the whole GPU or one for each engine. Runs with ten thousand
 * VMs. What is assumed is in docs/design/0002-simulator.md.
 *
 * One call of share_run() is one run; the same input gives the same output. Times are
 * nanoseconds of the virtual clock.
 */
#ifndef FGV_SCHEDULER_SIM_SHARE_H
#define FGV_SCHEDULER_SIM_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/sched.h"

enum share_engine { SHARE_COMPUTE, SHARE_COPY_IN, SHARE_COPY_OUT };

#define SHARE_ENGINES 3

/* Operations one after the other, each as soon as the one before is done and it may. */
struct share_stream {
	enum share_engine engine;
	double op_ns;	 /* by itself */
	double jitter;	 /* an operation takes op_ns times 1 - jitter to 1 + jitter */
	double width;	 /* the part of its engine that it fills, up to 1 */
	uint32_t burst;	 /* operations between waits of the program; 0: it never waits */
	uint64_t gap_ns; /* from the end of such a wait to the next operation */
};

struct share_vm {
	uint32_t weight;
	const struct share_stream *streams;
	uint32_t stream_count;
};

/* What the gate lets through before the end of a slice. */
enum share_gate {
	SHARE_MAKESPAN, /* what is done by then if it runs beside what was let through before */
	SHARE_SUM,	/* what is done by then if it runs after it */
};

struct share_params {
	struct fgv_sched_params sched;
	const struct fgv_policy *policy; /* it picks, and is not time_shared */
	uint64_t seed, warm_up_ns, measure_ns;
	bool holds;	/* slices end by holding what would not drain in time */
	bool by_use;	/* sessions pay for the GPU time they got, not for the length of turns */
	bool by_engine; /* each engine is granted by itself */
	enum share_gate gate;
	uint64_t drain_ns;  /* after its slice, in which work may still end by itself */
	uint64_t let_go_ns; /* a call that lets a held session go on, until it does */
	uint64_t hold_ns;   /* a call that holds one, until it stands still */
	uint64_t lead_ns;   /* a held session is let go so long before its turn is due */
	uint64_t switch_ns; /* the GPU is lost for, when another context computes */
	uint64_t idle_ns;   /* a holder without work keeps the grant for so long */
};

void share_params_init(struct share_params *params);

struct share_vm_result {
	double work_ns[SHARE_ENGINES]; /* of operations, per second */
	double ops_per_s;
	uint64_t grants;
	uint64_t longest_wait_ns; /* for a grant, of any engine */
};

struct share_result {
	struct share_vm_result *vm; /* as many as there are VMs; the caller's */
	uint64_t hand_overs;	    /* from one session to another, measured */
	uint64_t holds;		    /* measured */
	uint64_t events;	    /* simulated in all */
	uint64_t starved;
};

/* 0 or a negative errno: -EINVAL for input out of range, -ENOMEM. */
int share_run(const struct share_params *params, const struct share_vm *vms, uint32_t count,
	      struct share_result *result);

#endif
