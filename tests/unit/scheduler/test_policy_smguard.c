/*
 * The policy `smguard` in the scheduler: reservations run side by side, the rest shares by turns,
 * what is lent is asked back, sessions of one vGPU never run beside each other.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sched.h"

#define MS    FGV_NS_PER_MS
#define UNITS 16
#define MANY  4

static struct fgv_sched *sched;
static struct fgv_sched_vgpu *vgpu[MANY];
static struct fgv_sched_session *session[MANY];

static const uint32_t weights[MANY] = {1, 1, 3, 1};

/* A VM for each reservation, with a session each. */
static void open_sched(bool lends, const uint32_t *units, unsigned count)
{
	struct fgv_sched_params params;

	fgv_sched_params_init(&params);
	params.units = UNITS;
	params.lends = lends;
	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_smguard, &params, 0), 0);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(fgv_sched_attach_vgpu(sched, weights[i], NULL, 0, &vgpu[i]), 0);
		ck_assert_int_eq(fgv_sched_set_units(vgpu[i], units[i], 0), 0);
	}
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(fgv_sched_attach_session(vgpu[i], NULL, 0, &session[i]), 0);
}

static struct fgv_sched_decision expect(enum fgv_sched_action action,
					struct fgv_sched_session *who, uint64_t now_ns)
{
	struct fgv_sched_decision d;

	ck_assert(fgv_sched_decide(sched, now_ns, &d));
	ck_assert_int_eq(d.action, action);
	ck_assert_ptr_eq(d.session, who);
	return d;
}

static void expect_none(uint64_t now_ns)
{
	struct fgv_sched_decision d;

	ck_assert(!fgv_sched_decide(sched, now_ns, &d));
}

static uint64_t granted(struct fgv_sched_session *who, uint64_t now_ns)
{
	return expect(FGV_SCHED_GRANT, who, now_ns).units;
}

