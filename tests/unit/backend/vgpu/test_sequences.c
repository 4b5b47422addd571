/*
 * Sequences of launches that come again: they go together, they are what was asked for wherever
 * they are interrupted, and what is kept of them is limited.
 */
#include <check.h>
#include <stdlib.h>

#include "common/util.h"
#include "tests/unit/backend/vgpu/batch_driver.h"

#define LOOP 50
#define WARM 40 /* turns of a loop after which all is known of it */

/* The first functions are plain; others are for what is no part of a loop. */
#define PLAIN 5

static uint64_t repeated(void)
{
	return driver.session.account->repeated;
}

static struct fgv_batch *batch(void)
{
	return &driver.session.batch;
}

static void put_part(unsigned from, unsigned to, unsigned stream, unsigned kind, unsigned seed)
{
	for (unsigned i = from; i < to; i++)
		driver_put((i * 3 + kind) % PLAIN, stream, i % 4 + kind, (uint8_t)(seed + i));
	if (driver.wanted > DRIVER_LOG_MAX / 2)
		driver_compare_sent();
}

/* Turns of a loop; @step: how much the arguments of one turn differ from those of the last. */
static void put_loops(unsigned turns, unsigned step)
{
	static unsigned seed;

	for (unsigned i = 0; i < turns; i++, seed += step)
		put_part(0, LOOP, 1, 0, step ? seed : 1);
	driver_compare_sent();
}

/* From now on nothing but the same is done, and all of it is known. */
static uint64_t be_warm(unsigned step)
{
	put_loops(WARM, step);
	driver.updates = driver.launched_graphs = 0;
	return repeated();
}

/* --- What goes together ---------------------------------------------------------------- */

START_TEST(the_same_again_is_not_told_again)
{
	uint64_t before = be_warm(0);

	put_loops(WARM, 0);
	ck_assert_uint_eq(driver.updates, 0);
	ck_assert_uint_ge(repeated() - before, (WARM - 2) * LOOP);
	ck_assert_uint_le(driver.launched_graphs, WARM * LOOP / FGV_BATCH_BEHIND);
	ck_assert_uint_eq(driver.session.account->changed, 0);
	driver_compare();
}
END_TEST

START_TEST(other_arguments_are_all_that_is_told)
{
	uint64_t before = be_warm(LOOP), changed = driver.session.account->changed;
	unsigned graphs = driver.graphs;

	put_loops(WARM, LOOP);
	/* Of five functions one has no arguments. */
	ck_assert_uint_le(driver.updates, WARM * LOOP * 4 / 5);
	ck_assert_uint_ge(driver.updates, (WARM - 3) * LOOP * 4 / 5);
	ck_assert_uint_eq(driver.session.account->changed - changed, driver.updates);
	ck_assert_uint_ge(repeated() - before, (WARM - 2) * LOOP);
	/* Nothing is made for arguments that never come again. */
	ck_assert_uint_eq(driver.graphs, graphs);
	driver_compare();
}
END_TEST

/* A few sets of arguments by turns have a row each. */
START_TEST(arguments_that_come_again_are_not_told_again)
{
	for (unsigned i = 0; i < 2 * WARM; i++) {
		if (i == WARM)
			driver.updates = 0;
		put_part(0, LOOP, 1, 0, i % 3 * 9);
	}
	ck_assert_uint_eq(driver.updates, 0);
	driver_compare();
}
END_TEST

/* A short one goes as several of its turns, and one that breaks off each time as it is. */
START_TEST(loops_of_any_length)
{
	unsigned length = 5 * (unsigned)_i + 1;
	unsigned turns = 20 * FGV_BATCH_LONGEST / length + WARM;
	uint64_t before;

	for (unsigned i = 0; i < turns; i++)
		put_part(0, length, 1, 0, 1);
	before = repeated();
	driver.updates = 0;
	for (unsigned i = 0; i < turns; i++)
		put_part(0, length, 1, 0, 1);
	ck_assert_uint_eq(driver.updates, 0);
	ck_assert_uint_ge(repeated() - before, (uint64_t)turns * length - 2 * FGV_BATCH_LONGEST);
	driver_compare();
}
END_TEST

