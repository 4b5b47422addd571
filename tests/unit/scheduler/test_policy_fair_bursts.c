/*
 * The policy `fair` and programs whose work comes in bursts: bursts and the turns between them
 * alternate in the ratio of the weights, a pause costs nothing that was owed, and neither
 * pretended pauses nor floods of short bursts gain anything.
 */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "tests/unit/scheduler/test_sched_world.h"

#define MS	FGV_NS_PER_MS
#define US	FGV_NS_PER_US
#define SLICE	(6 * MS)
#define OWED	(4 * SLICE) /* that outlives a pause */
#define LONGEST (1 * MS)    /* request */

/* --- Step by step ---------------------------------------------------------- */

enum { VMS = 3 };

static struct fgv_sched *sched;
static struct fgv_sched_vgpu *vgpu[VMS];
static struct fgv_sched_session *session[VMS];

static void open_sched(const uint32_t weights[VMS])
{
	struct fgv_sched_params params;

	fgv_sched_params_init(&params);
	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_fair, &params, 0), 0);
	for (unsigned int i = 0; i < VMS; i++) {
		ck_assert_int_eq(fgv_sched_attach_vgpu(sched, weights[i], NULL, 0, &vgpu[i]), 0);
		ck_assert_int_eq(fgv_sched_attach_session(vgpu[i], NULL, 0, &session[i]), 0);
	}
}

static struct fgv_sched_decision granted(uint64_t now_ns)
{
	struct fgv_sched_decision d;

	do
		ck_assert(fgv_sched_decide(sched, now_ns, &d));
	while (d.action != FGV_SCHED_GRANT);
	return d;
}

/* What the holder may still use after all decisions of now; it had no limit, or a slice. */
static uint64_t left_ns(uint64_t now_ns)
{
	struct fgv_sched_decision d;
	uint64_t left = UINT64_MAX;

	while (fgv_sched_decide(sched, now_ns, &d))
		if (d.action == FGV_SCHED_LIMIT)
			left = fgv_min_u64(left, d.slice_ns);
	return left;
}

/* A newcomer asks while the first one holds without limit, and has used it since its grant. */
static void ask_beside(unsigned int i, uint64_t used_ns, uint64_t now_ns)
{
	ck_assert_int_eq(fgv_sched_charge(session[0], used_ns, now_ns), 0);
	fgv_sched_request(session[i], now_ns);
}

/* The second has a burst of 4 ms from 0 on; the first has the GPU from then on, without limit. */
static void after_a_burst(const uint32_t weights[VMS])
{
	open_sched(weights);
	fgv_sched_request(session[1], 0);
	ck_assert_ptr_eq(granted(0).session, session[1]);
	fgv_sched_request(session[0], 0);
	ck_assert_int_eq(fgv_sched_release(session[1], 4 * MS, false, 4 * MS), 0);
	ck_assert_ptr_eq(granted(4 * MS).session, session[0]);
}

START_TEST(a_turn_ends_when_it_has_made_up_for_the_burst)
{
	static const struct {
		uint32_t weights[VMS];
		uint64_t pause_ns, left_ns;
	} cases[] = {
		{{1, 1, 1}, 1 * MS, 3500 * US},	  /* 3 ms to the other's tag, and 0.5 ms past it */
		{{1, 2, 1}, 500 * US, 2 * MS},	  /* 1.5 ms */
		{{1, 4, 1}, 1 * MS, 500 * US},	  /* past it already */
		{{2, 1, 1}, 3 * MS, 5500 * US},	  /* 8 ms of its time, less 3 ms */
		{{1, 1, 1}, 100 * MS, 500 * US},  /* a long pause: both begin anew */
		{{1, 40, 1}, 100 * US, 900 * US}, /* no turn is shorter than 1 ms */
		{{5, 1, 1}, 100 * US, SLICE},
	};
	uint64_t now = 4 * MS + cases[_i].pause_ns;

	after_a_burst(cases[_i].weights);
	ask_beside(1, cases[_i].pause_ns, now);
	ck_assert_uint_eq(left_ns(now), cases[_i].left_ns);
	fgv_sched_destroy(sched);
}
END_TEST

START_TEST(a_newcomer_waits_for_a_slice)
{
	after_a_burst((const uint32_t[]){1, 1, 1});
	ask_beside(2, 1 * MS, 5 * MS);
	ck_assert_uint_eq(left_ns(5 * MS), SLICE);
	fgv_sched_destroy(sched);
}
END_TEST

/* The turn would not end for it, but for the one before. */
START_TEST(only_the_next_one_ends_a_turn)
{
	after_a_burst((const uint32_t[]){1, 1, 1});
	ask_beside(2, 1 * MS, 5 * MS);
	ck_assert_uint_eq(left_ns(5 * MS), SLICE);
	fgv_sched_request(session[1], 5 * MS); /* its tag is 4 ms, the other's 1 ms */
	ck_assert_uint_eq(left_ns(5 * MS), UINT64_MAX);
	/* the next has its turn, and that ends when it has made up for the burst */
	ck_assert_int_eq(fgv_sched_release(session[0], SLICE, true, 11 * MS), 0);
	ck_assert_uint_eq(granted(11 * MS).slice_ns, 3500 * US);
	ck_assert_int_eq(fgv_sched_release(session[2], 3500 * US, true, 14500 * US), 0);
	ck_assert_ptr_eq(granted(14500 * US).session, session[1]);
	fgv_sched_destroy(sched);
}
END_TEST

