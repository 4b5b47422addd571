/* The memory quota of a VM over its sessions, and the record of a session's allocations. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/quota.h"

#define KIB   1024ull
#define QUOTA (64 * KIB)

#define BLOCK 512ull

static struct fgv_allowance allowance;
static struct fgv_accounts accounts;
static struct fgv_quota quota, other;

static void setup(void)
{
	memset(&accounts, 0, sizeof(accounts));
	allowance = (struct fgv_allowance){.memory_bytes = QUOTA, .taken = UINT64_MAX};
	fgv_quota_init(&quota, &allowance, &accounts, &accounts.sessions[3], 3, BLOCK);
	fgv_quota_init(&other, &allowance, &accounts, &accounts.sessions[FGV_SESSIONS_MAX - 1],
		       FGV_SESSIONS_MAX - 1, BLOCK);
}

static void teardown(void)
{
	fgv_quota_fini(&quota);
	fgv_quota_fini(&other);
}

START_TEST(allows_all_of_it_and_no_more)
{
	struct fgv_charge all = {0}, more = {0};

	ck_assert_int_eq(fgv_quota_charge(&quota, &all, QUOTA), 0);
	ck_assert_uint_eq(fgv_quota_left(&quota), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &more, 1), -ENOMEM);
	ck_assert_uint_eq(more.bytes, 0);
	fgv_quota_release(&quota, &all);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA);
	ck_assert_int_eq(fgv_quota_charge(&quota, &all, QUOTA + 1), -ENOMEM);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 0);
}
END_TEST

START_TEST(counts_all_sessions)
{
	struct fgv_charge mine = {0}, its = {0};

	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2), 0);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA / 2);
	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, QUOTA / 2 + 1), -ENOMEM);
	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, QUOTA / 2), 0);
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2 + 1), -ENOMEM);
	/* The daemon clears the entry of a session that has ended. */
	accounts.sessions[3].memory_bytes = 0;
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA), 0);
}
END_TEST

/* What a session has and shares is charged where that is kept, and to all of the VM. */
START_TEST(counts_what_is_shared_once)
{
	struct fgv_charge mine = {0}, its = {0};

	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, QUOTA / 2), 0);
	accounts.shared.memory_bytes = QUOTA / 4;
	fgv_quota_set_shared(&quota, QUOTA / 4);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, QUOTA / 4);
	ck_assert_uint_eq(fgv_quota_left(&other), QUOTA / 2);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA / 2);
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2 + 1), -ENOMEM);
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2), 0);
	/* It is given back here, and another has it yet. */
	fgv_quota_release(&quota, &mine);
	fgv_quota_set_shared(&quota, 0);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 0);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA / 4);
	/* More than there is leaves nothing. */
	accounts.shared.memory_bytes = UINT64_MAX;
	ck_assert_uint_eq(fgv_quota_left(&quota), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, 1), -ENOMEM);
	accounts.shared.memory_bytes = 0;
}
END_TEST

/* What a session that is ending has will be free; what this one has won't. */
START_TEST(tells_who_is_ending)
{
	struct fgv_charge mine = {0}, its = {0}, more = {0};

	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, QUOTA / 4), 0);
	ck_assert(!fgv_quota_others(&quota));
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2), 0);
	ck_assert(fgv_quota_others(&quota));
	ck_assert_uint_eq(quota.refused, 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &more, QUOTA / 2), -ENOMEM);
	ck_assert_uint_eq(quota.refused, QUOTA / 2);
	allowance.ending = UINT64_C(1) << 3;
	ck_assert_uint_eq(fgv_quota_ending(&quota), 0);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA / 4);
	allowance.ending |= UINT64_C(1) << (FGV_SESSIONS_MAX - 1);
	ck_assert_uint_eq(fgv_quota_ending(&quota), UINT64_C(1) << (FGV_SESSIONS_MAX - 1));
	ck_assert(!fgv_quota_would_fit(&quota, QUOTA / 2, 0));
	ck_assert(fgv_quota_would_fit(&quota, 3 * QUOTA / 4, UINT64_MAX));
	ck_assert(!fgv_quota_would_fit(&quota, 3 * QUOTA / 4 + 1, UINT64_MAX));
	ck_assert(!fgv_quota_would_fit(&quota, UINT64_MAX, UINT64_MAX));
	ck_assert_uint_eq(fgv_quota_left(&quota), 3 * QUOTA / 4);
	ck_assert_uint_eq(fgv_quota_returning(&quota), QUOTA / 2);
	ck_assert_int_eq(fgv_quota_charge(&quota, &more, QUOTA + 1), -ENOMEM);
	ck_assert_uint_eq(quota.refused, UINT64_MAX);
}
END_TEST

