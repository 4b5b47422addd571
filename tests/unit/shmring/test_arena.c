/* The arena: whole pages, best fit, joining what is freed, against a map of pages. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/wire.h"
#include "shmring/arena.h"

#define PAGE  ((uint64_t)FGV_PAGE_BYTES)
#define PAGES 256u
#define OFF   (1ull << 32)
#define LEN   (PAGES * PAGE)

static struct fgv_arena *arena;

static void set_up(void)
{
	arena = fgv_arena_create(OFF, LEN);
	ck_assert_ptr_nonnull(arena);
}

static void tear_down(void)
{
	fgv_arena_destroy(arena);
}

static uint64_t alloc(uint64_t bytes)
{
	uint64_t off;

	ck_assert_int_eq(fgv_arena_alloc(arena, bytes, &off), 0);
	ck_assert_uint_eq(off % PAGE, 0);
	return off;
}

START_TEST(gives_whole_pages)
{
	uint64_t start, bytes, off = alloc(1);

	ck_assert_int_eq(fgv_arena_find(arena, off, &start, &bytes), 0);
	ck_assert_uint_eq(start, off);
	ck_assert_uint_eq(bytes, PAGE);
	off = alloc(PAGE + 1);
	ck_assert_int_eq(fgv_arena_find(arena, off + 2 * PAGE - 1, &start, &bytes), 0);
	ck_assert_uint_eq(start, off);
	ck_assert_uint_eq(bytes, 2 * PAGE);
	ck_assert_int_eq(fgv_arena_find(arena, off + 2 * PAGE, &start, &bytes), -ENOENT);
}
END_TEST

START_TEST(knows_its_limits)
{
	uint64_t off = 77, start = 77, bytes = 77;

	ck_assert_int_eq(fgv_arena_alloc(arena, 0, &off), -EINVAL);
	ck_assert_int_eq(fgv_arena_alloc(arena, LEN + 1, &off), -ENOMEM);
	ck_assert_int_eq(fgv_arena_alloc(arena, UINT64_MAX, &off), -ENOMEM);
	ck_assert_int_eq(fgv_arena_find(arena, OFF, &start, &bytes), -ENOENT);
	ck_assert_int_eq(fgv_arena_find(arena, OFF - 1, &start, &bytes), -ENOENT);
	ck_assert_int_eq(fgv_arena_find(arena, OFF + LEN, &start, &bytes), -ENOENT);
	ck_assert_int_eq(fgv_arena_find(arena, UINT64_MAX, &start, &bytes), -ENOENT);
	ck_assert_uint_eq(off + start + bytes, 3 * 77);
	ck_assert_uint_eq(alloc(LEN), OFF);
	ck_assert_int_eq(fgv_arena_alloc(arena, 1, &off), -ENOMEM);
	ck_assert_int_eq(fgv_arena_find(arena, OFF + LEN - 1, &start, &bytes), 0);
	ck_assert_int_eq(fgv_arena_find(arena, OFF + LEN, &start, &bytes), -ENOENT);
}
END_TEST

START_TEST(refuses_to_free)
{
	uint64_t off = alloc(3 * PAGE);

	ck_assert_int_eq(fgv_arena_free(arena, off + PAGE), -EINVAL);
	ck_assert_int_eq(fgv_arena_free(arena, off + 1), -EINVAL);
	ck_assert_int_eq(fgv_arena_free(arena, off + 3 * PAGE), -EINVAL);
	ck_assert_int_eq(fgv_arena_free(arena, 0), -EINVAL);
	ck_assert_int_eq(fgv_arena_free(arena, UINT64_MAX), -EINVAL);
	ck_assert_int_eq(fgv_arena_free(arena, off), 0);
	ck_assert_int_eq(fgv_arena_free(arena, off), -EINVAL);
}
END_TEST

/* In whatever order the neighbours are freed, one gap comes out of it. */
START_TEST(joins_neighbours)
{
	static const int orders[6][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0},
	};
	uint64_t offs[3], guard, off;

	for (int i = 0; i < 3; i++)
		offs[i] = alloc(4 * PAGE);
	guard = alloc(LEN - 12 * PAGE);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(fgv_arena_alloc(arena, 12 * PAGE, &off), -ENOMEM);
		ck_assert_int_eq(fgv_arena_free(arena, offs[orders[_i][i]]), 0);
	}
	ck_assert_uint_eq(alloc(12 * PAGE), offs[0]);
	ck_assert_int_eq(fgv_arena_free(arena, guard), 0);
	ck_assert_uint_eq(alloc(LEN - 12 * PAGE), guard);
}
END_TEST

