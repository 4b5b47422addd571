/*
 * The parts of a run and what they tell each other: guests on processors (guest.c,
 * processor.c), their vGPU processes under the scheduler (vgpu.c), the GPU (gpu.c).
 */
#ifndef FGV_SCHEDULER_SIM_WORLD_H
#define FGV_SCHEDULER_SIM_WORLD_H

#include "scheduler/sim/engine.h"
#include "scheduler/sim/sim.h"

#define RING_MAX 1024

struct world;

enum request_kind {
	REQUEST_KERNEL,
	REQUEST_ANSWER, /* synchronous, answered by the vGPU process */
	REQUEST_COPY,	/* synchronous, answered by the GPU */
};

struct request {
	enum request_kind kind;
	uint64_t gpu_ns;
	uint64_t order; /* on the GPU */
};

/* --- The GPU --------------------------------------------------------------- */

struct gpu {
	struct world *world;
	struct engine_timer timer;
	struct vgpu *running;  /* whose request is executed; NULL: idle */
	struct vgpu *context;  /* whose it was last */
	struct vgpu *allowed;  /* preemptive: only this one runs; NULL: any */
	uint64_t since_ns;     /* when the request, or its rest, began */
	uint64_t turn_ends_ns; /* preemptive, with nobody in particular allowed */
	uint64_t orders;
	uint32_t queued;
	uint64_t busy_ns;
	uint64_t switches;
};

/* Queues a request; vgpu_completed() follows. The caller has checked for room. */
void gpu_submit(struct gpu *gpu, struct vgpu *vgpu, struct request request);
bool gpu_has_room(const struct gpu *gpu, const struct vgpu *vgpu);

/* Preemptive: from now on only @vgpu runs, or anybody. */
void gpu_allow(struct gpu *gpu, struct vgpu *vgpu);
void gpu_timer(void *gpu);

/* The busy time of @vgpu, the request in execution included. */
uint64_t gpu_used_ns(const struct gpu *gpu, const struct vgpu *vgpu);

/* --- Processors ------------------------------------------------------------ */

enum vcpu_state { VCPU_BLOCKED, VCPU_RUNNABLE, VCPU_RUNNING };

struct vcpu {
	struct guest *guest;
	struct processor *processor;
	enum vcpu_state state;
	uint32_t weight;
	double vruntime_ns;
	uint32_t favour; /* times its weight, while it is coscheduled */
	uint64_t ran_ns;
};

struct processor {
	struct world *world;
	struct engine_timer start; /* the switch is over, the vCPU runs */
	struct engine_timer slice;
	struct vcpu *vcpus[SIM_VMS_MAX];
	unsigned int count;
	struct vcpu *current;
	bool running;	   /* current runs; otherwise the switch to it is under way */
	uint64_t since_ns; /* accounted up to here */
	uint64_t begun_ns; /* when current got the processor */
	double min_vruntime_ns;
	uint64_t switches;
};

void processor_wake(struct vcpu *vcpu);
void processor_block(struct vcpu *vcpu);
void processor_yield(struct vcpu *vcpu);

/* From now on the vCPU counts @times its weight. */
void processor_favour(struct vcpu *vcpu, uint32_t times);

/* Whoever is behind most runs now (resched_cpu() in algorithm 4). */
void processor_resched(struct processor *processor);
void processor_account(struct processor *processor);
void processor_start(void *processor);
void processor_slice(void *processor);

/* --- Guests ---------------------------------------------------------------- */

enum guest_state { GUEST_COMPUTES, GUEST_WAITS_REPLY, GUEST_WAITS_ROOM, GUEST_SLEEPS };

