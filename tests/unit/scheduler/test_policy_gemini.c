/*
 * The policy `gemini`: shares are those by weight, not less than the request and not more
 * than the limit, over every window of time; what one leaves the others get; and neither
 * floods of short requests, nor long ones, nor idleness, nor many sessions change that.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/burst.h"
#include "scheduler/window.h"
#include "tests/unit/scheduler/test_sched_world.h"

#define MS    FGV_NS_PER_MS
#define US    FGV_NS_PER_US
#define S     FGV_NS_PER_SEC
#define SLICE FGV_SCHED_SLICE_NS
#define TOKEN (4 * SLICE) /* at most */
#define WHOLE FGV_SCHED_WHOLE

#define PERCENT(n) ((n) * (WHOLE / 100))

static void set_shares(struct world *world, const struct client *c, uint32_t request,
		       uint32_t limit)
{
	const struct fgv_sched_shares shares = {.request = request, .limit = limit};

	ck_assert_int_eq(fgv_sched_set_shares(c->vgpu, &shares, world->now_ns), 0);
}

/* --- A tape of use --------------------------------------------------------- */

/* What a client had used, in all, at the times when something was decided. */
struct tape {
	const struct client *client;
	size_t count, room;
	struct {
		uint64_t at_ns, used_ns;
	} * mark;
};

static uint64_t used_now(const struct world *world, const struct client *c)
{
	uint64_t running_ns = 0;

	if (world->holder == c && world->now_ns < world->request_end_ns)
		running_ns = world->request_ns - (world->request_end_ns - world->now_ns);
	return c->used_ns + running_ns;
}

static void tape_mark(struct tape *tape, const struct world *world)
{
	if (tape->count == tape->room) {
		tape->room = 2 * tape->room + 64;
		tape->mark = realloc(tape->mark, tape->room * sizeof(*tape->mark));
		ck_assert_ptr_nonnull(tape->mark);
	}
	tape->mark[tape->count].at_ns = world->now_ns;
	tape->mark[tape->count++].used_ns = used_now(world, tape->client);
}

/* What was used up to @at_ns, which is not before the mark *@near, where the search begins. */
static uint64_t tape_at(const struct tape *tape, uint64_t at_ns, size_t *near)
{
	uint64_t step_ns, since_ns, used_ns;

	while (*near + 1 < tape->count && tape->mark[*near + 1].at_ns <= at_ns)
		++*near;
	if (*near + 1 == tape->count)
		return tape->mark[*near].used_ns;
	step_ns = tape->mark[*near + 1].at_ns - tape->mark[*near].at_ns;
	since_ns = at_ns - tape->mark[*near].at_ns;
	used_ns = tape->mark[*near + 1].used_ns - tape->mark[*near].used_ns;
	return tape->mark[*near].used_ns + used_ns * since_ns / step_ns;
}

/* The least and the most that was used in a window of time between two times. */
static void tape_range(const struct tape *tape, uint64_t window_ns, uint64_t from_ns,
		       uint64_t to_ns, uint64_t *least_ns, uint64_t *most_ns)
{
	size_t head = 0, tail = 0;

	*least_ns = UINT64_MAX;
	*most_ns = 0;
	for (size_t i = 0; i < tape->count; i++) {
		/* windows that end at a mark, and windows that begin at one */
		for (int begins = 0; begins <= 1; begins++) {
			uint64_t end_ns = tape->mark[i].at_ns + (begins != 0 ? window_ns : 0);
			size_t *near = begins != 0 ? &head : &tail;
			uint64_t used_ns;

			if (end_ns < from_ns + window_ns || end_ns > to_ns)
				continue;
			used_ns = begins != 0 ? tape_at(tape, end_ns, near) - tape->mark[i].used_ns
					      : tape->mark[i].used_ns -
							tape_at(tape, end_ns - window_ns, near);
			*least_ns = fgv_min_u64(*least_ns, used_ns);
			*most_ns = fgv_max_u64(*most_ns, used_ns);
		}
	}
	ck_assert_uint_ne(*least_ns, UINT64_MAX);
}

static void mark_tapes(struct world *world)
{
	struct tape *tapes = world->check_arg;

	for (unsigned int i = 0; i < world->clients; i++)
		tape_mark(&tapes[i], world);
}

static struct tape *start_tapes(struct world *world)
{
	struct tape *tapes = calloc(world->clients, sizeof(*tapes));

	ck_assert_ptr_nonnull(tapes);
	for (unsigned int i = 0; i < world->clients; i++)
		tapes[i].client = &world->client[i];
	world->check = mark_tapes;
	world->check_arg = tapes;
	return tapes;
}

static void free_tapes(const struct world *world, struct tape *tapes)
{
	for (unsigned int i = 0; i < world->clients; i++)
		free(tapes[i].mark);
	free(tapes);
}

static void open_world(struct world *world, const struct fgv_sched_params *params, uint64_t seed)
{
	world_open(world, &fgv_policy_gemini, params, seed);
	world->may_idle = true;
}