START_TEST(refuses_sizes_that_overflow)
{
	static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 511, UINT64_MAX - QUOTA,
					 (uint64_t)INT64_MAX + 1};
	struct fgv_charge one = {0}, large = {0};

	ck_assert_int_eq(fgv_quota_charge(&quota, &one, 1), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ck_assert_int_eq(fgv_quota_charge(&quota, &large, sizes[i]), -ENOMEM);
		ck_assert_int_eq(fgv_quota_charge(&quota, &one, sizes[i]), -ENOMEM);
		ck_assert_int_eq(fgv_quota_reserve(&quota, &large, sizes[i]), -ENOMEM);
	}
	ck_assert_uint_eq(one.bytes, 1);
	accounts.sessions[9].memory_bytes = UINT64_MAX;
	ck_assert_uint_eq(fgv_quota_left(&quota), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &large, 1), -ENOMEM);
}
END_TEST

/* What a session needs is its own before it uses it. */
START_TEST(has_what_it_needs_from_the_beginning)
{
	struct fgv_charge mine = {0}, its = {0}, more = {0};

	ck_assert_int_eq(fgv_quota_set_least(&quota, QUOTA / 2), 0);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, QUOTA / 2);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA);
	ck_assert_uint_eq(fgv_quota_left(&other), QUOTA / 2);
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2 + 1), -ENOMEM);
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, QUOTA / 4), 0);
	ck_assert(fgv_quota_would_fit(&quota, QUOTA / 4, 0));
	ck_assert(!fgv_quota_would_fit(&quota, QUOTA / 4 + 1, 0));
	ck_assert_int_eq(fgv_quota_charge(&quota, &more, QUOTA / 4), 0);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, QUOTA / 2);
	/* beyond that it takes what there is, like the others */
	ck_assert_int_eq(fgv_quota_charge(&quota, &more, QUOTA / 4 + 1), -ENOMEM);
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 4), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &more, QUOTA / 2), 0);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 3 * QUOTA / 4);
	ck_assert_uint_eq(fgv_quota_left(&quota), 0);
	fgv_quota_release(&quota, &mine);
	fgv_quota_release(&quota, &more);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, QUOTA / 2);
}
END_TEST

START_TEST(refuses_needs_that_are_not_there)
{
	struct fgv_charge its = {0}, mine = {0};

	ck_assert_int_eq(fgv_quota_set_least(&quota, QUOTA + 1), -ENOMEM);
	ck_assert_int_eq(fgv_quota_set_least(&quota, UINT64_MAX), -ENOMEM);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 0);
	ck_assert_int_eq(fgv_quota_charge(&other, &its, QUOTA / 2), 0);
	ck_assert_int_eq(fgv_quota_set_least(&quota, QUOTA / 2 + 1), -ENOMEM);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 0);
	ck_assert_int_eq(fgv_quota_set_least(&quota, QUOTA / 2), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, QUOTA / 2), 0);
	/* even where another one is over its quota: that is not this one's doing */
	accounts.sessions[9].memory_bytes = QUOTA;
	fgv_quota_release(&quota, &mine);
	ck_assert_int_eq(fgv_quota_charge(&quota, &mine, QUOTA / 2), 0);
}
END_TEST

/* Whatever sizes a charge goes through, what is given back is what was taken. */
START_TEST(gives_back_what_was_taken)
{
	struct fgv_charge first = {0}, second = {0};

	ck_assert_int_eq(fgv_quota_charge(&quota, &first, 10000), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &second, 40000), 0);
	for (uint64_t bytes = 40000; bytes > 20000; bytes--)
		ck_assert_int_eq(fgv_quota_charge(&quota, &second, bytes), 0);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 10000 + 20001);
	for (uint64_t bytes = 20001; bytes < 40000; bytes += 7)
		ck_assert_int_eq(fgv_quota_charge(&quota, &second, bytes), 0);
	fgv_quota_release(&quota, &second);
	fgv_quota_release(&quota, &second);
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 10000);
}
END_TEST