struct guest {
	struct world *world;
	struct vgpu *vgpu;
	struct vcpu vcpu;
	struct sim_program program;
	struct engine_timer timer; /* of what it does on the processor */
	struct engine_timer sleep;
	struct engine_timer poke;   /* a reply, or room, becomes visible */
	struct engine_timer favour; /* the GPU has chosen it: wake and run */
	enum guest_state state;
	bool satisfied;	     /* what it waits for is there */
	uint64_t left_ns;    /* of computing */
	uint64_t spun_ns;    /* in this wait */
	uint64_t resumed_ns; /* when these two were right */
	struct request next; /* to be posted */
	double sync_due, wait_due;
	uint32_t launched; /* in this burst */
	uint64_t async_calls, sync_calls;
};

void guest_start(struct guest *guest);
void guest_timer(void *guest);
void guest_sleep_over(void *guest);
void guest_poke(void *guest);
void guest_favour(void *guest);

/* The processor's doing. */
void guest_resume(struct guest *guest);
void guest_pause(struct guest *guest);

/* The vGPU's: the reply is there, or half of the ring is free; now coschedule. */
void guest_reply(struct guest *guest);
void guest_room(struct guest *guest);
void guest_coschedule(struct guest *guest);
void guest_offline(struct guest *guest);

/* --- vGPU processes -------------------------------------------------------- */

/* What a vGPU process is busy with. */
enum vgpu_work_kind { WORK_START, WORK_DISPATCH, WORK_SYNC, WORK_RELEASE };

struct vgpu {
	struct world *world;
	struct guest *guest;
	struct fgv_sched_vgpu *sched_vgpu;
	struct fgv_sched_session *session;
	struct engine_timer work;  /* it is busy until then */
	struct engine_timer idle;  /* its spin time is over */
	struct engine_timer slice; /* by the clock */

	struct request ring[RING_MAX];
	uint32_t ring_first, ring_count;
	struct request on_gpu[RING_MAX];
	uint32_t gpu_first, gpu_count;
	uint64_t gpu_queued_ns;

	bool online;
	bool awake; /* was told to be awake, so a grant finds it spinning */
	bool busy;
	bool draining;
	bool waits_gpu;	      /* for the completion of what it submitted last */
	bool owes_reply;      /* to a copy that has completed */
	bool owes_sync;	      /* after a sampled kernel */
	struct request doing; /* while busy with a dispatch */
	enum vgpu_work_kind work_kind;

	uint64_t slice_ns;
	uint64_t granted_used_ns; /* gpu_used_ns() at the grant */
	uint32_t sampled;
	uint64_t batch_left;

	uint64_t gpu_ns; /* executed, but for the request in execution */
	uint64_t kernels;
};

void vgpu_work(void *vgpu);
void vgpu_idle(void *vgpu);
void vgpu_slice(void *vgpu);

/* The guest posts; false: the ring is full. */
bool vgpu_post(struct vgpu *vgpu, struct request request);

/* The GPU has completed a request of it; there is room again; one of several vGPUs. */
void vgpu_completed(struct vgpu *vgpu, struct request request);
void vgpu_step(struct vgpu *vgpu);

/* Asks the scheduler for decisions and carries them out; as soon as this event is over. */
void world_schedule(void *world);
void world_schedule_soon(struct world *world);

/* --- All of it ------------------------------------------------------------- */

struct world {
	struct sim_params params;
	struct engine engine;
	struct fgv_sched *sched;
	struct engine_timer sched_timer;
	struct gpu gpu;
	struct processor processors[SIM_PROCESSORS_MAX];
	struct guest guests[SIM_VMS_MAX];
	struct vgpu vgpus[SIM_VMS_MAX];
	unsigned int vms;
	uint64_t starved;
};

static inline uint64_t world_now(const struct world *world)
{
	return world->engine.now_ns;
}

static inline void world_set(struct world *world, struct engine_timer *timer, uint64_t after_ns)
{
	engine_set(&world->engine, timer, world->engine.now_ns + after_ns);
}

static inline void world_cancel(struct world *world, struct engine_timer *timer)
{
	engine_cancel(&world->engine, timer);
}

#endif