/* Puts one to sleep for a time. */
static void put_to_sleep(struct world *world, struct client *c, uint64_t for_ns)
{
	c->burst = c->left = 1;
	c->sleep_ns = 3600 * S;
	while (!c->asleep)
		world_run(world, world->now_ns + MS);
	c->burst = 0;
	c->wake_ns = world->now_ns + for_ns;
}

/* --- Limits ---------------------------------------------------------------- */

struct alone {
	uint32_t percent;
	uint64_t kernel_ns;
};

static const struct alone alone[] = {
	{25, 28 * US}, {25, 5 * MS}, {25, 500 * MS}, {1, 28 * US}, {99, 5 * MS}, {50, 6 * MS},
};

/* A limit holds where nobody else wants the GPU, and is used up. */
START_TEST(a_limit_holds_alone)
{
	const struct alone *row = &alone[_i];
	uint64_t due_ns = 10 * S * row->percent / 100, least_ns, most_ns;
	struct world world;
	struct tape *tapes;

	open_world(&world, NULL, 1);
	set_shares(&world, world_add(&world, 1, NULL, row->kernel_ns, row->kernel_ns), 0,
		   PERCENT(row->percent));
	tapes = start_tapes(&world);
	world_run(&world, 100 * S);
	tape_range(&tapes[0], 10 * S, 0, 100 * S, &least_ns, &most_ns);
	ck_assert_uint_le(most_ns, due_ns + SLICE + row->kernel_ns);
	/* what leaves the window a part later than it might is not used */
	ck_assert_uint_ge(least_ns + SLICE + row->kernel_ns, due_ns - due_ns / 400);
	ck_assert_uint_eq(world.starved, 0);
	free_tapes(&world, tapes);
	world_close(&world);
}
END_TEST

/* A limit is a rate: a quarter is a quarter in every tenth of a second, too. */
START_TEST(a_limit_is_spread_evenly)
{
	uint64_t least_ns, most_ns;
	struct world world;
	struct tape *tapes;

	open_world(&world, NULL, 1);
	set_shares(&world, world_add(&world, 1, NULL, 28 * US, 28 * US), 0, PERCENT(25));
	tapes = start_tapes(&world);
	world_run(&world, 60 * S);
	tape_range(&tapes[0], 100 * MS, 0, 60 * S, &least_ns, &most_ns);
	ck_assert_uint_le(most_ns, 25 * MS + SLICE + 28 * US);
	ck_assert_uint_ge(least_ns, 25 * MS - SLICE - 5 * MS);
	free_tapes(&world, tapes);
	world_close(&world);
}
END_TEST

/* One that wanted nothing for a minute may not take a minute's part at once. */
START_TEST(idleness_earns_nothing)
{
	struct world world;
	struct client *c;

	open_world(&world, NULL, 1);
	c = world_add(&world, 1, NULL, 100 * US, 100 * US);
	set_shares(&world, c, PERCENT(25), PERCENT(25));
	world_run(&world, 3 * S);
	put_to_sleep(&world, c, 60 * S);
	world_run(&world, c->wake_ns);
	c->used_ns = 0;
	world_run(&world, world.now_ns + 200 * MS);
	ck_assert_uint_le(used_now(&world, c), 50 * MS + SLICE + 100 * US);
	ck_assert_uint_ge(used_now(&world, c), 50 * MS - SLICE);
	world_close(&world);
}
END_TEST

/* Setting a limit takes an unlimited grant back; lifting it frees the VM at once. */
START_TEST(limits_change_while_it_runs)
{
	struct world world;
	struct client *c;

	open_world(&world, NULL, 1);
	c = world_add(&world, 1, NULL, 100 * US, 100 * US);
	world_run(&world, 5 * S);
	ck_assert_uint_eq(world.slice_ns, FGV_SCHED_NO_LIMIT);
	ck_assert_int_eq(fgv_sched_charge(c->session, world.grant_used_ns, world.now_ns), 0);
	world.grant_used_ns = 0;
	set_shares(&world, c, 0, PERCENT(10));
	c->used_ns = 0;
	world_run(&world, 15 * S);
	ck_assert_uint_le(c->used_ns, S + SLICE + 200 * US);
	ck_assert_uint_ge(c->used_ns, S - 2 * SLICE);
	set_shares(&world, c, 0, WHOLE);
	c->used_ns = 0;
	world_run(&world, 16 * S);
	ck_assert_uint_ge(c->used_ns, S - MS);
	world_close(&world);
}
END_TEST

/* A debt is of the limit that it was made under: a tenfold limit pays it off tenfold. */
START_TEST(a_debt_follows_the_limit)
{
	struct world world;
	struct client *c;

	open_world(&world, NULL, 1);
	c = world_add(&world, 1, NULL, S, S);
	set_shares(&world, c, 0, PERCENT(1));
	world_run(&world, 2 * S);
	ck_assert_ptr_null(world.holder); /* for 100 s */
	set_shares(&world, c, 0, PERCENT(50));
	world_run(&world, 3 * S + 990 * MS);
	ck_assert_ptr_eq(world.holder, c);
	world_close(&world);
}
END_TEST

/* --- Requests and weights -------------------------------------------------- */

