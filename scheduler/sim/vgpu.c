/*
 * The simulated vGPU process, on a processor of its own (section 4.2): takes requests from
 * its ring while it holds the grant, puts them on the GPU, and gives the grant back as the
 * policy wants it. And the driver of the scheduler, which is the project's own.
 *
 * Under a policy that measures, a slice is the paper's section 3.3.2: the first requests are
 * synchronized one by one, their mean says how many more fit, one synchronization ends it.
 * On a preemptive GPU, and under a time-shared policy, a slice ends by the clock.
 */
#include "common/util.h"
#include "scheduler/sim/world.h"

static bool by_the_clock(const struct world *world)
{
	return world->params.policy->time_shared || world->params.preemptive;
}

static bool polls(const struct world *world)
{
	return world->params.policy->gpu_wait == FGV_POLICY_WAIT_POLL;
}

/* A slice that is limited and measured. */
static bool measures(const struct vgpu *vgpu)
{
	return !by_the_clock(vgpu->world) && vgpu->slice_ns != FGV_SCHED_NO_LIMIT;
}

static void start_work(struct vgpu *vgpu, enum vgpu_work_kind kind, uint64_t ns)
{
	vgpu->busy = true;
	vgpu->work_kind = kind;
	world_set(vgpu->world, &vgpu->work, ns);
}

/* --- Giving back ----------------------------------------------------------- */

static uint64_t used_ns(const struct vgpu *vgpu)
{
	return gpu_used_ns(&vgpu->world->gpu, vgpu) - vgpu->granted_used_ns;
}

/* The request that it was about to dispatch stays the first of its ring. */
static void stop_work(struct vgpu *vgpu)
{
	if (vgpu->busy && vgpu->work_kind == WORK_DISPATCH) {
		vgpu->ring_first = (vgpu->ring_first + RING_MAX - 1) % RING_MAX;
		vgpu->ring_count++;
	}
	vgpu->busy = false;
	world_cancel(vgpu->world, &vgpu->work);
}

static void give_back(struct vgpu *vgpu)
{
	struct world *world = vgpu->world;
	bool more;
	uint64_t used = used_ns(vgpu);

	stop_work(vgpu);
	more = vgpu->ring_count > 0 || vgpu->gpu_count > 0 || polls(world);
	/* A holder that polls keeps the GPU from the others, used or not. */
	if (polls(world) && !world->params.policy->time_shared)
		used = FGV_SCHED_HELD;
	vgpu->online = vgpu->draining = vgpu->awake = false;
	processor_favour(&vgpu->guest->vcpu, 1);
	guest_offline(vgpu->guest);
	world_cancel(world, &vgpu->idle);
	world_cancel(world, &vgpu->slice);
	fgv_sched_release(vgpu->session, used, more, world_now(world));
	world_schedule_soon(world);
}

/* Submits nothing more; gives back when nothing is left on the GPU. */
static void drain(struct vgpu *vgpu)
{
	vgpu->draining = true;
	vgpu_step(vgpu);
}

void vgpu_idle(void *arg)
{
	give_back(arg);
}

void vgpu_slice(void *arg)
{
	struct vgpu *vgpu = arg;

	if (by_the_clock(vgpu->world))
		give_back(vgpu);
	else
		drain(vgpu);
}

/* --- Working --------------------------------------------------------------- */

static bool slice_over(const struct vgpu *vgpu)
{
	if (!measures(vgpu))
		return false;
	if (vgpu->sampled < vgpu->world->params.samples)
		return used_ns(vgpu) >= vgpu->slice_ns;
	return vgpu->batch_left == 0;
}

/* Alone on the GPU: never more than a slice of unfinished work. */
static bool throttled(const struct vgpu *vgpu)
{
	const struct sim_params *params = &vgpu->world->params;

	return !params->policy->time_shared && params->policy->pick != NULL &&
	       vgpu->slice_ns == FGV_SCHED_NO_LIMIT &&
	       vgpu->gpu_queued_ns >= params->sched.slice_ns;
}

