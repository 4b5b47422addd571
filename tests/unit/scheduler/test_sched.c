/*
 * The scheduler's core: states and errors, slices and limits, which session is woken when, charging
 * and its bounds, statistics, interactive guests, the watchdog, changes of policy, policies
 * of other shapes, and random events in any order under every policy.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sched.h"

#define MS    FGV_NS_PER_MS
#define US    FGV_NS_PER_US
#define SLICE (6 * MS)
#define LEAD  (300 * US)
#define MANY  8

static struct fgv_sched *sched;
static struct fgv_sched_vgpu *vgpu[MANY];
static struct fgv_sched_session *session[MANY];

/* @count VMs of weight 1 with a session each, all idle, at time 0. */
static void open_sched(const struct fgv_policy *policy, unsigned int count)
{
	ck_assert_int_eq(fgv_sched_create(&sched, policy, NULL, 0), 0);
	for (unsigned int i = 0; i < count; i++) {
		ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, &vgpu[i], 0, &vgpu[i]), 0);
		ck_assert_int_eq(fgv_sched_attach_session(vgpu[i], &session[i], 0, &session[i]), 0);
	}
}

static void close_sched(void)
{
	fgv_sched_destroy(sched);
}

static struct fgv_sched_stats vm_stats(const struct fgv_sched_vgpu *v)
{
	struct fgv_sched_stats stats;

	fgv_sched_vgpu_stats(v, &stats);
	return stats;
}

static struct fgv_sched_decision expect(enum fgv_sched_action action, unsigned int who,
					uint64_t now_ns)
{
	struct fgv_sched_decision d;

	ck_assert(fgv_sched_decide(sched, now_ns, &d));
	ck_assert_int_eq(d.action, action);
	ck_assert_ptr_eq(d.session, session[who]);
	return d;
}

static void expect_none(uint64_t now_ns)
{
	struct fgv_sched_decision d;

	ck_assert(!fgv_sched_decide(sched, now_ns, &d));
}

/* --- States ---------------------------------------------------------------- */

START_TEST(states)
{
	struct fgv_sched_load load;

	open_sched(&fgv_policy_fair, 2);
	expect_none(0);
	ck_assert_uint_eq(fgv_sched_next_ns(sched, 0), FGV_SCHED_NEVER);
	ck_assert_int_eq(fgv_sched_release(session[0], 0, false, 0), -EINVAL);
	ck_assert_int_eq(fgv_sched_charge(session[0], 0, 0), -EINVAL);
	fgv_sched_withdraw(session[0], 0);

	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[0], 0);
	fgv_sched_withdraw(session[0], 0);
	expect_none(0);
	fgv_sched_request(session[0], 1);
	expect(FGV_SCHED_GRANT, 0, 1);
	fgv_sched_request(session[0], 2); /* has it already */
	expect_none(2);
	fgv_sched_load(sched, &load);
	ck_assert_uint_eq(load.holding, 1);
	ck_assert_uint_eq(load.waiting, 0);
	ck_assert_uint_eq(load.active_weight, 1);
	ck_assert_int_eq(fgv_sched_release(session[0], 1, false, 3), 0);
	ck_assert_int_eq(fgv_sched_release(session[0], 1, false, 3), -EINVAL);
	fgv_sched_load(sched, &load);
	ck_assert_uint_eq(load.holding, 0);
	ck_assert_uint_eq(load.active_weight, 0);
	close_sched();
}
END_TEST

START_TEST(bad_arguments)
{
	struct fgv_sched_params params;
	struct fgv_sched_vgpu *other;

	fgv_sched_params_init(&params);
	params.slice_ns = 0;
	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_fair, &params, 0), -EINVAL);
	open_sched(&fgv_policy_fair, 1);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 0, NULL, 0, &other), -EINVAL);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, FGV_SCHED_WEIGHT_MAX + 1, NULL, 0, &other),
			 -EINVAL);
	ck_assert_int_eq(fgv_sched_set_weight(vgpu[0], 0), -EINVAL);
	ck_assert_int_eq(fgv_sched_set_weight(vgpu[0], FGV_SCHED_WEIGHT_MAX + 1), -EINVAL);
	ck_assert_uint_eq(fgv_sched_vgpu_weight(vgpu[0]), 1);
	ck_assert_int_eq(fgv_sched_detach_vgpu(vgpu[0]), -EBUSY);
	close_sched();
}
END_TEST

