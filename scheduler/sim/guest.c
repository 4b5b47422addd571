/*
 * The simulated guest: a program with one thread on one vCPU. It computes, posts a call,
 * and waits for the reply of a synchronous one, or for room in the ring. How it waits is
 * what the policies differ in: spinning for good, spinning and then yielding the processor
 * over and over, or spinning and then sleeping until the doorbell rings.
 */
#include "common/util.h"
#include "scheduler/sim/world.h"

static bool on_processor(const struct guest *guest)
{
	const struct processor *p = guest->vcpu.processor;

	return p->current == &guest->vcpu && p->running;
}

static void compute(struct guest *guest, uint64_t ns)
{
	guest->state = GUEST_COMPUTES;
	guest->left_ns = ns;
	if (on_processor(guest))
		guest_resume(guest);
}

static void wait_for(struct guest *guest, enum guest_state what)
{
	guest->state = what;
	guest->satisfied = false;
	guest->spun_ns = 0;
	guest_resume(guest);
}

/* FairGV's guests see whether their vGPU holds the grant; the rivals' are the paper's. */
static bool sees_grant(const struct guest *guest)
{
	const struct sim_params *params = &guest->world->params;

	return params->grant_seen && params->policy->guest_wait == FGV_POLICY_WAIT_BLOCK;
}

/* How long it spins in this wait, as things are now. */
static uint64_t spin_ns(const struct guest *guest)
{
	const struct sim_params *params = &guest->world->params;

	if (sees_grant(guest) && !guest->vgpu->online)
		return fgv_min_u64(params->blind_ns, params->spin_ns);
	return params->spin_ns;
}

static void spin_on(struct guest *guest)
{
	uint64_t limit_ns = spin_ns(guest);

	world_set(guest->world, &guest->timer, limit_ns - fgv_min_u64(limit_ns, guest->spun_ns));
}

/* Accounts for the spinning since the last look. */
static void note_spinning(struct guest *guest)
{
	guest->spun_ns += world_now(guest->world) - guest->resumed_ns;
	guest->resumed_ns = world_now(guest->world);
}

static bool burst_over(const struct guest *guest)
{
	return guest->program.burst != 0 && guest->launched >= guest->program.burst;
}

/* What the program calls next: the table's mixture, evenly spread. */
static void next_call(struct guest *guest)
{
	const struct sim_program *program = &guest->program;
	struct world *world = guest->world;
	double jitter = program->jitter * (2 * engine_draw(&world->engine) - 1);

	guest->next.kind = REQUEST_KERNEL;
	guest->next.gpu_ns = fgv_max_u64(1, (uint64_t)(program->kernel_ns * (1 + jitter)));
	if (guest->sync_due >= 1) {
		guest->sync_due -= 1;
		guest->wait_due += program->waits;
		guest->next.kind = REQUEST_ANSWER;
	}
	if (guest->next.kind == REQUEST_ANSWER && guest->wait_due >= 1) {
		guest->wait_due -= 1;
		guest->next.kind = REQUEST_COPY;
	}
	if (burst_over(guest))
		guest->next.kind = REQUEST_COPY;
	if (guest->next.kind != REQUEST_KERNEL)
		guest->next.gpu_ns = world->params.copy_ns;
	compute(guest, (uint64_t)program->host_ns);
}

static void post(struct guest *guest)
{
	if (!vgpu_post(guest->vgpu, guest->next)) {
		wait_for(guest, GUEST_WAITS_ROOM);
		return;
	}
	if (guest->next.kind != REQUEST_KERNEL) {
		guest->sync_calls++;
		wait_for(guest, GUEST_WAITS_REPLY);
		return;
	}
	guest->async_calls++;
	guest->launched++;
	guest->sync_due += guest->program.sync_per_async;
	next_call(guest);
}

static void fall_asleep(struct guest *guest)
{
	guest->launched = 0;
	guest->state = GUEST_SLEEPS;
	world_set(guest->world, &guest->sleep, guest->program.sleep_ns);
	processor_block(&guest->vcpu);
}