static void be_idle(struct vgpu *vgpu)
{
	struct world *world = vgpu->world;

	if (vgpu->gpu_count == 0 && !polls(world) && vgpu->idle.place == 0)
		world_set(world, &vgpu->idle, world->params.spin_ns);
}

static void take_request(struct vgpu *vgpu)
{
	struct world *world = vgpu->world;

	world_cancel(world, &vgpu->idle);
	vgpu->doing = vgpu->ring[vgpu->ring_first];
	vgpu->ring_first = (vgpu->ring_first + 1) % RING_MAX;
	vgpu->ring_count--;
	if (vgpu->ring_count <= world->params.ring / 2)
		guest_room(vgpu->guest);
	start_work(vgpu, WORK_DISPATCH, world->params.dispatch_ns);
}

void vgpu_step(struct vgpu *vgpu)
{
	struct world *world = vgpu->world;

	if (!vgpu->online || vgpu->busy)
		return;
	/* Waiting for a sample it still answers what needs no GPU. */
	if (vgpu->waits_gpu) {
		if (vgpu->ring_count > 0 && vgpu->ring[vgpu->ring_first].kind == REQUEST_ANSWER)
			take_request(vgpu);
		return;
	}
	if (vgpu->owes_reply) {
		vgpu->owes_reply = false;
		guest_reply(vgpu->guest);
	}
	if (vgpu->owes_sync) {
		vgpu->owes_sync = false;
		start_work(vgpu, WORK_SYNC, world->params.sync_ns);
		return;
	}
	if (!vgpu->draining && slice_over(vgpu))
		vgpu->draining = true;
	if (vgpu->draining) {
		world_cancel(world, &vgpu->idle);
		if (vgpu->gpu_count == 0)
			start_work(vgpu, WORK_RELEASE, world->params.sync_ns);
	} else if (vgpu->ring_count == 0) {
		be_idle(vgpu);
	} else if (gpu_has_room(&world->gpu, vgpu) && !throttled(vgpu)) {
		take_request(vgpu);
	}
}

static void dispatched(struct vgpu *vgpu)
{
	struct world *world = vgpu->world;
	struct request request = vgpu->doing;

	if (request.kind != REQUEST_KERNEL)
		fgv_sched_sync_calls(vgpu->session, 1, 0, world_now(world));
	if (request.kind == REQUEST_ANSWER) {
		guest_reply(vgpu->guest);
		return;
	}
	if (measures(vgpu) && vgpu->sampled >= world->params.samples && vgpu->batch_left > 0)
		vgpu->batch_left--;
	vgpu->waits_gpu = request.kind == REQUEST_COPY ||
			  (measures(vgpu) && vgpu->sampled < world->params.samples);
	gpu_submit(&world->gpu, vgpu, request);
}

/* After each of the first requests of a slice: what do the samples say? */
static void sample(struct vgpu *vgpu)
{
	uint64_t used = used_ns(vgpu), mean_ns;

	if (++vgpu->sampled < vgpu->world->params.samples)
		return;
	mean_ns = fgv_max_u64(1, used / vgpu->sampled);
	vgpu->batch_left = used >= vgpu->slice_ns ? 0 : (vgpu->slice_ns - used) / mean_ns;
}

void vgpu_work(void *arg)
{
	struct vgpu *vgpu = arg;

	vgpu->busy = false;
	switch (vgpu->work_kind) {
	case WORK_DISPATCH:
		dispatched(vgpu);
		break;
	case WORK_RELEASE:
		give_back(vgpu);
		return;
	case WORK_START:
	case WORK_SYNC:
		break;
	}
	vgpu_step(vgpu);
}

