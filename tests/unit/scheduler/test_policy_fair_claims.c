/*
 * The policy `fair` and VMs that take turns at memory: one that is idle only because others have
 * the memory claims its part, and gets it in its own turns; nobody stands still for that, and
 * whoever claims without need has no more than its share.
 */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "tests/unit/scheduler/test_sched_world.h"

#define MS    FGV_NS_PER_MS
#define US    FGV_NS_PER_US
#define SLICE (6 * MS)
#define PARTS 4 /* the part that is charged of what one uses to catch up */
#define MOST  (10000 * MS)

#define LONGEST (1 * MS) /* request */
#define AWAY	(UINT64_MAX / 2)

/* --- Turns at memory ------------------------------------------------------- */

/* Clients from number `first` on have the memory one after the other, each for so long. */
static struct {
	unsigned int first, in;
	uint64_t turn_ns, until_ns;
	bool claims;
} turns;

static void set_claim(struct client *c, bool claims)
{
	if (turns.claims)
		fgv_sched_claim(c->session, claims, 0);
}

/* With the end of its request it has nothing to do, and with nobody to wake it. */
static void send_out(struct client *c)
{
	c->burst = c->left = 1;
	c->pause_ns = AWAY;
}

static void let_in(struct world *world, struct client *c)
{
	c->burst = 0;
	c->wake_ns = world->now_ns;
}

static void take_turns(struct world *world)
{
	struct client *in = &world->client[turns.in];

	for (unsigned int i = turns.first; i < world->clients; i++)
		set_claim(&world->client[i], world->client[i].asleep);
	if (world->now_ns < turns.until_ns)
		return;
	if (in->burst == 0)
		send_out(in);
	if (!in->asleep)
		return;
	turns.in = turns.in + 1 < world->clients ? turns.in + 1 : turns.first;
	turns.until_ns = world->now_ns + turns.turn_ns;
	let_in(world, &world->client[turns.in]);
}

static struct client *add(struct world *world, uint32_t weight)
{
	struct client *c = world_add(world, weight, NULL, 20 * US, LONGEST);

	c->sleep_ns = 1;
	return c;
}

/* One that is always in, and @count that take turns. */
static void open_world(struct world *world, uint32_t weight, unsigned int count, uint64_t turn_ns,
		       bool claims)
{
	world_open(world, &fgv_policy_fair, NULL, 77 + count);
	add(world, weight);
	for (unsigned int i = 0; i < count; i++)
		send_out(add(world, 1));
	turns.first = turns.in = 1;
	turns.until_ns = 0;
	turns.turn_ns = turn_ns;
	turns.claims = claims;
	world->check = take_turns;
}

static const struct {
	uint32_t weight;
	unsigned int count;
	uint64_t turn_ns;
} cases[] = {
	{1, 2, 100 * MS}, {1, 3, 100 * MS}, {2, 2, 150 * MS}, {1, 2, 3000 * MS}, {3, 3, 500 * MS},
};

#define CASES ((int)(sizeof(cases) / sizeof(*cases)))
#define RUN   (120000 * MS)

/* However their turns fall, all get what their weights say. */
START_TEST(turns_at_memory_cost_no_share)
{
	struct world world;
	uint64_t whole;

	open_world(&world, cases[_i].weight, cases[_i].count, cases[_i].turn_ns, true);
	world_run(&world, RUN);
	whole = RUN / (cases[_i].weight + cases[_i].count);
	for (unsigned int i = 0; i < world.clients; i++) {
		uint64_t due = whole * fgv_sched_vgpu_weight(world.client[i].vgpu);
		uint64_t used = world.client[i].used_ns;

		ck_assert_msg(used > due * 95 / 100 - 2 * cases[_i].turn_ns &&
				      used < due * 105 / 100 + 2 * cases[_i].turn_ns,
			      "client %u: %llu of %llu ms", i, (unsigned long long)(used / MS),
			      (unsigned long long)(due / MS));
	}
	ck_assert_uint_eq(world.starved, 0);
	world_close(&world);
}
END_TEST

/* One that waits beside them does not wait for longer than their part of the charge allows. */
START_TEST(nobody_stands_still)
{
	struct world world;
	uint64_t most;

	open_world(&world, cases[_i].weight, cases[_i].count, cases[_i].turn_ns, true);
	world_run(&world, RUN);
	most = (PARTS + 2) * (SLICE + LONGEST);
	ck_assert_uint_le(world.client[0].max_wait_ns, most);
	world_close(&world);
}
END_TEST

/* The same without claims: what is in all the time gets what the others lose. */
START_TEST(without_claims_turns_cost_a_share)
{
	struct world world;

	open_world(&world, 1, 2, 100 * MS, false);
	world_run(&world, RUN);
	ck_assert_uint_gt(world.client[0].used_ns, RUN * 45 / 100);
	ck_assert_uint_lt(world.client[1].used_ns, RUN * 28 / 100);
	world_close(&world);
}
END_TEST

/* --- What a claim is worth ------------------------------------------------- */

/* The second claims whenever it is idle, which it is as it likes. */
static void claim_in_pauses(struct world *world)
{
	const struct client *busy = &world->client[0];
	struct client *other = &world->client[1];
	uint64_t wb = fgv_sched_vgpu_weight(busy->vgpu), wo = fgv_sched_vgpu_weight(other->vgpu);

	fgv_sched_claim(other->session, other->asleep, 0);
	WORLD_MUST(other->used_ns * wb <= busy->used_ns * wo + 2 * (SLICE + LONGEST) * (wb + wo));
}