/* --- Slices ---------------------------------------------------------------- */

START_TEST(alone_there_is_no_limit)
{
	open_sched(&fgv_policy_fair, 2);
	fgv_sched_request(session[0], 0);
	ck_assert_uint_eq(expect(FGV_SCHED_GRANT, 0, 0).slice_ns, FGV_SCHED_NO_LIMIT);
	expect_none(1000 * MS);
	/* brought up to date, it has a slice from now on */
	ck_assert_int_eq(fgv_sched_charge(session[0], 1000 * MS, 1000 * MS), 0);
	fgv_sched_request(session[1], 1000 * MS);
	ck_assert_uint_eq(expect(FGV_SCHED_LIMIT, 0, 1000 * MS).slice_ns, SLICE);
	expect_none(1001 * MS);
	ck_assert_int_eq(fgv_sched_release(session[0], SLICE, true, 1006 * MS), 0);
	ck_assert_uint_eq(expect(FGV_SCHED_GRANT, 1, 1006 * MS).slice_ns, SLICE);
	close_sched();
}
END_TEST

START_TEST(alone_for_long_is_over_at_once)
{
	open_sched(&fgv_policy_fair, 2);
	fgv_sched_request(session[0], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	fgv_sched_request(session[1], 4 * MS);
	ck_assert_uint_eq(expect(FGV_SCHED_LIMIT, 0, 4 * MS).slice_ns, 2 * MS);
	ck_assert_int_eq(fgv_sched_release(session[0], 4 * MS, false, 6 * MS), 0);
	expect(FGV_SCHED_GRANT, 1, 6 * MS);
	fgv_sched_request(session[0], 300 * MS);
	ck_assert_uint_eq(expect(FGV_SCHED_LIMIT, 1, 300 * MS).slice_ns, 0);
	close_sched();
}
END_TEST

START_TEST(the_next_is_awake_in_time)
{
	open_sched(&fgv_policy_fair, 3);
	for (int i = 0; i < 3; i++)
		fgv_sched_request(session[i], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	expect_none(0);
	ck_assert_ptr_eq(fgv_sched_successor(sched, 0), session[1]);
	ck_assert_uint_eq(fgv_sched_next_ns(sched, 0), SLICE - LEAD);
	expect_none(SLICE - LEAD - 1);
	expect(FGV_SCHED_AWAKE, 1, SLICE - LEAD);
	expect_none(SLICE - LEAD);
	ck_assert_uint_gt(fgv_sched_next_ns(sched, SLICE - LEAD), SLICE);
	/* it loses interest: the one behind it is told instead */
	fgv_sched_withdraw(session[1], SLICE - LEAD + 1);
	expect(FGV_SCHED_AWAKE, 2, SLICE - LEAD + 1);
	expect_none(SLICE - LEAD + 2);
	close_sched();
}
END_TEST

START_TEST(who_asks_again_is_awake_again)
{
	open_sched(&fgv_policy_fair, 2);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	expect(FGV_SCHED_AWAKE, 1, SLICE - LEAD);
	fgv_sched_withdraw(session[1], SLICE - LEAD + 1);
	expect_none(SLICE - LEAD + 1);
	fgv_sched_request(session[1], SLICE - LEAD + 2);
	expect(FGV_SCHED_AWAKE, 1, SLICE - LEAD + 2);
	expect_none(SLICE - LEAD + 2);
	close_sched();
}
END_TEST

START_TEST(who_goes_on_wakes_nobody)
{
	open_sched(&fgv_policy_fair, 2);
	ck_assert_int_eq(fgv_sched_set_weight(vgpu[0], 3), 0);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	fgv_sched_release(session[0], SLICE, true, SLICE);
	expect(FGV_SCHED_GRANT, 1, SLICE);
	fgv_sched_release(session[1], SLICE, true, 2 * SLICE);
	expect(FGV_SCHED_GRANT, 0, 2 * SLICE);
	/* tags are 2 and 6 ms: it will be at 4 and be the next again */
	ck_assert_ptr_eq(fgv_sched_successor(sched, 2 * SLICE), session[0]);
	expect_none(3 * SLICE - LEAD);
	expect_none(3 * SLICE);
	ck_assert_uint_gt(fgv_sched_next_ns(sched, 3 * SLICE), 3 * SLICE);
	close_sched();
}
END_TEST

START_TEST(within_a_vm_the_other_session_is_next)
{
	struct fgv_sched_session *second;

	open_sched(&fgv_policy_fair, 1);
	ck_assert_int_eq(fgv_sched_attach_session(vgpu[0], NULL, 0, &second), 0);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(second, 0);
	ck_assert_uint_eq(expect(FGV_SCHED_GRANT, 0, 0).slice_ns, SLICE);
	ck_assert_ptr_eq(fgv_sched_successor(sched, 0), second);
	close_sched();
}
END_TEST

/* --- Charging -------------------------------------------------------------- */

START_TEST(usage_is_cut_at_the_time_held)
{
	open_sched(&fgv_policy_fair, 1);
	fgv_sched_request(session[0], 5 * MS);
	expect(FGV_SCHED_GRANT, 0, 5 * MS);
	fgv_sched_charge(session[0], 1000 * MS, 6 * MS);
	fgv_sched_charge(session[0], 1000 * MS, 6 * MS);
	ck_assert_uint_eq(fgv_sched_session_stats(session[0])->gpu_ns, MS);
	fgv_sched_charge(session[0], 2 * MS, 9 * MS);
	fgv_sched_release(session[0], FGV_SCHED_HELD, false, 10 * MS);
	ck_assert_uint_eq(fgv_sched_session_stats(session[0])->gpu_ns, 5 * MS);
	ck_assert_uint_eq(vm_stats(vgpu[0]).gpu_ns, 5 * MS);
	ck_assert_uint_eq(vm_stats(vgpu[0]).held_ns, 5 * MS);
	close_sched();
}
END_TEST

/* Beyond the time held: only of a holder, and its VM's next turns come so much later. */
START_TEST(what_costs_others_is_charged)
{
	open_sched(&fgv_policy_fair, 2);
	fgv_sched_surcharge(session[0], MS, 0);
	ck_assert_uint_eq(vm_stats(vgpu[0]).gpu_ns, 0);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	fgv_sched_surcharge(session[0], 10 * SLICE, SLICE);
	fgv_sched_release(session[0], SLICE, true, SLICE);
	ck_assert_uint_eq(vm_stats(vgpu[0]).gpu_ns, 11 * SLICE);
	ck_assert_uint_eq(vm_stats(vgpu[0]).overruns, 0);
	for (uint64_t turn = 1; turn <= 11; turn++) {
		expect(FGV_SCHED_GRANT, 1, turn * SLICE);
		fgv_sched_release(session[1], SLICE, true, (turn + 1) * SLICE);
	}
	expect(FGV_SCHED_GRANT, 0, 12 * SLICE);
	close_sched();
}
END_TEST

START_TEST(time_does_not_go_back)
{
	open_sched(&fgv_policy_fair, 1);
	fgv_sched_request(session[0], 5 * MS);
	expect(FGV_SCHED_GRANT, 0, 1 * MS);
	fgv_sched_release(session[0], FGV_SCHED_HELD, false, 2 * MS);
	ck_assert_uint_eq(fgv_sched_session_stats(session[0])->held_ns, 0);
	close_sched();
}
END_TEST

START_TEST(who_dies_with_the_grant_is_charged)
{
	open_sched(&fgv_policy_fair, 2);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	fgv_sched_detach_session(session[0], FGV_SCHED_HELD, 3 * MS);
	expect(FGV_SCHED_GRANT, 1, 3 * MS);
	ck_assert_uint_eq(vm_stats(vgpu[0]).gpu_ns, 3 * MS);
	ck_assert_int_eq(fgv_sched_detach_vgpu(vgpu[0]), 0);
	close_sched();
}
END_TEST

START_TEST(statistics)
{
	const struct fgv_sched_stats *stats;

	open_sched(&fgv_policy_fair, 2);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	fgv_sched_release(session[0], 8 * MS, true, 8 * MS);
	expect(FGV_SCHED_GRANT, 1, 8 * MS);
	fgv_sched_release(session[1], 5 * MS, false, 14 * MS);
	stats = fgv_sched_session_stats(session[0]);
	ck_assert_uint_eq(stats->grants, 1);
	ck_assert_uint_eq(stats->overruns, 1);
	ck_assert_uint_eq(stats->overrun_ns, 2 * MS);
	stats = fgv_sched_session_stats(session[1]);
	ck_assert_uint_eq(stats->gpu_ns, 5 * MS);
	ck_assert_uint_eq(stats->held_ns, 6 * MS);
	ck_assert_uint_eq(stats->overruns, 0);
	ck_assert_uint_eq(stats->wait.count, 1);
	ck_assert_uint_eq(stats->wait.max_ns, 8 * MS);
	fgv_sched_withdraw(session[0], 14 * MS);
	/* a VM's are those of its sessions, also of the one that has gone */
	fgv_sched_attach_session(vgpu[1], NULL, 14 * MS, &session[2]);
	fgv_sched_request(session[2], 14 * MS);
	fgv_sched_detach_session(session[1], 0, 14 * MS);
	expect(FGV_SCHED_GRANT, 2, 15 * MS);
	fgv_sched_release(session[2], MS, false, 16 * MS);
	ck_assert_uint_eq(vm_stats(vgpu[1]).gpu_ns, 6 * MS);
	ck_assert_uint_eq(vm_stats(vgpu[1]).held_ns, 7 * MS);
	ck_assert_uint_eq(vm_stats(vgpu[1]).grants, 2);
	ck_assert_uint_eq(vm_stats(vgpu[1]).wait.count, 2);
	ck_assert_uint_eq(vm_stats(vgpu[1]).wait.max_ns, 8 * MS);
	close_sched();
}
END_TEST

/* --- Interactive guests ---------------------------------------------------- */

/* One slice of 5 ms with @calls; twice that is a window. */
static bool slice_with_calls(unsigned int calls, uint64_t *now_ns)
{
	struct fgv_sched_decision d;

	fgv_sched_request(session[0], *now_ns);
	d = expect(FGV_SCHED_GRANT, 0, *now_ns);
	*now_ns += 5 * MS;
	fgv_sched_sync_calls(session[0], calls, 3, *now_ns);
	fgv_sched_release(session[0], 5 * MS, false, *now_ns);
	if (d.cosched)
		ck_assert_int_eq(d.vcpu, 3);
	return d.cosched;
}

START_TEST(interactive_is_judged_again_and_again)
{
	uint64_t now = 0;

	open_sched(&fgv_policy_fair, 1);
	ck_assert(!slice_with_calls(6, &now));
	ck_assert(!slice_with_calls(6, &now)); /* 12 in this window */
	ck_assert(fgv_sched_interactive(session[0]));
	now += 5000 * MS; /* time without a grant does not count */
	ck_assert(slice_with_calls(5, &now));
	ck_assert(slice_with_calls(5, &now)); /* 10: no more than that */
	ck_assert(!fgv_sched_interactive(session[0]));
	ck_assert(!slice_with_calls(100, &now));
	ck_assert(!slice_with_calls(0, &now));
	ck_assert(slice_with_calls(0, &now));
	close_sched();
}
END_TEST

START_TEST(only_gpu_centric_policies_coschedule)
{
	uint64_t now = 0;

	open_sched(&fgv_policy_none, 1);
	slice_with_calls(100, &now);
	slice_with_calls(100, &now);
	ck_assert(fgv_sched_interactive(session[0]));
	ck_assert(!slice_with_calls(100, &now));
	close_sched();
}
END_TEST

/* --- Policies of other shapes, made for these tests ------------------------ */

/* The favourite, or the one with the lowest number: the others starve. */
static struct fgv_policy_vgpu *known[MANY];

static int unfair_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *v, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	known[v->id / 2 % MANY] = v; /* each VM draws two numbers: its own, its session's */
	return 0;
}

static struct fgv_policy_vgpu *unfair_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	for (unsigned int i = 0; i < MANY; i++)
		if (known[i] != NULL && known[i]->waiting > 0)
			return known[i];
	return NULL;
}