struct promise {
	uint32_t weight, request, limit; /* percent */
};

/* The rule: w * level, but not less than the request and not more than the limit. */
static double share_at(const struct promise *p, double level)
{
	double share = p->weight * level;

	if (share < p->request / 100.0)
		share = p->request / 100.0;
	return share > p->limit / 100.0 ? p->limit / 100.0 : share;
}

static double level_of(const struct promise *p, unsigned int count)
{
	double low = 0, high = 1;

	for (int step = 0; step < 60; step++) {
		double sum = 0, level = (low + high) / 2;

		for (unsigned int i = 0; i < count; i++)
			sum += share_at(&p[i], level);
		if (sum > 1)
			high = level;
		else
			low = level;
	}
	return low;
}

/* In every window between the two times each has what the rule says, to 1.5 % of the GPU. */
static void expect_rule(const struct tape *tapes, const struct promise *p, unsigned int count,
			uint64_t from_ns, uint64_t to_ns)
{
	double level = level_of(p, count);

	for (unsigned int i = 0; i < count; i++) {
		double due = share_at(&p[i], level) * 10 * S;
		uint64_t least_ns, most_ns;

		tape_range(&tapes[i], 10 * S, from_ns, to_ns, &least_ns, &most_ns);
		ck_assert_double_eq_tol((double)least_ns, due, 0.015 * 10 * S);
		ck_assert_double_eq_tol((double)most_ns, due, 0.015 * 10 * S);
	}
}

static void add_all(struct world *world, const struct promise *p, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		set_shares(world, world_add(world, p[i].weight, NULL, 20 * US, 1 * MS),
			   PERCENT(p[i].request), PERCENT(p[i].limit));
}

/* Requests of 50, 30 and 20, limits of 60, 60 and 40: all busy; one idle; back. */
START_TEST(requests_are_met_and_lent)
{
	static const struct promise all[] = {{1, 50, 60}, {1, 30, 60}, {1, 20, 40}};
	struct promise others[3];
	struct world world;
	struct tape *tapes;
	uint64_t slept_ns, back_ns, had_ns;

	open_world(&world, NULL, 1);
	add_all(&world, all, 3);
	tapes = start_tapes(&world);
	world_run(&world, 40 * S);
	expect_rule(tapes, all, 3, 0, 40 * S);
	put_to_sleep(&world, &world.client[_i], 30 * S);
	slept_ns = world.now_ns;
	back_ns = world.client[_i].wake_ns;
	world_run(&world, back_ns);
	for (int i = 0; i < 3; i++)
		others[i] = i == _i ? (struct promise){0, 0, 0} : all[i];
	expect_rule(tapes, others, 3, slept_ns, back_ns);
	had_ns = world.client[_i].used_ns;
	world_run(&world, back_ns + S);
	/* within a second it has had a second's request, but for the token that it waited for */
	ck_assert_uint_ge(used_now(&world, &world.client[_i]) - had_ns + TOKEN + MS,
			  S * all[_i].request / 100);
	world_run(&world, back_ns + 30 * S);
	expect_rule(tapes, all, 3, back_ns + S, back_ns + 30 * S);
	ck_assert_uint_eq(world.starved, 0);
	free_tapes(&world, tapes);
	world_close(&world);
}
END_TEST

/* Any weights, requests and limits. */
START_TEST(shares_are_as_the_rule_says)
{
	struct promise p[10];
	struct world world;
	struct tape *tapes;
	unsigned int count;
	uint32_t left = 100;

	open_world(&world, NULL, (uint64_t)_i);
	count = 1 + (unsigned int)world_draw(&world, 10);
	for (unsigned int i = 0; i < count; i++) {
		p[i].weight = 1 + (uint32_t)world_draw(&world, 10);
		p[i].request = (uint32_t)world_draw(&world, left / 2 + 1);
		p[i].limit = 100;
		if (world_draw(&world, 2) == 0)
			p[i].limit =
				p[i].request + (uint32_t)world_draw(&world, 101 - p[i].request);
		p[i].limit = (uint32_t)fgv_max_u64(p[i].limit, 1);
		left -= p[i].request;
	}
	add_all(&world, p, count);
	tapes = start_tapes(&world);
	world_run(&world, 45 * S);
	expect_rule(tapes, p, count, 3 * S, 45 * S);
	ck_assert_uint_eq(world.starved, 0);
	free_tapes(&world, tapes);
	world_close(&world);
}
END_TEST

/* Without requests and limits it is `fair`, and the sessions of a VM share its part. */
START_TEST(many_sessions_gain_nothing)
{
	struct world world;
	struct client *many, *one;
	uint64_t used_ns;

	open_world(&world, NULL, 1);
	many = world_add(&world, 1, NULL, 20 * US, 28 * US);
	set_shares(&world, many, PERCENT(20), PERCENT(30));
	one = world_add(&world, 1, NULL, 20 * US, 28 * US);
	for (int i = 0; i < 30; i++)
		world_add(&world, 1, many, 20 * US, 28 * US);
	world_run(&world, 60 * S);
	used_ns = many->used_ns;
	for (unsigned int i = 2; i < world.clients; i++)
		used_ns += world.client[i].used_ns;
	ck_assert_double_eq_tol((double)used_ns / (60.0 * S), 0.3, 0.003);
	ck_assert_double_eq_tol((double)one->used_ns / (60.0 * S), 0.7, 0.003);
	world_close(&world);
}
END_TEST

