/* One run of the simulator: sets the world up, runs it, and reads the results off. */
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sim/world.h"

/* Seven of a VM (guest and vGPU), two of a processor, the GPU's and the scheduler's. */
#define TIMERS (7 * SIM_VMS_MAX + 2 * SIM_PROCESSORS_MAX + 2)

void sim_params_init(struct sim_params *params)
{
	*params = (struct sim_params){
		.policy = &fgv_policy_fair,
		.seed = 1,
		.warm_up_ns = 2000 * FGV_NS_PER_MS,
		.measure_ns = 30000 * FGV_NS_PER_MS,
		.spin_ns = 200 * FGV_NS_PER_US,
		.call_ns = 1000,
		.reply_ns = 300,
		.dispatch_ns = 3000,
		.sync_ns = 5000,
		.copy_ns = 6600,
		.hand_over_ns = 1000,
		.wake_ns = 30000,
		.gpu_switch_ns = 25 * FGV_NS_PER_US,
		.gpu_quantum_ns = 2 * FGV_NS_PER_MS,
		.gpu_queue = 1024,
		.ring = 128,
		.samples = 5,
		.favour = 1,
		.grant_seen = true,
		.blind_ns = 50 * FGV_NS_PER_US,
		.slack_ns = 50 * FGV_NS_PER_US,
		.cpu_tick_ns = FGV_NS_PER_MS,
		.cpu_switch_ns = 5000,
		.cpu_latency_ns = 18 * FGV_NS_PER_MS,
		.cpu_min_ns = 2250 * FGV_NS_PER_US,
		.cpu_wakeup_ns = 3 * FGV_NS_PER_MS,
	};
	fgv_sched_params_init(&params->sched);
}

static void init_processor(struct world *world, struct processor *p)
{
	p->world = world;
	engine_timer_init(&p->start, processor_start, p);
	engine_timer_init(&p->slice, processor_slice, p);
}

static void init_guest(struct world *world, struct guest *guest, const struct sim_vm *vm)
{
	struct processor *p = &world->processors[vm->processor];

	guest->world = world;
	guest->program = vm->program;
	guest->vcpu.guest = guest;
	guest->vcpu.processor = p;
	guest->vcpu.weight = vm->processor_weight;
	guest->vcpu.favour = 1;
	p->vcpus[p->count++] = &guest->vcpu;
	engine_timer_init(&guest->timer, guest_timer, guest);
	engine_timer_init(&guest->sleep, guest_sleep_over, guest);
	engine_timer_init(&guest->poke, guest_poke, guest);
	engine_timer_init(&guest->favour, guest_favour, guest);
}

static int init_vgpu(struct world *world, struct vgpu *vgpu, const struct sim_vm *vm)
{
	int err;

	vgpu->world = world;
	engine_timer_init(&vgpu->work, vgpu_work, vgpu);
	engine_timer_init(&vgpu->idle, vgpu_idle, vgpu);
	engine_timer_init(&vgpu->slice, vgpu_slice, vgpu);
	err = fgv_sched_attach_vgpu(world->sched, vm->weight, vgpu, 0, &vgpu->sched_vgpu);
	if (err == 0)
		err = fgv_sched_attach_session(vgpu->sched_vgpu, vgpu, 0, &vgpu->session);
	return err;
}

static int init_world(struct world *world, const struct sim_params *params,
		      const struct sim_vm *vms, unsigned int count)
{
	int err = engine_init(&world->engine, TIMERS, params->seed);

	if (err == 0)
		err = fgv_sched_create(&world->sched, params->policy, &params->sched, 0);
	if (err != 0)
		return err;
	world->params = *params;
	world->gpu.world = world;
	world->vms = count;
	engine_timer_init(&world->gpu.timer, gpu_timer, &world->gpu);
	engine_timer_init(&world->sched_timer, world_schedule, world);
	for (unsigned int i = 0; i < SIM_PROCESSORS_MAX; i++)
		init_processor(world, &world->processors[i]);
	for (unsigned int i = 0; i < count && err == 0; i++) {
		init_guest(world, &world->guests[i], &vms[i]);
		world->guests[i].vgpu = &world->vgpus[i];
		world->vgpus[i].guest = &world->guests[i];
		err = init_vgpu(world, &world->vgpus[i], &vms[i]);
	}
	return err;
}

