/*
 * The policy `fikit`: the more urgent come first, those of one priority share by weight, gaps are
 * filled with what fits, and no word of a session makes another one lose more than a gap.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "tests/unit/scheduler/test_sched_world.h"

#define MS    FGV_NS_PER_MS
#define US    FGV_NS_PER_US
#define SLICE FGV_SCHED_SLICE_NS
#define NEVER FGV_SCHED_NEVER

/* --- Any load -------------------------------------------------------------- */

static struct client *add(struct world *world, uint32_t priority, uint32_t weight, uint64_t max_ns)
{
	struct client *c = world_add(world, weight, NULL, max_ns / 2, max_ns);

	ck_assert_int_eq(fgv_sched_set_priority(c->vgpu, priority, world->now_ns), 0);
	return c;
}

static void sleeps(struct client *c, uint32_t burst, uint64_t pause_ns, uint64_t sleep_ns)
{
	c->burst = c->left = burst;
	c->pause_ns = pause_ns;
	c->sleep_ns = sleep_ns;
}

START_TEST(the_more_urgent_has_all_that_it_wants)
{
	struct world world;
	const struct client *urgent, *other;

	world_open(&world, &fgv_policy_fikit, NULL, 1);
	urgent = add(&world, 0, 1, 500 * US);
	other = add(&world, 9, 1000, 500 * US);
	world_run(&world, 5000 * MS);
	ck_assert_uint_ge(urgent->used_ns, 4998 * MS);
	ck_assert_uint_eq(other->used_ns, 0);
	ck_assert_uint_eq(world.starved, 0); /* it is what was asked for */
	world_close(&world);
}
END_TEST

START_TEST(each_priority_comes_before_the_next)
{
	struct world world;
	struct client *c[3];

	world_open(&world, &fgv_policy_fikit, NULL, 2);
	for (uint32_t i = 0; i < 3; i++) {
		c[i] = add(&world, 2 * i, 1, 300 * US);
		if (i < 2)
			sleeps(c[i], 10, 3 * MS, 2 * MS);
	}
	world_run(&world, 20000 * MS);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_uint_le(c[i]->max_wait_ns, (i + 1) * 10 * 300 * US);
	ck_assert_uint_le(c[0]->max_wait_ns, 300 * US); /* no more than what runs */
	ck_assert_uint_gt(c[2]->used_ns, 1000 * MS);
	ck_assert_uint_ge(c[0]->used_ns + c[1]->used_ns + c[2]->used_ns, 19990 * MS);
	world_close(&world);
}
END_TEST

START_TEST(equals_share_by_weight)
{
	struct world world;

	world_open(&world, &fgv_policy_fikit, NULL, 3);
	for (uint32_t i = 0; i < 4; i++)
		add(&world, 4, 1 + i, (1 + i % 3) * MS);
	sleeps(add(&world, 1, 1, MS), 3, 4 * MS, 4 * MS);
	world_run(&world, 60000 * MS);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t left_ns = 60000 * MS - world.client[4].used_ns;
		double due_ns = (double)left_ns * (1 + i) / 10;

		ck_assert_double_eq_tol((double)world.client[i].used_ns / due_ns, 1.0, 0.02);
	}
	world_close(&world);
}
END_TEST

START_TEST(many_sessions_gain_nothing)
{
	struct world world;
	struct client *one, *first;
	uint64_t used_ns = 0;

	world_open(&world, &fgv_policy_fikit, NULL, 4);
	one = add(&world, 3, 1, MS);
	first = add(&world, 3, 1, MS);
	for (int i = 0; i < 20; i++)
		world_add(&world, 1, first, 100 * US, MS);
	world_run(&world, 20000 * MS);
	for (unsigned int i = 1; i < world.clients; i++)
		used_ns += world.client[i].used_ns;
	ck_assert_double_eq_tol((double)used_ns / (double)one->used_ns, 1.0, 0.02);
	world_close(&world);
}
END_TEST

/* --- Step by step ---------------------------------------------------------- */

#define MEMBERS 4

struct member {
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
};

struct steps {
	struct fgv_sched *sched;
	struct member m[MEMBERS];
	uint64_t now_ns;
	struct fgv_sched_decision granted, limited;
};

static void open_steps(struct steps *s, const uint32_t priorities[MEMBERS])
{
	*s = (struct steps){.now_ns = 1000 * MS};
	ck_assert_int_eq(fgv_sched_create(&s->sched, &fgv_policy_fikit, NULL, s->now_ns), 0);
	for (int i = 0; i < MEMBERS; i++) {
		struct member *m = &s->m[i];

		ck_assert_int_eq(fgv_sched_attach_vgpu(s->sched, 1, NULL, 0, &m->vgpu), 0);
		ck_assert_int_eq(fgv_sched_set_priority(m->vgpu, priorities[i], 0), 0);
		ck_assert_int_eq(fgv_sched_attach_session(m->vgpu, NULL, 0, &m->session), 0);
	}
}