static struct fgv_policy_vgpu *lazy_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	return NULL;
}

static void small_grant(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *v,
			struct fgv_policy_grant *grant, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	grant->slice_ns = MS * (v->id / 2 + 1);
}

static int refusing_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *v, uint64_t now_ns)
{
	(void)gpu;
	(void)now_ns;
	return v->id >= 2 ? -ENOMEM : 0;
}

static const struct fgv_policy unfair = {
	.name = "unfair", .attach = unfair_attach, .pick = unfair_pick};
static const struct fgv_policy strict = {.name = "strict",
					 .attach = unfair_attach,
					 .pick = unfair_pick,
					 .starve_ns = FGV_POLICY_NEVER_STARVES};
static const struct fgv_policy lazy = {.name = "lazy", .pick = lazy_pick};
static const struct fgv_policy spatial = {.name = "spatial",
					  .attach = unfair_attach,
					  .pick = unfair_pick,
					  .grant = small_grant,
					  .max_grants = 2};
static const struct fgv_policy refusing = {
	.name = "refusing", .attach = refusing_attach, .pick = lazy_pick};

START_TEST(several_grants_and_their_slices)
{
	open_sched(&spatial, 3);
	fgv_sched_request(session[2], 0);
	fgv_sched_request(session[1], 0);
	fgv_sched_request(session[0], 0);
	ck_assert_uint_eq(expect(FGV_SCHED_GRANT, 0, 0).slice_ns, MS);
	ck_assert_uint_eq(expect(FGV_SCHED_GRANT, 1, 0).slice_ns, 2 * MS);
	expect_none(0);
	fgv_sched_release(session[0], MS, false, MS);
	ck_assert_uint_eq(expect(FGV_SCHED_GRANT, 2, MS).slice_ns, FGV_SCHED_NO_LIMIT);
	close_sched();
}
END_TEST