/* Loops of two sequences, of which the longer one begins with all that the shorter one is. */
START_TEST(one_that_begins_like_another)
{
	static const struct {
		unsigned kind, length;
	} loops[] = {{3, 89}, {26, 88}, {27, 86}, {35, 90}, {55, 85}};
	uint64_t before = 0;

	for (unsigned i = 0; i < 2 * WARM; i++) {
		if (i == WARM)
			before = repeated();
		put_part(0, loops[_i].length, 1, loops[_i].kind, 1);
	}
	ck_assert_uint_ge(repeated() - before, (WARM - 3) * loops[_i].length);
	driver_compare();
}
END_TEST

START_TEST(loops_that_break_off)
{
	unsigned length = 7 * (unsigned)_i + FGV_BATCH_SMALLEST;
	uint64_t before = 0;

	for (unsigned i = 0; i < 3 * WARM; i++) {
		if (i == 2 * WARM)
			before = repeated();
		put_part(0, length, 1, 0, 1);
		driver_compare();
	}
	/* Where it is cut by content, too, a few may be left behind that. */
	ck_assert_uint_ge(repeated() - before, WARM * (length - FGV_BATCH_SMALLEST + 1));
}
END_TEST

/* --- Interruptions ------------------------------------------------------------------------ */

static void interrupt(unsigned how)
{
	switch (how) {
	case 0:
		fgv_batch_send(&driver.session);
		break;
	case 1:
		fgv_batch_flush(&driver.session);
		break;
	case 2: /* something else */
		driver_put(PLAIN, 1, 0, 3);
		break;
	case 3: /* which never goes with others */
		driver_put(DRIVER_FUNCTIONS - 1, 1, 0, 3);
		break;
	case 4:
		driver_put(1, 2, 0, 3);
		break;
	case 5: /* the GPU has done all */
		driver.session.gate.finished = driver.session.gate.submitted;
		driver_put(1, 1, 0, 3);
		driver.session.gate.submitted++;
		break;
	case 6:
		fgv_batch_flush(&driver.session);
		fgv_batch_forget_functions(&driver.session);
		break;
	case 7:
		fgv_batch_flush(&driver.session);
		fgv_batch_forget_stream(&driver.session, driver_stream(1));
		break;
	case 8: /* the room is needed, whatever goes on */
		fgv_batch_cache_give_up(&driver.session);
		break;
	}
}

/* At any place of a loop, in all these ways; then it goes on as before. */
START_TEST(interrupted_anywhere)
{
	uint64_t before;

	for (unsigned at = 0; at <= LOOP; at += 7) {
		be_warm(0);
		put_part(0, at, 1, 0, 1);
		interrupt((unsigned)_i);
		if (_i < 2) {
			driver_compare_sent();
			ck_assert_uint_eq(driver.wanted, 0);
		}
		put_part(at, LOOP, 1, 0, 1);
		put_loops(WARM, 0);
		before = repeated();
		put_loops(WARM, 0);
		ck_assert_uint_ge(repeated() - before, (WARM - 2) * LOOP);
		driver_compare();
	}
}
END_TEST

/* Arguments that differ from some place on, also from a row whose arguments never change. */
START_TEST(arguments_that_differ_from_anywhere_on)
{
	for (unsigned i = 0; i < WARM; i++)
		put_part(0, LOOP, 1, 0, i % 2 * 9);
	for (unsigned at = 0; at < LOOP; at++) {
		for (unsigned i = 0; i < 4; i++) {
			put_part(0, at, 1, 0, i % 2 * 9);
			put_part(at, LOOP, 1, 0, at + i);
		}
	}
	driver_compare();
}
END_TEST

/* --- Waiting -------------------------------------------------------------------------------- */

