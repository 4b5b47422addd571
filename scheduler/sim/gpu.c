/*
 * The simulated GPU. Not preemptive: one request at a time, in the order in which they were
 * submitted, whosever they are. Preemptive: only the vGPU that is allowed to, from its own
 * queue, and what is left of a request waits there; with nobody in particular allowed, all
 * take turns of a quantum, as the driver does it.
 */
#include "common/util.h"
#include "scheduler/sim/world.h"

static struct request *first_of(struct vgpu *vgpu)
{
	return &vgpu->on_gpu[vgpu->gpu_first];
}

/* Accounts for what ran since the last look. */
static void account(struct gpu *gpu)
{
	uint64_t now = world_now(gpu->world), ran_ns;

	if (gpu->running == NULL || now <= gpu->since_ns)
		return;
	ran_ns = fgv_min_u64(now - gpu->since_ns, first_of(gpu->running)->gpu_ns);
	first_of(gpu->running)->gpu_ns -= ran_ns;
	gpu->running->gpu_ns += ran_ns;
	gpu->running->gpu_queued_ns -= ran_ns;
	gpu->busy_ns += ran_ns;
	gpu->since_ns = now;
}

static struct vgpu *first_come(struct world *world)
{
	struct vgpu *best = NULL;

	for (unsigned int i = 0; i < world->vms; i++) {
		struct vgpu *vgpu = &world->vgpus[i];

		if (vgpu->gpu_count > 0 &&
		    (best == NULL || first_of(vgpu)->order < first_of(best)->order))
			best = vgpu;
	}
	return best;
}

static struct vgpu *next_turn(struct gpu *gpu)
{
	struct world *world = gpu->world;
	size_t last = gpu->context != NULL ? (size_t)(gpu->context - world->vgpus) : 0;

	if (gpu->context != NULL && gpu->context->gpu_count > 0 &&
	    world_now(world) < gpu->turn_ends_ns)
		return gpu->context;
	for (size_t i = 1; i <= world->vms; i++) {
		struct vgpu *vgpu = &world->vgpus[(last + i) % world->vms];

		if (vgpu->gpu_count > 0)
			return vgpu;
	}
	return NULL;
}

static struct vgpu *choose(struct gpu *gpu)
{
	if (!gpu->world->params.preemptive)
		return first_come(gpu->world);
	if (gpu->allowed != NULL)
		return gpu->allowed->gpu_count > 0 ? gpu->allowed : NULL;
	return next_turn(gpu);
}

static void run_next(struct gpu *gpu)
{
	const struct sim_params *params = &gpu->world->params;
	uint64_t delay_ns = 0, run_ns;

	gpu->running = choose(gpu);
	if (gpu->running == NULL)
		return;
	if (gpu->running != gpu->context) {
		delay_ns = params->gpu_switch_ns;
		gpu->context = gpu->running;
		gpu->switches++;
	}
	gpu->since_ns = world_now(gpu->world) + delay_ns;
	if (delay_ns > 0 || gpu->since_ns >= gpu->turn_ends_ns)
		gpu->turn_ends_ns = gpu->since_ns + params->gpu_quantum_ns;
	run_ns = first_of(gpu->running)->gpu_ns;
	if (params->preemptive && gpu->allowed == NULL)
		run_ns = fgv_min_u64(run_ns, gpu->turn_ends_ns - gpu->since_ns);
	world_set(gpu->world, &gpu->timer, delay_ns + run_ns);
}

void gpu_submit(struct gpu *gpu, struct vgpu *vgpu, struct request request)
{
	request.order = gpu->orders++;
	vgpu->on_gpu[(vgpu->gpu_first + vgpu->gpu_count++) % RING_MAX] = request;
	vgpu->gpu_queued_ns += request.gpu_ns;
	gpu->queued++;
	if (gpu->running == NULL)
		run_next(gpu);
}

bool gpu_has_room(const struct gpu *gpu, const struct vgpu *vgpu)
{
	const struct sim_params *params = &gpu->world->params;

	return (params->preemptive ? vgpu->gpu_count : gpu->queued) < params->gpu_queue;
}

void gpu_allow(struct gpu *gpu, struct vgpu *vgpu)
{
	if (!gpu->world->params.preemptive)
		return;
	account(gpu);
	gpu->allowed = vgpu;
	if (gpu->running != NULL && vgpu != NULL && gpu->running != vgpu) {
		world_cancel(gpu->world, &gpu->timer);
		gpu->running = NULL;
	}
	if (gpu->running == NULL)
		run_next(gpu);
}

void gpu_timer(void *arg)
{
	struct gpu *gpu = arg;
	struct vgpu *vgpu = gpu->running;
	struct request done;

	account(gpu);
	gpu->running = NULL;
	done = *first_of(vgpu);
	if (done.gpu_ns == 0) {
		vgpu->gpu_first = (vgpu->gpu_first + 1) % RING_MAX;
		vgpu->gpu_count--;
		gpu->queued--;
		vgpu_completed(vgpu, done);
	}
	if (gpu->running == NULL)
		run_next(gpu);
}

uint64_t gpu_used_ns(const struct gpu *gpu, const struct vgpu *vgpu)
{
	uint64_t now = world_now(gpu->world);

	if (gpu->running != vgpu || now <= gpu->since_ns)
		return vgpu->gpu_ns;
	return vgpu->gpu_ns + (now - gpu->since_ns);
}
