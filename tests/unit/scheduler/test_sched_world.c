/* The virtual world of the scheduler's property tests, see test_sched_world.h. */
#include "tests/unit/scheduler/test_sched_world.h"

#include <stddef.h>

#include "common/util.h"

uint64_t world_draw(struct world *world, uint64_t below)
{
	world->seed ^= world->seed << 13;
	world->seed ^= world->seed >> 7;
	world->seed ^= world->seed << 17;
	return world->seed % below;
}

void world_open(struct world *world, const struct fgv_policy *policy,
		const struct fgv_sched_params *params, uint64_t seed)
{
	*world = (struct world){.seed = 0x9e3779b97f4a7c15ull + seed * 77};
	ck_assert_int_eq(fgv_sched_create(&world->sched, policy, params, 0), 0);
}

void world_close(struct world *world)
{
	fgv_sched_destroy(world->sched);
}

static void start_request(struct world *world, struct client *c)
{
	world->request_ns = c->min_ns + world_draw(world, c->max_ns - c->min_ns + 1);
	world->request_end_ns = world->now_ns + world->request_ns;
}

static void take_grant(struct world *world, const struct fgv_sched_decision *d)
{
	struct client *c = fgv_sched_session_owner(d->session);

	WORLD_MUST(world->holder == NULL);
	world->holder = c;
	world->slice_ns = d->slice_ns;
	world->slice_used_ns = 0;
	world->grant_used_ns = 0;
	world->grants++;
	world->trace = world->trace * 31 + (uint64_t)(c - world->client) + world->now_ns;
	c->max_wait_ns = fgv_max_u64(c->max_wait_ns, world->now_ns - c->asked_ns);
	start_request(world, c);
}

static void carry_out(struct world *world, const struct fgv_sched_decision *d)
{
	switch (d->action) {
	case FGV_SCHED_GRANT:
		take_grant(world, d);
		break;
	case FGV_SCHED_LIMIT:
		WORLD_MUST(fgv_sched_session_owner(d->session) == world->holder);
		world->slice_ns = d->slice_ns;
		world->slice_used_ns = 0;
		break;
	case FGV_SCHED_AWAKE:
		WORLD_MUST(world->holder != NULL);
		break;
	case FGV_SCHED_STARVED:
		world->starved++;
		world->last_starved = fgv_sched_session_vgpu(d->session);
		break;
	}
}

static void decide(struct world *world)
{
	struct fgv_sched_decision d;
	struct fgv_sched_load load;

	while (fgv_sched_decide(world->sched, world->now_ns, &d))
		carry_out(world, &d);
	fgv_sched_load(world->sched, &load);
	WORLD_MUST(load.holding <= 1);
	if (world->starved == 0 && !world->may_idle)
		WORLD_MUST(load.waiting == 0 || load.holding == 1);
	if (world->check != NULL)
		world->check(world);
}

static void ask(struct world *world, struct client *c)
{
	c->asleep = false;
	c->left = c->burst;
	c->asked_ns = c->woke_ns = world->now_ns;
	/* The holder's account is brought up to date before a newcomer is announced. */
	if (world->holder != NULL && world->slice_ns == FGV_SCHED_NO_LIMIT) {
		WORLD_MUST(fgv_sched_charge(world->holder->session, world->grant_used_ns,
					    world->now_ns) == 0);
		world->grant_used_ns = 0;
	}
	fgv_sched_request(c->session, world->now_ns);
}

struct client *world_add(struct world *world, uint32_t weight, const struct client *sibling,
			 uint64_t min_ns, uint64_t max_ns)
{
	struct client *c = &world->client[world->clients++];

	ck_assert_uint_le(world->clients, WORLD_CLIENTS);
	*c = (struct client){.min_ns = min_ns, .max_ns = max_ns};
	if (sibling != NULL)
		c->vgpu = sibling->vgpu;
	else
		ck_assert_int_eq(
			fgv_sched_attach_vgpu(world->sched, weight, NULL, world->now_ns, &c->vgpu),
			0);
	ck_assert_int_eq(fgv_sched_attach_session(c->vgpu, c, world->now_ns, &c->session), 0);
	ask(world, c);
	return c;
}

static void give_back(struct world *world, bool more)
{
	struct client *c = world->holder;

	world->holder = NULL;
	c->asked_ns = world->now_ns;
	WORLD_MUST(fgv_sched_release(c->session, world->grant_used_ns, more, world->now_ns) == 0);
}

/* The holder's request is done: on to the next, to sleep, or the slice is over. */
static void request_done(struct world *world)
{
	struct client *c = world->holder;

	c->used_ns += world->request_ns;
	world->grant_used_ns += world->request_ns;
	world->slice_used_ns += world->request_ns;
	if (c->burst != 0 && --c->left == 0) {
		c->asleep = true;
		c->max_burst_ns = fgv_max_u64(c->max_burst_ns, world->now_ns - c->woke_ns);
		c->wake_ns = world->now_ns + c->pause_ns + 1 + world_draw(world, c->sleep_ns);
		give_back(world, false);
	} else if (world->slice_ns != FGV_SCHED_NO_LIMIT &&
		   world->slice_used_ns >= world->slice_ns) {
		give_back(world, true);
	} else {
		start_request(world, c);
	}
}

static uint64_t next_event(const struct world *world)
{
	uint64_t next = fgv_sched_next_ns(world->sched, world->now_ns);

	if (world->holder != NULL)
		next = fgv_min_u64(next, world->request_end_ns);
	for (unsigned int i = 0; i < world->clients; i++)
		if (world->client[i].asleep)
			next = fgv_min_u64(next, world->client[i].wake_ns);
	return next;
}

void world_run(struct world *world, uint64_t until_ns)
{
	decide(world);
	while (world->now_ns < until_ns) {
		uint64_t next = next_event(world);

		WORLD_MUST(next >= world->now_ns && next != UINT64_MAX);
		next = fgv_min_u64(next, until_ns);
		world->now_ns = next;
		if (world->holder != NULL && world->request_end_ns <= next)
			request_done(world);
		for (unsigned int i = 0; i < world->clients; i++)
			if (world->client[i].asleep && world->client[i].wake_ns <= next)
				ask(world, &world->client[i]);
		decide(world);
	}
}
