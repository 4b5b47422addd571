/* A lane's heap: alignment, going round with a gap at the end, full, and too large. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "shmring/heap.h"

#define OFF 0x10000u
#define LEN 1024u

static struct fgv_heap heap;

static void set_up(void)
{
	fgv_heap_init(&heap, OFF, LEN);
}

/* The window offset that was given, less where the heap starts. */
static uint64_t alloc(uint32_t slot, uint32_t bytes)
{
	uint64_t off;

	ck_assert_int_eq(fgv_heap_alloc(&heap, slot, bytes, &off), 0);
	ck_assert_uint_eq(off % FGV_CACHE_LINE, 0);
	return off - OFF;
}

START_TEST(gives_in_turn)
{
	uint64_t off = 77;

	ck_assert_uint_eq(alloc(0, 1), 0);
	ck_assert_uint_eq(alloc(1, 64), 64);
	ck_assert_uint_eq(alloc(2, 65), 128);
	ck_assert_uint_eq(alloc(3, LEN - 256), 256);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 4, 1, &off), -EAGAIN);
	fgv_heap_reclaim(&heap, 0);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 4, 65, &off), -EAGAIN);
	ck_assert_uint_eq(off, 77);
	ck_assert_uint_eq(alloc(4, 64), 0);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 5, 1, &off), -EAGAIN);
}
END_TEST

START_TEST(refuses)
{
	uint64_t off = 77;

	ck_assert_int_eq(fgv_heap_alloc(&heap, 0, 0, &off), -EINVAL);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 0, LEN + 1, &off), -EINVAL);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 0, UINT32_MAX, &off), -EINVAL);
	ck_assert_int_eq(fgv_heap_alloc(&heap, FGV_REQUEST_SLOTS, 1, &off), -EINVAL);
	ck_assert_uint_eq(alloc(0, 1), 0);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 0, 1, &off), -EINVAL);
	ck_assert_uint_eq(off, 77);
}
END_TEST

/* What doesn't fit before the end starts anew, and the gap comes back with it. */
START_TEST(leaves_a_gap_at_the_end)
{
	uint64_t off;

	ck_assert_uint_eq(alloc(0, 512), 0);
	ck_assert_uint_eq(alloc(1, 384), 512);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 2, 256, &off), -EAGAIN);
	fgv_heap_reclaim(&heap, 0);
	ck_assert_uint_eq(alloc(2, 256), 0);
	ck_assert_uint_eq(heap.used, 384 + 128 + 256);
	ck_assert_uint_eq(alloc(3, 256), 256);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 4, 1, &off), -EAGAIN);
	fgv_heap_reclaim(&heap, 1);
	/* The gap is not free before the request that left it. */
	ck_assert_uint_eq(alloc(4, 384), 512);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 5, 1, &off), -EAGAIN);
	fgv_heap_reclaim(&heap, 2);
	fgv_heap_reclaim(&heap, 3);
	fgv_heap_reclaim(&heap, 4);
	ck_assert_uint_eq(heap.used, 0);
}
END_TEST

/* An empty heap takes anything up to its length, wherever it stood. */
START_TEST(empty_takes_all)
{
	alloc(0, 300);
	fgv_heap_reclaim(&heap, 0);
	fgv_heap_reclaim(&heap, 1);
	ck_assert_uint_eq(alloc(2, LEN), 0);
	fgv_heap_reclaim(&heap, 2);
	ck_assert_uint_eq(heap.used, 0);
}
END_TEST

START_TEST(odd_lengths_are_cut)
{
	uint64_t off;

	fgv_heap_init(&heap, OFF, LEN + 63);
	ck_assert_int_eq(fgv_heap_alloc(&heap, 0, LEN + 1, &off), -EINVAL);
	ck_assert_uint_eq(alloc(0, LEN), 0);
}
END_TEST

/* Which request holds each cache line; 0: none. */
static uint32_t owner[FGV_LANE_HEAP_LEN / FGV_CACHE_LINE];

static void mark(uint64_t off, uint32_t bytes, uint32_t from, uint32_t to)
{
	for (uint64_t i = off / FGV_CACHE_LINE; i * FGV_CACHE_LINE < off + bytes; i++) {
		if (owner[i] != from)
			ck_abort_msg("line %ju is held by %u", (uintmax_t)i, owner[i]);
		owner[i] = to;
	}
}

/* Against a map of lines: a message is never where another one still is. */
START_TEST(random_requests_stay_apart)
{
	static struct {
		uint64_t off;
		uint32_t bytes;
	} live[FGV_REQUEST_SLOTS];
	uint32_t posted = 0, freed = 0;

	fgv_heap_init(&heap, 0, FGV_LANE_HEAP_LEN);
	srand(1);
	while (posted < 100000) {
		uint32_t slot = posted % FGV_REQUEST_SLOTS;
		uint32_t bytes = 1 + (uint32_t)rand() % (rand() % 4 ? 2000 : FGV_MESSAGE_MAX);
		bool is_full = posted - freed == FGV_REQUEST_SLOTS;
		uint64_t off;

		if (!is_full && !fgv_heap_alloc(&heap, slot, bytes, &off)) {
			ck_assert_uint_le(off + bytes, FGV_LANE_HEAP_LEN);
			mark(off, bytes, 0, posted + 1);
			live[slot].off = off;
			live[slot].bytes = bytes;
			posted++;
			if (rand() % 3)
				continue;
		}
		ck_assert_uint_ne(posted, freed);
		slot = freed % FGV_REQUEST_SLOTS;
		mark(live[slot].off, live[slot].bytes, freed + 1, 0);
		fgv_heap_reclaim(&heap, slot);
		freed++;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heap");
	TCase *tcase = tcase_create("heap");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, gives_in_turn);
	tcase_add_test(tcase, refuses);
	tcase_add_test(tcase, leaves_a_gap_at_the_end);
	tcase_add_test(tcase, empty_takes_all);
	tcase_add_test(tcase, odd_lengths_are_cut);
	tcase_add_test(tcase, random_requests_stay_apart);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