void vgpu_completed(struct vgpu *vgpu, struct request request)
{
	struct world *world = vgpu->world;
	bool waited = vgpu->waits_gpu && vgpu->gpu_count == 0;

	vgpu->kernels += request.kind == REQUEST_KERNEL;
	if (request.kind == REQUEST_COPY)
		vgpu->owes_reply = true;
	if (waited)
		vgpu->waits_gpu = false;
	if (waited && vgpu->online && measures(vgpu) && vgpu->sampled < world->params.samples) {
		sample(vgpu);
		vgpu->owes_sync = request.kind == REQUEST_KERNEL; /* a copy is one by itself */
	}
	/* Somebody may have waited for room in the hardware's queue. */
	for (unsigned int i = 0; i < world->vms; i++)
		vgpu_step(&world->vgpus[i]);
}

bool vgpu_post(struct vgpu *vgpu, struct request request)
{
	struct world *world = vgpu->world;

	if (vgpu->ring_count >= world->params.ring)
		return false;
	vgpu->ring[(vgpu->ring_first + vgpu->ring_count++) % RING_MAX] = request;
	if (vgpu->online) {
		vgpu_step(vgpu);
	} else if (vgpu->ring_count == 1) {
		fgv_sched_request(vgpu->session, world_now(world));
		world_schedule_soon(world);
	}
	return true;
}

/* Timers of a process are late by a random part of the kernel's slack. */
static void set_slice(struct vgpu *vgpu, uint64_t ns)
{
	struct world *world = vgpu->world;
	double late_ns = engine_draw(&world->engine) * (double)world->params.slack_ns;

	world_set(world, &vgpu->slice, ns + (uint64_t)late_ns);
}

/* --- The scheduler's driver ------------------------------------------------ */

static void take_grant(struct world *world, const struct fgv_sched_decision *d)
{
	struct vgpu *vgpu = fgv_sched_session_owner(d->session);
	const struct sim_params *params = &world->params;

	vgpu->online = true;
	vgpu->slice_ns = d->slice_ns;
	vgpu->sampled = 0;
	vgpu->batch_left = 0;
	vgpu->granted_used_ns = gpu_used_ns(&world->gpu, vgpu);
	if (params->policy->pick != NULL)
		gpu_allow(&world->gpu, vgpu);
	if (d->slice_ns != FGV_SCHED_NO_LIMIT && (by_the_clock(world) || polls(world)))
		set_slice(vgpu, d->slice_ns);
	if (d->cosched)
		guest_coschedule(vgpu->guest);
	start_work(vgpu, WORK_START, vgpu->awake ? params->hand_over_ns : params->wake_ns);
}

static void take_limit(struct world *world, const struct fgv_sched_decision *d)
{
	struct vgpu *vgpu = fgv_sched_session_owner(d->session);

	vgpu->slice_ns = d->slice_ns;
	vgpu->sampled = world->params.samples;
	if (by_the_clock(world))
		set_slice(vgpu, d->slice_ns);
	else
		drain(vgpu);
}

static void carry_out(struct world *world, const struct fgv_sched_decision *d)
{
	struct vgpu *vgpu = d->session != NULL ? fgv_sched_session_owner(d->session) : NULL;

	switch (d->action) {
	case FGV_SCHED_GRANT:
		take_grant(world, d);
		break;
	case FGV_SCHED_LIMIT:
		take_limit(world, d);
		break;
	case FGV_SCHED_AWAKE:
		vgpu->awake = true;
		break;
	case FGV_SCHED_STARVED:
		world->starved++;
		break;
	case FGV_SCHED_KNOCK:
		break; /* there is one GPU */
	}
}

void world_schedule(void *arg)
{
	struct world *world = arg;
	struct fgv_sched_decision d;
	uint64_t next_ns;

	while (fgv_sched_decide(world->sched, world_now(world), &d))
		carry_out(world, &d);
	next_ns = fgv_sched_next_ns(world->sched, world_now(world));
	if (world->sched_timer.place == 0 && next_ns != FGV_SCHED_NEVER)
		engine_set(&world->engine, &world->sched_timer, next_ns);
}

void world_schedule_soon(struct world *world)
{
	world_set(world, &world->sched_timer, 0);
}