/* Runs slices of the holder until the watchdog speaks or @until_ns; which is reported? */
static struct fgv_sched_session *run_until_starved(uint64_t *now_ns, uint64_t until_ns,
						   uint64_t slice_ns)
{
	static struct fgv_sched_session *holder;
	struct fgv_sched_decision d;

	for (; *now_ns < until_ns; *now_ns += slice_ns) {
		if (holder != NULL)
			fgv_sched_release(holder, slice_ns, true, *now_ns);
		while (fgv_sched_decide(sched, *now_ns, &d)) {
			if (d.action == FGV_SCHED_GRANT)
				holder = d.session;
			if (d.action == FGV_SCHED_STARVED)
				return d.session;
		}
	}
	return NULL;
}

START_TEST(the_watchdog_notices_a_starving_policy)
{
	uint64_t now = 0;

	open_sched(&unfair, 2);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	ck_assert_ptr_eq(run_until_starved(&now, 60000 * MS, SLICE), session[1]);
	ck_assert_uint_ge(now, 10000 * MS);
	ck_assert_uint_le(now, 14000 * MS);
	ck_assert_uint_eq(vm_stats(vgpu[1]).starved, 1);
	/* once per wait; and `fair` serves it */
	ck_assert_ptr_null(run_until_starved(&now, now + 20000 * MS, SLICE));
	ck_assert_int_eq(fgv_sched_set_policy(sched, &fgv_policy_fair, now), 0);
	ck_assert_ptr_null(run_until_starved(&now, now + 60000 * MS, SLICE));
	ck_assert_uint_gt(vm_stats(vgpu[1]).grants, 4000);
	close_sched();
}
END_TEST