START_TEST(claims_gain_no_more_than_a_share)
{
	struct world world;
	struct client *other;

	world_open(&world, &fgv_policy_fair, NULL, (uint64_t)_i + 100);
	add(&world, 1 + (uint32_t)world_draw(&world, 4));
	other = add(&world, 1 + (uint32_t)world_draw(&world, 4));
	other->burst = other->left = 1 + (uint32_t)world_draw(&world, 2000);
	other->sleep_ns = 1 + world_draw(&world, 2000 * MS);
	world.check = claim_in_pauses;
	world_run(&world, 60000 * MS);
	world_close(&world);
}
END_TEST

static struct {
	uint64_t away_ns, back_ns; /* the second is away, claims, and is back at that time */
	uint64_t idle_ns; /* it has nothing to do for so long, before it uses what it claimed */
	uint64_t busy_ns, other_ns; /* what both had used when it was back */
} once;

/* What is held without limit counts up to now, as for a newcomer. */
static void settle(struct world *world)
{
	if (world->holder == NULL || world->slice_ns != FGV_SCHED_NO_LIMIT)
		return;
	fgv_sched_charge(world->holder->session, world->grant_used_ns, world->now_ns);
	world->grant_used_ns = 0;
}

static void claim_once(struct world *world)
{
	struct client *other = &world->client[1];

	if (other->asleep && other->wake_ns == UINT64_MAX / 4) {
		settle(world);
		fgv_sched_claim(other->session, world->now_ns < once.back_ns, 0);
		if (world->now_ns >= once.back_ns + once.idle_ns)
			let_in(world, other);
	}
	if (other->asleep && other->wake_ns > UINT64_MAX / 4)
		other->wake_ns = UINT64_MAX / 4;
	if (!other->asleep && !once.other_ns && world->now_ns > once.back_ns) {
		once.busy_ns = world->client[0].used_ns;
		once.other_ns = other->used_ns;
	}
}

/* After it was away for @away_ns, how much more than the busy one it gets, until both are equal. */
static int64_t gain_after(uint64_t away_ns, uint64_t idle_ns)
{
	struct world world;
	struct client *busy, *other;
	int64_t gain;

	world_open(&world, &fgv_policy_fair, NULL, 5);
	busy = add(&world, 1);
	other = add(&world, 1);
	send_out(other);
	once.back_ns = away_ns;
	once.idle_ns = idle_ns;
	once.busy_ns = once.other_ns = 0;
	world.check = claim_once;
	world_run(&world, away_ns + idle_ns + 60000 * MS);
	gain = (int64_t)(other->used_ns - once.other_ns) - (int64_t)(busy->used_ns - once.busy_ns);
	world_close(&world);
	return gain;
}

START_TEST(a_claim_has_a_bound_and_fades)
{
	const int64_t slack = 3 * (int64_t)SLICE;

	/* All of what the other one got meanwhile, but no more than so much. */
	ck_assert_int_ge(gain_after(1000 * MS, 0), (int64_t)(1000 * MS) - slack);
	ck_assert_int_le(gain_after(1000 * MS, 0), (int64_t)(1000 * MS) + slack);
	ck_assert_int_ge(gain_after(3 * MOST, 0), (int64_t)MOST - slack);
	ck_assert_int_le(gain_after(3 * MOST, 0), (int64_t)MOST + slack);
	/* It fades while there is nothing that it could be used for. */
	ck_assert_int_le(gain_after(1000 * MS, 600 * MS), (int64_t)(400 * MS) + slack);
	ck_assert_int_le(gain_after(1000 * MS, 2000 * MS), slack);
}
END_TEST

/* --- The core -------------------------------------------------------------- */

/* A claim goes with its session, and is known to a policy that comes. */
START_TEST(claims_are_sessions)
{
	struct fgv_sched_session *one, *two;
	struct fgv_sched_vgpu *vgpu, *other;
	struct fgv_sched *sched;

	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_none, NULL, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &vgpu), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &other), 0);
	ck_assert_int_eq(fgv_sched_attach_session(vgpu, NULL, 0, &one), 0);
	ck_assert_int_eq(fgv_sched_attach_session(vgpu, NULL, 0, &two), 0);
	fgv_sched_claim(one, true, 0);
	fgv_sched_claim(one, true, 0);
	fgv_sched_claim(two, true, 0);
	ck_assert_int_eq(fgv_sched_set_policy(sched, &fgv_policy_fair, MS), 0);
	fgv_sched_claim(one, false, MS);
	ck_assert_int_eq(fgv_sched_move_session(two, other, MS), 0);
	fgv_sched_request(two, 2 * MS);
	fgv_sched_detach_session(two, 0, 3 * MS);
	fgv_sched_claim(one, true, 3 * MS);
	fgv_sched_detach_session(one, 0, 3 * MS);
	ck_assert_int_eq(fgv_sched_detach_vgpu(vgpu), 0);
	fgv_sched_destroy(sched);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy_fair_claims");
	TCase *tc = tcase_create("claims");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, turns_at_memory_cost_no_share, 0, CASES);
	tcase_add_loop_test(tc, nobody_stands_still, 0, CASES);
	tcase_add_test(tc, without_claims_turns_cost_a_share);
	tcase_add_loop_test(tc, claims_gain_no_more_than_a_share, 0, 30);
	tcase_add_test(tc, a_claim_has_a_bound_and_fades);
	tcase_add_test(tc, claims_are_sessions);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