/* One that had its slice and wants more is busy, and so is what it waits for. */
START_TEST(busy_ones_have_whole_slices)
{
	open_sched((const uint32_t[]){1, 1, 1});
	for (unsigned int i = 0; i < VMS; i++)
		fgv_sched_request(session[i], 0);
	for (unsigned int i = 0; i < 12; i++) {
		struct fgv_sched_decision d = granted(i * SLICE);

		ck_assert_uint_eq(d.slice_ns, SLICE);
		ck_assert_uint_eq(d.ahead_ns, 0);
		ck_assert_uint_eq(left_ns(i * SLICE), UINT64_MAX);
		ck_assert_int_eq(fgv_sched_release(d.session, SLICE, true, (i + 1) * SLICE), 0);
	}
	fgv_sched_destroy(sched);
}
END_TEST

/* So that its turn can end when the other is back; a program alone has no such limit. */
START_TEST(beside_one_that_pauses_little_is_queued)
{
	struct fgv_sched_decision d;

	open_sched((const uint32_t[]){1, 1, 1});
	for (unsigned int i = 0; i < 3; i++) {
		fgv_sched_request(session[0], i * 5 * MS);
		ck_assert_uint_eq(granted(i * 5 * MS).ahead_ns, 0);
		ck_assert_int_eq(fgv_sched_release(session[0], 4 * MS, false, i * 5 * MS + 4 * MS),
				 0);
	}
	fgv_sched_request(session[1], 15 * MS);
	d = granted(15 * MS);
	ck_assert_uint_eq(d.slice_ns, FGV_SCHED_NO_LIMIT);
	ck_assert_uint_eq(d.ahead_ns, 2 * MS);
	ck_assert_int_eq(fgv_sched_release(session[1], 20 * MS, false, 35 * MS), 0);
	fgv_sched_request(session[2], 35 * MS + SLICE);
	ck_assert_uint_eq(granted(35 * MS + SLICE).ahead_ns, 0);
	fgv_sched_destroy(sched);
}
END_TEST

static uint64_t behind_ns(unsigned int i)
{
	struct fgv_policy_tags tags;

	ck_assert(fgv_sched_tags(vgpu[i], &tags));
	return tags.virtual_ns - tags.start_ns;
}

/* What a VM is owed outlives a pause, less its length. */
START_TEST(a_pause_costs_no_more_than_its_length)
{
	static const uint64_t pauses_ns[] = {300 * US, 2 * MS, 5 * MS, 50 * MS};
	static const uint64_t owed_ns[] = {4700 * US, 3 * MS, 0, 0};
	uint64_t now = 7 * MS;

	open_sched((const uint32_t[]){1, 1, 1});
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	ck_assert_ptr_eq(granted(0).session, session[0]);
	ck_assert_int_eq(fgv_sched_release(session[0], 6 * MS, true, 6 * MS), 0);
	ck_assert_ptr_eq(granted(6 * MS).session, session[1]);
	/* the other had 6 ms, and it 1 ms */
	ck_assert_int_eq(fgv_sched_release(session[1], 1 * MS, false, now), 0);
	ck_assert_ptr_eq(granted(now).session, session[0]);
	ask_beside(1, pauses_ns[_i], now + pauses_ns[_i]);
	ck_assert_uint_eq(behind_ns(1), owed_ns[_i]);
	fgv_sched_destroy(sched);
}
END_TEST

/* A kernel that could not be stopped puts its VM far ahead; that is not owed to those that pause.
 */
START_TEST(what_is_owed_has_a_bound)
{
	uint64_t now = 1001 * MS;

	open_sched((const uint32_t[]){1, 1, 1});
	fgv_sched_request(session[0], 0);
	fgv_sched_request(session[1], 0);
	ck_assert_ptr_eq(granted(0).session, session[0]);
	ck_assert_int_eq(fgv_sched_release(session[0], 1000 * MS, true, 1000 * MS), 0);
	ck_assert_ptr_eq(granted(1000 * MS).session, session[1]);
	ck_assert_int_eq(fgv_sched_release(session[1], 1 * MS, false, now), 0);
	ck_assert_ptr_eq(granted(now).session, session[0]);
	ask_beside(1, 1 * MS, now + 1 * MS);
	ck_assert_uint_eq(behind_ns(1), OWED - 1 * MS);
	fgv_sched_destroy(sched);
}
END_TEST

/* --- Any load -------------------------------------------------------------- */