/* A VM that is polled for requests is always in line, with or without one. */
static void start(struct world *world)
{
	for (unsigned int i = 0; i < world->vms; i++) {
		if (world->params.policy->gpu_wait == FGV_POLICY_WAIT_POLL)
			fgv_sched_request(world->vgpus[i].session, 0);
		guest_start(&world->guests[i]);
	}
	world_schedule_soon(world);
}

/* Counters up to now, as rates; the difference of two of these is a measurement. */
static void read_counters(struct world *world, struct sim_result *result)
{
	*result = (struct sim_result){.gpu_switches = world->gpu.switches};
	for (unsigned int i = 0; i < SIM_PROCESSORS_MAX; i++) {
		processor_account(&world->processors[i]);
		result->processor_switches += world->processors[i].switches;
	}
	for (unsigned int i = 0; i < world->vms; i++) {
		struct sim_vm_result *vm = &result->vm[i];
		const struct vgpu *vgpu = &world->vgpus[i];

		vm->kernels_per_s = (double)vgpu->kernels;
		vm->async_per_s = (double)world->guests[i].async_calls;
		vm->sync_per_s = (double)world->guests[i].sync_calls;
		vm->gpu_share = (double)gpu_used_ns(&world->gpu, vgpu);
		vm->processor_share = (double)world->guests[i].vcpu.ran_ns;
		result->gpu_busy += vm->gpu_share;
	}
}

static void measure(const struct world *world, const struct sim_result *before,
		    struct sim_result *result)
{
	double ns = (double)world->params.measure_ns, s = ns / FGV_NS_PER_SEC;

	result->gpu_busy = (result->gpu_busy - before->gpu_busy) / ns;
	result->gpu_switches -= before->gpu_switches;
	result->processor_switches -= before->processor_switches;
	result->starved = world->starved;
	for (unsigned int i = 0; i < world->vms; i++) {
		struct sim_vm_result *vm = &result->vm[i];
		const struct sim_vm_result *old = &before->vm[i];
		const struct fgv_sched_stats *stats =
			fgv_sched_session_stats(world->vgpus[i].session);

		vm->kernels_per_s = (vm->kernels_per_s - old->kernels_per_s) / s;
		vm->async_per_s = (vm->async_per_s - old->async_per_s) / s;
		vm->sync_per_s = (vm->sync_per_s - old->sync_per_s) / s;
		vm->gpu_share = (vm->gpu_share - old->gpu_share) / ns;
		vm->processor_share = (vm->processor_share - old->processor_share) / ns;
		vm->grants = stats->grants;
		vm->wait_p50_ns = fgv_hist_quantile_ns(&stats->wait, 500);
		vm->wait_p99_ns = fgv_hist_quantile_ns(&stats->wait, 990);
	}
}

static int check(const struct sim_params *params, const struct sim_vm *vms, unsigned int count)
{
	if (count == 0 || count > SIM_VMS_MAX || params->measure_ns == 0 || params->ring < 2 ||
	    params->ring > RING_MAX || params->gpu_queue == 0 || params->gpu_queue > RING_MAX ||
	    params->gpu_quantum_ns == 0 || params->samples == 0 || params->call_ns == 0)
		return -EINVAL;
	for (unsigned int i = 0; i < count; i++)
		if (vms[i].processor >= SIM_PROCESSORS_MAX || vms[i].processor_weight == 0 ||
		    vms[i].program.host_ns < 1)
			return -EINVAL;
	return 0;
}

int sim_run(const struct sim_params *params, const struct sim_vm *vms, unsigned int count,
	    struct sim_result *result)
{
	struct sim_result before;
	struct world *world;
	int err = check(params, vms, count);

	if (err != 0)
		return err;
	world = calloc(1, sizeof(*world));
	if (world == NULL)
		return -ENOMEM;
	err = init_world(world, params, vms, count);
	if (err == 0) {
		start(world);
		engine_run(&world->engine, params->warm_up_ns);
		read_counters(world, &before);
		engine_run(&world->engine, params->warm_up_ns + params->measure_ns);
		read_counters(world, result);
		measure(world, &before, result);
	}
	fgv_sched_destroy(world->sched);
	engine_fini(&world->engine);
	free(world);
	return err;
}
