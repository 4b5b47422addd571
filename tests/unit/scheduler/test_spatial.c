/*
 * Which multiprocessors each of several users has: admission, what is lent and taken back, and in
 * random schedules, that no unit is in two sets and that none is idle for long that is wanted.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/params.h"
#include "scheduler/spatial.h"

#define SHARES	  8
#define SCHEDULES 100000
#define STEPS	  40

/* As ck_assert(), without its system call each time: for what is checked millions of times. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s:%d: %s", __FILE__, __LINE__, #condition);                 \
	} while (0)

START_TEST(a_share_becomes_units)
{
	/* 132 multiprocessors in 16 groups of 8, and 4 that are in none. */
	ck_assert_uint_eq(fgv_spatial_units(FGV_SCHED_WHOLE / 4, true, 16, 8), 4);
	ck_assert_uint_eq(fgv_spatial_units(FGV_SCHED_WHOLE / 4 * 3, true, 16, 8), 12);
	ck_assert_uint_eq(fgv_spatial_units(FGV_SCHED_WHOLE, true, 16, 8), 16);
	ck_assert_uint_eq(fgv_spatial_units(FGV_SCHED_WHOLE / 1000, true, 16, 8), 1);
	ck_assert_uint_eq(fgv_spatial_units(0, true, 16, 8), 0);
	ck_assert_uint_eq(fgv_spatial_units(33, false, 16, 8), 4);
	ck_assert_uint_eq(fgv_spatial_units(1, false, 16, 8), 1);
	ck_assert_uint_eq(fgv_spatial_units(132, false, 16, 8), 16);
}
END_TEST

START_TEST(what_does_not_fit_is_not_admitted)
{
	struct fgv_spatial_share shares[3] = {0};
	struct fgv_spatial spatial;

	fgv_spatial_init(&spatial, 16, true);
	ck_assert_uint_eq(spatial.all, 0xffff);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[0], 4, 16), 0);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[1], 13, 16), -ENOSPC);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[1], 12, 11), -EINVAL);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[1], 0, 0), -EINVAL);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[1], 12, 12), 0);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[2], 1, 16), -ENOSPC);
	ck_assert_uint_eq(fgv_spatial_pool(&spatial), 0);
	fgv_spatial_leave(&spatial, &shares[0]);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[2], 4, 4), 0);
	ck_assert_uint_eq(shares[1].home & shares[2].home, 0);
	/* Its own home counts as left. */
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[1], 6, 12), 0);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[2], 10, 16), 0);
	fgv_spatial_wake(&spatial, &shares[2]);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &shares[2], 9, 16), -EBUSY);
	fgv_spatial_init(&spatial, 64, true);
	ck_assert_uint_eq(spatial.all, UINT64_MAX);
}
END_TEST

START_TEST(what_is_lent_is_taken_back)
{
	struct fgv_spatial_share owner = {0}, batch = {0};
	struct fgv_spatial spatial;

	fgv_spatial_init(&spatial, 16, true);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &owner, 4, 4), 0);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &batch, 0, 14), 0);
	fgv_spatial_wake(&spatial, &batch);
	ck_assert_int_eq(__builtin_popcountll(fgv_spatial_take(&spatial, &batch, true)), 14);
	fgv_spatial_wake(&spatial, &owner);
	ck_assert(fgv_spatial_is_in_way(&batch, &owner));
	ck_assert(!fgv_spatial_is_in_way(&owner, &batch));
	ck_assert_uint_eq(fgv_spatial_take(&spatial, &owner, true), 0);
	/* It keeps what it took until it puts that back, and then the home is its owner's. */
	fgv_spatial_put(&spatial, &batch);
	ck_assert_int_eq(__builtin_popcountll(fgv_spatial_take(&spatial, &batch, true)), 12);
	ck_assert_uint_eq(fgv_spatial_take(&spatial, &owner, true), owner.home);
	ck_assert(!fgv_spatial_is_in_way(&batch, &owner));
}
END_TEST

START_TEST(nothing_is_lent_where_sizes_are_fixed)
{
	struct fgv_spatial_share owner = {0}, a = {0}, b = {0};
	struct fgv_spatial spatial;

	fgv_spatial_init(&spatial, 16, false);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &owner, 4, 16), 0);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &a, 0, 16), 0);
	ck_assert_int_eq(fgv_spatial_join(&spatial, &b, 0, 16), 0);
	fgv_spatial_wake(&spatial, &a);
	fgv_spatial_wake(&spatial, &b);
	ck_assert_uint_eq(fgv_spatial_take(&spatial, &a, true), fgv_spatial_pool(&spatial));
	ck_assert_uint_eq(fgv_spatial_take(&spatial, &b, true), 0);
	fgv_spatial_wake(&spatial, &owner);
	ck_assert_uint_eq(fgv_spatial_take(&spatial, &owner, true), owner.home);
	fgv_spatial_put(&spatial, &a);
	ck_assert_uint_eq(fgv_spatial_take(&spatial, &b, true), fgv_spatial_pool(&spatial));
}
END_TEST

/* --- Random schedules -------------------------------------------------------- */

struct model {
	struct fgv_spatial spatial;
	struct fgv_spatial_share shares[SHARES];
	uint64_t seed;
};

