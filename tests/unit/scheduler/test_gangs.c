/*
 * Gangs (scheduler/gangs.h): their turns on several GPUs go together, by their weights; a part
 * alone is served like any vGPU; and in schedules made at random nobody waits for ever, no GPU is
 * idle while somebody asks for it, and no VM is ahead of one that is no gang by more than stated.
 */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/util.h"
#include "tests/unit/scheduler/test_gangs_world.h"

#define MS    FGV_NS_PER_MS
#define SLICE WORLD_SLICE_NS
#define RUN   (4 * FGV_NS_PER_SEC)

static struct gangs_world world;

static double share(const struct vm *vm, unsigned gpu)
{
	return (double)vm->part[gpu].used_ns / (double)world.now_ns;
}

static double together(const struct vm *vm)
{
	return (double)vm->together_ns / (double)world.now_ns;
}

static void expect_near(double value, double wanted, double by)
{
	ck_assert_msg(fabs(value - wanted) <= by, "%.4f, not %.4f", value, wanted);
}

/* --- Two gangs ---------------------------------------------------------------- */

START_TEST(turns_of_two_gangs_go_together)
{
	struct vm *one, *two;

	gangs_open(&world, 2, (uint64_t)_i + 1);
	one = gangs_add(&world, 1, 3, true);
	two = gangs_add(&world, 2, 3, true);
	gangs_run(&world, RUN);
	for (unsigned gpu = 0; gpu < 2; gpu++) {
		expect_near(share(one, gpu), 1.0 / 3, 0.01);
		expect_near(share(two, gpu), 2.0 / 3, 0.01);
	}
	/* What is lost is what a grant comes back late, at random. */
	ck_assert_double_ge(together(one), 0.97 / 3);
	ck_assert_double_ge(together(two), 0.97 * 2 / 3);
	/* Two turns of the other, and one that has been late. */
	ck_assert_uint_le(one->max_turns_apart_ns, 4 * SLICE);
	ck_assert_uint_le(two->max_turns_apart_ns, 2 * SLICE);
	gangs_close(&world);
}
END_TEST

/* The same without: half of the time of each is spent waiting. What the test above could miss. */
START_TEST(without_gangs_they_do_not)
{
	struct vm *one;

	gangs_open(&world, 2, 1);
	one = gangs_add(&world, 1, 3, false);
	gangs_add(&world, 2, 3, false);
	gangs_run(&world, RUN);
	expect_near(share(one, 0), 1.0 / 3, 0.01);
	ck_assert_double_le(together(one), 0.25);
	gangs_close(&world);
}
END_TEST

/* --- Beside others -------------------------------------------------------------- */

/* A gang goes at the pace of the GPU that leaves it least; what it leaves elsewhere is others'. */
START_TEST(others_lose_nothing_to_a_gang)
{
	struct vm *gang, *alone, *first, *second;

	gangs_open(&world, 2, 1);
	gang = gangs_add(&world, 1, 3, true);
	alone = gangs_add(&world, 1, 1, false);
	first = gangs_add(&world, 1, 2, false);
	second = gangs_add(&world, 1, 2, false);
	gangs_run(&world, RUN);
	expect_near(share(first, 1), 1.0 / 3, 0.01);
	expect_near(share(second, 1), 1.0 / 3, 0.01);
	ck_assert_double_ge(share(alone, 0), 0.5);
	ck_assert_double_ge(together(gang), 0.97 / 3);
	gangs_close(&world);
}
END_TEST

START_TEST(heavy_neighbours_keep_their_shares)
{
	struct vm *gang, *first, *second;

	gangs_open(&world, 2, 1);
	gang = gangs_add(&world, 1, 3, true);
	first = gangs_add(&world, 10, 1, false);
	second = gangs_add(&world, 10, 2, false);
	gangs_run(&world, RUN);
	expect_near(share(first, 0), 10.0 / 11, 0.01);
	expect_near(share(second, 1), 10.0 / 11, 0.01);
	ck_assert_double_ge(together(gang), 0.94 / 11);
	gangs_close(&world);
}
END_TEST