/* However many wait for long, the next look at some of them comes within a quarter of the bound. */
START_TEST(the_watchdog_looks_at_a_few_at_a_time)
{
	enum { CROWD = 2000 };
	struct fgv_sched_vgpu *v;
	struct fgv_sched_session *s, *holder = NULL;
	struct fgv_sched_decision d;

	open_sched(&fgv_policy_fair, 0);
	for (int i = 0; i < CROWD; i++) {
		ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &v), 0);
		ck_assert_int_eq(fgv_sched_attach_session(v, NULL, 0, &s), 0);
		fgv_sched_request(s, 0);
	}
	for (uint64_t now = 0; now < 300000 * MS; now += 60 * MS) {
		if (holder != NULL)
			fgv_sched_release(holder, 60 * MS, true, now);
		while (fgv_sched_decide(sched, now, &d)) {
			ck_assert_int_ne(d.action, FGV_SCHED_STARVED);
			if (d.action == FGV_SCHED_GRANT)
				holder = d.session;
		}
		ck_assert_uint_le(fgv_sched_next_ns(sched, now), now + 2500 * MS);
	}
	close_sched();
}
END_TEST

/* One that leaves is not looked at, wherever the watchdog is. */
START_TEST(the_watchdog_lets_go_of_those_that_leave)
{
	enum { CROWD = 300 };
	struct fgv_sched_vgpu *v[CROWD];
	struct fgv_sched_session *s[CROWD];
	struct fgv_sched_decision d;
	uint64_t now = 11000 * MS;

	open_sched(&lazy, 0);
	for (int i = 0; i < CROWD; i++) {
		ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &v[i]), 0);
		ck_assert_int_eq(fgv_sched_attach_session(v[i], NULL, 0, &s[i]), 0);
		fgv_sched_request(s[i], 0);
	}
	for (int i = 0; i < CROWD; i += 2) { /* the next to be looked at has gone each time */
		ck_assert(fgv_sched_decide(sched, now, &d));
		ck_assert_int_eq(d.action, FGV_SCHED_STARVED);
		ck_assert_ptr_eq(d.session, s[i]);
		fgv_sched_detach_session(s[i + 1], 0, now);
	}
	ck_assert(!fgv_sched_decide(sched, now, &d));
	close_sched();
}
END_TEST