/* An hour alone is nobody's loss: neither the request nor the share suffers afterwards. */
START_TEST(an_hour_alone_is_forgotten)
{
	struct world world;
	struct client *a, *b, *c;

	open_world(&world, NULL, 1);
	a = world_add(&world, 1, NULL, 10 * MS, 10 * MS);
	set_shares(&world, a, PERCENT(50), WHOLE);
	world_run(&world, 3600 * S);
	b = world_add(&world, 1, NULL, MS, MS);
	c = world_add(&world, 1, NULL, MS, MS);
	a->used_ns = 0;
	world_run(&world, 3601 * S);
	ck_assert_double_eq_tol((double)a->used_ns / S, 0.5, 0.03);
	/* and having had more than its weight for an hour costs it nothing, either */
	world_run(&world, 2 * 3600 * S);
	set_shares(&world, a, PERCENT(10), WHOLE);
	a->used_ns = b->used_ns = c->used_ns = 0;
	world_run(&world, 2 * 3600 * S + 2 * S);
	ck_assert_double_eq_tol((double)a->used_ns / (2 * S), 1.0 / 3, 0.05);
	ck_assert_double_eq_tol((double)b->used_ns / (2 * S), 1.0 / 3, 0.05);
	world_close(&world);
}
END_TEST

/* Long kernels that can't be interrupted are paid for, under a request, too. */
START_TEST(long_requests_gain_nothing)
{
	struct world world;
	struct client *a, *b;

	open_world(&world, NULL, 1);
	a = world_add(&world, 1, NULL, 500 * MS, 500 * MS);
	b = world_add(&world, 1, NULL, 100 * US, 100 * US);
	set_shares(&world, a, PERCENT(30), WHOLE);
	world_run(&world, 300 * S);
	ck_assert_double_eq_tol((double)a->used_ns / (300.0 * S), 0.5, 0.02);
	ck_assert_double_eq_tol((double)b->used_ns / (300.0 * S), 0.5, 0.02);
	world_close(&world);
}
END_TEST

/* The unlimited grant of one that does next to nothing is no credit against others. */
START_TEST(a_grant_unused_earns_nothing)
{
	struct world world;
	struct client *a, *b;
	uint64_t had_ns;

	open_world(&world, NULL, 1);
	a = world_add(&world, 1, NULL, 100 * US, 100 * US);
	set_shares(&world, a, PERCENT(40), WHOLE);
	world_run(&world, 5 * S);
	/* it has held the grant all the time, but says that it used a hundredth */
	ck_assert_int_eq(fgv_sched_charge(a->session, 50 * MS, world.now_ns), 0);
	world.grant_used_ns = 0;
	b = world_add(&world, 3, NULL, 100 * US, 100 * US);
	had_ns = used_now(&world, a);
	world_run(&world, 6 * S);
	ck_assert_double_eq_tol((double)(used_now(&world, a) - had_ns) / S, 0.4, 0.05);
	ck_assert_double_eq_tol((double)used_now(&world, b) / S, 0.6, 0.05);
	world_close(&world);
}
END_TEST

/* Best effort is what the others leave; where that is nothing, it is so by the rules. */
START_TEST(best_effort_may_get_nothing)
{
	static const struct promise p[] = {{1, 60, 100}, {1, 40, 100}, {1000, 0, 100}};
	struct world world;

	open_world(&world, NULL, 1);
	add_all(&world, p, 3);
	world_run(&world, 60 * S);
	ck_assert_uint_eq(world.starved, 0);
	ck_assert_double_lt((double)world.client[2].used_ns / (60.0 * S), 0.01);
	world_close(&world);
}
END_TEST

/* A long wait for a limit is none of the watchdog's business. */
START_TEST(the_watchdog_knows_of_limits)
{
	struct world world;
	struct client *c;

	open_world(&world, NULL, 1);
	c = world_add(&world, 1, NULL, 5 * S, 5 * S);
	set_shares(&world, c, 0, PERCENT(5));
	world_run(&world, 300 * S);
	ck_assert_uint_eq(world.starved, 0);
	ck_assert_double_eq_tol((double)c->used_ns / (300.0 * S), 0.05, 0.01);
	world_close(&world);
}
END_TEST