/* It asks for the second GPU only now and then: on the first it is like any other VM. */
START_TEST(a_gang_with_work_on_one_gpu_is_not_slowed)
{
	struct vm *gang, *beside;

	gangs_open(&world, 2, 1);
	gang = gangs_add(&world, 1, 3, true);
	gang->part[1].wake_ns = 10 * RUN;
	beside = gangs_add(&world, 1, 3, true);
	beside->part[1].wake_ns = 10 * RUN;
	gangs_run(&world, RUN);
	expect_near(share(gang, 0), 0.5, 0.01);
	expect_near(share(beside, 0), 0.5, 0.01);
	ck_assert_uint_le(gang->part[0].max_wait_ns, 2 * SLICE + MS);
	gangs_close(&world);
}
END_TEST

START_TEST(gpus_where_nobody_else_is_are_never_idle)
{
	struct vm *gang;

	gangs_open(&world, 2, 1);
	gang = gangs_add(&world, 1, 3, true);
	gangs_add(&world, 1, 1, false);
	gangs_run(&world, RUN);
	expect_near(share(gang, 0), 0.5, 0.02);
	expect_near(share(gang, 1), 1, 0.01);
	gangs_close(&world);
}
END_TEST

/* --- Three gangs in a circle ----------------------------------------------------- */

/* Any two of them share a GPU, each another one, so no two can have their turns together. */
START_TEST(a_circle_of_gangs_does_not_stand_still)
{
	struct vm *gang[3];

	gangs_open(&world, 3, (uint64_t)_i + 1);
	for (unsigned i = 0; i < 3; i++)
		gang[i] = gangs_add(&world, 1, 7u & ~(1u << i), true);
	gangs_run(&world, RUN);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_double_ge(together(gang[i]), 0.2);
		ck_assert_uint_le(gang[i]->max_turns_apart_ns, 12 * SLICE);
	}
	gangs_close(&world);
}
END_TEST

/* --- Schedules at random ---------------------------------------------------------- */

static void add_any(void)
{
	static const uint32_t weights[] = {1, 1, 1, 2, 3, 10};
	uint32_t all = (1u << world.gpus) - 1;
	uint32_t gpus = 1 + (uint32_t)gangs_draw(&world, all);
	struct vm *vm = gangs_add(&world, weights[gangs_draw(&world, FGV_ARRAY_LEN(weights))], gpus,
				  gangs_draw(&world, 3) > 0);

	for (unsigned g = 0; g < world.gpus; g++) {
		struct part *part = &vm->part[g];

		part->wake_ns = gangs_draw(&world, 20 * MS);
		switch (gangs_draw(&world, 4)) {
		case 0: /* one that claims to need its GPU, and does nothing there */
			part->burst_ns = 100 * FGV_NS_PER_US;
			part->pause_ns = gangs_draw(&world, MS);
			break;
		case 1:
			part->burst_ns = 20 * MS;
			part->pause_ns = 10 * MS;
			break;
		default:
			break;
		}
	}
}

/*
 * How long @vm waits on a GPU at most: each other VM that shares a GPU with it, or with one that
 * does, has turns by the ratio of the weights, and may have begun, or have an appointment.
 */
static uint64_t wait_bound_ns(const struct vm *vm)
{
	uint64_t turns = 4, gangs = 1;

	for (unsigned i = 0; i < world.vms; i++) {
		turns += 4 + 2 * world.vm[i].weight / vm->weight;
		gangs += world.vm[i].gang != NULL;
	}
	return turns * (vm->gang ? gangs : 1) * (SLICE + MS);
}

static void check_waits(uint64_t seed)
{
	for (unsigned i = 0; i < world.vms; i++) {
		for (unsigned g = 0; g < world.gpus; g++) {
			const struct part *part = &world.vm[i].part[g];
			uint64_t wait_ns = part->max_wait_ns;

			if (part->session && part->state == PART_WAITING)
				wait_ns = fgv_max_u64(wait_ns, world.now_ns - part->asked_ns);
			if (wait_ns > wait_bound_ns(&world.vm[i]))
				ck_abort_msg("seed %ju: VM %u waited %.1f ms for GPU %u, not %.1f",
					     (uintmax_t)seed, i, (double)wait_ns / MS, g,
					     (double)wait_bound_ns(&world.vm[i]) / MS);
		}
	}
}

