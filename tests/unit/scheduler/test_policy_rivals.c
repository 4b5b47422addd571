/*
 * The paper's rivals as policies: Credit gives time by weight where slices are used up and
 * keeps bounded credit, strict coscheduling obeys algorithm 2 and nothing else, and `none`
 * lets everybody in at once.
 */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "tests/unit/scheduler/test_sched_world.h"

#define MS FGV_NS_PER_MS
#define US FGV_NS_PER_US

static const struct fgv_policy *const credits[] = {
	&fgv_policy_credit_poll,
	&fgv_policy_credit_hs,
	&fgv_policy_strict_co,
};

START_TEST(credit_follows_weights_where_slices_are_used_up)
{
	struct world world;

	world_open(&world, credits[_i], NULL, 1);
	for (uint32_t weight = 1; weight <= 3; weight++)
		world_add(&world, weight, NULL, 100 * US, 100 * US);
	world_run(&world, 60000 * MS);
	for (unsigned int i = 0; i < 3; i++) {
		const struct client *c = &world.client[i];
		double due = 60000.0 * MS * (i + 1) / 6;

		ck_assert_double_eq_tol((double)c->used_ns / due, 1.0, 0.1);
	}
	ck_assert_uint_eq(world.starved, 0);
	world_close(&world);
}
END_TEST

/* A debt beyond a period is forgotten: this is what `fair` does better. */
START_TEST(credit_forgets_long_requests)
{
	struct world world;
	struct client *small, *large;

	world_open(&world, &fgv_policy_credit_poll, NULL, 2);
	small = world_add(&world, 1, NULL, 100 * US, 100 * US);
	large = world_add(&world, 1, NULL, 60 * MS, 60 * MS);
	world_run(&world, 60000 * MS);
	ck_assert_uint_gt(large->used_ns, 2 * small->used_ns);
	world_close(&world);
}
END_TEST

START_TEST(credit_does_not_starve_low_weights)
{
	struct world world;

	world_open(&world, &fgv_policy_credit_hs, NULL, 3);
	world_add(&world, 1, NULL, 100 * US, 100 * US);
	for (int i = 0; i < 4; i++)
		world_add(&world, 10, NULL, 100 * US, 100 * US);
	world_run(&world, 60000 * MS);
	ck_assert_uint_gt(world.client[0].used_ns, 500 * MS);
	ck_assert_uint_eq(world.starved, 0);
	world_close(&world);
}
END_TEST

static struct fgv_sched_stats vm_stats(const struct fgv_sched_vgpu *v)
{
	struct fgv_sched_stats stats;

	fgv_sched_vgpu_stats(v, &stats);
	return stats;
}

struct pair {
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu[2];
	struct fgv_sched_session *session[2];
};

static void open_pair(struct pair *p, const struct fgv_policy *policy)
{
	ck_assert_int_eq(fgv_sched_create(&p->sched, policy, NULL, 0), 0);
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert_int_eq(fgv_sched_attach_vgpu(p->sched, 1, NULL, 0, &p->vgpu[i]), 0);
		ck_assert_int_eq(fgv_sched_attach_session(p->vgpu[i], NULL, 0, &p->session[i]), 0);
		fgv_sched_request(p->session[i], 0);
	}
}

START_TEST(a_vcpu_with_the_most_credit_takes_the_gpu)
{
	struct fgv_sched_decision d;
	struct pair p;

	open_pair(&p, &fgv_policy_strict_co);
	ck_assert(fgv_sched_decide(p.sched, 0, &d));
	ck_assert_ptr_eq(d.session, p.session[0]);
	ck_assert(!fgv_sched_decide(p.sched, MS, &d));
	/* the holder's own vCPU changes nothing */
	fgv_sched_vcpu_runs(p.vgpu[0], MS);
	ck_assert(!fgv_sched_decide(p.sched, MS, &d));
	/* at this tick the holder pays for 2 ms, so the other has more */
	fgv_sched_vcpu_runs(p.vgpu[1], 2 * MS);
	ck_assert(fgv_sched_decide(p.sched, 2 * MS, &d));
	ck_assert_int_eq(d.action, FGV_SCHED_LIMIT);
	ck_assert_ptr_eq(d.session, p.session[0]);
	ck_assert_uint_eq(d.slice_ns, 0);
	ck_assert(fgv_sched_decide(p.sched, 2 * MS, &d));
	ck_assert_int_eq(d.action, FGV_SCHED_AWAKE);
	ck_assert_ptr_eq(d.session, p.session[1]);
	ck_assert(!fgv_sched_decide(p.sched, 2 * MS, &d));
	fgv_sched_release(p.session[0], 2 * MS, true, 2 * MS);
	ck_assert(fgv_sched_decide(p.sched, 2 * MS, &d));
	ck_assert_ptr_eq(d.session, p.session[1]);
	/* the first is behind until the second has paid as much, at the next tick */
	fgv_sched_vcpu_runs(p.vgpu[0], 3 * MS);
	ck_assert(!fgv_sched_decide(p.sched, 3 * MS, &d));
	fgv_sched_vcpu_runs(p.vgpu[0], 4 * MS);
	ck_assert(fgv_sched_decide(p.sched, 4 * MS, &d));
	ck_assert_int_eq(d.action, FGV_SCHED_LIMIT);
	fgv_sched_destroy(p.sched);
}
END_TEST