/* Work that goes on after its grant was taken is paid for: the limit holds with it. */
START_TEST(what_runs_on_is_charged)
{
	struct fgv_sched_decision d;
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
	const struct fgv_sched_shares shares = {.limit = PERCENT(25)};
	uint64_t now_ns = S, used_ns = 0;

	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_gemini, NULL, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &vgpu), 0);
	ck_assert_int_eq(fgv_sched_set_shares(vgpu, &shares, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_session(vgpu, NULL, 0, &session), 0);
	fgv_sched_request(session, now_ns);
	while (now_ns < 21 * S) {
		while (!fgv_sched_decide(sched, now_ns, &d) || d.action != FGV_SCHED_GRANT)
			now_ns = fgv_max_u64(now_ns + 1, fgv_sched_next_ns(sched, now_ns));
		now_ns += d.slice_ns;
		fgv_sched_release(session, d.slice_ns, true, now_ns);
		now_ns += MS; /* until it stands still */
		fgv_sched_charge_late(session, MS, now_ns);
		used_ns += d.slice_ns + MS;
	}
	ck_assert_uint_eq(fgv_sched_session_stats(session)->gpu_ns, used_ns);
	ck_assert_double_eq_tol((double)used_ns / (20.0 * S), 0.25, 0.002);
	fgv_sched_destroy(sched);
}
END_TEST

/* --- Tokens ---------------------------------------------------------------- */

/* Busy VMs get tokens of four slices; one that wakes waits for no more than a slice of each. */
START_TEST(a_long_token_ends_when_another_comes)
{
	struct world world;
	struct client *late;

	open_world(&world, NULL, 1);
	world_add(&world, 1, NULL, 100 * US, 100 * US);
	world_add(&world, 1, NULL, 100 * US, 100 * US);
	late = world_add(&world, 1, NULL, 100 * US, 100 * US);
	put_to_sleep(&world, late, 2 * S);
	world_run(&world, late->wake_ns - 1);
	ck_assert_uint_ge(world.slice_ns, TOKEN - US);
	late->max_wait_ns = 0;
	late->burst = late->left = 3;
	late->sleep_ns = 200 * MS;
	world_run(&world, world.now_ns + 20 * S);
	ck_assert_uint_gt(late->max_wait_ns, MS);
	ck_assert_uint_le(late->max_wait_ns, 2 * (SLICE + 200 * US));
	world_close(&world);
}
END_TEST

/* --- Bounds ---------------------------------------------------------------- */

static void set_bound(struct world *world, const struct client *c, uint32_t request,
		      uint64_t bound_ns)
{
	const struct fgv_sched_shares shares = {
		.request = request, .limit = WHOLE, .bound_ns = bound_ns};

	ck_assert_int_eq(fgv_sched_set_shares(c->vgpu, &shares, world->now_ns), 0);
}

/* A millisecond of work at random times, 50 in a second on average, beside three busy VMs. */
START_TEST(a_bound_is_kept)
{
	struct world world;
	struct client *service;

	open_world(&world, NULL, (uint64_t)_i);
	service = world_add(&world, 1, NULL, 50 * US, 100 * US);
	set_bound(&world, service, PERCENT(20), 5 * MS);
	for (int i = 0; i < 3; i++)
		world_add(&world, 1 + (uint32_t)i, NULL, 100 * US, 200 * US);
	service->burst = service->left = 13;
	service->sleep_ns = 40 * MS;
	world_run(&world, 60 * S);
	/* whoever has the GPU gives it back after a kernel */
	ck_assert_uint_le(service->max_wait_ns, 200 * US);
	/* and the others share the rest by weight */
	for (int i = 1; i <= 3; i++)
		ck_assert_double_eq_tol((double)world.client[i].used_ns /
						(double)(60 * S - service->used_ns),
					i / 6.0, 0.02);
	ck_assert_uint_eq(world.starved, 0);
	world_close(&world);
}
END_TEST

/* One that wants more than its request has no bound for that, and takes nobody else's. */
START_TEST(overuse_loses_the_bound)
{
	struct world world;
	struct client *modest, *greedy;

	open_world(&world, NULL, 1);
	modest = world_add(&world, 1, NULL, 50 * US, 100 * US);
	greedy = world_add(&world, 1, NULL, 50 * US, 100 * US);
	set_bound(&world, modest, PERCENT(20), 5 * MS);
	set_bound(&world, greedy, PERCENT(20), 4 * MS);
	for (int i = 0; i < 4; i++)
		world_add(&world, 1, NULL, 100 * US, 200 * US);
	modest->burst = modest->left = 13;
	modest->sleep_ns = 40 * MS;
	world_run(&world, 60 * S);
	ck_assert_uint_le(modest->max_wait_ns, 5 * MS);
	/* by the rules it has its request, as the weights give it less */
	ck_assert_double_eq_tol((double)greedy->used_ns / (60.0 * S), 0.2, 0.015);
	world_close(&world);
}
END_TEST

