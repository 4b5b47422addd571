/*
 * A vGPU process whose policy fills gaps: it learns how long the GPU is idle after its work, gives
 * the grant back as such a gap begins, and says how long it will be; in another one's gap it does
 * what fits. The test is the daemon.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <stdlib.h>
#include "tests/unit/backend/vgpu/vgpu_guest.h"

#define BYTES	 (8u << 20)
#define HOUR	 3600000000000ull
#define GAP_MS	 3
#define GAPS_MIN 3

static struct vgpu vgpu;
static uint64_t memory;

static void setup(void)
{
	struct fgv_mem_alloc_request request = {.size = BYTES};
	struct fgv_mem_alloc_reply reply = {0};

	vgpu_spawn(&vgpu);
	vgpu.fills_gaps = true;
	vgpu_begin(&vgpu);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_ALLOC, &request, sizeof(request), &reply),
			  CUDA_SUCCESS);
	memory = reply.address;
	vgpu_take_grant(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static void fill(uint32_t bytes)
{
	struct fgv_fill_request request = {.address = memory, .count = bytes / 4, .width = 4};

	ck_assert(vgpu_post(&vgpu, 0, FGV_OP_FILL, &request, sizeof(request)));
}

static void device_sync(void)
{
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0, NULL), CUDA_SUCCESS);
}

static void grant_with(uint32_t flags, uint64_t ahead_ns, uint64_t limit_ns)
{
	__atomic_store_n(&vgpu.grant->flags, flags, __ATOMIC_RELAXED);
	__atomic_store_n(&vgpu.grant->ahead_ns, ahead_ns, __ATOMIC_RELAXED);
	vgpu_grant(&vgpu, limit_ns);
}

static uint32_t said(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static enum fgv_grant_state state(void)
{
	return fgv_grant_state(fgv_grant_load(vgpu.grant));
}

/* Work, and a gap after it, again and again until the grant has come back of itself. */
static void work_until_it_gives_back(void)
{
	while (state() == FGV_GRANT_BUSY) {
		uint64_t done = __atomic_load_n(&vgpu.grant->progress, __ATOMIC_RELAXED);

		fill(BYTES);
		/* It may have given back after all, and wants the grant again. */
		while (__atomic_load_n(&vgpu.grant->progress, __ATOMIC_RELAXED) == done) {
			if (state() == FGV_GRANT_NONE && said(&vgpu.grant->wants))
				vgpu_grant(&vgpu, HOUR);
			poll(NULL, 0, 1);
		}
		poll(NULL, 0, GAP_MS);
	}
}

START_TEST(gives_back_as_a_gap_begins)
{
	/* What is left of the gap: none of it, if the process was late, or could not know yet. */
	do {
		grant_with(0, 0, HOUR);
		work_until_it_gives_back();
	} while (said(&vgpu.grant->gap_ns) == 0);
	ck_assert_uint_eq(said(&vgpu.grant->wants), 0);
	fill(BYTES);
	vgpu_await_wants(&vgpu);
	ck_assert_uint_eq(said(&vgpu.grant->gap_ns), 0); /* now it wants */
	vgpu_grant(&vgpu, HOUR);
	device_sync();
}
END_TEST

/* A session with no other work waiting is not asked to pay for gaps: it keeps the grant. */
START_TEST(keeps_the_grant_alone)
{
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	for (int i = 0; i < 2 * GAPS_MIN; i++) {
		fill(BYTES);
		device_sync();
		poll(NULL, 0, GAP_MS);
		ck_assert_int_ne(state(), FGV_GRANT_NONE);
	}
}
END_TEST

/* Back at once, with nothing done, and a word of how long it would be. */
static void is_told_that_it_does_not_fit(uint64_t limit_ns)
{
	uint64_t done = __atomic_load_n(&vgpu.grant->progress, __ATOMIC_RELAXED);

	vgpu_await_wants(&vgpu);
	grant_with(FGV_GRANT_FIT, 0, limit_ns);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	ck_assert_uint_eq(said(&vgpu.grant->wants), 1);
	ck_assert_uint_eq(__atomic_load_n(&vgpu.grant->progress, __ATOMIC_RELAXED), done);
}

START_TEST(does_in_a_gap_what_fits)
{
	fill(BYTES); /* nobody knows of it */
	is_told_that_it_does_not_fit(HOUR);
	ck_assert_uint_eq(said(&vgpu.grant->next_ns), 0);
	grant_with(0, 0, HOUR);
	device_sync();
	vgpu_take_grant(&vgpu);

	fill(BYTES);
	is_told_that_it_does_not_fit(1);
	ck_assert_uint_gt(said(&vgpu.grant->next_ns), 1);
	grant_with(FGV_GRANT_FIT, 0, HOUR);
	device_sync();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gaps");
	TCase *tcase = tcase_create("gaps");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, gives_back_as_a_gap_begins);
	tcase_add_test(tcase, keeps_the_grant_alone);
	tcase_add_test(tcase, does_in_a_gap_what_fits);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
