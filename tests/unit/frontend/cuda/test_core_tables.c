/*
 * The core's tables: pointers to kernels, device ranges, streams and events; some also
 * with readers at work while they change.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/module/ptrhash.h"

#define KEYS 5000

static char keys[KEYS * 16], values[KEYS];

START_TEST(pointers)
{
	static struct fgv_ptrhash hash;

	ck_assert_ptr_eq(fgv_ptrhash_find(&hash, keys), NULL);
	fgv_ptrhash_remove(&hash, keys);
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_eq(fgv_ptrhash_set(&hash, &keys[i * 16], &values[i]), 0);
	for (int i = 0; i < KEYS; i++)
		ck_assert_ptr_eq(fgv_ptrhash_find(&hash, &keys[i * 16]), &values[i]);
	ck_assert_ptr_eq(fgv_ptrhash_find(&hash, &keys[1]), NULL);
	ck_assert_ptr_eq(fgv_ptrhash_find(&hash, NULL), NULL);
	for (int i = 0; i < KEYS; i += 2)
		fgv_ptrhash_remove(&hash, &keys[i * 16]);
	for (int i = 0; i < KEYS; i++)
		ck_assert_ptr_eq(fgv_ptrhash_find(&hash, &keys[i * 16]), i % 2 ? &values[i] : NULL);
	ck_assert_int_eq(fgv_ptrhash_set(&hash, &keys[0], &values[7]), 0);
	ck_assert_ptr_eq(fgv_ptrhash_find(&hash, &keys[0]), &values[7]);
}
END_TEST

/* Loading and unloading for ever must not fill the table with what is gone. */
START_TEST(pointers_come_and_go)
{
	static struct fgv_ptrhash hash;

	for (int i = 0; i < 20 * KEYS; i++) {
		ck_assert_int_eq(fgv_ptrhash_set(&hash, &keys[i % KEYS * 16], &values[0]), 0);
		fgv_ptrhash_remove(&hash, &keys[i % KEYS * 16]);
	}
	ck_assert_ptr_eq(fgv_ptrhash_find(&hash, &keys[0]), NULL);
}
END_TEST

static struct fgv_ptrhash shared_hash;
static uint32_t shared_count, stop;

static void *read_pointers(void *arg)
{
	uintptr_t wrong = 0;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		uint32_t count = __atomic_load_n(&shared_count, __ATOMIC_ACQUIRE);

		for (uint32_t i = 0; i < count; i += 37)
			wrong += fgv_ptrhash_find(&shared_hash, &keys[i * 16]) != &values[i];
	}
	return (void *)wrong;
}

START_TEST(pointers_with_readers)
{
	pthread_t threads[2];
	void *wrong;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, read_pointers, NULL);
	for (uint32_t i = 0; i < KEYS; i++) {
		ck_assert_int_eq(fgv_ptrhash_set(&shared_hash, &keys[i * 16], &values[i]), 0);
		__atomic_store_n(&shared_count, i + 1, __ATOMIC_RELEASE);
		if (i % 64 == 0)
			sched_yield();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &wrong);
		ck_assert_ptr_eq(wrong, NULL);
	}
}
END_TEST

START_TEST(ranges)
{
	ck_assert_int_eq(fgv_addrmap_add(1000, 100, FGV_RANGE_MEMORY), 0);
	ck_assert_int_eq(fgv_addrmap_add(1100, 100, FGV_RANGE_MEMORY), 0);
	ck_assert_int_eq(fgv_addrmap_add(5000, 10, FGV_RANGE_VARIABLE), 0);
	ck_assert_int_eq(fgv_addrmap_add(9, 0, FGV_RANGE_MEMORY), -EINVAL);
	ck_assert_int_eq(fgv_addrmap_add(UINT64_MAX, 2, FGV_RANGE_MEMORY), -EINVAL);
	ck_assert_int_eq(fgv_addrmap_fit(1000, 100), FGV_FIT_INSIDE);
	ck_assert_int_eq(fgv_addrmap_fit(1000, 101), FGV_FIT_BEYOND);
	ck_assert_int_eq(fgv_addrmap_fit(1099, 1), FGV_FIT_INSIDE);
	ck_assert_int_eq(fgv_addrmap_fit(1099, 2), FGV_FIT_BEYOND);
	ck_assert_int_eq(fgv_addrmap_fit(1050, UINT64_MAX), FGV_FIT_BEYOND);
	ck_assert_int_eq(fgv_addrmap_fit(999, 1), FGV_FIT_UNKNOWN);
	ck_assert_int_eq(fgv_addrmap_fit(1200, 1), FGV_FIT_UNKNOWN);
	ck_assert_int_eq(fgv_addrmap_fit(UINT64_MAX, 1), FGV_FIT_UNKNOWN);
	ck_assert_int_eq(fgv_addrmap_remove(1050, FGV_RANGE_MEMORY), -ENOENT);
	ck_assert_int_eq(fgv_addrmap_remove(5000, FGV_RANGE_MEMORY), -ENOENT);
	ck_assert_int_eq(fgv_addrmap_remove(1000, FGV_RANGE_MEMORY), 0);
	ck_assert_int_eq(fgv_addrmap_remove(1000, FGV_RANGE_MEMORY), -ENOENT);
	/* Not from the thread's copy of what it found last. */
	ck_assert_int_eq(fgv_addrmap_fit(1000, 1), FGV_FIT_UNKNOWN);
	ck_assert_int_eq(fgv_addrmap_fit(1100, 1), FGV_FIT_INSIDE);
}
END_TEST