/* Whatever admission lets in is kept, for all that stay within their requests. */
START_TEST(admitted_bounds_are_kept)
{
	const struct fgv_sched_shares none = {.limit = WHOLE};
	struct world world;
	unsigned int admitted = 0;

	open_world(&world, NULL, (uint64_t)_i);
	for (int i = 0; i < 12; i++) {
		struct client *c = world_add(&world, 1, NULL, 20 * US, 50 * US);
		struct fgv_sched_shares shares = {
			.request = PERCENT(1 + (uint32_t)world_draw(&world, 25)),
			.limit = WHOLE,
			.bound_ns = (2 + world_draw(&world, 40)) * MS,
		};

		if (fgv_sched_set_shares(c->vgpu, &shares, 0) != 0) {
			ck_assert_int_eq(fgv_sched_set_shares(c->vgpu, &none, 0), 0);
			continue;
		}
		admitted++;
		/* a burst that fits into the request's part of the bound, and a pause that pays */
		c->burst = (uint32_t)(shares.bound_ns * shares.request / WHOLE / (50 * US));
		c->burst = c->left = (uint32_t)fgv_max_u64(c->burst, 1);
		c->pause_ns = c->burst * 50 * US * (uint64_t)WHOLE / shares.request;
		c->sleep_ns = 30 * MS;
	}
	world_run(&world, 20 * S);
	ck_assert_uint_gt(admitted, 0);
	for (unsigned int i = 0; i < world.clients; i++) {
		const struct client *c = &world.client[i];
		uint64_t bound_ns = fgv_sched_vgpu_shares(c->vgpu)->bound_ns;

		if (bound_ns != 0)
			ck_assert_uint_le(c->max_burst_ns, bound_ns);
	}
	world_close(&world);
}
END_TEST

START_TEST(bounds_that_cannot_be_kept_together)
{
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu[3];
	struct fgv_sched_shares shares = {.limit = WHOLE, .bound_ns = 5 * MS};

	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_gemini, NULL, 0), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &vgpu[i]), 0);
	ck_assert_int_eq(fgv_sched_set_shares(vgpu[0], &shares, 0), -EINVAL); /* no request */
	shares.request = PERCENT(81); /* and a millisecond of five to get the GPU back */
	ck_assert_int_eq(fgv_sched_set_shares(vgpu[0], &shares, 0), -ERANGE);
	shares.request = PERCENT(80);
	ck_assert_int_eq(fgv_sched_set_shares(vgpu[0], &shares, 0), 0);
	shares.request = PERCENT(1);
	ck_assert_int_eq(fgv_sched_set_shares(vgpu[1], &shares, 0), -ERANGE);
	/* 81 % of 10 ms, and one of 10 */
	shares.bound_ns = 10 * MS;
	ck_assert_int_eq(fgv_sched_set_shares(vgpu[1], &shares, 0), 0);
	shares.bound_ns = 500 * US; /* shorter than it takes to get the GPU back */
	ck_assert_int_eq(fgv_sched_set_shares(vgpu[2], &shares, 0), -ERANGE);
	fgv_sched_destroy(sched);
}
END_TEST

/* --- Random schedules ------------------------------------------------------ */

/* All is a hundredth of what is usual, so that there can be many. */
#define SMALL_SLICE    (60 * US)
#define SMALL_WINDOW   (24 * SMALL_SLICE)
#define LONGEST	       SMALL_SLICE /* kernel */
#define SCHEDULES      1000	   /* in each loop */
#define SCHEDULE_LOOPS 100

/* Only a VM with a limit may wait beside an idle GPU. */
static void check_held_back(struct world *world)
{
	mark_tapes(world);
	if (world->holder != NULL)
		return;
	for (unsigned int i = 0; i < world->clients; i++)
		if (!world->client[i].asleep)
			WORLD_MUST(fgv_sched_vgpu_shares(world->client[i].vgpu)->limit < WHOLE);
}

static void add_random(struct world *world)
{
	unsigned int count = 1 + (unsigned int)world_draw(world, 6);
	uint32_t left = WHOLE;

	for (unsigned int i = 0; i < count; i++) {
		struct client *c = world_add(world, 1 + (uint32_t)world_draw(world, 5), NULL, 1,
					     1 + world_draw(world, LONGEST));
		uint32_t request = (uint32_t)world_draw(world, left / 2 + 1);
		uint32_t limit = request + (uint32_t)world_draw(world, WHOLE - request) + 1;

		if (world_draw(world, 3) == 0)
			request = 0;
		if (world_draw(world, 3) == 0)
			limit = WHOLE;
		set_shares(world, c, request, limit);
		left -= request;
		if (world_draw(world, 2) == 0)
			continue;
		c->burst = c->left = 1 + (uint32_t)world_draw(world, 40);
		c->sleep_ns = 1 + world_draw(world, MS);
	}
}

static void check_schedule(const struct world *world, const struct tape *tapes, uint64_t end_ns)
{
	/* Each may be served a token and a kernel late by each of the others. */
	uint64_t late_ns = world->clients * (4 * SMALL_SLICE + LONGEST);

	for (unsigned int i = 0; i < world->clients; i++) {
		const struct client *c = &world->client[i];
		const struct fgv_sched_shares *shares = fgv_sched_vgpu_shares(c->vgpu);
		uint64_t limit_ns = SMALL_WINDOW * shares->limit / WHOLE;
		uint64_t request_ns = SMALL_WINDOW * shares->request / WHOLE;
		uint64_t least_ns, most_ns;

		tape_range(&tapes[i], SMALL_WINDOW, 0, end_ns, &least_ns, &most_ns);
		if (shares->limit < WHOLE)
			WORLD_MUST(most_ns <= limit_ns + SMALL_SLICE + c->max_ns);
		/* a limit that is the request costs it a part of the window, and a slice */
		if (c->burst == 0)
			WORLD_MUST(least_ns + late_ns + request_ns / 100 >= request_ns);
	}
}

