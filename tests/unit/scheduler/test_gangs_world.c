/* See test_gangs_world.h. */
#include "tests/unit/scheduler/test_gangs_world.h"

#include <check.h>
#include <string.h>

#include "common/util.h"

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s:%d: %s", __FILE__, __LINE__, #condition);                 \
	} while (0)

uint64_t gangs_draw(struct gangs_world *world, uint64_t below)
{
	uint64_t z = world->seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (z ^ z >> 31) % below;
}

void gangs_open(struct gangs_world *world, unsigned gpus, uint64_t seed)
{
	struct fgv_sched_params params;

	memset(world, 0, sizeof(*world));
	world->seed = seed;
	world->gpus = gpus;
	fgv_sched_params_init(&params);
	params.slice_ns = WORLD_SLICE_NS;
	MUST(fgv_gangs_create(&world->gangs, NULL) == 0);
	for (unsigned i = 0; i < gpus; i++) {
		MUST(fgv_sched_create(&world->gpu[i].sched, &fgv_policy_fair, &params, 0) == 0);
		fgv_sched_join_gangs(world->gpu[i].sched, world->gangs, i);
	}
}

void gangs_close(struct gangs_world *world)
{
	for (unsigned i = 0; i < world->gpus; i++)
		fgv_sched_destroy(world->gpu[i].sched);
	for (unsigned i = 0; i < world->vms; i++)
		fgv_gang_destroy(world->vm[i].gang);
	fgv_gangs_destroy(world->gangs);
}

struct vm *gangs_add(struct gangs_world *world, uint32_t weight, uint32_t gpus, bool is_gang)
{
	struct vm *vm = &world->vm[world->vms++];

	vm->weight = weight;
	if (is_gang)
		MUST(fgv_gang_create(&vm->gang, world->gangs) == 0);
	for (unsigned i = 0; i < world->gpus; i++) {
		struct part *part = &vm->part[i];

		if (!(gpus & 1u << i))
			continue;
		MUST(fgv_sched_attach_vgpu(world->gpu[i].sched, weight, vm, world->now_ns,
					   &part->vgpu) == 0);
		MUST(fgv_sched_attach_session(part->vgpu, vm, world->now_ns, &part->session) == 0);
		if (is_gang)
			MUST(fgv_sched_set_gang(part->vgpu, vm->gang) == 0);
		part->wake_ns = world->now_ns;
	}
	return vm;
}

void gangs_remove(struct gangs_world *world, struct vm *vm)
{
	for (unsigned g = 0; g < world->gpus; g++) {
		struct part *part = &vm->part[g];

		if (!part->session)
			continue;
		fgv_sched_detach_session(part->session, FGV_SCHED_HELD, world->now_ns);
		MUST(fgv_sched_detach_vgpu(part->vgpu) == 0);
		*part = (struct part){0};
		if (world->gpu[g].holder == vm)
			world->gpu[g].holder = NULL;
	}
	fgv_gang_destroy(vm->gang);
	vm->gang = NULL;
}

/* --- What each has beside the others ------------------------------------------ */

static bool is_active(const struct vm *vm, unsigned gpu)
{
	return vm->part[gpu].session && vm->part[gpu].state != PART_IDLE;
}

/* From now on @vm is compared with the others on @gpu. */
static void begin_comparing(struct gangs_world *world, const struct vm *vm, unsigned gpu)
{
	unsigned i = (unsigned)(vm - world->vm);

	for (unsigned j = 0; j < world->vms; j++) {
		world->ahead[gpu][i][j] = world->least[gpu][i][j] = 0;
		world->ahead[gpu][j][i] = world->least[gpu][j][i] = 0;
	}
}

/*
 * What a VM may be ahead of another that is no gang, both asking all the time: two slices of its
 * own and two of the other's, which is start-time fair queuing; as a gang two more of its own and
 * one of the other's, since it may be ahead as it begins, and may have been passed over before; and
 * what it was owed as it became idle.
 */
static double allowed(const struct vm *ahead, const struct vm *behind, unsigned gpu)
{
	double slice = (double)(WORLD_SLICE_NS + WORLD_DRAIN_NS + FGV_NS_PER_MS / 2);
	unsigned slices = 2 + (ahead->gang ? 2 : 0) + (ahead->part[gpu].burst_ns ? 4 : 0);

	return slices * slice / ahead->weight + (ahead->gang ? 3 : 2) * slice / behind->weight;
}