START_TEST(the_watchdog_notices_an_idle_gpu)
{
	struct fgv_sched_decision d;

	open_sched(&lazy, 1);
	fgv_sched_request(session[0], 1000 * MS);
	expect_none(10000 * MS);
	d = expect(FGV_SCHED_STARVED, 0, fgv_sched_next_ns(sched, 10000 * MS));
	ck_assert_uint_eq(d.owed_ns, 0);
	close_sched();
}
END_TEST

START_TEST(the_watchdog_has_the_policys_bound)
{
	struct fgv_policy impatient = lazy;

	impatient.starve_ns = 20 * MS;
	open_sched(&impatient, 1);
	fgv_sched_request(session[0], 0);
	ck_assert_uint_le(fgv_sched_next_ns(sched, 0), 20 * MS);
	expect(FGV_SCHED_STARVED, 0, 20 * MS);
	ck_assert_int_eq(fgv_sched_set_policy(sched, &lazy, 20 * MS), 0);
	ck_assert_uint_gt(fgv_sched_next_ns(sched, 20 * MS), 1000 * MS);
	ck_assert_int_eq(fgv_sched_set_policy(sched, &impatient, 20 * MS), 0);
	ck_assert_uint_le(fgv_sched_next_ns(sched, 20 * MS), 40 * MS);
	close_sched();
}
END_TEST

START_TEST(strict_priority_may_starve)
{
	uint64_t now = 0;

	open_sched(&strict, 2);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	ck_assert_ptr_null(run_until_starved(&now, 60000 * MS, SLICE));
	ck_assert_uint_eq(fgv_sched_next_ns(sched, now), FGV_SCHED_NEVER);
	close_sched();
}
END_TEST