static void run_schedule(uint64_t seed)
{
	const uint64_t end_ns = 2 * SMALL_WINDOW;
	struct fgv_sched_params params;
	struct world world;
	struct tape *tapes;

	fgv_sched_params_init(&params);
	params.slice_ns = SMALL_SLICE;
	params.share_window_ns = SMALL_WINDOW;
	params.awake_lead_ns = 3 * US;
	open_world(&world, &params, seed);
	add_random(&world);
	tapes = start_tapes(&world);
	world.check = check_held_back;
	world_run(&world, end_ns);
	WORLD_MUST(world.starved == 0);
	check_schedule(&world, tapes, end_ns);
	free_tapes(&world, tapes);
	world_close(&world);
}

START_TEST(no_schedule_breaks_a_promise)
{
	for (int i = 0; i < SCHEDULES; i++)
		run_schedule((uint64_t)_i * SCHEDULES + (uint64_t)i);
}
END_TEST

START_TEST(the_same_events_the_same_decisions)
{
	uint64_t trace = 0;

	for (int round = 0; round < 2; round++) {
		struct world world;

		open_world(&world, NULL, 7);
		add_random(&world);
		world_run(&world, 5 * S);
		if (round == 1)
			ck_assert_uint_eq(world.trace, trace);
		trace = world.trace;
		world_close(&world);
	}
}
END_TEST

/* --- Admission ------------------------------------------------------------- */

static int try_shares(struct fgv_sched_vgpu *vgpu, uint32_t request, uint32_t limit)
{
	const struct fgv_sched_shares shares = {.request = request, .limit = limit};

	return fgv_sched_set_shares(vgpu, &shares, 0);
}

START_TEST(what_cannot_be_kept_is_refused)
{
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *a, *b;

	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_gemini, NULL, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &a), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &b), 0);
	ck_assert_int_eq(try_shares(a, PERCENT(60), WHOLE), 0);
	ck_assert_int_eq(try_shares(b, PERCENT(41), WHOLE), -ENOSPC);
	ck_assert_uint_eq(fgv_sched_vgpu_shares(b)->request, 0);
	ck_assert_int_eq(try_shares(b, PERCENT(40), PERCENT(39)), -EINVAL);
	ck_assert_int_eq(try_shares(b, 0, 0), -EINVAL);
	ck_assert_int_eq(try_shares(b, 0, WHOLE + 1), -EINVAL);
	ck_assert_int_eq(try_shares(b, PERCENT(40), PERCENT(40)), 0);
	/* its own request does not stand in its way, and one that is gone in nobody's */
	ck_assert_int_eq(try_shares(a, PERCENT(50), PERCENT(50)), 0);
	ck_assert_int_eq(fgv_sched_detach_vgpu(a), 0);
	ck_assert_int_eq(try_shares(b, WHOLE, WHOLE), 0);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(other_policies_know_no_shares)
{
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu;

	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_fair, NULL, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &vgpu), 0);
	ck_assert_int_eq(try_shares(vgpu, 0, PERCENT(50)), -EOPNOTSUPP);
	ck_assert_int_eq(try_shares(vgpu, PERCENT(50), WHOLE), -EOPNOTSUPP);
	ck_assert_int_eq(try_shares(vgpu, 0, WHOLE), 0);
	fgv_sched_destroy(sched);
}
END_TEST

/* --- Bursts and windows ---------------------------------------------------- */

/* Quotas move to the length of the bursts, long or short, and stay within their range. */
START_TEST(quotas_follow_bursts)
{
	static const uint64_t length_ns[] = {4 * MS, 9 * MS, 100 * US, 400 * MS};
	uint64_t want_ns = fgv_max_u64(MS, fgv_min_u64(length_ns[_i], 24 * MS));
	struct fgv_burst burst;
	uint64_t now_ns = 0;

	fgv_burst_init(&burst, SLICE);
	for (int i = 0; i < 40; i++) {
		fgv_burst_resume(&burst, now_ns);
		fgv_burst_quota(&burst, MS, 24 * MS);
		fgv_burst_used(&burst, length_ns[_i]);
		now_ns += length_ns[_i];
		fgv_burst_pause(&burst, now_ns);
		now_ns += 50 * MS;
	}
	ck_assert_uint_le(fgv_burst_quota(&burst, MS, 24 * MS), want_ns + US);
	ck_assert_uint_ge(fgv_burst_quota(&burst, MS, 24 * MS) + US, want_ns);
}
END_TEST