START_TEST(schedules_at_random)
{
	const char *count = getenv("FAIRGV_TEST_SCHEDULES");
	uint64_t seeds = count ? strtoull(count, NULL, 10) : 3000;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		gangs_open(&world, 1 + (unsigned)(seed % WORLD_GPUS), seed);
		while (world.vms < 2 || (world.vms < WORLD_VMS && gangs_draw(&world, 4)))
			add_any();
		gangs_run(&world, FGV_NS_PER_SEC / 2);
		check_waits(seed);
		if (world.worst > 1)
			ck_abort_msg("seed %ju: ahead by %.2f of what is allowed", (uintmax_t)seed,
				     world.worst);
		gangs_close(&world);
	}
}
END_TEST

/* --- Set-up ----------------------------------------------------------------------- */

START_TEST(what_can_be_no_part_is_refused)
{
	struct vm *gang;
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu;

	gangs_open(&world, 2, 1);
	gang = gangs_add(&world, 1, 3, true);
	ck_assert_int_eq(fgv_sched_set_gang(gang->part[0].vgpu, gang->gang), -EBUSY);
	ck_assert_int_eq(fgv_sched_create(&sched, &fgv_policy_fair, NULL, 0), 0);
	ck_assert_int_eq(fgv_sched_attach_vgpu(sched, 1, NULL, 0, &vgpu), 0);
	ck_assert_int_eq(fgv_sched_set_gang(vgpu, gang->gang), -EINVAL);
	fgv_sched_destroy(sched);
	gangs_close(&world);
}
END_TEST

/* Under a policy that knows no gangs a part is a vGPU like others, also when it is taken over. */
START_TEST(a_change_of_policy_lets_gangs_go)
{
	struct vm *one, *two;

	gangs_open(&world, 2, 1);
	one = gangs_add(&world, 1, 3, true);
	two = gangs_add(&world, 1, 3, true);
	gangs_run(&world, FGV_NS_PER_SEC);
	ck_assert_int_eq(
		fgv_sched_set_policy(world.gpu[1].sched, &fgv_policy_strict_co, world.now_ns), 0);
	gangs_run(&world, 2 * FGV_NS_PER_SEC);
	ck_assert_int_eq(fgv_sched_set_policy(world.gpu[1].sched, &fgv_policy_fair, world.now_ns),
			 0);
	gangs_run(&world, 4 * FGV_NS_PER_SEC);
	expect_near(share(one, 0), 0.5, 0.02);
	expect_near(share(two, 0), 0.5, 0.02);
	gangs_close(&world);
}
END_TEST

/* One goes while it has an appointment and others wait for its GPUs. */
START_TEST(a_gang_that_goes_leaves_no_appointment)
{
	struct vm *one, *two;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		gangs_open(&world, 2, seed);
		one = gangs_add(&world, 1, 3, true);
		two = gangs_add(&world, 1, 3, true);
		gangs_run(&world, 20 * MS + gangs_draw(&world, 20 * MS));
		gangs_remove(&world, one);
		gangs_run(&world, 500 * MS);
		ck_assert_ptr_eq(world.gpu[0].holder, two);
		ck_assert_ptr_eq(world.gpu[1].holder, two);
		gangs_close(&world);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gangs");
	TCase *tcase = tcase_create("gangs");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 3600);
	tcase_add_loop_test(tcase, turns_of_two_gangs_go_together, 0, 4);
	tcase_add_test(tcase, without_gangs_they_do_not);
	tcase_add_test(tcase, others_lose_nothing_to_a_gang);
	tcase_add_test(tcase, heavy_neighbours_keep_their_shares);
	tcase_add_test(tcase, a_gang_with_work_on_one_gpu_is_not_slowed);
	tcase_add_test(tcase, gpus_where_nobody_else_is_are_never_idle);
	tcase_add_loop_test(tcase, a_circle_of_gangs_does_not_stand_still, 0, 4);
	tcase_add_test(tcase, schedules_at_random);
	tcase_add_test(tcase, what_can_be_no_part_is_refused);
	tcase_add_test(tcase, a_change_of_policy_lets_gangs_go);
	tcase_add_test(tcase, a_gang_that_goes_leaves_no_appointment);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
