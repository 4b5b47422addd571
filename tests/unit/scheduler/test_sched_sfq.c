/*
 * Start-time fair queuing by itself: tags without drift, the wrap, virtual time, sleepers,
 * debts, weights that change, and the order of the queue against a plain search.
 */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sfq.h"

#define MS FGV_NS_PER_MS

/* The sanitizers make each step some ten times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DRIFT_SLICES 20000000ull
#else
#define DRIFT_SLICES 1000000000ull
#endif

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void start(struct fgv_sfq *q, struct fgv_sfq_room *room, uint64_t first_tag, uint32_t nodes)
{
	fgv_sfq_room_init(room);
	ck_assert_int_eq(fgv_sfq_room_grow(room, nodes), 0);
	fgv_sfq_init(q, room, first_tag);
}

/* After any number of charges the tag is the exact floor of the sum over the weight. */
START_TEST(tags_do_not_drift)
{
	static const uint32_t weights[] = {1, 3, 7, 9973};
	uint32_t weight = weights[_i];
	uint64_t slices = DRIFT_SLICES / FGV_ARRAY_LEN(weights);
	unsigned __int128 sum = 0;
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	struct fgv_sfq_node node;
	uint64_t used = 88172645463325252ull;

	start(&q, &room, 0, 1);
	fgv_sfq_node_init(&q, &node, 0, weight);
	for (uint64_t i = 0; i < slices; i++) {
		used = used * 6364136223846793005ull + 1442695040888963407ull;
		sum += used >> 40; /* up to 16.8 ms */
		fgv_sfq_charge(&q, &node, used >> 40);
	}
	ck_assert_uint_eq(node.start, (uint64_t)(sum / weight));
	ck_assert_uint_eq(node.rest, (uint64_t)(sum % weight));
	fgv_sfq_room_fini(&room);
}
END_TEST

START_TEST(virtual_time_is_the_least_active_tag)
{
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	struct fgv_sfq_node a, b;

	start(&q, &room, 0, 2);
	fgv_sfq_node_init(&q, &a, 0, 1);
	fgv_sfq_node_init(&q, &b, 1, 2);
	fgv_sfq_activate(&q, &a, 0);
	fgv_sfq_activate(&q, &b, 0);
	fgv_sfq_charge(&q, &a, 10);
	ck_assert_uint_eq(q.vtime, 0);
	fgv_sfq_charge(&q, &b, 12);
	ck_assert_uint_eq(q.vtime, 6);
	fgv_sfq_deactivate(&q, &b, 0);
	ck_assert_uint_eq(q.vtime, 10);
	/* b is behind by now and starts where the others are */
	fgv_sfq_activate(&q, &b, 0);
	ck_assert_uint_eq(b.start, 10);
	fgv_sfq_room_fini(&room);
}
END_TEST

START_TEST(virtual_time_never_moves_back)
{
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	struct fgv_sfq_node node[8];
	uint64_t last, now = 0;

	start(&q, &room, (uint64_t)-1000000, 8);
	for (unsigned int i = 0; i < 8; i++)
		fgv_sfq_node_init(&q, &node[i], i, 1 + (uint32_t)draw(5));
	last = q.vtime;
	for (int step = 0; step < 200000; step++) {
		struct fgv_sfq_node *n = &node[draw(8)];

		now += draw(100);
		if (!n->active)
			fgv_sfq_activate(&q, n, now);
		else if (draw(4) == 0)
			fgv_sfq_deactivate(&q, n, now);
		else
			fgv_sfq_charge(&q, n, draw(1000));
		ck_assert(!fgv_sfq_before(q.vtime, last));
		ck_assert(q.first == NULL || !fgv_sfq_before(q.first->start, q.vtime));
		last = q.vtime;
	}
	fgv_sfq_room_fini(&room);
}
END_TEST

START_TEST(a_short_sleep_sheds_no_debt)
{
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	struct fgv_sfq_node greedy, other;

	start(&q, &room, 0, 2);
	fgv_sfq_node_init(&q, &greedy, 0, 1);
	fgv_sfq_node_init(&q, &other, 1, 1);
	fgv_sfq_activate(&q, &greedy, 0);
	fgv_sfq_activate(&q, &other, 0);
	fgv_sfq_charge(&q, &greedy, 60000 * MS);
	fgv_sfq_deactivate(&q, &greedy, 60000 * MS);
	fgv_sfq_activate(&q, &greedy, 60001 * MS);
	ck_assert_uint_eq(greedy.start, 60000 * MS);
	ck_assert_ptr_eq(fgv_sfq_first(&q), &other);
	fgv_sfq_room_fini(&room);
}
END_TEST