/* The GPU has work for so long, of which nothing has been done yet. */
static void set_ahead(uint64_t ns)
{
	struct fgv_gate *gate = &driver.session.gate;

	batch()->sent_until_ns = gate->forecast.overlap.done_ns + ns;
	gate->passed_ns = fgv_now_ns();
}

START_TEST(what_was_put_off_waits_while_the_gpu_is_busy)
{
	static const bool more[] = {true, false, false, false, false};
	static const bool waits[] = {true, false, true, false, false};

	be_warm(0);
	put_part(0, 1, 1, 0, 1);
	ck_assert(fgv_batch_has_some(batch()));
	set_ahead(0);
	if (_i >= 2)
		set_ahead(3600 * FGV_NS_PER_SEC);
	if (_i == 3)
		driver.grant.limit_ns = 1;
	if (_i == 4)
		driver.grant.word = FGV_GRANT_NONE;
	fgv_batch_settle(&driver.session, more[_i]);
	ck_assert_int_eq(batch()->is_waiting, waits[_i]);
	ck_assert_int_eq(fgv_batch_has_some(batch()), waits[_i]);
	driver_compare();
	ck_assert(!batch()->is_waiting);
}
END_TEST

/* What another stream has to do keeps the GPU from nothing. */
START_TEST(only_behind_work_of_their_own_stream)
{
	driver_set_ends(_i ? 1 : 2, 3600 * FGV_NS_PER_SEC);
	driver.session.gate.forecast.overlap.ends_ns = 3600 * FGV_NS_PER_SEC;
	be_warm(0);
	put_part(0, 1, 1, 0, 1);
	driver.session.gate.passed_ns = fgv_now_ns();
	fgv_batch_settle(&driver.session, false);
	ck_assert_int_eq(batch()->is_waiting, _i);
	driver_compare();
}
END_TEST

/* --- Limits ----------------------------------------------------------------------------------- */

START_TEST(what_is_kept_is_limited)
{
	for (unsigned kind = 0; kind < 100; kind++) {
		for (unsigned i = 0; i < 10; i++) {
			put_part(0, 64, kind % 3, kind, 1);
			driver_compare();
		}
		ck_assert_uint_le(batch()->cache.nodes, FGV_BATCH_NODES);
	}
	ck_assert_uint_gt(batch()->cache.nodes, FGV_BATCH_NODES / 2);
	ck_assert_uint_le(driver.graphs, FGV_BATCH_ENTRIES + 3 * FGV_BATCH_SIZES * FGV_BATCH_TURNS);
}
END_TEST

/* Where more comes by turns than there is room for, rows are not made all the time. */
START_TEST(what_does_not_fit_is_not_tried)
{
	unsigned kinds = 2 * FGV_BATCH_NODES / 64, made = 0, before;

	for (unsigned i = 0; i < 20; i++) {
		for (unsigned kind = 0; kind < kinds; kind++) {
			before = driver.graphs;
			put_part(0, 64, 1, kind, 1);
			driver_compare();
			made += driver.graphs != before;
		}
	}
	ck_assert_uint_le(made, FGV_BATCH_SIZES * FGV_BATCH_TURNS);
	ck_assert_uint_eq(repeated(), 0);
}
END_TEST

START_TEST(without_room_in_the_quota)
{
	driver.allowance.memory_bytes = LOOP / 2;
	put_loops(3 * WARM, 0);
	driver_compare();
	ck_assert_uint_eq(repeated(), 0);
	ck_assert_uint_eq(driver.session.account->memory_bytes, 0);
}
END_TEST

