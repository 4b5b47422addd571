/*
 * The policy `fair`: the paper's figure 4 tag by tag, and what must hold of any load:
 * shares follow weights, nobody starves, neither sleepers nor newcomers nor VMs with many
 * sessions gain anything, long requests are paid for, and the number range does not matter.
 */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "tests/unit/scheduler/test_sched_world.h"

#define MS	FGV_NS_PER_MS
#define US	FGV_NS_PER_US
#define SLICE	(6 * MS)
#define LONGEST (4 * MS) /* request, unless the test says otherwise */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* --- Figure 4 -------------------------------------------------------------- */

struct figure4_row {
	uint64_t at_ms;
	unsigned int runs;
	uint64_t start1_ms, start2_ms, virtual_ms;
};

static const struct figure4_row figure4[] = {
	{0, 1, 0, 0, 0},      {10, 2, 10, 0, 0},    {20, 2, 10, 5, 5},	  {30, 1, 10, 10, 10},
	{40, 2, 20, 10, 10},  {50, 2, 20, 15, 15},  {60, 1, 20, 20, 20},  {70, 2, 30, 20, 20},
	{80, 2, 30, 25, 25},  {90, 2, 30, 30, 30},  {100, 2, 30, 35, 35}, {110, 1, 35, 40, 35},
	{120, 2, 45, 40, 40}, {130, 1, 45, 45, 45},
};

static uint64_t start_tag(const struct fgv_sched_vgpu *vgpu, uint64_t *virtual_ns)
{
	struct fgv_policy_tags tags;

	ck_assert(fgv_sched_tags(vgpu, &tags));
	*virtual_ns = tags.virtual_ns;
	return tags.start_ns;
}

START_TEST(figure_4)
{
	struct fgv_sched_params params;
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu[2];
	struct fgv_sched_session *session[2], *holder = NULL;
	struct fgv_sched_decision d;
	uint64_t virtual_ns;

	fgv_sched_params_init(&params);
	params.slice_ns = 10 * MS;
	params.first_tag = (uint64_t)_i * (uint64_t)(-20 * (int64_t)MS); /* wraps at tag 20 */
	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_fair, &params, 0), 0);
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert_int_eq(fgv_sched_attach_vgpu(sched, i + 1, NULL, 0, &vgpu[i]), 0);
		ck_assert_int_eq(fgv_sched_attach_session(vgpu[i], NULL, 0, &session[i]), 0);
		fgv_sched_request(session[i], 0);
	}
	for (size_t i = 0; i < FGV_ARRAY_LEN(figure4); i++) {
		const struct figure4_row *row = &figure4[i];
		uint64_t now = row->at_ms * MS;

		if (row->at_ms == 110) {
			fgv_sched_request(session[0], 105 * MS);
			ck_assert_uint_eq(start_tag(vgpu[0], &virtual_ns) - params.first_tag,
					  35 * MS);
			ck_assert_uint_eq(virtual_ns - params.first_tag, 35 * MS);
		}
		if (holder != NULL)
			ck_assert_int_eq(fgv_sched_release(holder, 10 * MS, row->at_ms != 70, now),
					 0);
		do
			ck_assert(fgv_sched_decide(sched, now, &d));
		while (d.action != FGV_SCHED_GRANT);
		holder = d.session;
		ck_assert_ptr_eq(holder, session[row->runs - 1]);
		ck_assert_uint_eq(start_tag(vgpu[0], &virtual_ns) - params.first_tag,
				  row->start1_ms * MS);
		ck_assert_uint_eq(start_tag(vgpu[1], &virtual_ns) - params.first_tag,
				  row->start2_ms * MS);
		ck_assert_uint_eq(virtual_ns - params.first_tag, row->virtual_ms * MS);
	}
	fgv_sched_destroy(sched);
}
END_TEST

/* --- Shares ---------------------------------------------------------------- */

/* Two that are busy from the beginning are within one slice and one request each, always. */
static void check_two_busy(struct world *world)
{
	const struct client *a = &world->client[0], *b = &world->client[1];
	uint64_t wa = fgv_sched_vgpu_weight(a->vgpu), wb = fgv_sched_vgpu_weight(b->vgpu);

	WORLD_MUST(distance(a->used_ns * wb, b->used_ns * wa) <=
		   (SLICE + a->max_ns) * wb + (SLICE + b->max_ns) * wa);
}

START_TEST(two_busy_ones_stay_together)
{
	struct world world;

	world_open(&world, &fgv_policy_fair, NULL, (uint64_t)_i);
	world_add(&world, 1 + (uint32_t)world_draw(&world, 9), NULL, 1 * US, LONGEST);
	world_add(&world, 1 + (uint32_t)world_draw(&world, 9), NULL, 1 * US,
		  10 * US + world_draw(&world, 3 * LONGEST));
	world.check = check_two_busy;
	/* whatever others do meanwhile */
	for (uint64_t n = world_draw(&world, 6); n > 0; n--) {
		struct client *c = world_add(&world, 1 + (uint32_t)world_draw(&world, 9), NULL,
					     10 * US, LONGEST);

		c->burst = 1 + (uint32_t)world_draw(&world, 20);
		c->sleep_ns = 1 + world_draw(&world, 50 * MS);
		c->left = c->burst;
	}
	world_run(&world, 10000 * MS);
	world_close(&world);
}
END_TEST