/* The session that is granted now; NULL: none. */
static struct fgv_sched_session *decide(struct steps *s)
{
	struct fgv_sched_decision d;

	s->granted = s->limited = (struct fgv_sched_decision){.slice_ns = NEVER};
	while (fgv_sched_decide(s->sched, s->now_ns, &d)) {
		if (d.action == FGV_SCHED_GRANT)
			s->granted = d;
		else if (d.action == FGV_SCHED_LIMIT)
			s->limited = d;
	}
	return s->granted.session;
}

static void ask(struct steps *s, int i, uint64_t next_ns)
{
	const struct fgv_sched_advice advice = {.next_ns = (uint32_t)next_ns};

	fgv_sched_advise(s->m[i].session, &advice);
	fgv_sched_request(s->m[i].session, s->now_ns);
}

static void give_back(struct steps *s, int i, uint64_t used_ns, uint64_t gap_ns)
{
	const struct fgv_sched_advice advice = {.gap_ns = (uint32_t)gap_ns};

	s->now_ns += used_ns;
	fgv_sched_advise(s->m[i].session, &advice);
	ck_assert_int_eq(fgv_sched_release(s->m[i].session, used_ns, false, s->now_ns), 0);
}

/* The first has had the GPU for a millisecond, and leaves a gap. */
static void leave_gap(struct steps *s, uint64_t gap_ns)
{
	ask(s, 0, 0);
	ck_assert_ptr_eq(decide(s), s->m[0].session);
	give_back(s, 0, MS, gap_ns);
}

static const uint32_t urgent_and_others[MEMBERS] = {0, 4, 9, 9};

START_TEST(a_gap_is_for_what_fits)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	leave_gap(&s, 2 * MS);
	ask(&s, 1, 3 * MS); /* more urgent than the others, but too long */
	ask(&s, 2, 0);	    /* nobody knows */
	ask(&s, 3, MS);
	ck_assert_ptr_eq(decide(&s), s.m[3].session);
	ck_assert_uint_eq(s.granted.slice_ns, 2 * MS);
	ck_assert(s.granted.must_fit);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(the_more_urgent_fills_first)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	leave_gap(&s, 2 * MS);
	ask(&s, 2, MS);
	ask(&s, 1, MS);
	ck_assert_ptr_eq(decide(&s), s.m[1].session);
	give_back(&s, 1, MS, 0);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	ck_assert_uint_eq(s.granted.slice_ns, MS); /* what is left */
	fgv_sched_destroy(s.sched);
}
END_TEST

/* A filler whose next work does not fit is not tried again and again. */
START_TEST(each_has_one_chance_in_a_gap)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	leave_gap(&s, 2 * MS);
	ask(&s, 2, MS);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	ck_assert_int_eq(fgv_sched_release(s.m[2].session, 0, true, s.now_ns), 0);
	ck_assert_ptr_null(decide(&s));
	leave_gap(&s, 2 * MS);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(the_urgent_one_stops_the_filler_at_once)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	leave_gap(&s, 5 * MS);
	ask(&s, 3, MS);
	ck_assert_ptr_eq(decide(&s), s.m[3].session);
	s.now_ns += MS / 4;
	ask(&s, 0, 0);
	ck_assert_ptr_null(decide(&s));
	ck_assert_ptr_eq(s.limited.session, s.m[3].session);
	ck_assert_uint_eq(s.limited.slice_ns, 0);
	ck_assert_int_eq(fgv_sched_release(s.m[3].session, MS, true, s.now_ns + MS), 0);
	s.now_ns += MS;
	ck_assert_ptr_eq(decide(&s), s.m[0].session);
	fgv_sched_destroy(s.sched);
}
END_TEST