START_TEST(ranges_that_overlap)
{
	for (uint64_t i = 0; i < 10; i++)
		ck_assert_int_eq(fgv_addrmap_add(100 + 10 * i, 10, FGV_RANGE_MEMORY), 0);
	ck_assert_int_eq(fgv_addrmap_fit(120, 10), FGV_FIT_INSIDE);
	ck_assert_int_eq(fgv_addrmap_add(115, 30, FGV_RANGE_MEMORY), 0);
	ck_assert_int_eq(fgv_addrmap_fit(115, 30), FGV_FIT_INSIDE);
	ck_assert_int_eq(fgv_addrmap_fit(100, 10), FGV_FIT_INSIDE);
	ck_assert_int_eq(fgv_addrmap_fit(110, 1), FGV_FIT_UNKNOWN);
	ck_assert_int_eq(fgv_addrmap_fit(145, 1), FGV_FIT_UNKNOWN);
	ck_assert_int_eq(fgv_addrmap_fit(150, 10), FGV_FIT_INSIDE);
}
END_TEST

static uint64_t drained;

static void count_range(uint64_t start, void *arg)
{
	*(uint64_t *)arg += start;
	drained++;
}

START_TEST(ranges_drained)
{
	uint64_t sum = 0;

	fgv_addrmap_add(10, 1, FGV_RANGE_MEMORY);
	fgv_addrmap_add(20, 1, FGV_RANGE_VARIABLE);
	fgv_addrmap_add(30, 1, FGV_RANGE_MEMORY);
	fgv_addrmap_drain(0, FGV_RANGE_MEMORY, count_range, &sum);
	ck_assert_uint_eq(drained, 2);
	ck_assert_uint_eq(sum, 40);
	ck_assert_int_eq(fgv_addrmap_fit(10, 1), FGV_FIT_UNKNOWN);
	ck_assert_int_eq(fgv_addrmap_fit(20, 1), FGV_FIT_INSIDE);
}
END_TEST