/* A minute for one request, and then the others' turn: nobody's fault. */
START_TEST(long_requests_are_no_starvation)
{
	uint64_t now = 60000 * MS;

	open_sched(&fgv_policy_fair, 4);
	for (int i = 0; i < 4; i++)
		fgv_sched_request(session[i], 0);
	expect(FGV_SCHED_GRANT, 0, 0);
	fgv_sched_release(session[0], 60000 * MS, true, now);
	ck_assert_ptr_null(run_until_starved(&now, 400000 * MS, SLICE));
	ck_assert_uint_gt(vm_stats(vgpu[0]).grants, 1);
	close_sched();
}
END_TEST

/* --- Change of policy ------------------------------------------------------ */

START_TEST(policies_change_under_running_sessions)
{
	open_sched(&fgv_policy_none, 3);
	for (unsigned int i = 0; i < 3; i++) {
		fgv_sched_request(session[i], 0);
		ck_assert_uint_eq(expect(FGV_SCHED_GRANT, i, 0).slice_ns, FGV_SCHED_NO_LIMIT);
	}
	expect_none(0);
	ck_assert_int_eq(fgv_sched_set_policy(sched, &fgv_policy_fair, 10 * MS), 0);
	ck_assert_str_eq(fgv_sched_policy(sched)->name, "fair");
	for (unsigned int i = 0; i < 3; i++)
		ck_assert_uint_eq(expect(FGV_SCHED_LIMIT, i, 10 * MS).slice_ns, 0);
	expect_none(10 * MS);
	fgv_sched_release(session[0], 10 * MS, true, 11 * MS);
	fgv_sched_release(session[1], 2 * MS, true, 11 * MS);
	expect_none(11 * MS);
	fgv_sched_release(session[2], 5 * MS, true, 11 * MS);
	expect(FGV_SCHED_GRANT, 1, 11 * MS);
	expect_none(11 * MS);
	ck_assert_int_eq(fgv_sched_set_policy(sched, &fgv_policy_credit_hs, 12 * MS), 0);
	ck_assert_int_eq(fgv_sched_set_policy(sched, &fgv_policy_none, 12 * MS), 0);
	expect(FGV_SCHED_GRANT, 0, 12 * MS);
	expect(FGV_SCHED_GRANT, 2, 12 * MS);
	close_sched();
}
END_TEST

START_TEST(a_policy_that_refuses_gives_way_to_fair)
{
	open_sched(&fgv_policy_none, 3);
	fgv_sched_request(session[0], 0);
	ck_assert_int_eq(fgv_sched_set_policy(sched, &refusing, 0), -ENOMEM);
	ck_assert_ptr_eq(fgv_sched_policy(sched), &fgv_policy_fair);
	expect(FGV_SCHED_GRANT, 0, 0);
	close_sched();
}
END_TEST

START_TEST(policies_are_found_by_name)
{
	for (size_t i = 0; fgv_policies[i] != NULL; i++)
		ck_assert_ptr_eq(fgv_policy_find(fgv_policies[i]->name), fgv_policies[i]);
	ck_assert_ptr_eq(fgv_policies[0], &fgv_policy_fair);
	ck_assert_ptr_null(fgv_policy_find("fairly"));
}
END_TEST

/* --- Anything in any order ------------------------------------------------- */

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void random_event(unsigned int who, uint64_t now)
{
	struct fgv_sched_session *s = session[who];

	switch (draw(10)) {
	case 0:
		fgv_sched_withdraw(s, now);
		break;
	case 1:
		fgv_sched_charge(s, draw(2) ? draw(SLICE) : UINT64_MAX - draw(3), now);
		break;
	case 2:
	case 3:
		fgv_sched_release(s, draw(8) ? draw(2 * SLICE) : FGV_SCHED_HELD, draw(2), now);
		break;
	case 4:
		fgv_sched_sync_calls(s, (uint32_t)draw(UINT32_MAX), (int32_t)draw(99) - 1, now);
		break;
	case 5:
		fgv_sched_vcpu_runs(vgpu[who], now);
		fgv_sched_set_weight(vgpu[who], (uint32_t)draw(9) * (FGV_SCHED_WEIGHT_MAX / 8));
		break;
	case 6:
		if (draw(50) != 0)
			break;
		fgv_sched_detach_session(s, draw(UINT64_MAX), now);
		fgv_sched_attach_session(vgpu[who], NULL, now, &session[who]);
		break;
	case 7:
		fgv_sched_surcharge(s, draw(SLICE), now);
		break;
	default:
		fgv_sched_request(s, now);
	}
}

