/*
 * Moving through slots, with a driver that copies late, and has no memory for fences now and then:
 * what it copies stays where it is until it has.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/haul.h"

#define BYTES  (3 * FGV_HAUL_SLOT_BYTES)
#define ROUNDS 100000
#define FENCES 64

struct fgv_gpu_fence {
	bool is_put;
};

static struct {
	struct fgv_gpu gpu;
	unsigned asked_until_done, fails_fence;
	unsigned queued, done,
		waiting; /* copies; those that a fence was taken for and is not put */
	bool is_registered, is_early;
	struct fgv_gpu_fence fences[FENCES];
	unsigned fence_count;
} fake;

static CUresult copy_out(struct fgv_gpu *gpu, void *dst, uint64_t src, size_t len,
			 struct fgv_gpu_stream *stream)
{
	(void)gpu, (void)stream, (void)src;
	memset(dst, 5, len);
	fake.queued++;
	return CUDA_SUCCESS;
}

static CUresult fence(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
		      struct fgv_gpu_fence **made)
{
	(void)gpu, (void)stream;
	if (fake.fails_fence && fake.fails_fence--)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = &fake.fences[fake.fence_count++ % FENCES];
	fake.waiting++;
	return CUDA_SUCCESS;
}

static CUresult fence_query(struct fgv_gpu *gpu, struct fgv_gpu_fence *asked)
{
	(void)gpu, (void)asked;
	if (fake.asked_until_done) {
		fake.asked_until_done--;
		return CUDA_ERROR_NOT_READY;
	}
	return CUDA_SUCCESS;
}

static void fence_put(struct fgv_gpu *gpu, struct fgv_gpu_fence *put)
{
	(void)gpu, (void)put;
	fake.is_early |= fake.asked_until_done > 0;
	fake.waiting--;
	fake.done++;
}

static CUresult host_register(struct fgv_gpu *gpu, void *base, uint64_t len)
{
	(void)gpu, (void)base, (void)len;
	fake.is_registered = true;
	return CUDA_SUCCESS;
}

static CUresult host_unregister(struct fgv_gpu *gpu, void *base)
{
	(void)gpu, (void)base;
	fake.is_early |= fake.waiting > 0;
	fake.is_registered = false;
	return CUDA_SUCCESS;
}

static const struct fgv_gpu_ops ops = {
	.copy_out = copy_out,
	.fence = fence,
	.fence_query = fence_query,
	.fence_put = fence_put,
	.host_register = host_register,
	.host_unregister = host_unregister,
};

static uint8_t *moved;
static size_t at, end, part_bytes;

static CUresult next(void *arg, struct fgv_haul_part *part)
{
	(void)arg;
	if (at == end)
		return CUDA_ERROR_NOT_FOUND;
	*part = (struct fgv_haul_part){4096 + at, moved + at, part_bytes};
	at += part_bytes;
	return CUDA_SUCCESS;
}

static void start(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.gpu.ops = &ops;
	moved = calloc(1, BYTES);
	at = 0;
	end = BYTES;
	part_bytes = FGV_HAUL_SLOT_BYTES;
	ck_assert_ptr_nonnull(moved);
}

static void leave(void)
{
	free(moved);
}

/* Given up while the GPU copies: it is waited for before the slots go. */
START_TEST(stays_until_the_gpu_has_it)
{
	struct fgv_haul *haul;
	unsigned changed;

	ck_assert_int_eq(fgv_haul_init(&haul, &fake.gpu, FGV_HAUL_OUT), CUDA_SUCCESS);
	fake.asked_until_done = 1000;
	ck_assert_int_eq(fgv_haul_turn(haul, next, NULL, &changed), CUDA_SUCCESS);
	ck_assert_uint_gt(fake.waiting, 0);
	fgv_haul_fini(haul);
	ck_assert_uint_eq(fake.waiting, 0);
	ck_assert(!fake.is_early);
	ck_assert(!fake.is_registered);
}
END_TEST

/* A copy that was queued has a fence in the end. */
START_TEST(fences_that_fail)
{
	struct fgv_haul *haul;
	unsigned changed;
	CUresult status = CUDA_SUCCESS;

	ck_assert_int_eq(fgv_haul_init(&haul, &fake.gpu, FGV_HAUL_OUT), CUDA_SUCCESS);
	fake.fails_fence = 5;
	while (status == CUDA_SUCCESS)
		status = fgv_haul_turn(haul, next, NULL, &changed);
	ck_assert_int_eq(status, CUDA_ERROR_NOT_FOUND);
	fgv_haul_fini(haul);
	ck_assert_uint_eq(fake.queued, BYTES / FGV_HAUL_SLOT_BYTES);
	ck_assert_uint_eq(fake.done, fake.queued);
	for (size_t i = 0; i < BYTES; i += 4096)
		ck_assert_uint_eq(moved[i], 5);
}
END_TEST

/*
 * "All has arrived" is said when it has, though a slot may become free between any two looks at it:
 * parts so short that their threads are done while a turn is still going on.
 */
/* What has arrived is known in the order in which it was begun. */
START_TEST(parts_are_known_to_have_arrived)
{
	const uint64_t parts = BYTES / FGV_HAUL_SLOT_BYTES;
	uint64_t before = 0, arrived;
	struct fgv_haul *haul;
	unsigned changed;
	CUresult status;

	ck_assert_int_eq(fgv_haul_init(&haul, &fake.gpu, FGV_HAUL_OUT), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_haul_arrived(haul), 0);
	fake.asked_until_done = 1000000;
	ck_assert_int_eq(fgv_haul_turn(haul, next, NULL, &changed), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_haul_arrived(haul), 0);
	fake.asked_until_done = 0;
	do {
		status = fgv_haul_turn(haul, next, NULL, &changed);
		arrived = fgv_haul_arrived(haul);
		ck_assert_uint_ge(arrived, before);
		before = arrived;
		/* Its bytes are here. */
		for (uint64_t i = 0; i < arrived; i++)
			ck_assert_uint_eq(moved[(i + 1) * FGV_HAUL_SLOT_BYTES - 1], 5);
	} while (status == CUDA_SUCCESS);
	ck_assert_int_eq(status, CUDA_ERROR_NOT_FOUND);
	ck_assert_uint_eq(arrived, parts);
	fgv_haul_fini(haul);
}
END_TEST

START_TEST(all_has_arrived)
{
	struct fgv_haul *haul;
	unsigned changed;

	part_bytes = 512;
	end = 3 * part_bytes;
	ck_assert_int_eq(fgv_haul_init(&haul, &fake.gpu, FGV_HAUL_OUT), CUDA_SUCCESS);
	for (unsigned round = 0; round < ROUNDS; round++) {
		CUresult status = CUDA_SUCCESS;

		memset(moved, 0, end);
		at = 0;
		while (status == CUDA_SUCCESS)
			status = fgv_haul_turn(haul, next, NULL, &changed);
		ck_assert_int_eq(status, CUDA_ERROR_NOT_FOUND);
		for (size_t i = 0; i < end; i += part_bytes)
			ck_assert_uint_eq(moved[i], 5);
	}
	fgv_haul_fini(haul);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("haul");
	TCase *tests = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, start, leave);
	tcase_add_test(tests, stays_until_the_gpu_has_it);
	tcase_add_test(tests, fences_that_fail);
	tcase_add_test(tests, parts_are_known_to_have_arrived);
	tcase_add_test(tests, all_has_arrived);
	tcase_set_timeout(tests, 240);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