/* xorshift64*: the same schedules on every machine. */
static uint32_t draw(struct model *model, uint32_t below)
{
	model->seed ^= model->seed >> 12;
	model->seed ^= model->seed << 25;
	model->seed ^= model->seed >> 27;
	return (uint32_t)((model->seed * 0x2545f4914f6cdd1dull >> 33) % below);
}

static uint32_t count_of(uint64_t set)
{
	return (uint32_t)__builtin_popcountll(set);
}

static void set_up(struct model *model)
{
	uint32_t units = 1 + draw(model, FGV_SPATIAL_UNITS_MAX), reserved = 0;

	fgv_spatial_init(&model->spatial, units, draw(model, 4) != 0);
	for (unsigned i = 0; i < SHARES; i++) {
		uint32_t wants = draw(model, 2) ? draw(model, units + 1) : 0;
		uint32_t limit = fgv_max_u64(1, wants) + draw(model, units);
		int ret;

		model->shares[i] = (struct fgv_spatial_share){0};
		ret = fgv_spatial_join(&model->spatial, &model->shares[i], wants, limit);
		MUST(ret == (reserved + wants > units ? -ENOSPC : 0));
		if (!ret)
			reserved += wants;
		else
			MUST(!fgv_spatial_join(&model->spatial, &model->shares[i], 0, limit));
	}
	MUST(count_of(model->spatial.reserved) == reserved);
}

/* What must hold always: sets are disjoint, within limits, and owners have their homes. */
static void check_sets(const struct model *model)
{
	const struct fgv_spatial *spatial = &model->spatial;
	uint64_t seen = 0;

	for (unsigned i = 0; i < SHARES; i++) {
		const struct fgv_spatial_share *share = &model->shares[i];

		MUST(!(share->held & seen) && !(share->held & ~spatial->all));
		seen |= share->held;
		MUST(count_of(share->held) <= share->limit);
		MUST(!share->held || (share->held & share->home) == share->home);
		MUST(!share->held || share->active);
		MUST(spatial->lends || !share->held || !share->home || share->held == share->home);
		MUST(spatial->lends || share->home || !(share->held & spatial->reserved));
	}
	MUST(seen == spatial->held);
}

/* Whether another one stands in the way of an owner's home. */
static bool is_blocked(const struct model *model, const struct fgv_spatial_share *owner)
{
	for (unsigned i = 0; i < SHARES; i++) {
		if (fgv_spatial_is_in_way(&model->shares[i], owner))
			return true;
	}
	return false;
}

static void try_to_take(struct model *model, struct fgv_spatial_share *share, bool extra)
{
	bool had = share->held != 0;
	uint64_t usable = had ? 0 : fgv_spatial_usable(&model->spatial, share);
	uint64_t taken = fgv_spatial_take(&model->spatial, share, extra);

	if (had)
		MUST(taken == share->held);
	else if (share->home)
		/* The reservation is honoured unless it is lent, which can be asked back. */
		MUST((taken != 0) == !is_blocked(model, share));
	else
		MUST((taken != 0) == (usable != 0));
}

/* After a turn of each, one after the other, no unit is idle that one of them could use. */
static void check_conserves(struct model *model)
{
	uint64_t idle;

	for (unsigned i = 0; i < SHARES; i++)
		fgv_spatial_put(&model->spatial, &model->shares[i]);
	for (unsigned i = 0; i < SHARES; i++) {
		if (model->shares[i].active)
			try_to_take(model, &model->shares[i], true);
	}
	idle = model->spatial.all & ~model->spatial.held;
	for (unsigned i = 0; i < SHARES; i++) {
		const struct fgv_spatial_share *share = &model->shares[i];
		uint64_t may = share->home | fgv_spatial_pool(&model->spatial);

		if (model->spatial.lends)
			may = model->spatial.all;
		else if (share->home)
			may = share->home;
		if (share->active && count_of(share->held) < share->limit)
			MUST(!(idle & may));
		MUST(!share->active || !share->home || share->held);
	}
}

static void step(struct model *model)
{
	struct fgv_spatial_share *share = &model->shares[draw(model, SHARES)];

	if (!share->active)
		fgv_spatial_wake(&model->spatial, share);
	else if (!share->held)
		try_to_take(model, share, draw(model, 2));
	else if (draw(model, 3))
		fgv_spatial_put(&model->spatial, share);
	else
		fgv_spatial_sleep(&model->spatial, share);
	check_sets(model);
}

START_TEST(random_schedules)
{
	struct model model = {.seed = 1 + (uint64_t)_i};

	for (unsigned n = 0; n < SCHEDULES / 10; n++) {
		set_up(&model);
		for (unsigned i = 0; i < STEPS; i++)
			step(&model);
		check_conserves(&model);
		check_sets(&model);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spatial");
	TCase *tcase = tcase_create("units");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, a_share_becomes_units);
	tcase_add_test(tcase, what_does_not_fit_is_not_admitted);
	tcase_add_test(tcase, what_is_lent_is_taken_back);
	tcase_add_test(tcase, nothing_is_lent_where_sizes_are_fixed);
	tcase_add_loop_test(tcase, random_schedules, 0, 10);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