START_TEST(takes_the_gap_that_fits_best)
{
	uint64_t large = alloc(8 * PAGE), small;

	alloc(PAGE);
	small = alloc(2 * PAGE);
	alloc(PAGE);
	fgv_arena_free(arena, large);
	fgv_arena_free(arena, small);
	ck_assert_uint_eq(alloc(2 * PAGE), small);
	ck_assert_uint_eq(alloc(2 * PAGE), large);
}
END_TEST

/* A map of pages: 0 is free, else the allocation's number; and a list of them. */
static struct {
	uint32_t page[PAGES];
	uint64_t off[PAGES];
	uint64_t pages[PAGES];
	uint32_t count;
} model;

static uint64_t model_largest_gap(void)
{
	uint64_t run = 0, largest = 0;

	for (uint32_t i = 0; i < PAGES; i++) {
		run = model.page[i] ? 0 : run + 1;
		largest = run > largest ? run : largest;
	}
	return largest;
}

static void model_set(uint64_t off, uint64_t pages, uint32_t from, uint32_t to)
{
	ck_assert_uint_ge(off, OFF);
	ck_assert_uint_le(off + pages * PAGE, OFF + LEN);
	for (uint64_t i = (off - OFF) / PAGE; pages--; i++) {
		if (model.page[i] != from)
			ck_abort_msg("page %ju is held by %u", (uintmax_t)i, model.page[i]);
		model.page[i] = to;
	}
}

static void random_alloc(uint32_t name)
{
	uint64_t pages = 1 + (uint64_t)rand() % (rand() % 3 ? 6 : 60), off;
	int err = fgv_arena_alloc(arena, pages * PAGE - (uint64_t)rand() % PAGE, &off);

	if (pages > model_largest_gap()) {
		ck_assert_int_eq(err, -ENOMEM);
		return;
	}
	ck_assert_int_eq(err, 0);
	model_set(off, pages, 0, name);
	model.off[model.count] = off;
	model.pages[model.count++] = pages;
}

static void random_free(void)
{
	uint32_t which = (uint32_t)rand() % model.count;
	uint64_t off = model.off[which], pages = model.pages[which], start, bytes;
	uint64_t inside = off + (uint64_t)rand() % (pages * PAGE);

	ck_assert_int_eq(fgv_arena_find(arena, inside, &start, &bytes), 0);
	ck_assert_uint_eq(start, off);
	ck_assert_uint_eq(bytes, pages * PAGE);
	ck_assert_int_eq(fgv_arena_free(arena, off), 0);
	ck_assert_int_eq(fgv_arena_find(arena, inside, &start, &bytes), -ENOENT);
	model_set(off, pages, model.page[(off - OFF) / PAGE], 0);
	model.off[which] = model.off[--model.count];
	model.pages[which] = model.pages[model.count];
}

START_TEST(agrees_with_a_map_of_pages)
{
	srand((unsigned int)_i + 1);
	for (uint32_t step = 1; step <= 20000; step++) {
		if (model.count && rand() % 2)
			random_free();
		else if (model.count < PAGES)
			random_alloc(step);
	}
	while (model.count)
		random_free();
	ck_assert_uint_eq(alloc(LEN), OFF);
}
END_TEST

static void *churn(void *arg)
{
	unsigned int seed = *(unsigned int *)arg;
	uint64_t off;

	for (int i = 0; i < 2000; i++) {
		uint64_t bytes = 1 + (uint64_t)rand_r(&seed) % (8 * PAGE), start, found;

		if (fgv_arena_alloc(arena, bytes, &off))
			continue;
		ck_assert_int_eq(fgv_arena_find(arena, off, &start, &found), 0);
		ck_assert_uint_eq(start, off);
		ck_assert_uint_ge(found, bytes);
		ck_assert_int_eq(fgv_arena_free(arena, off), 0);
	}
	return NULL;
}

START_TEST(serves_threads)
{
	pthread_t threads[4];
	unsigned int seeds[4] = {1, 2, 3, 4};

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, &seeds[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(alloc(LEN), OFF);
}
END_TEST

START_TEST(may_be_empty)
{
	struct fgv_arena *none = fgv_arena_create(OFF, 0);
	uint64_t off;

	ck_assert_ptr_nonnull(none);
	ck_assert_int_eq(fgv_arena_alloc(none, 1, &off), -ENOMEM);
	ck_assert_int_eq(fgv_arena_free(none, OFF), -EINVAL);
	fgv_arena_destroy(none);
	fgv_arena_destroy(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("arena");
	TCase *tcase = tcase_create("arena");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, gives_whole_pages);
	tcase_add_test(tcase, knows_its_limits);
	tcase_add_test(tcase, refuses_to_free);
	tcase_add_loop_test(tcase, joins_neighbours, 0, 6);
	tcase_add_test(tcase, takes_the_gap_that_fits_best);
	tcase_add_loop_test(tcase, agrees_with_a_map_of_pages, 0, 4);
	tcase_add_test(tcase, serves_threads);
	tcase_add_test(tcase, may_be_empty);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