/* What it waited for is there, and it is on the processor. */
static void proceed(struct guest *guest)
{
	world_cancel(guest->world, &guest->timer);
	if (guest->state == GUEST_WAITS_ROOM)
		post(guest);
	else if (burst_over(guest))
		fall_asleep(guest);
	else
		next_call(guest);
}

void guest_start(struct guest *guest)
{
	next_call(guest);
	processor_wake(&guest->vcpu);
}

void guest_resume(struct guest *guest)
{
	guest->resumed_ns = world_now(guest->world);
	if (guest->state == GUEST_COMPUTES)
		world_set(guest->world, &guest->timer, guest->left_ns);
	else if (guest->satisfied)
		proceed(guest);
	else if (guest->world->params.policy->guest_wait != FGV_POLICY_WAIT_POLL)
		spin_on(guest);
}

/* The vGPU has gone offline: a guest that sees it stops spinning, but for the blind part. */
void guest_offline(struct guest *guest)
{
	bool waits = guest->state == GUEST_WAITS_REPLY || guest->state == GUEST_WAITS_ROOM;

	if (!sees_grant(guest) || !waits || guest->timer.place == 0)
		return;
	note_spinning(guest);
	spin_on(guest);
}

void guest_pause(struct guest *guest)
{
	uint64_t ran_ns = world_now(guest->world) - guest->resumed_ns;

	world_cancel(guest->world, &guest->timer);
	if (guest->state == GUEST_COMPUTES)
		guest->left_ns -= fgv_min_u64(guest->left_ns, ran_ns);
	else
		note_spinning(guest);
}

/* Has spun for as long as it may. */
static void stop_spinning(struct guest *guest)
{
	guest->spun_ns = 0;
	if (guest->world->params.policy->guest_wait == FGV_POLICY_WAIT_BLOCK) {
		processor_block(&guest->vcpu);
		return;
	}
	processor_yield(&guest->vcpu);
	guest->spun_ns = 0;
	if (on_processor(guest)) /* nobody else wants it */
		guest_resume(guest);
}

/* Has computed, or has spun for as long as it seemed right when the timer was set. */
void guest_timer(void *arg)
{
	struct guest *guest = arg;

	if (guest->state == GUEST_COMPUTES) {
		post(guest);
		return;
	}
	note_spinning(guest);
	if (guest->spun_ns < spin_ns(guest))
		spin_on(guest);
	else
		stop_spinning(guest);
}

void guest_sleep_over(void *arg)
{
	struct guest *guest = arg;

	next_call(guest);
	processor_wake(&guest->vcpu);
}

void guest_poke(void *arg)
{
	struct guest *guest = arg;

	guest->satisfied = true;
	if (guest->vcpu.state == VCPU_BLOCKED)
		processor_wake(&guest->vcpu);
	else if (on_processor(guest))
		proceed(guest);
}

static void poke(struct guest *guest)
{
	const struct sim_params *params = &guest->world->params;
	uint64_t delay_ns = params->reply_ns;

	if (guest->vcpu.state == VCPU_BLOCKED)
		delay_ns += params->wake_ns;
	world_set(guest->world, &guest->poke, delay_ns);
}

void guest_reply(struct guest *guest)
{
	if (guest->state == GUEST_WAITS_REPLY)
		poke(guest);
}

void guest_room(struct guest *guest)
{
	if (guest->state == GUEST_WAITS_ROOM && !guest->satisfied && guest->poke.place == 0)
		poke(guest);
}

/* Algorithm 4. */
void guest_coschedule(struct guest *guest)
{
	bool blocked = guest->vcpu.state == VCPU_BLOCKED && guest->state != GUEST_SLEEPS;

	world_set(guest->world, &guest->favour, blocked ? guest->world->params.wake_ns : 0);
}

void guest_favour(void *arg)
{
	struct guest *guest = arg;

	if (guest->state == GUEST_SLEEPS || !guest->vgpu->online)
		return;
	processor_favour(&guest->vcpu, guest->world->params.favour);
	processor_wake(&guest->vcpu);
	processor_resched(guest->vcpu.processor);
}
