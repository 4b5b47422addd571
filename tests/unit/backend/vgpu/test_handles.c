/* Handle tables: what a handle names, that it names nothing after its object went, limits. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include "backend/vgpu/handles.h"

static struct fgv_handles handles;

static void setup(void)
{
	fgv_handles_init(&handles);
}

static void drop(struct fgv_object *object)
{
	fgv_handles_remove(&handles, object);
	ck_assert(fgv_object_put(object));
	free(object);
}

static void teardown(void)
{
	for (int kind = 0; kind < FGV_KINDS; kind++) {
		struct fgv_object *object;
		uint32_t at = 0;

		while ((object = fgv_handles_next(&handles, (enum fgv_kind)kind, &at)))
			drop(object);
	}
	fgv_handles_fini(&handles);
}

static struct fgv_object *add(enum fgv_kind kind)
{
	struct fgv_object *object = fgv_handles_add(&handles, kind);

	ck_assert_ptr_nonnull(object);
	ck_assert_uint_ne(object->handle, 0);
	return object;
}

START_TEST(finds_what_was_added)
{
	struct fgv_object *a = add(FGV_KIND_EVENT), *b = add(FGV_KIND_EVENT);

	ck_assert_uint_ne(a->handle, b->handle);
	ck_assert_ptr_eq(fgv_handles_find(&handles, FGV_KIND_EVENT, a->handle), a);
	ck_assert_ptr_eq(fgv_handles_find(&handles, FGV_KIND_EVENT, b->handle), b);
}
END_TEST

START_TEST(keeps_kinds_apart)
{
	struct fgv_object *event = add(FGV_KIND_EVENT);

	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_STREAM, event->handle));
	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_MODULE, event->handle));
}
END_TEST

START_TEST(knows_no_other_number)
{
	struct fgv_object *event = add(FGV_KIND_EVENT);

	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_EVENT, 0));
	for (unsigned bit = 0; bit < 32; bit++) {
		uint32_t other = event->handle ^ 1u << bit;

		ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_EVENT, other));
	}
}
END_TEST

START_TEST(forgets_a_removed_one)
{
	struct fgv_object *object = add(FGV_KIND_STREAM);
	uint32_t old = object->handle;

	drop(object);
	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_STREAM, old));
	object = add(FGV_KIND_STREAM);
	ck_assert_uint_ne(object->handle, old);
	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_STREAM, old));
}
END_TEST

/* One slot goes through all its generations; no handle is 0, none names the one before. */
START_TEST(goes_through_all_generations)
{
	uint32_t before = 0;

	for (int i = 0; i < 3 * 4096; i++) {
		struct fgv_object *object = add(FGV_KIND_STREAM);

		ck_assert_uint_ne(object->handle, before);
		ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_STREAM, before));
		before = object->handle;
		drop(object);
	}
}
END_TEST

START_TEST(keeps_a_referenced_object)
{
	struct fgv_object *object = add(FGV_KIND_EVENT);

	fgv_object_get(object);
	fgv_handles_remove(&handles, object);
	ck_assert(!fgv_object_put(object));
	ck_assert_uint_eq(object->handle, 0);
	ck_assert(fgv_object_put(object));
	free(object);
}
END_TEST

START_TEST(has_a_limit)
{
	struct fgv_object *object = NULL;

	for (unsigned i = 0; i < FGV_STREAMS_MAX; i++)
		object = add(FGV_KIND_STREAM);
	ck_assert_ptr_null(fgv_handles_add(&handles, FGV_KIND_STREAM));
	drop(object);
	add(FGV_KIND_STREAM);
	ck_assert_ptr_null(fgv_handles_add(&handles, FGV_KIND_STREAM));
	add(FGV_KIND_EVENT);
}
END_TEST

/* Against a plain list of what should be there. */
START_TEST(survives_a_random_life)
{
	struct fgv_object *living[256] = {NULL};
	uint32_t dead[256] = {0};
	unsigned seed = 7;

	for (int round = 0; round < 100000; round++) {
		unsigned i = (unsigned)rand_r(&seed) % 256;

		if (living[i]) {
			ck_assert_ptr_eq(
				fgv_handles_find(&handles, FGV_KIND_EVENT, living[i]->handle),
				living[i]);
			dead[i] = living[i]->handle;
			drop(living[i]);
			living[i] = NULL;
		} else {
			living[i] = add(FGV_KIND_EVENT);
		}
		ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_EVENT, dead[i]));
	}
}
END_TEST

static struct fgv_object *add_own(enum fgv_kind kind, uint32_t handle)
{
	struct fgv_object *object = NULL;

	ck_assert_int_eq(fgv_handles_add_own(&handles, kind, handle, &object), 0);
	ck_assert_uint_eq(object->handle, handle);
	return object;
}

/* Beside others, which never get such a handle. */
START_TEST(takes_handles_of_the_guests_own)
{
	struct fgv_object *given = add(FGV_KIND_EVENT), *first, *far, *none = NULL;
	uint32_t at = 0, seen = 0;

	first = add_own(FGV_KIND_EVENT, FGV_OWN_BIT);
	far = add_own(FGV_KIND_EVENT, FGV_OWN_BIT + FGV_OWN_EVENTS_MAX + FGV_OWN_SPARE - 1);
	ck_assert_uint_eq(given->handle & FGV_OWN_BIT, 0);
	ck_assert_ptr_eq(fgv_handles_find(&handles, FGV_KIND_EVENT, first->handle), first);
	ck_assert_ptr_eq(fgv_handles_find(&handles, FGV_KIND_EVENT, far->handle), far);
	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_STREAM, first->handle));
	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_EVENT, far->handle + 1));
	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_MODULE, UINT32_MAX));
	ck_assert_int_eq(fgv_handles_add_own(&handles, FGV_KIND_EVENT, first->handle, &none),
			 -EINVAL);
	ck_assert_int_eq(fgv_handles_add_own(&handles, FGV_KIND_MODULE, FGV_OWN_BIT, &none),
			 -EINVAL);
	while (fgv_handles_next(&handles, FGV_KIND_EVENT, &at))
		seen++;
	ck_assert_uint_eq(seen, 3);
	drop(first);
	ck_assert_ptr_null(fgv_handles_find(&handles, FGV_KIND_EVENT, FGV_OWN_BIT));
	add_own(FGV_KIND_EVENT, FGV_OWN_BIT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("handles");
	TCase *tcase = tcase_create("handles");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, finds_what_was_added);
	tcase_add_test(tcase, keeps_kinds_apart);
	tcase_add_test(tcase, knows_no_other_number);
	tcase_add_test(tcase, forgets_a_removed_one);
	tcase_add_test(tcase, goes_through_all_generations);
	tcase_add_test(tcase, keeps_a_referenced_object);
	tcase_add_test(tcase, has_a_limit);
	tcase_add_test(tcase, survives_a_random_life);
	tcase_add_test(tcase, takes_handles_of_the_guests_own);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
