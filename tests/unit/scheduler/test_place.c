/*
 * Placement: what each rule does, and what must hold whatever is put and taken back. Algorithm 2
 * is compared with a model that hands out one block after the other, as the hardware does.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/place.h"
#include "scheduler/place_priv.h"

#define GIB (1ull << 30)
#define ALL UINT32_MAX

/* The sanitizers make each step some ten times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPS 2000
#else
#define STEPS 20000
#endif
#define TASKS 200

static const struct fgv_place_gpu v100 = {16 * GIB, 80, 32, 64};
static const struct fgv_place_where anywhere = {.gpus = ALL};

static const struct fgv_place_rule *const safe[] = {
	&fgv_place_mgb2, &fgv_place_mgb3, &fgv_place_least, &fgv_place_memory, &fgv_place_single,
};

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static struct fgv_place *make(size_t count)
{
	struct fgv_place_gpu gpus[FGV_PLACE_GPUS_MAX];
	struct fgv_place *place;

	for (size_t i = 0; i < count; i++)
		gpus[i] = v100;
	ck_assert_int_eq(fgv_place_create(&place, gpus, count), 0);
	return place;
}

static int put(struct fgv_place *place, const struct fgv_place_rule *rule, uint64_t gib,
	       uint64_t blocks, uint32_t warps, struct fgv_place_task *task)
{
	const struct fgv_place_need need = {gib * GIB, blocks, warps};

	return fgv_place_put(place, rule, &need, &anywhere, task);
}

/* --- Each rule ---------------------------------------------------------------- */

START_TEST(names_lead_to_the_daemons_rules)
{
	ck_assert_ptr_eq(fgv_place_find("fixed"), &fgv_place_fixed);
	ck_assert_ptr_eq(fgv_place_find("mgb2"), &fgv_place_mgb2);
	ck_assert_ptr_eq(fgv_place_find("mgb3"), &fgv_place_mgb3);
	ck_assert_ptr_eq(fgv_place_find("least"), &fgv_place_least);
	ck_assert_ptr_null(fgv_place_find("cores"));
	ck_assert_ptr_null(fgv_place_find(""));
}
END_TEST