START_TEST(reserved)
{
	const uint64_t len = 1ull << 40;
	void *hole = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t base = (uint64_t)(uintptr_t)hole;

	/* A sanitizer leaves no hole of that size. */
	if (hole == MAP_FAILED)
		return;
	ck_assert_int_eq(fgv_addrmap_reserve(base, 0), 0);
	ck_assert_int_eq(fgv_addrmap_reserve(base, len), -EEXIST);
	ck_assert(!fgv_addrmap_is_reserved(base));
	munmap(hole, len);
	ck_assert_int_eq(fgv_addrmap_reserve(base, len), 0);
	ck_assert(fgv_addrmap_is_reserved(base));
	ck_assert(fgv_addrmap_is_reserved(base + len - 1));
	ck_assert(!fgv_addrmap_is_reserved(base + len));
	ck_assert(!fgv_addrmap_is_reserved(base - 1));
	ck_assert_ptr_eq(mmap(hole, 4096, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 MAP_FAILED);
}
END_TEST

static uint64_t map_at(uint64_t address, uint64_t len)
{
	void *got = mmap((void *)(uintptr_t)address, len, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return got == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)got;
}

/* A hole of @blocks times 2 MiB, and aligned to that. */
static uint64_t find_hole(uint64_t blocks)
{
	uint64_t len = (blocks + 1) << 21;
	void *hole = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(hole, MAP_FAILED);
	munmap(hole, len);
	return fgv_align_up((uint64_t)(uintptr_t)hole, 1 << 21);
}

START_TEST(claimed)
{
	uint64_t base = find_hole(4);

	ck_assert_int_eq(fgv_addrmap_claim(base + (1 << 21) + 512, 512), 0);
	ck_assert_uint_eq(map_at(base + (1 << 21), 4096), 0);
	ck_assert_uint_eq(map_at(base + (2 << 21) - 4096, 4096), 0);
	/* Again, inside, and around what is claimed. */
	ck_assert_int_eq(fgv_addrmap_claim(base + (1 << 21) + 512, 512), 0);
	ck_assert_int_eq(fgv_addrmap_claim(base + (1 << 21) + 8192, 4096), 0);
	ck_assert_int_eq(fgv_addrmap_claim(base, 3 << 21), 0);
	ck_assert_uint_eq(map_at(base + (3 << 21) - 4096, 4096), 0);
	ck_assert_uint_eq(map_at(base + (3 << 21), 4096), base + (3 << 21));
}
END_TEST

START_TEST(not_claimed_over_the_programs_memory)
{
	uint64_t base = find_hole(3);

	ck_assert_uint_eq(map_at(base + (1 << 21), 8192), base + (1 << 21));
	ck_assert_int_eq(fgv_addrmap_claim(base + (1 << 21) + 4096, 512), -EEXIST);
	ck_assert_int_eq(fgv_addrmap_claim(base, 3 << 21), -EEXIST);
	/* Beside it there is room. */
	ck_assert_int_eq(fgv_addrmap_claim(base + (1 << 21) + 8192, 4096), 0);
	ck_assert_uint_eq(map_at(base + (1 << 21) + 8192, 4096), 0);
}
END_TEST

START_TEST(objects)
{
	struct fgv_object_info info = {.handle = 7, .flags = 3, .priority = -2}, got = {0};
	void *object = fgv_object_create(FGV_OBJECT_STREAM, &info), *again;

	ck_assert_ptr_ne(object, NULL);
	ck_assert(fgv_object_find(FGV_OBJECT_STREAM, object, &got));
	ck_assert_mem_eq(&got, &info, sizeof(got));
	ck_assert(!fgv_object_find(FGV_OBJECT_EVENT, object, &got));
	for (uintptr_t bad = 0; bad < 100000; bad++)
		ck_assert(!fgv_object_find(FGV_OBJECT_STREAM, (void *)bad, &got));
	ck_assert(!fgv_object_find(FGV_OBJECT_STREAM, &info, &got));
	for (int bit = 0; bit < 64; bit++)
		ck_assert(!fgv_object_find(FGV_OBJECT_STREAM,
					   (void *)((uintptr_t)object ^ 1ul << bit), &got));
	ck_assert(fgv_object_destroy(FGV_OBJECT_STREAM, object, &got));
	ck_assert_uint_eq(got.handle, 7);
	ck_assert(!fgv_object_destroy(FGV_OBJECT_STREAM, object, &got));
	ck_assert(!fgv_object_find(FGV_OBJECT_STREAM, object, &got));
	again = fgv_object_create(FGV_OBJECT_STREAM, &info);
	ck_assert_ptr_ne(again, object);
	ck_assert(!fgv_object_find(FGV_OBJECT_STREAM, object, &got));
	ck_assert(fgv_object_find(FGV_OBJECT_STREAM, again, &got));
}
END_TEST

START_TEST(many_objects)
{
	static void *made[10000];
	struct fgv_object_info info = {0}, got;

	for (uint32_t i = 0; i < 10000; i++) {
		info.handle = i;
		made[i] = fgv_object_create(FGV_OBJECT_EVENT, &info);
		ck_assert_ptr_ne(made[i], NULL);
	}
	for (uint32_t i = 0; i < 10000; i++) {
		ck_assert(fgv_object_find(FGV_OBJECT_EVENT, made[i], &got));
		ck_assert_uint_eq(got.handle, i);
	}
}
END_TEST

static void *shared_object;

static void *read_object(void *arg)
{
	struct fgv_object_info got;
	uintptr_t wrong = 0;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		void *object = __atomic_load_n(&shared_object, __ATOMIC_ACQUIRE);

		/* Found or not, never half of one and half of another. */
		if (fgv_object_find(FGV_OBJECT_EVENT, object, &got))
			wrong += got.handle != got.flags || (int32_t)got.handle != got.priority;
	}
	return (void *)wrong;
}

START_TEST(objects_with_readers)
{
	struct fgv_object_info info, got;
	pthread_t threads[2];
	void *wrong, *object;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, read_object, NULL);
	for (uint32_t i = 0; i < 200000; i++) {
		info = (struct fgv_object_info){.handle = i, .flags = i, .priority = (int32_t)i};
		object = fgv_object_create(FGV_OBJECT_EVENT, &info);
		__atomic_store_n(&shared_object, object, __ATOMIC_RELEASE);
		ck_assert(fgv_object_destroy(FGV_OBJECT_EVENT, object, &got));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &wrong);
		ck_assert_ptr_eq(wrong, NULL);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client: tables");
	TCase *tests = tcase_create("tables");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, pointers);
	tcase_add_test(tests, pointers_come_and_go);
	tcase_add_test(tests, pointers_with_readers);
	tcase_add_test(tests, ranges);
	tcase_add_test(tests, ranges_that_overlap);
	tcase_add_test(tests, ranges_drained);
	tcase_add_test(tests, reserved);
	tcase_add_test(tests, claimed);
	tcase_add_test(tests, not_claimed_over_the_programs_memory);
	tcase_add_test(tests, objects);
	tcase_add_test(tests, many_objects);
	tcase_add_test(tests, objects_with_readers);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