START_TEST(remembers_allocations)
{
	uint64_t bytes = 0, charged = 0;

	ck_assert_int_eq(fgv_quota_add(&quota, 0x1000, 100), 0);
	ck_assert_int_eq(fgv_quota_add(&quota, 0x1000, 100), -EEXIST);
	ck_assert_int_eq(fgv_quota_remove(&quota, 0x1001, &bytes, &charged), -ENOENT);
	ck_assert_int_eq(fgv_quota_remove(&quota, 0, &bytes, &charged), -ENOENT);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA - BLOCK);
	ck_assert_int_eq(fgv_quota_remove(&quota, 0x1000, &bytes, &charged), 0);
	ck_assert_uint_eq(bytes, 100);
	ck_assert_uint_eq(charged, BLOCK);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA);
	ck_assert_int_eq(fgv_quota_remove(&quota, 0x1000, &bytes, &charged), -ENOENT);
}
END_TEST

/* A block counts as long as anything is in it, and once. */
START_TEST(charges_for_blocks)
{
	static const struct {
		uint64_t address, bytes, used;
	} steps[] = {
		{BLOCK, 1, 1},
		{BLOCK + 256, 1, 1}, /* beside it */
		{3 * BLOCK, 256, 2},
		{BLOCK + 300, 2 * BLOCK, 3}, /* from the one into the other, and all between */
		{BLOCK + 2 * BLOCK + 300, 10, 3},
		{10 * BLOCK, 2 * BLOCK, 5},
	};
	const size_t count = sizeof(steps) / sizeof(steps[0]);
	uint64_t bytes, charged;

	for (size_t i = 0; i < count; i++) {
		ck_assert_int_eq(fgv_quota_add(&quota, steps[i].address, steps[i].bytes), 0);
		ck_assert_uint_eq(accounts.sessions[3].memory_bytes, steps[i].used * BLOCK);
	}
	for (size_t i = count; i-- > 0;) {
		ck_assert_uint_eq(accounts.sessions[3].memory_bytes, steps[i].used * BLOCK);
		ck_assert_int_eq(fgv_quota_remove(&quota, steps[i].address, &bytes, &charged), 0);
	}
	ck_assert_uint_eq(accounts.sessions[3].memory_bytes, 0);
}
END_TEST

/* One small allocation is left in each block: the blocks are what is taken. */
START_TEST(small_allocations_hold_their_blocks)
{
	uint64_t bytes, charged;

	for (uint64_t block = 1; block <= QUOTA / BLOCK; block++) {
		for (uint64_t part = 0; part < 4; part++)
			ck_assert_int_eq(fgv_quota_add(&quota, block * BLOCK + part * BLOCK / 4, 1),
					 0);
		for (uint64_t part = 1; part < 4; part++)
			ck_assert_int_eq(fgv_quota_remove(&quota, block * BLOCK + part * BLOCK / 4,
							  &bytes, &charged),
					 0);
	}
	ck_assert_uint_eq(fgv_quota_left(&quota), 0);
	ck_assert_int_eq(fgv_quota_add(&quota, QUOTA * 2, 1), -ENOMEM);
	ck_assert_int_eq(fgv_quota_remove(&quota, QUOTA * 2, &bytes, &charged), -ENOENT);
	/* In one of those there is room. */
	ck_assert_int_eq(fgv_quota_add(&quota, BLOCK + 100, 1), 0);
}
END_TEST

/* All but what may lie in blocks of its neighbours. */
START_TEST(reserves_what_is_sure)
{
	struct fgv_charge ahead = {0}, its = {0};

	ck_assert_int_eq(fgv_quota_reserve(&quota, &ahead, 2 * BLOCK), 0);
	ck_assert_uint_eq(ahead.bytes, 0);
	ck_assert_int_eq(fgv_quota_reserve(&quota, &ahead, 9 * BLOCK + 1), 0);
	ck_assert_uint_eq(ahead.bytes, 8 * BLOCK);
	ck_assert_int_eq(fgv_quota_reserve(&other, &its, QUOTA), -ENOMEM);
}
END_TEST