/* One with a debt is owed nothing; of what another is owed, as much is kept as its owner says. */
START_TEST(what_is_owed_may_be_kept)
{
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	struct fgv_sfq_node greedy, other;

	start(&q, &room, (uint64_t)(-5 * (int64_t)MS), 2); /* wraps */
	fgv_sfq_node_init(&q, &greedy, 0, 1);
	fgv_sfq_node_init(&q, &other, 1, 1);
	fgv_sfq_activate(&q, &greedy, 0);
	fgv_sfq_activate(&q, &other, 0);
	fgv_sfq_charge(&q, &greedy, 12 * MS);
	fgv_sfq_charge(&q, &other, 2 * MS);
	ck_assert_uint_eq(fgv_sfq_owed(&q, &greedy), 0);
	fgv_sfq_deactivate(&q, &other, 14 * MS);
	ck_assert_uint_eq(fgv_sfq_owed(&q, &other), 10 * MS);
	fgv_sfq_activate_owed(&q, &other, 4 * MS, 15 * MS);
	ck_assert_uint_eq(q.vtime - other.start, 4 * MS);
	ck_assert_ptr_eq(fgv_sfq_first(&q), &other);
	fgv_sfq_deactivate(&q, &other, 16 * MS);
	/* its own finish tag is the earliest */
	fgv_sfq_activate_owed(&q, &other, 100 * MS, 17 * MS);
	ck_assert_uint_eq(q.vtime - other.start, 4 * MS);
	fgv_sfq_room_fini(&room);
}
END_TEST

START_TEST(idle_time_pays_debts)
{
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	struct fgv_sfq_node greedy, other;

	start(&q, &room, 0, 2);
	fgv_sfq_node_init(&q, &greedy, 0, 1);
	fgv_sfq_node_init(&q, &other, 1, 1);
	fgv_sfq_activate(&q, &greedy, 0);
	fgv_sfq_activate(&q, &other, 0);
	fgv_sfq_charge(&q, &greedy, 1000 * MS);
	fgv_sfq_deactivate(&q, &greedy, 1000 * MS);
	fgv_sfq_charge(&q, &other, 100 * MS);
	fgv_sfq_deactivate(&q, &other, 1100 * MS);
	fgv_sfq_activate(&q, &other, 1400 * MS);
	ck_assert_uint_eq(other.start, 400 * MS);
	fgv_sfq_deactivate(&q, &other, 1400 * MS);
	/* never beyond the last finish tag */
	fgv_sfq_activate(&q, &other, 999999 * MS);
	ck_assert_uint_eq(other.start, 1000 * MS);
	fgv_sfq_activate(&q, &greedy, 999999 * MS);
	ck_assert_uint_eq(greedy.start, 1000 * MS);
	fgv_sfq_room_fini(&room);
}
END_TEST

START_TEST(weight_changes_for_what_comes)
{
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	struct fgv_sfq_node node;

	start(&q, &room, 0, 1);
	fgv_sfq_node_init(&q, &node, 0, 3);
	fgv_sfq_charge(&q, &node, 100);
	ck_assert_uint_eq(node.start, 33);
	fgv_sfq_set_weight(&node, 6);
	ck_assert_uint_eq(node.rest, 2); /* a third of a nanosecond, as before */
	fgv_sfq_charge(&q, &node, 60);
	ck_assert_uint_eq(node.start, 43);
	fgv_sfq_set_weight(&node, 1);
	ck_assert_uint_lt(node.rest, 1);
	fgv_sfq_charge(&q, &node, 7);
	ck_assert_uint_eq(node.start, 50);
	fgv_sfq_room_fini(&room);
}
END_TEST

/* The order is the same wherever in the number range the tags lie. */
START_TEST(wrap_changes_nothing)
{
	static const uint64_t first[] = {0, (uint64_t)-5000, 1ull << 63, (1ull << 63) - 5000};
	struct fgv_sfq q[FGV_ARRAY_LEN(first)];
	struct fgv_sfq_room room[FGV_ARRAY_LEN(first)];
	struct fgv_sfq_node node[FGV_ARRAY_LEN(first)][6];

	for (size_t k = 0; k < FGV_ARRAY_LEN(first); k++) {
		start(&q[k], &room[k], first[k], 6);
		for (unsigned int i = 0; i < 6; i++) {
			fgv_sfq_node_init(&q[k], &node[k][i], i, i + 1);
			fgv_sfq_activate(&q[k], &node[k][i], 0);
		}
	}
	for (int step = 0; step < 20000; step++) {
		uint64_t used = draw(500), id = fgv_sfq_first(&q[0])->id;

		for (size_t k = 0; k < FGV_ARRAY_LEN(first); k++) {
			ck_assert_uint_eq(fgv_sfq_first(&q[k])->id, id);
			fgv_sfq_charge(&q[k], fgv_sfq_first(&q[k]), used);
			ck_assert_uint_eq(q[k].vtime - first[k], q[0].vtime);
		}
	}
	for (size_t k = 0; k < FGV_ARRAY_LEN(first); k++)
		fgv_sfq_room_fini(&room[k]);
}
END_TEST