START_TEST(shares_follow_weights_to_a_percent)
{
	struct world world;
	uint64_t weights = 0;
	unsigned int clients;

	world_open(&world, &fgv_policy_fair, NULL, (uint64_t)_i + 1000);
	clients = 2 + (unsigned int)world_draw(&world, 10);
	for (unsigned int i = 0; i < clients; i++) {
		uint32_t weight = 1 + (uint32_t)world_draw(&world, 10);

		weights += weight;
		world_add(&world, weight, NULL, 5 * US, 10 * US + world_draw(&world, LONGEST));
	}
	world_run(&world, 120000 * MS);
	for (unsigned int i = 0; i < clients; i++) {
		const struct client *c = &world.client[i];
		double due = 120000.0 * MS * fgv_sched_vgpu_weight(c->vgpu) / (double)weights;

		ck_assert_double_eq_tol((double)c->used_ns / due, 1.0, 0.01);
	}
	world_close(&world);
}
END_TEST

START_TEST(many_sessions_get_no_more_than_one)
{
	struct world world;
	struct client *one, *first;
	uint64_t many = 0;

	world_open(&world, &fgv_policy_fair, NULL, 5);
	one = world_add(&world, 1, NULL, 20 * US, MS);
	first = world_add(&world, 2, NULL, 20 * US, MS);
	for (int i = 0; i < 9; i++)
		world_add(&world, 0, first, 20 * US, 100 * US + (uint64_t)i * MS);
	world_run(&world, 60000 * MS);
	for (unsigned int i = 1; i < world.clients; i++)
		many += world.client[i].used_ns;
	ck_assert_double_eq_tol((double)many / (double)one->used_ns, 2.0, 0.02);
	/* and within the VM they share equally */
	for (unsigned int i = 1; i < world.clients; i++)
		ck_assert_double_eq_tol((double)world.client[i].used_ns * 10 / (double)many, 1.0,
					0.02);
	world_close(&world);
}
END_TEST

START_TEST(weights_change_while_running)
{
	struct world world;
	struct client *a, *b;
	uint64_t used_a, used_b;

	world_open(&world, &fgv_policy_fair, NULL, 6);
	a = world_add(&world, 1, NULL, 20 * US, MS);
	b = world_add(&world, 1, NULL, 20 * US, MS);
	world_run(&world, 10000 * MS);
	ck_assert_double_eq_tol((double)a->used_ns / (double)b->used_ns, 1.0, 0.01);
	used_a = a->used_ns;
	used_b = b->used_ns;
	ck_assert_int_eq(fgv_sched_set_weight(a->vgpu, 3), 0);
	world_run(&world, 20000 * MS);
	ck_assert_double_eq_tol((double)(a->used_ns - used_a) / (double)(b->used_ns - used_b), 3.0,
				0.03);
	used_a = a->used_ns;
	used_b = b->used_ns;
	ck_assert_int_eq(fgv_sched_set_weight(b->vgpu, 30), 0);
	world_run(&world, 40000 * MS);
	ck_assert_double_eq_tol((double)(b->used_ns - used_b) / (double)(a->used_ns - used_a), 10.0,
				0.1);
	world_close(&world);
}
END_TEST

/* --- Sleepers, newcomers, long requests ------------------------------------ */

/* From any wake-up on, a sleeper gets no more than the busy one, beyond a slice and a request each.
 */
static uint64_t mark_sleeper, mark_busy, mark_wakes;

static void check_sleeper(struct world *world)
{
	const struct client *busy = &world->client[0], *sleeper = &world->client[1];

	if (sleeper->asleep || sleeper->woke_ns == world->now_ns) {
		mark_wakes += sleeper->asleep;
		mark_sleeper = sleeper->used_ns;
		mark_busy = busy->used_ns;
		return;
	}
	WORLD_MUST(sleeper->used_ns - mark_sleeper <=
		   busy->used_ns - mark_busy + 2 * (SLICE + LONGEST));
}

START_TEST(sleepers_gain_nothing)
{
	struct world world;
	struct client *busy, *sleeper;

	world_open(&world, &fgv_policy_fair, NULL, (uint64_t)_i + 2000);
	busy = world_add(&world, 1, NULL, 20 * US, LONGEST);
	sleeper = world_add(&world, 1, NULL, 20 * US, LONGEST);
	sleeper->burst = sleeper->left = 1 + (uint32_t)world_draw(&world, 100);
	sleeper->sleep_ns = 1 + world_draw(&world, 200 * MS);
	mark_sleeper = mark_busy = mark_wakes = 0;
	world.check = check_sleeper;
	world_run(&world, 20000 * MS);
	ck_assert_uint_gt(mark_wakes, 10);
	ck_assert_uint_le(sleeper->used_ns, busy->used_ns + 2 * (SLICE + LONGEST));
	world_close(&world);
}
END_TEST