START_TEST(any_event_at_any_time)
{
	struct fgv_sched_load load;
	struct fgv_sched_decision d;
	uint64_t now = 0;
	unsigned int policies = 0;

	while (fgv_policies[policies] != NULL)
		policies++;
	seed = 88172645463325252ull + (uint64_t)_i;
	open_sched(fgv_policies[(unsigned int)_i % policies], MANY);
	for (int step = 0; step < 50000; step++) {
		unsigned int rounds = 0;

		now += draw(200) == 0 ? draw(20000 * MS) : draw(2 * MS);
		random_event((unsigned int)draw(MANY), now - (draw(50) == 0 ? draw(now + 1) : 0));
		if (draw(5000) == 0)
			fgv_sched_set_policy(sched, fgv_policies[draw(policies)], now);
		while (fgv_sched_decide(sched, now, &d))
			if (++rounds > 10 * MANY)
				ck_abort_msg("decisions without end");
		if (fgv_sched_next_ns(sched, now) <= now)
			ck_abort_msg("a timer that does not go off");
		fgv_sched_load(sched, &load);
		if (load.waiting > 0 && load.holding == 0)
			ck_abort_msg("somebody waits beside an idle GPU");
		if (load.waiting + load.holding > MANY)
			ck_abort_msg("lost count");
		if ((load.active_weight == 0) != (load.waiting + load.holding == 0))
			ck_abort_msg("lost weight");
	}
	close_sched();
}
END_TEST

static TCase *core_case(void)
{
	TCase *tc = tcase_create("core");

	tcase_add_test(tc, states);
	tcase_add_test(tc, bad_arguments);
	tcase_add_test(tc, alone_there_is_no_limit);
	tcase_add_test(tc, alone_for_long_is_over_at_once);
	tcase_add_test(tc, the_next_is_awake_in_time);
	tcase_add_test(tc, who_asks_again_is_awake_again);
	tcase_add_test(tc, who_goes_on_wakes_nobody);
	tcase_add_test(tc, within_a_vm_the_other_session_is_next);
	tcase_add_test(tc, usage_is_cut_at_the_time_held);
	tcase_add_test(tc, what_costs_others_is_charged);
	tcase_add_test(tc, time_does_not_go_back);
	tcase_add_test(tc, who_dies_with_the_grant_is_charged);
	tcase_add_test(tc, statistics);
	tcase_add_test(tc, interactive_is_judged_again_and_again);
	tcase_add_test(tc, only_gpu_centric_policies_coschedule);
	return tc;
}

static TCase *policy_case(void)
{
	TCase *tc = tcase_create("policies");

	tcase_add_test(tc, several_grants_and_their_slices);
	tcase_add_test(tc, the_watchdog_notices_a_starving_policy);
	tcase_add_test(tc, the_watchdog_looks_at_a_few_at_a_time);
	tcase_add_test(tc, the_watchdog_lets_go_of_those_that_leave);
	tcase_add_test(tc, the_watchdog_notices_an_idle_gpu);
	tcase_add_test(tc, the_watchdog_has_the_policys_bound);
	tcase_add_test(tc, strict_priority_may_starve);
	tcase_add_test(tc, long_requests_are_no_starvation);
	tcase_add_test(tc, policies_change_under_running_sessions);
	tcase_add_test(tc, a_policy_that_refuses_gives_way_to_fair);
	tcase_add_test(tc, policies_are_found_by_name);
	tcase_add_loop_test(tc, any_event_at_any_time, 0, 20);
	tcase_set_timeout(tc, 120);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("sched");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, core_case());
	suite_add_tcase(suite, policy_case());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