/* Breaks of 50 us, or of a thirtieth of the burst, end no burst. */
START_TEST(short_breaks_end_no_burst)
{
	struct fgv_burst burst;
	uint64_t now_ns = 0;

	fgv_burst_init(&burst, SLICE);
	for (int i = 0; i < 400; i++) {
		fgv_burst_resume(&burst, now_ns);
		fgv_burst_used(&burst, MS);
		now_ns += MS;
		fgv_burst_pause(&burst, now_ns);
		now_ns += i % 10 == 9 ? 20 * MS : 50 * US;
	}
	ck_assert_uint_ge(fgv_burst_quota(&burst, MS, 24 * MS), 7 * MS);
	for (int i = 0; i < 40; i++)
		fgv_burst_quota(&burst, MS, 24 * MS);
	ck_assert_uint_ge(fgv_burst_quota(&burst, MS, 24 * MS) + US, 10 * MS);
	ck_assert_uint_le(fgv_burst_quota(&burst, MS, 24 * MS), 10 * MS + US);
}
END_TEST

/* The sum is never below what was used, and above it by no more than a part. */
START_TEST(a_window_counts_all_in_it)
{
	enum { EVENTS = 3000 };
	static uint64_t from_ns[EVENTS], to_ns[EVENTS];
	struct fgv_window window;
	uint64_t seed = 99 + (uint64_t)_i, now_ns = 0;

	fgv_window_init(&window, S);
	for (int i = 0; i < EVENTS; i++) {
		uint64_t exact_ns = 0, late_ns = 0, sum_ns;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		from_ns[i] = now_ns + (seed >> 40) * ((seed & 31) == 0 ? 100 : 1);
		to_ns[i] = now_ns = from_ns[i] + (seed >> 44) * ((seed & 96) == 0 ? 20 : 1);
		fgv_window_add(&window, to_ns[i] - from_ns[i], now_ns);
		for (int j = 0; j <= i; j++) {
			uint64_t begin_ns = now_ns > S ? now_ns - S : 0;
			uint64_t part_ns = begin_ns > 2 * MS ? begin_ns - 2 * MS : 0;

			if (to_ns[j] > begin_ns)
				exact_ns += to_ns[j] - fgv_max_u64(from_ns[j], begin_ns);
			if (to_ns[j] > part_ns)
				late_ns += to_ns[j] - fgv_max_u64(from_ns[j], part_ns);
		}
		sum_ns = fgv_window_used(&window, now_ns);
		WORLD_MUST(sum_ns >= exact_ns);
		WORLD_MUST(sum_ns <= late_ns);
	}
}
END_TEST

START_TEST(a_window_says_when_there_is_room)
{
	struct fgv_window window;
	uint64_t ready_ns;

	fgv_window_init(&window, S);
	fgv_window_add(&window, 100 * MS, 100 * MS);
	ck_assert_uint_eq(fgv_window_below(&window, 101 * MS, 100 * MS), 100 * MS);
	ready_ns = fgv_window_below(&window, 50 * MS, 100 * MS);
	ck_assert_uint_ge(ready_ns, S + 50 * MS);
	ck_assert_uint_le(ready_ns, S + 56 * MS);
	ck_assert_uint_ge(fgv_window_used(&window, ready_ns - 1), 50 * MS);
	ck_assert_uint_lt(fgv_window_used(&window, ready_ns), 50 * MS);
	ck_assert_uint_eq(fgv_window_used(&window, 100 * S), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy_gemini");
	TCase *tc = tcase_create("gemini");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, a_limit_holds_alone, 0, (int)FGV_ARRAY_LEN(alone));
	tcase_add_test(tc, a_limit_is_spread_evenly);
	tcase_add_test(tc, idleness_earns_nothing);
	tcase_add_test(tc, limits_change_while_it_runs);
	tcase_add_test(tc, a_debt_follows_the_limit);
	tcase_add_loop_test(tc, requests_are_met_and_lent, 0, 3);
	tcase_add_loop_test(tc, shares_are_as_the_rule_says, 0, 40);
	tcase_add_test(tc, many_sessions_gain_nothing);
	tcase_add_test(tc, an_hour_alone_is_forgotten);
	tcase_add_test(tc, long_requests_gain_nothing);
	tcase_add_test(tc, a_grant_unused_earns_nothing);
	tcase_add_test(tc, best_effort_may_get_nothing);
	tcase_add_test(tc, the_watchdog_knows_of_limits);
	tcase_add_test(tc, what_runs_on_is_charged);
	tcase_add_test(tc, a_long_token_ends_when_another_comes);
	tcase_add_loop_test(tc, a_bound_is_kept, 0, 3);
	tcase_add_test(tc, overuse_loses_the_bound);
	tcase_add_loop_test(tc, admitted_bounds_are_kept, 0, 30);
	tcase_add_test(tc, bounds_that_cannot_be_kept_together);
	tcase_add_loop_test(tc, no_schedule_breaks_a_promise, 0, SCHEDULE_LOOPS);
	tcase_add_test(tc, the_same_events_the_same_decisions);
	tcase_add_test(tc, what_cannot_be_kept_is_refused);
	tcase_add_test(tc, other_policies_know_no_shares);
	tcase_add_loop_test(tc, quotas_follow_bursts, 0, 4);
	tcase_add_test(tc, short_breaks_end_no_burst);
	tcase_add_loop_test(tc, a_window_counts_all_in_it, 0, 3);
	tcase_add_test(tc, a_window_says_when_there_is_room);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
