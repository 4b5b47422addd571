/*
 * The simulated processor: a scheduler like Linux's CFS. Each vCPU has a virtual run time,
 * its time on the processor over its weight. The one with the least runs, for its part of
 * the latency but at least the minimum granularity. One that wakes is set to at most half a
 * latency behind the others, and preempts if it is behind by more than the wake-up
 * granularity.
 */
#include "common/util.h"
#include "scheduler/sim/world.h"

static uint64_t weight_of(const struct vcpu *vcpu)
{
	return (uint64_t)vcpu->weight * vcpu->favour;
}

static double weighted(const struct vcpu *vcpu, uint64_t ns)
{
	return (double)ns / weight_of(vcpu);
}

/* The one with the least virtual run time that could run, but for @except. */
static struct vcpu *leftmost(struct processor *p, const struct vcpu *except)
{
	struct vcpu *best = NULL;

	for (unsigned int i = 0; i < p->count; i++) {
		struct vcpu *vcpu = p->vcpus[i];

		if (vcpu != except && vcpu->state != VCPU_BLOCKED &&
		    (best == NULL || vcpu->vruntime_ns < best->vruntime_ns))
			best = vcpu;
	}
	return best;
}

void processor_account(struct processor *p)
{
	uint64_t now = world_now(p->world);
	const struct vcpu *least;

	if (p->current != NULL && p->running) {
		p->current->vruntime_ns += weighted(p->current, now - p->since_ns);
		p->current->ran_ns += now - p->since_ns;
	}
	p->since_ns = now;
	least = leftmost(p, NULL);
	if (least != NULL && least->vruntime_ns > p->min_vruntime_ns)
		p->min_vruntime_ns = least->vruntime_ns;
}

/* To the first tick after its part of the latency. */
static uint64_t slice_ns(struct processor *p)
{
	const struct sim_params *params = &p->world->params;
	uint64_t tick_ns = (uint64_t)(engine_draw(&p->world->engine) * (double)params->cpu_tick_ns);
	uint64_t weights = 0;

	for (unsigned int i = 0; i < p->count; i++)
		if (p->vcpus[i]->state != VCPU_BLOCKED)
			weights += weight_of(p->vcpus[i]);
	return tick_ns + fgv_max_u64(params->cpu_min_ns,
				     params->cpu_latency_ns * weight_of(p->current) / weights);
}

static void take_off(struct processor *p)
{
	world_cancel(p->world, &p->start);
	world_cancel(p->world, &p->slice);
	if (p->current == NULL)
		return;
	if (p->running)
		guest_pause(p->current->guest);
	if (p->current->state == VCPU_RUNNING)
		p->current->state = VCPU_RUNNABLE;
	p->running = false;
	p->current = NULL;
}

static void switch_to(struct processor *p, struct vcpu *vcpu)
{
	if (vcpu == p->current)
		return;
	take_off(p);
	if (vcpu == NULL)
		return;
	p->current = vcpu;
	vcpu->state = VCPU_RUNNING;
	p->switches++;
	world_set(p->world, &p->start, p->world->params.cpu_switch_ns);
}

/* Algorithm 1: the choice of the processor is told to the GPU's scheduler. */
void processor_start(void *arg)
{
	struct processor *p = arg;
	struct vcpu *vcpu = p->current;

	p->running = true;
	p->since_ns = p->begun_ns = world_now(p->world);
	world_set(p->world, &p->slice, slice_ns(p));
	fgv_sched_vcpu_runs(vcpu->guest->vgpu->sched_vgpu, world_now(p->world));
	world_schedule_soon(p->world);
	guest_resume(vcpu->guest);
}

void processor_slice(void *arg)
{
	struct processor *p = arg;
	struct vcpu *next;

	processor_account(p);
	next = leftmost(p, NULL);
	if (next == p->current)
		world_set(p->world, &p->slice, slice_ns(p));
	else
		switch_to(p, next);
}

void processor_wake(struct vcpu *vcpu)
{
	struct processor *p = vcpu->processor;
	const struct sim_params *params = &p->world->params;
	double floor_ns;

	if (vcpu->state != VCPU_BLOCKED)
		return;
	processor_account(p);
	floor_ns = p->min_vruntime_ns - (double)(params->cpu_latency_ns / 2);
	if (vcpu->vruntime_ns < floor_ns)
		vcpu->vruntime_ns = floor_ns;
	vcpu->state = VCPU_RUNNABLE;
	if (p->current == NULL ||
	    p->current->vruntime_ns - vcpu->vruntime_ns > weighted(vcpu, params->cpu_wakeup_ns))
		switch_to(p, vcpu);
}

void processor_block(struct vcpu *vcpu)
{
	struct processor *p = vcpu->processor;

	if (vcpu != p->current)
		return;
	processor_account(p);
	vcpu->state = VCPU_BLOCKED;
	take_off(p);
	switch_to(p, leftmost(p, NULL));
}

void processor_yield(struct vcpu *vcpu)
{
	struct processor *p = vcpu->processor;
	struct vcpu *next;

	processor_account(p);
	next = leftmost(p, vcpu);
	if (next != NULL)
		switch_to(p, next);
}

void processor_favour(struct vcpu *vcpu, uint32_t times)
{
	struct processor *p = vcpu->processor;

	processor_account(p);
	vcpu->favour = times;
	if (p->current == vcpu && p->running)
		world_set(p->world, &p->slice, slice_ns(p));
}

void processor_resched(struct processor *p)
{
	processor_account(p);
	switch_to(p, leftmost(p, NULL));
}