static void compare(struct gangs_world *world, unsigned gpu, unsigned i, unsigned j, double service)
{
	double *ahead = &world->ahead[gpu][i][j], *least = &world->least[gpu][i][j], part;

	*ahead += service;
	if (*ahead < *least)
		*least = *ahead;
	if (world->vm[j].gang)
		return;
	part = (*ahead - *least) / allowed(&world->vm[i], &world->vm[j], gpu);
	if (part > world->worst)
		world->worst = part;
}

static void serve(struct gangs_world *world, struct vm *vm, unsigned gpu, uint64_t used_ns)
{
	unsigned i = (unsigned)(vm - world->vm);
	double service = (double)used_ns / vm->weight;

	vm->part[gpu].used_ns += used_ns;
	for (unsigned j = 0; j < world->vms; j++) {
		if (j == i || !is_active(&world->vm[j], gpu))
			continue;
		compare(world, gpu, i, j, service);
		compare(world, gpu, j, i, -service);
	}
}

static void note_together(struct gangs_world *world, uint64_t ns)
{
	for (unsigned i = 0; i < world->vms; i++) {
		struct vm *vm = &world->vm[i];
		unsigned active = 0, holding = 0;

		for (unsigned g = 0; g < world->gpus; g++) {
			active += is_active(vm, g);
			holding += is_active(vm, g) && vm->part[g].state == PART_HOLDING;
		}
		if (active > 1 && holding == active)
			vm->together_ns += ns;
		else if (holding > 0 && holding < active)
			vm->apart_ns += ns;
		if (active < 2 || holding == active)
			vm->last_together_ns = world->now_ns + ns;
		else
			vm->max_turns_apart_ns = fgv_max_u64(
				vm->max_turns_apart_ns, world->now_ns + ns - vm->last_together_ns);
	}
}

/* --- Events ------------------------------------------------------------------- */

static uint64_t back_ns(const struct gpu *gpu, unsigned number)
{
	const struct part *part;
	uint64_t end_ns;

	if (!gpu->holder)
		return UINT64_MAX;
	part = &gpu->holder->part[number];
	end_ns = gpu->end_ns == UINT64_MAX ? UINT64_MAX : gpu->end_ns + gpu->late_ns;
	if (part->burst_ns)
		end_ns = fgv_min_u64(end_ns, gpu->granted_ns + part->left_ns);
	return end_ns;
}

static void settle(struct gangs_world *world, unsigned number)
{
	struct gpu *gpu = &world->gpu[number];

	if (!gpu->holder || gpu->end_ns != UINT64_MAX)
		return;
	MUST(fgv_sched_charge(gpu->holder->part[number].session, FGV_SCHED_HELD, world->now_ns) ==
	     0);
}

static void ask(struct gangs_world *world, struct vm *vm, unsigned number)
{
	struct part *part = &vm->part[number];

	settle(world, number);
	if (part->burst_ns)
		part->left_ns = 1 + gangs_draw(world, part->burst_ns);
	part->state = PART_WAITING;
	part->asked_ns = world->now_ns;
	begin_comparing(world, vm, number);
	fgv_sched_request(part->session, world->now_ns);
}

static void give_back(struct gangs_world *world, unsigned number)
{
	struct gpu *gpu = &world->gpu[number];
	struct vm *vm = gpu->holder;
	struct part *part = &vm->part[number];
	uint64_t held_ns = world->now_ns - gpu->granted_ns;
	bool more = !part->burst_ns || part->left_ns > held_ns;

	if (part->burst_ns)
		part->left_ns -= fgv_min_u64(part->left_ns, held_ns);
	MUST(fgv_sched_release(part->session, FGV_SCHED_HELD, more, world->now_ns) == 0);
	gpu->holder = NULL;
	part->state = more ? PART_WAITING : PART_IDLE;
	part->asked_ns = world->now_ns;
	if (!more)
		part->wake_ns = world->now_ns + gangs_draw(world, part->pause_ns + 1);
}