START_TEST(vcpus_mean_nothing_to_the_others)
{
	static const struct fgv_policy *const others[] = {
		&fgv_policy_fair,
		&fgv_policy_credit_poll,
		&fgv_policy_credit_hs,
	};
	struct fgv_sched_decision d;
	struct pair p;

	open_pair(&p, others[_i]);
	ck_assert(fgv_sched_decide(p.sched, 0, &d));
	fgv_sched_vcpu_runs(p.vgpu[1], 2 * MS);
	ck_assert(!fgv_sched_decide(p.sched, 2 * MS, &d));
	fgv_sched_destroy(p.sched);
}
END_TEST

/* Credit's flaw: one that has let go before the tick pays nothing, the next one pays for both. */
START_TEST(credit_pays_by_the_tick)
{
	struct fgv_sched_decision d;
	struct pair p;

	open_pair(&p, &fgv_policy_strict_co);
	ck_assert(fgv_sched_decide(p.sched, 0, &d));
	fgv_sched_release(p.session[0], 1900 * US, true, 1900 * US);
	ck_assert(fgv_sched_decide(p.sched, 1900 * US, &d));
	ck_assert_ptr_eq(d.session, p.session[1]);
	fgv_sched_vcpu_runs(p.vgpu[0], 2 * MS);
	ck_assert(fgv_sched_decide(p.sched, 2 * MS, &d));
	ck_assert_int_eq(d.action, FGV_SCHED_LIMIT);
	ck_assert_ptr_eq(d.session, p.session[1]);
	fgv_sched_destroy(p.sched);
}
END_TEST

START_TEST(nobody_active_no_ticks)
{
	struct fgv_sched_decision d;
	struct pair p;

	open_pair(&p, &fgv_policy_credit_hs);
	ck_assert(fgv_sched_decide(p.sched, 0, &d));
	ck_assert_uint_eq(fgv_sched_next_ns(p.sched, 0), 2 * MS);
	fgv_sched_release(p.session[0], MS, false, MS);
	fgv_sched_withdraw(p.session[1], MS);
	ck_assert(!fgv_sched_decide(p.sched, 2 * MS, &d));
	ck_assert_uint_eq(fgv_sched_next_ns(p.sched, 2 * MS), FGV_SCHED_NEVER);
	fgv_sched_request(p.session[0], 9 * MS);
	ck_assert(fgv_sched_decide(p.sched, 9 * MS, &d));
	ck_assert_uint_gt(fgv_sched_next_ns(p.sched, 9 * MS), 9 * MS);
	ck_assert_uint_lt(fgv_sched_next_ns(p.sched, 9 * MS), 12 * MS);
	fgv_sched_destroy(p.sched);
}
END_TEST

START_TEST(none_lets_everybody_in)
{
	struct fgv_sched_decision d;
	struct pair p;

	open_pair(&p, &fgv_policy_none);
	for (int i = 0; i < 2; i++) {
		ck_assert(fgv_sched_decide(p.sched, 0, &d));
		ck_assert_int_eq(d.action, FGV_SCHED_GRANT);
		ck_assert_ptr_eq(d.session, p.session[i]);
		ck_assert_uint_eq(d.slice_ns, FGV_SCHED_NO_LIMIT);
	}
	ck_assert(!fgv_sched_decide(p.sched, 100000 * MS, &d));
	ck_assert_uint_eq(fgv_sched_next_ns(p.sched, 0), FGV_SCHED_NEVER);
	fgv_sched_release(p.session[0], 5 * MS, false, 10 * MS);
	ck_assert_uint_eq(vm_stats(p.vgpu[0]).gpu_ns, 5 * MS);
	fgv_sched_destroy(p.sched);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy_rivals");
	TCase *tc = tcase_create("rivals");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, credit_follows_weights_where_slices_are_used_up, 0,
			    FGV_ARRAY_LEN(credits));
	tcase_add_test(tc, credit_forgets_long_requests);
	tcase_add_test(tc, credit_does_not_starve_low_weights);
	tcase_add_test(tc, a_vcpu_with_the_most_credit_takes_the_gpu);
	tcase_add_loop_test(tc, vcpus_mean_nothing_to_the_others, 0,
			    FGV_ARRAY_LEN(credits));
	tcase_add_test(tc, credit_pays_by_the_tick);
	tcase_add_test(tc, nobody_active_no_ticks);
	tcase_add_test(tc, none_lets_everybody_in);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