/* Whatever it says, the GPU is not kept free for longer than twice the gap. */
START_TEST(a_gap_that_lasts_is_none)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	leave_gap(&s, 2 * MS);
	ask(&s, 2, 100 * MS);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_eq(fgv_sched_next_ns(s.sched, s.now_ns), s.now_ns + 4 * MS);
	s.now_ns += 4 * MS;
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	ck_assert(!s.granted.must_fit);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(gaps_too_short_or_too_long_are_none)
{
	static const uint64_t gaps[] = {0, 99 * US, 4 * SLICE + 1, UINT32_MAX};
	struct steps s;

	open_steps(&s, urgent_and_others);
	leave_gap(&s, gaps[_i]);
	ask(&s, 2, 100 * MS);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(a_gap_is_nothing_to_equals)
{
	static const uint32_t equals[MEMBERS] = {4, 4, 9, 9};
	struct steps s;

	open_steps(&s, equals);
	leave_gap(&s, 2 * MS);
	ask(&s, 1, 100 * MS);
	ck_assert_ptr_eq(decide(&s), s.m[1].session);
	ck_assert(!s.granted.must_fit);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(the_more_urgent_waits_for_no_gap)
{
	static const uint32_t priorities[MEMBERS] = {4, 0, 9, 9};
	struct steps s;

	open_steps(&s, priorities);
	leave_gap(&s, 2 * MS);
	ask(&s, 1, 100 * MS);
	ck_assert_ptr_eq(decide(&s), s.m[1].session);
	fgv_sched_destroy(s.sched);
}
END_TEST

/* An idle one's word is for the idle time before which it was given. */
START_TEST(a_gap_is_said_once)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	leave_gap(&s, 2 * MS);
	ask(&s, 0, 0);
	ck_assert_ptr_eq(decide(&s), s.m[0].session);
	give_back(&s, 0, MS, 0);
	ask(&s, 2, 100 * MS);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(what_can_be_taken_off_need_not_fit)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	fgv_sched_set_taken(s.m[2].vgpu, MS);
	fgv_sched_set_taken(s.m[3].vgpu, MS);
	leave_gap(&s, 2 * MS);
	ask(&s, 2, 100 * MS);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	ck_assert(!s.granted.must_fit);
	give_back(&s, 2, MS + 1, 0);
	ask(&s, 3, 100 * MS); /* now it would be too late */
	ck_assert_ptr_null(decide(&s));
	fgv_sched_destroy(s.sched);
}
END_TEST

/* What waits on the GPU when the urgent one comes is short, if there is an urgent one. */
START_TEST(one_with_superiors_queues_little)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	ask(&s, 0, 0);
	ck_assert_ptr_eq(decide(&s), s.m[0].session);
	ck_assert_uint_eq(s.granted.ahead_ns, 0);
	give_back(&s, 0, MS, 0);
	ask(&s, 3, 0);
	ck_assert_ptr_eq(decide(&s), s.m[3].session);
	ck_assert_uint_ne(s.granted.ahead_ns, 0);
	ck_assert_uint_le(s.granted.ahead_ns, SLICE / 4);
	fgv_sched_destroy(s.sched);
}
END_TEST

/* --- Slices and changes ---------------------------------------------------- */