static void check_order(const struct fgv_sfq *q, unsigned int active)
{
	struct fgv_sfq_node *n = fgv_sfq_first(q), *next;
	unsigned int seen = 0;

	for (; n != NULL; n = next) {
		next = fgv_sfq_next(q, n);
		seen++;
		if (next != NULL)
			ck_assert(fgv_sfq_precedes(n, n->start, next, next->start));
	}
	ck_assert_uint_eq(seen, active);
}

START_TEST(the_queue_stays_in_order)
{
	enum { NODES = 300 };
	static struct fgv_sfq_node node[NODES];
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	unsigned int active = 0;

	start(&q, &room, (uint64_t)-100000, NODES);
	for (unsigned int i = 0; i < NODES; i++)
		fgv_sfq_node_init(&q, &node[i], i, 1 + (uint32_t)draw(20));
	for (unsigned int step = 0; step < 30000; step++) {
		struct fgv_sfq_node *n = &node[draw(NODES)];

		if (!n->active) {
			fgv_sfq_activate(&q, n, step);
			active++;
		} else if (draw(3) == 0) {
			fgv_sfq_deactivate(&q, n, step);
			active--;
		} else {
			fgv_sfq_charge(&q, n, draw(3000));
		}
		if (step % 16 == 0)
			check_order(&q, active);
	}
	fgv_sfq_room_fini(&room);
}
END_TEST

static struct fgv_sfq_node *first_by_search(struct fgv_sfq_node *node, unsigned int count)
{
	struct fgv_sfq_node *first = NULL;

	for (unsigned int i = 0; i < count; i++)
		if (node[i].active && (first == NULL || fgv_sfq_precedes(&node[i], node[i].start,
									 first, first->start)))
			first = &node[i];
	return first;
}

/* Nodes come and go, with and without work, the room grows, and the first is always the first. */
START_TEST(nodes_leave_and_come_back)
{
	enum { NODES = 1200 };
	static struct fgv_sfq_node node[NODES];
	static bool there[NODES];
	struct fgv_sfq q;
	struct fgv_sfq_room room;
	uint64_t ids = 0xffffff00; /* their low half wraps */

	start(&q, &room, (uint64_t)-100000, 1);
	for (unsigned int step = 0; step < 40000; step++) {
		unsigned int i = (unsigned int)draw(step < 20000 ? NODES : NODES / 8);

		if (!there[i]) {
			ck_assert_int_eq(fgv_sfq_room_grow(&room, q.nodes + 1), 0);
			fgv_sfq_node_init(&q, &node[i], ids++, 1 + (uint32_t)draw(20));
			there[i] = true;
		} else if (!node[i].active && draw(4) == 0) {
			fgv_sfq_node_fini(&q, &node[i]);
			there[i] = false;
		} else if (!node[i].active) {
			fgv_sfq_activate(&q, &node[i], step);
		} else if (draw(5) == 0) {
			fgv_sfq_deactivate(&q, &node[i], step);
		} else {
			fgv_sfq_charge(&q, &node[i], draw(3000));
		}
		if (step % 8 == 0)
			ck_assert_ptr_eq(fgv_sfq_first(&q), first_by_search(node, NODES));
	}
	ck_assert_uint_gt(q.active, FGV_SFQ_MANY);
	fgv_sfq_room_fini(&room);
}
END_TEST

static void setup(void)
{
	seed = 0x9e3779b97f4a7c15ull;
}

int main(void)
{
	Suite *suite = suite_create("sched_sfq");
	TCase *tags = tcase_create("tags"), *drift = tcase_create("drift");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tags, setup, NULL);
	tcase_add_test(tags, virtual_time_is_the_least_active_tag);
	tcase_add_test(tags, virtual_time_never_moves_back);
	tcase_add_test(tags, a_short_sleep_sheds_no_debt);
	tcase_add_test(tags, what_is_owed_may_be_kept);
	tcase_add_test(tags, idle_time_pays_debts);
	tcase_add_test(tags, weight_changes_for_what_comes);
	tcase_add_test(tags, wrap_changes_nothing);
	tcase_add_test(tags, the_queue_stays_in_order);
	tcase_add_test(tags, nodes_leave_and_come_back);
	tcase_set_timeout(tags, 120);
	tcase_add_loop_test(drift, tags_do_not_drift, 0, 4);
	tcase_set_timeout(drift, 300);
	suite_add_tcase(suite, tags);
	suite_add_tcase(suite, drift);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