/* A GPU holds 640 blocks of eight warps. */
START_TEST(algorithm_2_needs_room_for_all_blocks)
{
	struct fgv_place *place = make(2);
	struct fgv_place_task half, other, small, late;

	ck_assert_int_eq(put(place, &fgv_place_mgb2, 1, 320, 8, &half), 0);
	ck_assert_uint_eq(half.gpu, 0);
	ck_assert_uint_eq(half.warps, 2560);
	ck_assert_int_eq(put(place, &fgv_place_mgb2, 1, 400, 8, &other), 0);
	ck_assert_uint_eq(other.gpu, 1);
	ck_assert_int_eq(put(place, &fgv_place_mgb2, 1, 320, 8, &small), 0);
	ck_assert_uint_eq(small.gpu, 0);
	/* both have memory, neither has 320 blocks */
	ck_assert_int_eq(put(place, &fgv_place_mgb2, 1, 320, 8, &late), -EAGAIN);
	fgv_place_take_back(place, &half);
	ck_assert_int_eq(put(place, &fgv_place_mgb2, 1, 320, 8, &late), 0);
	ck_assert_uint_eq(late.gpu, 0);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(algorithm_2_caps_a_grid_at_what_a_gpu_holds)
{
	struct fgv_place *place = make(2);
	struct fgv_place_task task[3];

	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_eq(put(place, &fgv_place_mgb2, 1, 1000000, 8, &task[i]), 0);
		ck_assert_uint_eq(task[i].gpu, i);
		ck_assert_uint_eq(task[i].warps, 80 * 64);
	}
	ck_assert_int_eq(put(place, &fgv_place_mgb2, 1, 1, 1, &task[2]), -EAGAIN);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(algorithm_3_takes_the_least_loaded_with_memory)
{
	struct fgv_place *place = make(3);
	struct fgv_place_task task[5];

	ck_assert_int_eq(put(place, &fgv_place_mgb3, 2, 100, 8, &task[0]), 0);
	ck_assert_uint_eq(task[0].gpu, 0);
	ck_assert_int_eq(put(place, &fgv_place_mgb3, 10, 200, 8, &task[1]), 0);
	ck_assert_uint_eq(task[1].gpu, 1);
	ck_assert_int_eq(put(place, &fgv_place_mgb3, 15, 10, 8, &task[2]), 0);
	ck_assert_uint_eq(task[2].gpu, 2);
	/* 2 has the fewest warps, but 1 GiB */
	ck_assert_int_eq(put(place, &fgv_place_mgb3, 3, 1000, 8, &task[3]), 0);
	ck_assert_uint_eq(task[3].gpu, 0);
	/* a full GPU is no obstacle where nothing else has the memory */
	ck_assert_int_eq(put(place, &fgv_place_mgb3, 9, 1, 1, &task[4]), 0);
	ck_assert_uint_eq(task[4].gpu, 0);
	fgv_place_destroy(place);
}
END_TEST

/* Tasks of unknown shape are spread as well. */
START_TEST(ties_go_to_the_fewest_tasks)
{
	static const struct fgv_place_rule *const rules[] = {&fgv_place_mgb3, &fgv_place_least};
	struct fgv_place *place = make(4);
	struct fgv_place_task task[8];

	for (uint32_t i = 0; i < 8; i++) {
		ck_assert_int_eq(put(place, rules[_i], 0, 0, 0, &task[i]), 0);
		ck_assert_uint_eq(task[i].gpu, i % 4);
	}
	fgv_place_take_back(place, &task[6]);
	ck_assert_int_eq(put(place, rules[_i], 0, 0, 0, &task[6]), 0);
	ck_assert_uint_eq(task[6].gpu, 2);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(least_goes_by_load)
{
	struct fgv_place *place = make(3);
	struct fgv_place_task task[2];

	fgv_place_set_load(place, 0, 700);
	fgv_place_set_load(place, 1, 100);
	fgv_place_set_load(place, 2, 400);
	ck_assert_int_eq(put(place, &fgv_place_least, 12, 0, 0, &task[0]), 0);
	ck_assert_uint_eq(task[0].gpu, 1);
	ck_assert_int_eq(put(place, &fgv_place_least, 5, 0, 0, &task[1]), 0);
	ck_assert_uint_eq(task[1].gpu, 2);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(single_assignment_shares_nothing)
{
	struct fgv_place *place = make(2);
	struct fgv_place_task task[3];

	ck_assert_int_eq(put(place, &fgv_place_single, 1, 1, 1, &task[0]), 0);
	ck_assert_int_eq(put(place, &fgv_place_single, 1, 1, 1, &task[1]), 0);
	ck_assert_uint_ne(task[0].gpu, task[1].gpu);
	ck_assert_int_eq(put(place, &fgv_place_single, 1, 1, 1, &task[2]), -EAGAIN);
	fgv_place_take_back(place, &task[0]);
	ck_assert_int_eq(put(place, &fgv_place_single, 1, 1, 1, &task[2]), 0);
	ck_assert_uint_eq(task[2].gpu, task[0].gpu);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(core_to_gpu_goes_round_and_looks_at_nothing)
{
	struct fgv_place *place = make(2);
	struct fgv_place_task task[4];
	struct fgv_place_use use;

	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(put(place, &fgv_place_cores, 10, 1, 1, &task[i]), 0);
		ck_assert_uint_eq(task[i].gpu, i % 2);
	}
	fgv_place_look(place, 1, &use);
	ck_assert_uint_eq(use.memory_bytes, 20 * GIB);
	ck_assert_uint_eq(use.tasks, 2);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(memory_alone_fills_the_first)
{
	struct fgv_place *place = make(2);
	struct fgv_place_task task;

	for (int i = 0; i < 8; i++) {
		ck_assert_int_eq(put(place, &fgv_place_memory, 2, 1000, 8, &task), 0);
		ck_assert_uint_eq(task.gpu, 0);
	}
	ck_assert_int_eq(put(place, &fgv_place_memory, 2, 1000, 8, &task), 0);
	ck_assert_uint_eq(task.gpu, 1);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(only_allowed_gpus_are_used)
{
	static const uint64_t free_bytes[] = {16 * GIB, 16 * GIB, 3 * GIB, 16 * GIB};
	struct fgv_place_where where = {.gpus = 1u << 2 | 1u << 3, .free_bytes = free_bytes};
	struct fgv_place_need need = {4 * GIB, 0, 0};
	struct fgv_place *place = make(4);
	struct fgv_place_task task;

	for (size_t i = 0; i < FGV_ARRAY_LEN(safe) - 1; i++) {
		ck_assert_int_eq(fgv_place_put(place, safe[i], &need, &where, &task), 0);
		ck_assert_uint_eq(task.gpu, 3);
		fgv_place_take_back(place, &task);
	}
	ck_assert_int_eq(fgv_place_put(place, &fgv_place_fixed, &need, &where, &task), 0);
	ck_assert_uint_eq(task.gpu, 2);
	where.gpus = 1u << 2;
	ck_assert_int_eq(fgv_place_put(place, &fgv_place_mgb3, &need, &where, &task), -EAGAIN);
	need.memory_bytes = 17 * GIB;
	ck_assert_int_eq(fgv_place_put(place, &fgv_place_mgb3, &need, &where, &task), -E2BIG);
	where.gpus = 1u << 9;
	ck_assert_int_eq(fgv_place_put(place, &fgv_place_fixed, &need, &where, &task), -E2BIG);
	fgv_place_destroy(place);
}
END_TEST

/* What a guest could say. */
START_TEST(absurd_needs_take_what_a_gpu_has)
{
	static const struct fgv_place_need needs[] = {
		{UINT64_MAX, UINT64_MAX, UINT32_MAX}, {UINT64_MAX, 1, 0}, {0, UINT64_MAX, 1}};
	struct fgv_place *place = make(1);
	struct fgv_place_task task[64];
	struct fgv_place_use use;

	for (size_t n = 0; n < FGV_ARRAY_LEN(needs); n++) {
		for (int i = 0; i < 64; i++)
			ck_assert_int_eq(fgv_place_put(place, &fgv_place_fixed, &needs[n],
						       &anywhere, &task[i]),
					 0);
		fgv_place_look(place, 0, &use);
		ck_assert_uint_le(use.memory_bytes, 64 * 16 * GIB);
		ck_assert_uint_le(use.warps, 64 * 80 * 64);
		for (int i = 0; i < 64; i++)
			fgv_place_take_back(place, &task[i]);
	}
	ck_assert_int_eq(put(place, &fgv_place_single, 16, 80 * 32, 2, &task[0]), 0);
	fgv_place_charge(place, &task[0], UINT64_MAX);
	ck_assert_uint_eq(task[0].memory_bytes, 16 * GIB);
	fgv_place_destroy(place);
}
END_TEST

START_TEST(bad_counts_are_refused)
{
	struct fgv_place_gpu gpus[FGV_PLACE_GPUS_MAX + 1] = {{0}};
	struct fgv_place *place;

	ck_assert_int_eq(fgv_place_create(&place, gpus, 0), -EINVAL);
	ck_assert_int_eq(fgv_place_create(&place, gpus, FGV_PLACE_GPUS_MAX + 1), -EINVAL);
	/* a GPU of which nothing is known has no memory, and its multiprocessors do not count */
	ck_assert_int_eq(fgv_place_create(&place, gpus, 1), 0);
	ck_assert_int_eq(put(place, &fgv_place_mgb3, 1, 5, 5, &(struct fgv_place_task){0}), -E2BIG);
	ck_assert_int_eq(put(place, &fgv_place_mgb2, 0, 5, 5, &(struct fgv_place_task){0}), 0);
	fgv_place_destroy(place);
}
END_TEST

/* --- What always holds ---------------------------------------------------------- */

/* One block after the other: to the next multiprocessor that has room. */
static uint64_t spread_slowly(const struct fgv_place_state *gpu, uint32_t warps, uint64_t blocks,
			      uint8_t *gets, uint32_t *next_sm)
{
	struct fgv_place_state model = *gpu;
	uint64_t given = 0;
	uint32_t tried = 0;

	memset(gets, 0, FGV_PLACE_SMS_MAX);
	while (given < blocks && tried < model.has.sms) {
		uint32_t at = (model.next_sm + tried) % model.has.sms;
		struct fgv_place_sm *sm = &model.sms[at];

		if (sm->blocks >= model.has.sm_blocks || sm->warps + warps > model.has.sm_warps) {
			tried++;
			continue;
		}
		sm->blocks++;
		sm->warps = (uint8_t)(sm->warps + warps);
		gets[at]++;
		given++;
		model.next_sm = (at + 1) % model.has.sms;
		tried = 0;
	}
	*next_sm = model.next_sm;
	return given;
}

START_TEST(blocks_spread_as_one_by_one)
{
	struct fgv_place_state gpu = {.has = {GIB, 0, 0, 0}};
	uint8_t gets[FGV_PLACE_SMS_MAX], slow_gets[FGV_PLACE_SMS_MAX];

	seed = 4711;
	for (int i = 0; i < STEPS; i++) {
		uint32_t warps = 1 + (uint32_t)draw(16), next, slow_next;
		uint64_t blocks = draw(300), given;

		gpu.has.sms = 1 + (uint32_t)draw(20);
		gpu.has.sm_blocks = 1 + (uint32_t)draw(FGV_PLACE_SM_MAX);
		gpu.has.sm_warps = 16 + (uint32_t)draw(FGV_PLACE_SM_MAX - 15);
		gpu.next_sm = (uint32_t)draw(gpu.has.sms);
		for (uint32_t sm = 0; sm < gpu.has.sms; sm++) {
			gpu.sms[sm].blocks = (uint8_t)draw(gpu.has.sm_blocks + 1);
			gpu.sms[sm].warps = (uint8_t)draw(gpu.has.sm_warps + 1);
		}
		given = fgv_place_spread(&gpu, warps, blocks, gets, &next);
		ck_assert_uint_eq(given, spread_slowly(&gpu, warps, blocks, slow_gets, &slow_next));
		ck_assert_mem_eq(gets, slow_gets, gpu.has.sms);
		ck_assert_uint_eq(next, slow_next);
	}
}
END_TEST

/* Nothing is over what there is, and what is counted is the sum of what is there. */
static void check(const struct fgv_place *place, const struct fgv_place_task *task,
		  const bool *is_put, bool is_mgb2)
{
	for (uint32_t g = 0; g < place->count; g++) {
		const struct fgv_place_state *gpu = &place->gpus[g];
		struct fgv_place_use sum = {0};

		for (int i = 0; i < TASKS; i++) {
			if (!is_put[i] || task[i].gpu != g)
				continue;
			sum.memory_bytes += task[i].memory_bytes;
			sum.warps += task[i].warps;
			sum.tasks++;
		}
		ck_assert_uint_le(sum.memory_bytes, gpu->has.memory_bytes);
		ck_assert_uint_eq(sum.memory_bytes, gpu->use.memory_bytes);
		ck_assert_uint_eq(sum.warps, gpu->use.warps);
		ck_assert_uint_eq(sum.tasks, gpu->use.tasks);
		for (uint32_t sm = 0; sm < gpu->has.sms; sm++) {
			ck_assert_uint_le(gpu->sms[sm].blocks, gpu->has.sm_blocks);
			ck_assert_uint_le(gpu->sms[sm].warps, gpu->has.sm_warps);
		}
		if (is_mgb2)
			ck_assert_uint_le(sum.warps, (uint64_t)gpu->has.sms * gpu->has.sm_warps);
	}
}

/* Whether some GPU has the memory, which is all that a rule but single and mgb2 may ask for. */
static bool some_gpu_has(const struct fgv_place *place, uint64_t bytes)
{
	for (size_t i = 0; i < place->count; i++)
		if (bytes <= place->gpus[i].has.memory_bytes - place->gpus[i].use.memory_bytes)
			return true;
	return false;
}

START_TEST(whatever_comes_and_goes_the_books_are_right)
{
	const struct fgv_place_rule *rule = safe[_i];
	bool asks_for_more = rule == &fgv_place_single || rule == &fgv_place_mgb2;
	struct fgv_place *place = make(4), *empty = make(4);
	struct fgv_place_task task[TASKS];
	bool is_put[TASKS] = {false};

	seed = 88172645463325252ull + (uint64_t)_i;
	for (int i = 0; i < STEPS; i++) {
		size_t t = draw(TASKS);
		const struct fgv_place_need need = {draw(17 * GIB), draw(2000), (uint32_t)draw(40)};
		bool fits = some_gpu_has(place, need.memory_bytes);
		int ret;

		if (is_put[t]) {
			fgv_place_take_back(place, &task[t]);
			is_put[t] = false;
		} else {
			ret = fgv_place_put(place, rule, &need, &anywhere, &task[t]);
			is_put[t] = !ret;
			ck_assert(ret == 0 || ret == -EAGAIN || ret == -E2BIG);
			ck_assert(fits || ret != 0);
			ck_assert(!fits || ret == 0 || asks_for_more);
			ck_assert_int_eq(ret == -E2BIG, need.memory_bytes > 16 * GIB);
		}
		if (i % 16 == 0)
			check(place, task, is_put, rule == &fgv_place_mgb2);
	}
	for (int i = 0; i < TASKS; i++)
		if (is_put[i])
			fgv_place_take_back(place, &task[i]);
	for (uint32_t g = 0; g < 4; g++) { /* but for where the next block goes */
		place->gpus[g].next_sm = 0;
		ck_assert_mem_eq(&place->gpus[g], &empty->gpus[g], sizeof(place->gpus[g]));
	}
	fgv_place_destroy(place);
	fgv_place_destroy(empty);
}
END_TEST

START_TEST(a_charge_is_taken_back_with_its_task)
{
	struct fgv_place *place = make(1);
	struct fgv_place_task task[2];
	struct fgv_place_use use;

	ck_assert_int_eq(put(place, &fgv_place_mgb3, 4, 1, 1, &task[0]), 0);
	ck_assert_int_eq(put(place, &fgv_place_mgb3, 0, 1, 1, &task[1]), 0);
	fgv_place_charge(place, &task[1], 14 * GIB);
	fgv_place_look(place, 0, &use);
	ck_assert_uint_eq(use.memory_bytes, 18 * GIB);
	ck_assert_int_eq(put(place, &fgv_place_mgb3, 0, 1, 1, &(struct fgv_place_task){0}),
			 -EAGAIN);
	fgv_place_charge(place, &task[1], 3 * GIB);
	fgv_place_take_back(place, &task[0]);
	fgv_place_look(place, 0, &use);
	ck_assert_uint_eq(use.memory_bytes, 3 * GIB);
	fgv_place_take_back(place, &task[1]);
	fgv_place_look(place, 0, &use);
	ck_assert_uint_eq(use.memory_bytes, 0);
	fgv_place_destroy(place);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("place");
	TCase *rules = tcase_create("rules"), *properties = tcase_create("properties");
	SRunner *runner;
	int failed;

	tcase_add_test(rules, names_lead_to_the_daemons_rules);
	tcase_add_test(rules, algorithm_2_needs_room_for_all_blocks);
	tcase_add_test(rules, algorithm_2_caps_a_grid_at_what_a_gpu_holds);
	tcase_add_test(rules, algorithm_3_takes_the_least_loaded_with_memory);
	tcase_add_loop_test(rules, ties_go_to_the_fewest_tasks, 0, 2);
	tcase_add_test(rules, least_goes_by_load);
	tcase_add_test(rules, single_assignment_shares_nothing);
	tcase_add_test(rules, core_to_gpu_goes_round_and_looks_at_nothing);
	tcase_add_test(rules, memory_alone_fills_the_first);
	tcase_add_test(rules, only_allowed_gpus_are_used);
	tcase_add_test(rules, absurd_needs_take_what_a_gpu_has);
	tcase_add_test(rules, bad_counts_are_refused);
	tcase_add_test(properties, blocks_spread_as_one_by_one);
	tcase_add_loop_test(properties, whatever_comes_and_goes_the_books_are_right, 0,
			    FGV_ARRAY_LEN(safe));
	tcase_add_test(properties, a_charge_is_taken_back_with_its_task);
	tcase_set_timeout(properties, 120);
	suite_add_tcase(suite, rules);
	suite_add_tcase(suite, properties);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