/* A program gets all of its quota, whatever is kept to be faster. */
START_TEST(room_is_given_up)
{
	struct fgv_charge all = {0};

	be_warm(0);
	ck_assert_uint_gt(driver.session.account->memory_bytes, 0);
	ck_assert_uint_eq(fgv_quota_left(&driver.session.quota), DRIVER_QUOTA);
	ck_assert_uint_eq(fgv_quota_returning(&driver.session.quota), 0);
	put_part(0, LOOP / 2, 1, 0, 1);
	ck_assert_int_eq(fgv_quota_charge(&driver.session.quota, &all, DRIVER_QUOTA), 0);
	ck_assert_uint_eq(batch()->cache.nodes, 0);
	put_part(LOOP / 2, LOOP, 1, 0, 1);
	put_loops(WARM, 0);
	driver_compare();
	ck_assert_uint_eq(batch()->cache.nodes, 0);
	fgv_quota_release(&driver.session.quota, &all);
}
END_TEST

/* A hash is no proof: two sequences that have the same one are told apart. */
START_TEST(equal_hashes)
{
	struct fgv_batch_entry *entries = batch()->cache.entries;

	for (unsigned i = 0; i < 2000; i++) {
		put_part(0, 40, 1, (unsigned)random() % 3, (unsigned)random() % 3);
		driver_compare();
		for (unsigned k = 0; k < FGV_BATCH_ENTRIES; k++) {
			if (entries[k].row)
				entries[k].hash = 1;
		}
	}
	ck_assert_uint_gt(repeated(), 0);
}
END_TEST

/* --- Any program
 * ---------------------------------------------------------------------------------- */

/* Turns of a loop of some length, with arguments of some way, interrupted by anything. */
static void do_something(void)
{
	unsigned kind = (unsigned)random() % 3, way = (unsigned)random() % 4;
	unsigned length = kind == 2 ? 140 : (unsigned)random() % 4 * 16 + 3;
	unsigned turns = (unsigned)random() % 30, stream = random() % 8 == 0;

	for (unsigned i = 0; i < turns; i++) {
		unsigned at = (unsigned)random() % length;
		unsigned seed = way < 2 ? way : way == 2 ? i % 3 : i * 50;

		put_part(0, at, stream, kind, seed);
		if (random() % 8 == 0)
			interrupt((unsigned)random() % 9);
		if (random() % 4 == 0)
			fgv_batch_settle(&driver.session, random() % 2);
		put_part(at, length, stream, kind, seed);
		if (random() % 200 == 0)
			driver_compare();
	}
}

/* With failures of the driver's, in one of so many calls: 0, 1000, 10. */
START_TEST(any_program)
{
	static const unsigned rates[] = {0, 1000, 10};

	driver.fails = rates[_i];
	for (unsigned i = 0; i < 200; i++) {
		do_something();
		batch()->failures = 0;
		batch()->is_on = true;
	}
	driver_compare();
	ck_assert_int_eq(driver.session.deferred, CUDA_SUCCESS);
	if (_i < 2)
		ck_assert_uint_gt(repeated(), 10000);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("sequences");
	TCase *t = tcase_create("sequences");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, driver_setup, driver_teardown);
	tcase_add_test(t, the_same_again_is_not_told_again);
	tcase_add_test(t, other_arguments_are_all_that_is_told);
	tcase_add_test(t, arguments_that_come_again_are_not_told_again);
	tcase_add_loop_test(t, loops_of_any_length, 0, 26);
	tcase_add_loop_test(t, one_that_begins_like_another, 0, 5);
	tcase_add_loop_test(t, loops_that_break_off, 0, 15);
	tcase_add_loop_test(t, interrupted_anywhere, 0, 9);
	tcase_add_test(t, arguments_that_differ_from_anywhere_on);
	tcase_add_loop_test(t, what_was_put_off_waits_while_the_gpu_is_busy, 0, 5);
	tcase_add_loop_test(t, only_behind_work_of_their_own_stream, 0, 2);
	tcase_add_test(t, what_is_kept_is_limited);
	tcase_add_test(t, what_does_not_fit_is_not_tried);
	tcase_add_test(t, without_room_in_the_quota);
	tcase_add_test(t, room_is_given_up);
	tcase_add_test(t, equal_hashes);
	tcase_add_loop_test(t, any_program, 0, 3);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