START_TEST(reservations_run_at_once)
{
	uint64_t first, second;

	open_sched(false, (uint32_t[]){4, 12}, 2);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	first = granted(session[0], 0);
	second = granted(session[1], 0);
	ck_assert_int_eq(__builtin_popcountll(first), 4);
	ck_assert_int_eq(__builtin_popcountll(second), 12);
	ck_assert_uint_eq(first & second, 0);
	ck_assert_uint_eq(fgv_sched_units(vgpu[0]), first);
	ck_assert_uint_eq(fgv_sched_held_units(vgpu[1]), second);
	/* Nobody else could use them: neither is told to end. */
	for (uint64_t now_ns = 0; now_ns < 1000 * MS; now_ns += MS)
		expect_none(now_ns);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(more_than_there_is_is_refused)
{
	open_sched(true, (uint32_t[]){4, 12, 0}, 3);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[2], 1, 0), -ENOSPC);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[0], 5, 4), -EINVAL);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[1], 8, 8), 0);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[2], 4, 0), 0);
	fgv_sched_request(session[2], 0);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[2], 2, 0), -EBUSY);
	fgv_sched_destroy(sched);

	/* Programs that run count on what nobody had reserved. */
	open_sched(false, (uint32_t[]){4, 0}, 2);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[1], 4, 0), -EBUSY);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(other_policies_know_none)
{
	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_fair, NULL, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &vgpu[0]), 0);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[0], 1, 0), -EOPNOTSUPP);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[0], 0, 0), 0);
	ck_assert_uint_eq(fgv_sched_units(vgpu[0]), 0);
	ck_assert_uint_eq(fgv_sched_held_units(vgpu[0]), 0);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(what_is_lent_is_asked_back)
{
	open_sched(true, (uint32_t[]){4, 0}, 2);
	fgv_sched_request(session[1], 0);
	ck_assert_uint_eq(granted(session[1], 0), 0xffff);
	fgv_sched_request(session[0], MS);
	ck_assert_uint_eq(expect(FGV_SCHED_LIMIT, session[1], MS).slice_ns, 0);
	expect_none(MS);
	fgv_sched_release(session[1], 3 * MS, true, 3 * MS);
	ck_assert_uint_eq(granted(session[0], 3 * MS), 0xf);
	ck_assert_uint_eq(granted(session[1], 3 * MS), 0xfff0);
	expect_none(3 * MS);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(an_owner_in_nobodys_way_does_not_end_turns)
{
	open_sched(true, (uint32_t[]){4, 8, 0}, 3);
	fgv_sched_request(session[1], 0);
	fgv_sched_request(session[2], 0);
	ck_assert_uint_eq(granted(session[1], 0), 0xff0);
	ck_assert_uint_eq(granted(session[2], 0), 0xf00f);
	fgv_sched_request(session[0], MS);
	/* Only the one that has borrowed of its home. */
	ck_assert_uint_eq(expect(FGV_SCHED_LIMIT, session[2], MS).slice_ns, 0);
	expect_none(MS);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(sessions_of_one_vm_take_turns)
{
	struct fgv_sched_session *second;

	open_sched(true, (uint32_t[]){4, 12}, 2);
	ck_assert_int_eq(fgv_sched_attach_session(vgpu[0], NULL, 0, &second), 0);
	fgv_sched_request(session[0], 0);
	fgv_sched_request(second, 0);
	fgv_sched_request(session[1], 0);
	ck_assert_uint_eq(granted(session[0], 0), 0xf);
	ck_assert_uint_eq(granted(session[1], 0), 0xfff0);
	expect_none(0);
	fgv_sched_release(session[0], 6 * MS, true, 6 * MS);
	ck_assert_uint_eq(granted(second, 6 * MS), 0xf);
	expect_none(6 * MS);
	fgv_sched_destroy(sched);
}
END_TEST

/* Turns of a slice each, for all that wait; what each had of the GPU, in unit-nanoseconds. */
static void run_turns(unsigned count, unsigned turns, uint64_t *had)
{
	struct fgv_sched_decision d;
	uint64_t now_ns = 0, units[MANY] = {0};

	for (unsigned i = 0; i < count; i++)
		fgv_sched_request(session[i], 0);
	for (unsigned n = 0; n < turns; n++, now_ns += 6 * MS) {
		while (fgv_sched_decide(sched, now_ns, &d)) {
			for (unsigned i = 0; d.action == FGV_SCHED_GRANT && i < count; i++)
				units[i] = d.session == session[i] ? d.units : units[i];
		}
		for (unsigned i = 0; i < count; i++) {
			if (!units[i])
				continue;
			had[i] += (uint64_t)__builtin_popcountll(units[i]) * 6 * MS;
			units[i] = 0;
			fgv_sched_release(session[i], 6 * MS, true, now_ns + 6 * MS);
		}
	}
}

START_TEST(the_rest_is_shared_by_weight)
{
	uint64_t had[MANY] = {0};

	open_sched(true, (uint32_t[]){4, 0, 0, 0}, 4);
	run_turns(4, 1000, had);
	ck_assert_uint_eq(had[0], 4 * 6000 * MS);
	ck_assert_double_eq_tol((double)had[1], 12 * 6000 * MS / 5.0, 100 * MS);
	ck_assert_double_eq_tol((double)had[2], 12 * 6000 * MS / 5.0 * 3, 100 * MS);
	ck_assert_double_eq_tol((double)had[3], 12 * 6000 * MS / 5.0, 100 * MS);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(a_limit_leaves_room_for_others_at_once)
{
	uint64_t had[MANY] = {0};

	open_sched(true, (uint32_t[]){4, 0, 0}, 3);
	ck_assert_int_eq(fgv_sched_set_units(vgpu[1], 0, 2), 0);
	run_turns(3, 100, had);
	ck_assert_uint_eq(had[0], 4 * 600 * MS);
	ck_assert_uint_eq(had[1] + had[2], 12 * 600 * MS);
	ck_assert_uint_le(had[1], 2 * 600 * MS);
	ck_assert_uint_gt(had[1], 0);
	fgv_sched_destroy(sched);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy smguard");
	TCase *tcase = tcase_create("smguard");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, reservations_run_at_once);
	tcase_add_test(tcase, more_than_there_is_is_refused);
	tcase_add_test(tcase, other_policies_know_none);
	tcase_add_test(tcase, what_is_lent_is_asked_back);
	tcase_add_test(tcase, an_owner_in_nobodys_way_does_not_end_turns);
	tcase_add_test(tcase, sessions_of_one_vm_take_turns);
	tcase_add_test(tcase, the_rest_is_shared_by_weight);
	tcase_add_test(tcase, a_limit_leaves_room_for_others_at_once);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