START_TEST(leaves_nothing_behind)
{
	for (uint64_t i = 1; i <= 100; i++)
		ck_assert_int_eq(fgv_quota_add(&quota, i * 0x1000, 512), 0);
	fgv_quota_fini(&quota);
	ck_assert_uint_eq(fgv_quota_left(&other), QUOTA);
}
END_TEST

/* From the next charge on. */
/* An account that nobody has says nothing; a session's own counts in any case. */
START_TEST(only_accounts_that_are_taken_count)
{
	struct fgv_charge charge = {0};

	accounts.sessions[7].memory_bytes = QUOTA;
	allowance.taken = 0;
	ck_assert_int_eq(fgv_quota_charge(&quota, &charge, QUOTA), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &charge, QUOTA + 1), -ENOMEM);
	fgv_quota_release(&quota, &charge);
	allowance.taken = UINT64_C(1) << 7;
	ck_assert_int_eq(fgv_quota_charge(&quota, &charge, 1), -ENOMEM);
}
END_TEST

START_TEST(allowance_may_change)
{
	struct fgv_charge charge = {0};

	ck_assert_int_eq(fgv_quota_charge(&quota, &charge, QUOTA), 0);
	allowance.memory_bytes = QUOTA / 2;
	ck_assert_uint_eq(fgv_quota_left(&quota), 0);
	ck_assert_int_eq(fgv_quota_charge(&quota, &charge, QUOTA + 1), -ENOMEM);
	ck_assert_int_eq(fgv_quota_charge(&quota, &charge, QUOTA / 4), 0);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA / 4);
}
END_TEST

/*
 * Two sessions that each want more than half: both may fail, but never do both succeed,
 * and nothing is left over.
 */
static uint32_t holders;

static void *hold_alone(void *arg)
{
	struct fgv_quota *mine = arg;
	struct fgv_charge charge = {0};
	uintptr_t wrong = 0;

	for (int i = 0; i < 20000; i++) {
		if (fgv_quota_charge(mine, &charge, QUOTA / 2 + 512) < 0)
			continue;
		wrong += __atomic_add_fetch(&holders, 1, __ATOMIC_SEQ_CST) != 1;
		__atomic_sub_fetch(&holders, 1, __ATOMIC_SEQ_CST);
		fgv_quota_release(mine, &charge);
	}
	return (void *)wrong;
}

START_TEST(never_gives_it_twice)
{
	pthread_t thread;
	void *wrong;

	ck_assert_int_eq(pthread_create(&thread, NULL, hold_alone, &other), 0);
	ck_assert_ptr_null(hold_alone(&quota));
	pthread_join(thread, &wrong);
	ck_assert_ptr_null(wrong);
	ck_assert_uint_eq(fgv_quota_left(&quota), QUOTA);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("quota");
	TCase *tcase = tcase_create("quota");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, has_what_it_needs_from_the_beginning);
	tcase_add_test(tcase, refuses_needs_that_are_not_there);
	tcase_add_test(tcase, allows_all_of_it_and_no_more);
	tcase_add_test(tcase, counts_all_sessions);
	tcase_add_test(tcase, counts_what_is_shared_once);
	tcase_add_test(tcase, tells_who_is_ending);
	tcase_add_test(tcase, refuses_sizes_that_overflow);
	tcase_add_test(tcase, gives_back_what_was_taken);
	tcase_add_test(tcase, remembers_allocations);
	tcase_add_test(tcase, charges_for_blocks);
	tcase_add_test(tcase, small_allocations_hold_their_blocks);
	tcase_add_test(tcase, reserves_what_is_sure);
	tcase_add_test(tcase, only_accounts_that_are_taken_count);
	tcase_add_test(tcase, allowance_may_change);
	tcase_add_test(tcase, leaves_nothing_behind);
	tcase_add_test(tcase, never_gives_it_twice);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