START_TEST(a_slice_is_long_beside_the_less_urgent)
{
	static const uint32_t priorities[MEMBERS] = {0, 0, 9, 9};
	struct steps s;

	open_steps(&s, priorities);
	ask(&s, 0, 0);
	ask(&s, 2, 0);
	ck_assert_ptr_eq(decide(&s), s.m[0].session);
	ck_assert_uint_gt(s.granted.slice_ns, 10 * SLICE);
	s.now_ns += 2 * MS;
	ask(&s, 1, 0);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_eq(s.limited.slice_ns, SLICE - 2 * MS); /* an equal has come */
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(a_session_of_the_same_vm_is_an_equal)
{
	struct fgv_sched_session *second;
	struct steps s;

	open_steps(&s, urgent_and_others);
	ck_assert_int_eq(fgv_sched_attach_session(s.m[0].vgpu, NULL, s.now_ns, &second), 0);
	ask(&s, 0, 0);
	ask(&s, 2, 0);
	ck_assert_ptr_eq(decide(&s), s.m[0].session);
	s.now_ns += 2 * MS;
	fgv_sched_request(second, s.now_ns);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_eq(s.limited.slice_ns, SLICE - 2 * MS);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(priorities_change_while_they_run)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	ask(&s, 2, 0);
	ask(&s, 3, 0);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	s.now_ns += MS;
	ck_assert_int_eq(fgv_sched_set_priority(s.m[3].vgpu, 1, s.now_ns), 0);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_eq(s.limited.slice_ns, 0);
	ck_assert_int_eq(fgv_sched_release(s.m[2].session, MS, true, s.now_ns), 0);
	ck_assert_ptr_eq(decide(&s), s.m[3].session);
	ck_assert_int_eq(fgv_sched_set_priority(s.m[3].vgpu, 9, s.now_ns), 0);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_eq(s.limited.slice_ns, SLICE); /* it is an equal again */
	ck_assert_int_eq(fgv_sched_set_priority(s.m[3].vgpu, 10, s.now_ns), -EINVAL);
	ck_assert_uint_eq(fgv_sched_vgpu_priority(s.m[3].vgpu), 9);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(sessions_move_between_priorities)
{
	struct steps s;

	open_steps(&s, urgent_and_others);
	ask(&s, 1, 0);
	ck_assert_ptr_eq(decide(&s), s.m[1].session);
	ask(&s, 2, 0);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_gt(s.limited.slice_ns, 10 * SLICE);
	ck_assert_int_eq(fgv_sched_move_session(s.m[1].session, s.m[3].vgpu, s.now_ns), -EBUSY);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_eq(s.limited.slice_ns, SLICE); /* then it can be moved */
	ck_assert_int_eq(fgv_sched_move_session(s.m[2].session, s.m[0].vgpu, s.now_ns), 0);
	ck_assert_ptr_null(decide(&s));
	ck_assert_uint_eq(s.limited.slice_ns, 0); /* it waits, and is more urgent now */
	give_back(&s, 1, MS, 0);
	ck_assert_ptr_eq(decide(&s), s.m[2].session);
	ck_assert_ptr_eq(fgv_sched_session_vgpu(s.m[2].session), s.m[0].vgpu);
	give_back(&s, 2, MS, 0);
	ck_assert_int_eq(fgv_sched_detach_vgpu(s.m[2].vgpu), 0);
	fgv_sched_destroy(s.sched);
}
END_TEST

START_TEST(other_policies_know_no_priorities)
{
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu;

	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_fair, NULL, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &vgpu), 0);
	ck_assert_int_eq(fgv_sched_set_priority(vgpu, 0, 0), -EOPNOTSUPP);
	ck_assert_int_eq(fgv_sched_set_priority(vgpu, FGV_SCHED_PRIORITY_DEFAULT, 0), 0);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(the_policy_comes_and_goes_under_load)
{
	struct world world;

	world_open(&world, &fgv_policy_fikit, NULL, 5);
	add(&world, 0, 1, MS);
	add(&world, 9, 1, MS);
	world_run(&world, 100 * MS);
	ck_assert_uint_eq(world.client[1].used_ns, 0);
	ck_assert_int_eq(fgv_sched_set_policy(world.sched, &fgv_policy_fair, world.now_ns), 0);
	world_run(&world, 1100 * MS);
	ck_assert_uint_gt(world.client[1].used_ns, 480 * MS);
	ck_assert_int_eq(fgv_sched_set_policy(world.sched, &fgv_policy_fikit, world.now_ns), 0);
	world.client[1].used_ns = 0;
	world_run(&world, 2100 * MS);
	ck_assert_uint_lt(world.client[1].used_ns, 2 * SLICE);
	world_close(&world);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy fikit");
	TCase *any = tcase_create("any load"), *gaps = tcase_create("gaps");
	TCase *changes = tcase_create("slices and changes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(any, the_more_urgent_has_all_that_it_wants);
	tcase_add_test(any, each_priority_comes_before_the_next);
	tcase_add_test(any, equals_share_by_weight);
	tcase_add_test(any, many_sessions_gain_nothing);
	suite_add_tcase(suite, any);
	tcase_add_test(gaps, a_gap_is_for_what_fits);
	tcase_add_test(gaps, the_more_urgent_fills_first);
	tcase_add_test(gaps, each_has_one_chance_in_a_gap);
	tcase_add_test(gaps, the_urgent_one_stops_the_filler_at_once);
	tcase_add_test(gaps, a_gap_that_lasts_is_none);
	tcase_add_loop_test(gaps, gaps_too_short_or_too_long_are_none, 0, 4);
	tcase_add_test(gaps, a_gap_is_nothing_to_equals);
	tcase_add_test(gaps, the_more_urgent_waits_for_no_gap);
	tcase_add_test(gaps, a_gap_is_said_once);
	tcase_add_test(gaps, what_can_be_taken_off_need_not_fit);
	tcase_add_test(gaps, one_with_superiors_queues_little);
	suite_add_tcase(suite, gaps);
	tcase_add_test(changes, a_slice_is_long_beside_the_less_urgent);
	tcase_add_test(changes, a_session_of_the_same_vm_is_an_equal);
	tcase_add_test(changes, priorities_change_while_they_run);
	tcase_add_test(changes, sessions_move_between_priorities);
	tcase_add_test(changes, other_policies_know_no_priorities);
	tcase_add_test(changes, the_policy_comes_and_goes_under_load);
	suite_add_tcase(suite, changes);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
