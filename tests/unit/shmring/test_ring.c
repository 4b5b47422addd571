/* The ring: marks, full and empty, the wrap-around at 2^32, and marks that lie. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "shmring/ring.h"

#define SIZE 8u

static const uint32_t starts[] = {0, 5, 0xfffffff0u, 0xfffffffdu, 0xffffffffu, FGV_RING_START};

static struct fgv_slot slots[SIZE];
static struct fgv_ring producer, consumer;

static void set_up(uint32_t start)
{
	fgv_ring_format(slots, SIZE, start);
	fgv_ring_attach(&producer, slots, SIZE, start);
	fgv_ring_attach(&consumer, slots, SIZE, start);
}

static bool put(uint32_t value)
{
	struct fgv_slot *slot = fgv_ring_reserve(&producer);

	if (!slot)
		return false;
	slot->call = value;
	fgv_ring_publish(&producer);
	return true;
}

static uint32_t take(void)
{
	const struct fgv_slot *slot = fgv_ring_peek(&consumer);
	uint32_t value;

	ck_assert_ptr_nonnull(slot);
	value = slot->call;
	fgv_ring_release(&consumer);
	return value;
}

START_TEST(fills_and_empties)
{
	set_up(starts[_i]);
	ck_assert_ptr_null(fgv_ring_peek(&consumer));
	ck_assert_ptr_null(fgv_ring_peek_ordered(&consumer));
	for (uint32_t i = 0; i < SIZE; i++)
		ck_assert(put(i));
	ck_assert(!put(99));
	for (uint32_t i = 0; i < SIZE; i++)
		ck_assert_uint_eq(take(), i);
	ck_assert_ptr_null(fgv_ring_peek(&consumer));
	ck_assert(put(7));
	ck_assert_ptr_nonnull(fgv_ring_peek_ordered(&consumer));
}
END_TEST

/* Every depth of filling, over several laps, passes through the wrap-around. */
START_TEST(goes_round)
{
	uint32_t sent = 0, got = 0;

	set_up(starts[_i]);
	for (uint32_t depth = 1; depth <= SIZE; depth++) {
		for (uint32_t lap = 0; lap < 5; lap++) {
			for (uint32_t i = 0; i < depth; i++)
				ck_assert(put(sent++));
			for (uint32_t i = 0; i < depth; i++)
				ck_assert_uint_eq(take(), got++);
		}
	}
	ck_assert_uint_eq(producer.position, starts[_i] + sent);
}
END_TEST

START_TEST(knows_freed_slots)
{
	uint32_t first = starts[_i];

	set_up(first);
	put(1);
	put(2);
	ck_assert(!fgv_ring_freed(&producer, first));
	take();
	ck_assert(fgv_ring_freed(&producer, first));
	ck_assert(fgv_ring_freed_ordered(&producer, first));
	ck_assert(!fgv_ring_freed_ordered(&producer, first + 1));
	ck_assert_uint_eq(take(), 2);
	ck_assert(fgv_ring_freed(&producer, first + 1));
}
END_TEST

/* Whatever the other side writes as a mark, nothing but the one right value counts. */
START_TEST(ignores_wrong_marks)
{
	uint32_t start = starts[_i];

	set_up(start);
	for (uint32_t d = 2; d < 4 * SIZE; d++) {
		slots[start % SIZE].mark = start + d;
		ck_assert_ptr_null(fgv_ring_reserve(&producer));
		ck_assert_ptr_null(fgv_ring_peek(&consumer));
		slots[start % SIZE].mark = start - d;
		ck_assert_ptr_null(fgv_ring_reserve(&producer));
		ck_assert_ptr_null(fgv_ring_peek(&consumer));
	}
	ck_assert_uint_eq(producer.position, start);
	ck_assert_uint_eq(consumer.position, start);
}
END_TEST

#define HANDOVERS 20000u

static void *produce(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < HANDOVERS; i++) {
		struct fgv_slot *slot;

		while (!(slot = fgv_ring_reserve(&producer)))
			sched_yield();
		slot->op = (uint16_t)i;
		slot->ticket = (uint64_t)i << 20;
		memset(slot->data, (int)i, sizeof(slot->data));
		fgv_ring_publish(&producer);
	}
	return NULL;
}

/* Two threads; it is ThreadSanitizer that gets most out of it. */
START_TEST(hands_over_between_threads)
{
	uint8_t expected[FGV_SLOT_INLINE];
	pthread_t thread;

	set_up(0u - HANDOVERS / 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, produce, NULL), 0);
	for (uint32_t i = 0; i < HANDOVERS; i++) {
		const struct fgv_slot *slot;

		while (!(slot = fgv_ring_peek(&consumer)))
			sched_yield();
		memset(expected, (int)i, sizeof(expected));
		ck_assert_uint_eq(slot->op, (uint16_t)i);
		ck_assert_uint_eq(slot->ticket, (uint64_t)i << 20);
		ck_assert_mem_eq(slot->data, expected, sizeof(expected));
		fgv_ring_release(&consumer);
	}
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *tcase = tcase_create("ring");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, fills_and_empties, 0, FGV_ARRAY_LEN(starts));
	tcase_add_loop_test(tcase, goes_round, 0, FGV_ARRAY_LEN(starts));
	tcase_add_loop_test(tcase, knows_freed_slots, 0, FGV_ARRAY_LEN(starts));
	tcase_add_loop_test(tcase, ignores_wrong_marks, 0, FGV_ARRAY_LEN(starts));
	tcase_add_test(tcase, hands_over_between_threads);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