static struct client *add_bursts(struct world *world, uint32_t weight, uint32_t requests,
				 uint64_t request_ns, uint64_t pause_ns)
{
	struct client *c = world_add(world, weight, NULL, request_ns, request_ns);

	c->burst = c->left = requests;
	c->pause_ns = pause_ns;
	c->sleep_ns = 1;
	return c;
}

/* PyTorch's inference beside its training, more or less. */
START_TEST(bursts_get_what_the_weights_say)
{
	static const struct {
		uint32_t busy, bursts; /* weights */
		uint32_t requests;     /* of 100 us */
	} cases[] = {{1, 1, 15}, {1, 1, 45}, {1, 1, 90},  {1, 3, 45},
		     {1, 3, 90}, {3, 1, 45}, {3, 1, 200}, {1, 3, 200}};
	struct client *busy, *bursts;
	struct world world;
	double ratio;

	world_open(&world, &fgv_policy_fair, NULL, (uint64_t)_i + 1);
	busy = world_add(&world, cases[_i].busy, NULL, 50 * US, 150 * US);
	bursts = add_bursts(&world, cases[_i].bursts, cases[_i].requests, 100 * US, 300 * US);
	world_run(&world, 20000 * MS);
	/* what it is owed fades while it pauses */
	ratio = (double)bursts->used_ns * cases[_i].busy /
		((double)busy->used_ns * cases[_i].bursts);
	ck_assert_double_ge(ratio, 0.9);
	ck_assert_double_le(ratio, 1.03);
	world_close(&world);
}
END_TEST

/* From any wake-up on, it gets no more than its share and what it may be owed. */
static uint64_t mark_busy, mark_other, marks;

static void check_pretender(struct world *world)
{
	const struct client *busy = &world->client[0], *other = &world->client[1];
	uint64_t wb = fgv_sched_vgpu_weight(busy->vgpu), wo = fgv_sched_vgpu_weight(other->vgpu);

	WORLD_MUST(other->used_ns * wb <= busy->used_ns * wo + (SLICE + LONGEST) * (wb + wo));
	WORLD_MUST((other->used_ns - mark_other) * wb <=
		   (busy->used_ns - mark_busy) * wo + OWED * wb + (SLICE + LONGEST) * (wb + wo));
	if (other->asleep && marks++ % 64 == 0) {
		mark_other = other->used_ns;
		mark_busy = busy->used_ns;
	}
}

START_TEST(pretended_pauses_gain_nothing)
{
	struct world world;
	struct client *other;

	world_open(&world, &fgv_policy_fair, NULL, (uint64_t)_i + 5000);
	world_add(&world, 1 + (uint32_t)world_draw(&world, 5), NULL, 20 * US, LONGEST);
	other = world_add(&world, 1 + (uint32_t)world_draw(&world, 5), NULL, 20 * US,
			  50 * US + world_draw(&world, LONGEST - 50 * US));
	other->burst = other->left = 1 + (uint32_t)world_draw(&world, 60);
	other->pause_ns = 1 + world_draw(&world, 500 * US);
	other->sleep_ns = 1 + world_draw(&world, 3 * MS);
	mark_busy = mark_other = marks = 0;
	world.check = check_pretender;
	world_run(&world, 10000 * MS);
	ck_assert_uint_gt(marks, 100);
	world_close(&world);
}
END_TEST

/* Each burst costs two hand-overs, so there is to be a turn of a millisecond at least for it. */
START_TEST(a_flood_of_bursts_leaves_turns_of_a_millisecond)
{
	static const uint32_t weights[] = {1, 2, 4};
	struct world world;
	struct client *busy;

	world_open(&world, &fgv_policy_fair, NULL, 1);
	busy = world_add(&world, weights[_i], NULL, 20 * US, 20 * US);
	for (int i = 0; i < 3; i++)
		add_bursts(&world, 1, 1, 10 * US, 100 * US);
	world_run(&world, 10000 * MS);
	ck_assert_uint_ge(busy->used_ns, (uint64_t)(10000 * MS * 0.95));
	ck_assert_uint_le(fgv_sched_session_stats(busy->session)->grants,
			  busy->used_ns / (weights[_i] * MS) + 1);
	world_close(&world);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy_fair_bursts");
	TCase *tc = tcase_create("bursts");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, a_turn_ends_when_it_has_made_up_for_the_burst, 0, 7);
	tcase_add_test(tc, a_newcomer_waits_for_a_slice);
	tcase_add_test(tc, only_the_next_one_ends_a_turn);
	tcase_add_test(tc, busy_ones_have_whole_slices);
	tcase_add_test(tc, beside_one_that_pauses_little_is_queued);
	tcase_add_loop_test(tc, a_pause_costs_no_more_than_its_length, 0, 4);
	tcase_add_test(tc, what_is_owed_has_a_bound);
	tcase_add_loop_test(tc, bursts_get_what_the_weights_say, 0, 8);
	tcase_add_loop_test(tc, pretended_pauses_gain_nothing, 0, 30);
	tcase_add_loop_test(tc, a_flood_of_bursts_leaves_turns_of_a_millisecond, 0, 3);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
