/*
 * The simulator: guests that run programs on virtual processors, a vGPU process for each,
 * one GPU, and the project's own scheduler between them, all on a virtual clock. The
 * assumptions are listed in docs/design/0002-simulator.md.
 *
 * One struct sim is one run. Nothing is shared between runs, and the same input gives the
 * same output. Times are nanoseconds.
 */
#ifndef FGV_SCHEDULER_SIM_SIM_H
#define FGV_SCHEDULER_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/sched.h"

#define SIM_VMS_MAX	   64
#define SIM_PROCESSORS_MAX 64

/* --- Input ----------------------------------------------------------------- */

/* A row of the paper's Table 3. Rates are calls per 10 ms of the program alone in a VM. */
struct sim_workload {
	const char *name;
	const char *title;
	double kernel_us;
	double async_calls;
	double sync_calls;
	double run_time_s;
	double waits; /* the part of its synchronous calls that waits for the GPU */
};

/* The twelve rows, ending with a NULL name. */
extern const struct sim_workload sim_workloads[];
const struct sim_workload *sim_workload_find(const char *name);

/* What a guest runs, over and over. */
struct sim_program {
	double kernel_ns;
	double jitter;	       /* a kernel takes kernel_ns times 1 - jitter to 1 + jitter */
	double host_ns;	       /* of processor per call */
	double sync_per_async; /* synchronous calls after each asynchronous one */
	double waits;
	uint32_t burst;	   /* asynchronous calls between sleeps; 0: it does not sleep */
	uint64_t sleep_ns; /* after a burst, when all of it is done */
};

struct sim_vm {
	const char *name;
	uint32_t weight;	   /* of the vGPU */
	uint32_t processor_weight; /* of the vCPU */
	unsigned int processor;
	struct sim_program program;
};

struct sim_params {
	struct fgv_sched_params sched;
	const struct fgv_policy *policy;
	bool preemptive;
	uint64_t seed;
	uint64_t warm_up_ns, measure_ns;

	uint64_t spin_ns;	 /* hybrid spinning, on either side */
	uint64_t call_ns;	 /* the least that a call costs the guest */
	uint64_t reply_ns;	 /* from the vGPU's reply to the guest's seeing it */
	uint64_t dispatch_ns;	 /* of the vGPU process, per request */
	uint64_t sync_ns;	 /* the bubble of a device synchronization */
	uint64_t copy_ns;	 /* of the GPU, per synchronous copy */
	uint64_t hand_over_ns;	 /* from a grant to the first dispatch, if awake */
	uint64_t wake_ns;	 /* to wake a sleeping process or vCPU */
	uint64_t gpu_switch_ns;	 /* to change the GPU's context */
	uint64_t gpu_quantum_ns; /* of a preemptive GPU without a grant */
	uint32_t gpu_queue;	 /* launches in the hardware at most (preemptive: of each) */
	uint32_t ring;		 /* requests that wait in a vGPU's ring at most */
	uint32_t samples;	 /* requests synchronized at the beginning of a slice */
	uint32_t favour;	 /* a coscheduled vCPU's weight is so many times its own */
	bool grant_seen;	/* a guest that would sleep sees whether its vGPU holds the grant */
	uint64_t blind_ns;	/* and spins for so long if it does not */
	uint64_t slack_ns;	/* a process's timers go off up to this late */
	uint64_t cpu_tick_ns;	/* CFS: a slice ends with a tick, up to this late */
	uint64_t cpu_switch_ns; /* to change a processor's vCPU */
	uint64_t cpu_latency_ns; /* CFS: every runnable one runs once in this time */
	uint64_t cpu_min_ns;	 /* CFS: but for this long */
	uint64_t cpu_wakeup_ns;	 /* CFS: the lead that a woken one needs to preempt */
};

void sim_params_init(struct sim_params *params);

/* The program of a row, with the processor time left over by its GPU time. */
struct sim_program sim_program_of(const struct sim_workload *workload,
				  const struct sim_params *params);

/* --- Output ---------------------------------------------------------------- */

struct sim_vm_result {
	double kernels_per_s;
	double async_per_s, sync_per_s;
	double gpu_share;	/* of the measured time */
	double processor_share; /* of one processor */
	uint64_t grants;
	uint64_t wait_p50_ns, wait_p99_ns; /* for a grant */
};

struct sim_result {
	struct sim_vm_result vm[SIM_VMS_MAX];
	double gpu_busy;	     /* of the measured time */
	uint64_t gpu_switches;	     /* measured */
	uint64_t processor_switches; /* measured */
	uint64_t starved;
};

/* Runs @count VMs. 0 or a negative errno. */
int sim_run(const struct sim_params *params, const struct sim_vm *vms, unsigned int count,
	    struct sim_result *result);

#endif