static void grant(struct gangs_world *world, unsigned number, const struct fgv_sched_decision *d)
{
	struct vm *vm = fgv_sched_session_owner(d->session);
	struct part *part = &vm->part[number];
	struct gpu *gpu = &world->gpu[number];

	MUST(!gpu->holder && part->state == PART_WAITING);
	part->max_wait_ns = fgv_max_u64(part->max_wait_ns, world->now_ns - part->asked_ns);
	part->state = PART_HOLDING;
	gpu->holder = vm;
	gpu->granted_ns = world->now_ns;
	gpu->late_ns = gangs_draw(world, WORLD_DRAIN_NS);
	gpu->end_ns = d->slice_ns == FGV_SCHED_NO_LIMIT ? UINT64_MAX : world->now_ns + d->slice_ns;
}

/* Returns the GPUs that have something to decide for that. */
static uint32_t decide(struct gangs_world *world, unsigned number)
{
	struct fgv_sched_decision d;
	uint32_t knocks = 0;
	unsigned rounds = 0;

	while (fgv_sched_decide(world->gpu[number].sched, world->now_ns, &d)) {
		MUST(++rounds < 64);
		if (d.action == FGV_SCHED_GRANT)
			grant(world, number, &d);
		else if (d.action == FGV_SCHED_LIMIT)
			world->gpu[number].end_ns = world->now_ns + d.slice_ns;
		else if (d.action == FGV_SCHED_KNOCK)
			knocks |= d.gpus;
		else
			MUST(d.action == FGV_SCHED_AWAKE);
	}
	return knocks;
}

static void decide_all(struct gangs_world *world, uint32_t gpus)
{
	unsigned rounds = 0;

	while (gpus) {
		unsigned number = (unsigned)__builtin_ctz(gpus);

		MUST(++rounds < 1000);
		gpus &= gpus - 1;
		gpus |= decide(world, number);
	}
	for (unsigned g = 0; g < world->gpus; g++) {
		for (unsigned i = 0; i < world->vms && !world->gpu[g].holder; i++)
			MUST(!is_active(&world->vm[i], g));
	}
}

static uint64_t next_event_ns(const struct gangs_world *world)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned g = 0; g < world->gpus; g++) {
		next_ns = fgv_min_u64(next_ns, back_ns(&world->gpu[g], g));
		next_ns =
			fgv_min_u64(next_ns, fgv_sched_next_ns(world->gpu[g].sched, world->now_ns));
		for (unsigned i = 0; i < world->vms; i++) {
			const struct part *part = &world->vm[i].part[g];

			if (part->session && part->state == PART_IDLE)
				next_ns = fgv_min_u64(next_ns, part->wake_ns);
		}
	}
	return fgv_max_u64(next_ns, world->now_ns);
}

static void pass(struct gangs_world *world, uint64_t to_ns)
{
	uint64_t ns = to_ns - world->now_ns;

	note_together(world, ns);
	for (unsigned g = 0; g < world->gpus; g++)
		if (world->gpu[g].holder)
			serve(world, world->gpu[g].holder, g, ns);
	world->now_ns = to_ns;
}

static void happen(struct gangs_world *world)
{
	uint32_t gpus = 0;

	for (unsigned g = 0; g < world->gpus; g++) {
		gpus |= 1u << g;
		if (back_ns(&world->gpu[g], g) <= world->now_ns)
			give_back(world, g);
		for (unsigned i = 0; i < world->vms; i++) {
			struct part *part = &world->vm[i].part[g];

			if (part->session && part->state == PART_IDLE &&
			    part->wake_ns <= world->now_ns)
				ask(world, &world->vm[i], g);
		}
		/* In an order that differs from time to time, as threads would. */
		if (gangs_draw(world, 2)) {
			decide_all(world, 1u << g | (gpus & ~(1u << g)));
			gpus = 0;
		}
	}
	decide_all(world, gpus);
}

void gangs_run(struct gangs_world *world, uint64_t until_ns)
{
	unsigned stuck = 0;

	while (world->now_ns < until_ns) {
		uint64_t before_ns = world->now_ns;

		happen(world);
		pass(world, fgv_min_u64(next_event_ns(world), until_ns));
		stuck = world->now_ns == before_ns ? stuck + 1 : 0;
		MUST(stuck < 1000);
	}
}