START_TEST(newcomers_gain_nothing)
{
	struct world world;
	struct client *old, *alone, *late;
	uint64_t before;

	world_open(&world, &fgv_policy_fair, NULL, 7);
	alone = world_add(&world, 1, NULL, 20 * US, MS);
	world_run(&world, 50000 * MS); /* alone, without any hand-over */
	ck_assert_uint_eq(world.grants, 1);
	old = world_add(&world, 1, NULL, 20 * US, MS);
	before = alone->used_ns;
	world_run(&world, 50100 * MS);
	ck_assert_uint_le(distance(alone->used_ns - before, old->used_ns), 2 * (SLICE + MS));
	world_run(&world, 60000 * MS);
	ck_assert_double_eq_tol((double)(alone->used_ns - before) / (double)old->used_ns, 1.0,
				0.01);
	late = world_add(&world, 1, NULL, 20 * US, MS);
	before = old->used_ns;
	world_run(&world, 60100 * MS);
	ck_assert_uint_le(late->used_ns, old->used_ns - before + 2 * (SLICE + MS));
	world_close(&world);
}
END_TEST

START_TEST(a_long_request_is_paid_for)
{
	struct world world;
	struct client *greedy, *small, *other;
	uint64_t used;

	world_open(&world, &fgv_policy_fair, NULL, 8);
	small = world_add(&world, 1, NULL, 20 * US, 200 * US);
	other = world_add(&world, 2, NULL, 20 * US, 200 * US);
	greedy = world_add(&world, 1, NULL, 500 * MS, 500 * MS);
	world_run(&world, 520 * MS);
	ck_assert_uint_eq(greedy->used_ns, 500 * MS);
	/* it waits until the others have caught up: 500 ms and twice 500 ms of theirs */
	world_run(&world, 1980 * MS);
	ck_assert_uint_eq(greedy->used_ns, 500 * MS);
	used = small->used_ns + other->used_ns;
	ck_assert_uint_gt(used, 1470 * MS);
	world_run(&world, 100000 * MS);
	ck_assert_double_eq_tol((double)greedy->used_ns / (double)small->used_ns, 1.0, 0.02);
	world_close(&world);
}
END_TEST

START_TEST(nobody_starves)
{
	struct world world;
	uint64_t weights = 0;

	world_open(&world, &fgv_policy_fair, NULL, (uint64_t)_i + 3000);
	for (unsigned int i = 0; i < 20; i++) {
		struct client *c = world_add(&world, 1 + (uint32_t)world_draw(&world, 20), NULL,
					     10 * US, LONGEST);

		weights += fgv_sched_vgpu_weight(c->vgpu);
		c->burst = c->left = (uint32_t)world_draw(&world, 50);
		c->sleep_ns = 1 + world_draw(&world, 100 * MS);
	}
	world_run(&world, 60000 * MS);
	/* Between two turns of one, each other gets its share of one turn, and one turn more. */
	for (unsigned int i = 0; i < 20; i++) {
		const struct client *c = &world.client[i];
		uint64_t turns = weights / fgv_sched_vgpu_weight(c->vgpu) + 2 * 20;

		ck_assert_uint_gt(c->used_ns, 0);
		ck_assert_uint_le(c->max_wait_ns, turns * (SLICE + LONGEST));
	}
	ck_assert_uint_eq(world.starved, 0);
	world_close(&world);
}
END_TEST

START_TEST(wrap_changes_nothing)
{
	static const uint64_t first[] = {0, (uint64_t)(-1500 * (int64_t)MS),
					 (1ull << 63) - 700 * MS};
	uint64_t trace[FGV_ARRAY_LEN(first)];

	for (size_t k = 0; k < FGV_ARRAY_LEN(first); k++) {
		struct fgv_sched_params params;
		struct world world;

		fgv_sched_params_init(&params);
		params.first_tag = first[k];
		world_open(&world, &fgv_policy_fair, &params, 99);
		for (unsigned int i = 0; i < 8; i++) {
			struct client *c = world_add(&world, 1 + i % 3, NULL, 10 * US, LONGEST);

			c->burst = c->left = i < 4 ? 0 : 10;
			c->sleep_ns = 20 * MS;
		}
		world_run(&world, 30000 * MS);
		trace[k] = world.trace;
		world_close(&world);
	}
	ck_assert_uint_eq(trace[0], trace[1]);
	ck_assert_uint_eq(trace[0], trace[2]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy_fair");
	TCase *tc = tcase_create("fair");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, figure_4, 0, 2);
	tcase_add_loop_test(tc, two_busy_ones_stay_together, 0, 40);
	tcase_add_loop_test(tc, shares_follow_weights_to_a_percent, 0, 20);
	tcase_add_test(tc, many_sessions_get_no_more_than_one);
	tcase_add_test(tc, weights_change_while_running);
	tcase_add_loop_test(tc, sleepers_gain_nothing, 0, 20);
	tcase_add_test(tc, newcomers_gain_nothing);
	tcase_add_test(tc, a_long_request_is_paid_for);
	tcase_add_loop_test(tc, nobody_starves, 0, 10);
	tcase_add_test(tc, wrap_changes_nothing);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
