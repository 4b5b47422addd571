/*
 * A vGPU process that is frozen and thawed at any time: no byte is lost, what was asked meanwhile is
 * done afterwards, and it can end in every state. FAIRGV_TEST_SCHEDULES: how many random ones there
 * are.
 */
#include <check.h>
#include <cuda.h>
#include <sched.h>
#include <stddef.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shmring/park.h"
#include "softgpu/ledger.h"
#include "tests/unit/backend/vgpu/vgpu_frozen.h"

#define BLOCK	  128
/* Under a sanitizer each takes many times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCHEDULES 30
#else
#define SCHEDULES 200
#endif
#define STEPS	  40

static uint64_t on_gpu(void)
{
	return word(&account()->memory_bytes) - word(&account()->away_bytes);
}

START_TEST(memory_leaves_and_comes_back)
{
	uint64_t large = vgpu_must_alloc(&vgpu, 20 * MIB), small = vgpu_must_alloc(&vgpu, 1000);

	vgpu_fill(&vgpu, large, 5 * MIB, 0x12345678, 4);
	vgpu_fill(&vgpu, small, 250, 0xabcdef01, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_ge(on_gpu(), 22 * MIB);
	freeze();
	ck_assert_uint_eq(word(&account()->away_bytes), 22 * MIB);
	ck_assert_uint_lt(on_gpu(), MIB);
	thaw();
	ck_assert_uint_eq(word(&account()->away_bytes), 0);
	expect_words(large, 1000, 0x12345678);
	expect_words(large + 20 * MIB - 4000, 1000, 0x12345678);
	expect_words(small, 250, 0xabcdef01);
}
END_TEST

/* What is asked meanwhile is done afterwards, in its order. */
START_TEST(requests_wait)
{
	uint32_t function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint64_t address = vgpu_must_alloc(&vgpu, 4000);
	uint64_t args[] = {address, 1000, 2};

	vgpu_fill(&vgpu, address, 1000, 1, 4);
	freeze();
	vgpu_launch(&vgpu, function, 8, args, 3);
	vgpu_launch(&vgpu, function, 8, args, 3);
	ck_assert_uint_eq(word(&account()->launches), 0);
	want(false);
	expect_words(address, 1000, 1 + 2 * (5 + 2));
	freeze();
	thaw();
	expect_words(address, 1000, 1 + 2 * (5 + 2));
}
END_TEST

START_TEST(what_stays_is_named)
{
	uint64_t size[3] = {256, 256, 0};

	vgpu_must_create_array(&vgpu, size, 0, 0);
	vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	vgpu_must_alloc(&vgpu, MIB);
	freeze();
	ck_assert_uint_ge(word(&account()->stays_bytes[FGV_STAYS_ARRAYS]), 256 * 256 * 4);
	ck_assert_uint_gt(word(&account()->stays_bytes[FGV_STAYS_MODULES]), 0);
	ck_assert_uint_eq(word(&account()->stays_bytes[FGV_STAYS_MAPPED]), 0);
	thaw();
}
END_TEST

/* What was never touched neither takes memory before, nor afterwards. */
START_TEST(untouched_stays_nowhere)
{
	uint64_t address = vgpu_must_alloc(&vgpu, 40 * MIB);

	ck_assert_uint_eq(word(&account()->away_bytes), 40 * MIB);
	freeze();
	thaw();
	ck_assert_uint_eq(word(&account()->away_bytes), 40 * MIB);
	vgpu_record(&vgpu, vgpu_must_create_event(&vgpu), 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(word(&account()->away_bytes), 40 * MIB);
	vgpu_fill(&vgpu, address, 10, 7, 4);
	expect_words(address, 10, 7);
	ck_assert_uint_eq(word(&account()->away_bytes), 0);
	vgpu_mem_free(&vgpu, address);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(word(&account()->away_bytes), 0);
}
END_TEST

/* It moves in its turns: without the grant nothing does. */
START_TEST(moving_needs_the_grant)
{
	uint64_t address = vgpu_must_alloc(&vgpu, 40 * MIB);

	vgpu_fill(&vgpu, address, 10 * MIB, 3, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_take_grant(&vgpu);
	want(true);
	vgpu_await_wants(&vgpu);
	await(FGV_FROZEN_GOING);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	await(FGV_FROZEN);
	thaw();
	expect_words(address, 1000, 3);
}
END_TEST

/* A wish that is withdrawn before all is out. */
START_TEST(freezing_can_be_withdrawn)
{
	uint64_t address = vgpu_must_alloc(&vgpu, 40 * MIB);

	vgpu_fill(&vgpu, address, 10 * MIB, 3, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_take_grant(&vgpu);
	want(true);
	vgpu_await_wants(&vgpu);
	thaw();
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(word(&account()->away_bytes), 0);
	expect_words(address, 1000, 3);
}
END_TEST

static void start_with_engines(void)
{
	vgpu_spawn(&vgpu);
	vgpu.movable = vgpu.has_engines = true;
	vgpu_begin(&vgpu);
}

/* Where engines are granted by themselves each way needs its own, and none needs computing. */
START_TEST(moving_needs_its_engine)
{
	struct vgpu in, out;
	uint64_t address;

	start_with_engines();
	in = vgpu_copying(&vgpu, 0);
	out = vgpu_copying(&vgpu, 1);
	address = vgpu_must_alloc(&vgpu, 40 * MIB);
	vgpu_fill(&vgpu, address, 10 * MIB, 3, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_take_grant(&vgpu);
	want(true);
	vgpu_await_wants(&out);
	await(FGV_FROZEN_GOING);
	ck_assert_uint_eq(word(&account()->away_bytes), 0);
	vgpu_grant(&out, FGV_GRANT_NO_LIMIT);
	await(FGV_FROZEN);
	want(false);
	vgpu_await_wants(&in);
	await(FGV_FROZEN_COMING);
	vgpu_grant(&in, FGV_GRANT_NO_LIMIT);
	await(FGV_FROZEN_NOT);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	expect_words(address, 1000, 3);
	expect_words(address + 40 * MIB - 4000, 1000, 3);
	vgpu_leave(&vgpu);
}
END_TEST

/* How much is out while the rest is on its way; 0: it was too fast to be seen. */
static uint64_t freeze_in_part(void)
{
	uint64_t away;

	want(true);
	do
		away = word(&account()->away_bytes);
	while (!away && word(&account()->frozen) != FGV_FROZEN);
	return word(&account()->frozen) == FGV_FROZEN_GOING ? away : 0;
}

/* What the host has leaves at once, and comes back where the rest is not to go any more. */
START_TEST(what_is_out_has_left)
{
	uint64_t addresses[6], seen = 0;

	for (uint32_t i = 0; i < 6; i++) {
		addresses[i] = vgpu_must_alloc(&vgpu, 8 * MIB);
		vgpu_fill(&vgpu, addresses[i], 2 * MIB, i + 1, 4);
	}
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	for (unsigned tries = 0; tries < 20 || (!seen && tries < 1000); tries++) {
		seen += freeze_in_part() > 0;
		thaw();
		ck_assert_uint_eq(word(&account()->away_bytes), 0);
		for (uint32_t i = 0; i < 6; i++) {
			expect_words(addresses[i], 1000, i + 1);
			expect_words(addresses[i] + 8 * MIB - 4000, 1000, i + 1);
		}
	}
	ck_assert_uint_gt(seen, 0);
}
END_TEST

/* --- Over-commitment -------------------------------------------------------------- */

static void want_out(bool out)
{
	__atomic_store_n(&vgpu.allowance->out, out ? UINT64_C(1) << ACCOUNT : 0, __ATOMIC_RELEASE);
	fgv_doorbell_ring(vgpu.grant_bell_fd);
}

static void await_asks(enum fgv_asks asks)
{
	while (word(&account()->asks) != asks) {
		ck_assert(!vgpu_has_ended(&vgpu));
		sched_yield();
	}
}

/* Another process of the soft device has @bytes of its memory. */
static void others_have(uint64_t bytes)
{
	const size_t at = offsetof(struct softgpu_ledger, pages[1].used_bytes);
	const uint32_t bound = 2;

	ck_assert_int_eq(pwrite(vgpu.seat_fds[FGV_SEAT_LEDGER], &bytes, sizeof(bytes), at),
			 sizeof(bytes));
	ck_assert_int_eq(pwrite(vgpu.seat_fds[FGV_SEAT_LEDGER], &bound, sizeof(bound), 0),
			 sizeof(bound));
}

static void page(bool pages, bool alone)
{
	__atomic_store_n(&vgpu.allowance->paged, pages, __ATOMIC_SEQ_CST);
	__atomic_store_n(&vgpu.allowance->alone, alone ? UINT64_C(1) << ACCOUNT : 0,
			 __ATOMIC_SEQ_CST);
}

/* Its memory is out, and it asks for its turn when it has something to do, not before. */
START_TEST(asks_for_its_turn)
{
	uint32_t function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint64_t address = vgpu_must_alloc(&vgpu, 4000), args[] = {address, 1000, 2};

	vgpu_fill(&vgpu, address, 1000, 1, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	want_out(true);
	await(FGV_FROZEN);
	ck_assert_uint_eq(word(&account()->asks), FGV_ASKS_NOTHING);
	vgpu_launch(&vgpu, function, 8, args, 3);
	await_asks(FGV_ASKS_TURN);
	ck_assert_uint_eq(word(&account()->launches), 0);
	want_out(false);
	await(FGV_FROZEN_NOT);
	expect_words(address, 1000, 1 + 5 + 2);
	await_asks(FGV_ASKS_NOTHING);
}
END_TEST

/* What has no room waits until others' memory is out, or nobody makes room. */
START_TEST(waits_for_room)
{
	uint32_t function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint64_t address = vgpu_must_alloc(&vgpu, 8 * MIB), args[] = {address, 1000, 2};

	page(true, false);
	others_have(VGPU_MEMORY - MIB);
	vgpu_launch(&vgpu, function, 8, args, 3);
	await_asks(FGV_ASKS_ROOM);
	ck_assert_uint_eq(word(&account()->launches), 0);
	others_have(0);
	expect_words(address, 1000, 5 + 2);
	await_asks(FGV_ASKS_NOTHING);
}
END_TEST

START_TEST(fails_without_room)
{
	uint32_t function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint64_t address = vgpu_must_alloc(&vgpu, 8 * MIB), args[] = {address, 1000, 2};

	page(true, false);
	others_have(VGPU_MEMORY - MIB);
	vgpu_launch(&vgpu, function, 8, args, 3);
	await_asks(FGV_ASKS_ROOM);
	page(true, true);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_OUT_OF_MEMORY);
	others_have(0);
	vgpu_launch(&vgpu, function, 8, args, 3);
	expect_words(address, 1000, 5 + 2);
}
END_TEST

/* One that comes back and finds no room asks for it, and may be told to go out again. */
START_TEST(comes_back_late)
{
	uint64_t address = vgpu_must_alloc(&vgpu, 8 * MIB);

	page(true, false);
	vgpu_fill(&vgpu, address, MIB, 7, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	want_out(true);
	await(FGV_FROZEN);
	others_have(VGPU_MEMORY - MIB);
	want_out(false);
	await_asks(FGV_ASKS_ROOM);
	want_out(true);
	await(FGV_FROZEN);
	others_have(0);
	want_out(false);
	expect_words(address, 1000, 7);
}
END_TEST

/* --- Any order of things ---------------------------------------------------------- */

#define MEMORIES 4

struct memory {
	uint64_t address; /* 0: none */
	uint32_t count, value;
};

static struct memory all[MEMORIES];
static bool frozen;
static unsigned asked;
static uint32_t add;

static uint32_t any(uint32_t below)
{
	return (uint32_t)rand() % below;
}

/* A call would not return before it is thawed, and rings are not endless. */
static void let_answer(void)
{
	if (frozen)
		want(false);
	want_out(false);
	frozen = false;
	asked = 0;
}

static void take(struct memory *memory)
{
	let_answer();
	memory->count = any(2) ? 1 + any(1000) : 100000 + any(1000000);
	memory->value = (uint32_t)rand();
	memory->address = vgpu_must_alloc(&vgpu, 4ull * memory->count);
	vgpu_fill(&vgpu, memory->address, memory->count, memory->value, 4);
}

static void launch(struct memory *memory)
{
	uint64_t args[] = {memory->address, memory->count, any(100)};

	vgpu_launch(&vgpu, add, (memory->count + BLOCK - 1) / BLOCK, args, 3);
	memory->value += 5 + (uint32_t)args[2];
}

static void compare(const struct memory *memory)
{
	uint32_t part = memory->count < 1000 ? memory->count : 1000;

	let_answer();
	expect_words(memory->address, part, memory->value);
	expect_words(memory->address + 4ull * (memory->count - part), part, memory->value);
}

static void change(struct memory *memory)
{
	if (++asked > 8)
		let_answer();
	switch (any(4)) {
	case 0:
		memory->value = (uint32_t)rand();
		vgpu_fill(&vgpu, memory->address, memory->count, memory->value, 4);
		break;
	case 1:
		compare(memory);
		break;
	case 2:
		vgpu_mem_free(&vgpu, memory->address);
		memory->address = 0;
		break;
	default:
		launch(memory);
	}
}

static void do_something(void)
{
	struct memory *memory = &all[any(MEMORIES)];

	switch (any(5)) {
	case 4:
		want_out(any(2));
		break;
	case 0:
		frozen = !frozen;
		want(frozen);
		if (any(2)) {
			want_out(frozen);
			await(frozen ? FGV_FROZEN : FGV_FROZEN_NOT);
		}
		break;
	case 1:
		for (uint32_t i = any(200); i > 0; i--)
			sched_yield();
		break;
	default:
		if (memory->address)
			change(memory);
		else
			take(memory);
	}
}

static void check_all(void)
{
	let_answer();
	for (unsigned i = 0; i < MEMORIES; i++) {
		if (all[i].address)
			compare(&all[i]);
	}
	await(FGV_FROZEN_NOT);
	ck_assert_uint_eq(word(&account()->away_bytes), 0);
}

/* In the middle of whatever it is doing. */
static void abandon(bool kills)
{
	int status;

	if (!kills) {
		vgpu_leave(&vgpu);
		return;
	}
	kill(vgpu.pid, SIGKILL);
	ck_assert_int_eq(waitpid(vgpu.pid, &status, 0), vgpu.pid);
	vgpu_give_back(&vgpu);
}

/* All engines are its own, by themselves. */
static void grant_engines(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct vgpu copying = vgpu_copying(&vgpu, i);

		vgpu_grant(&copying, FGV_GRANT_NO_LIMIT);
	}
}

static void run_schedule(unsigned seed, bool has_engines)
{
	srand(seed);
	memset(all, 0, sizeof(all));
	frozen = false;
	asked = 0;
	if (has_engines) {
		start_with_engines();
		grant_engines();
	} else {
		start();
	}
	add = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	for (uint32_t i = any(STEPS); i > 0; i--)
		do_something();
	if (any(2))
		check_all();
	abandon(any(2));
}

START_TEST(random_schedules)
{
	const char *text = getenv("FAIRGV_TEST_SCHEDULES");
	unsigned count = text ? (unsigned)atoi(text) : SCHEDULES;

	for (unsigned i = 0; i < count; i++)
		run_schedule(i, i % 3 == 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("freeze");
	TCase *tests = tcase_create("one"), *many = tcase_create("schedules");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, start, leave);
	tcase_add_test(tests, memory_leaves_and_comes_back);
	tcase_add_test(tests, requests_wait);
	tcase_add_test(tests, what_stays_is_named);
	tcase_add_test(tests, untouched_stays_nowhere);
	tcase_add_test(tests, moving_needs_the_grant);
	tcase_add_test(tests, freezing_can_be_withdrawn);
	tcase_add_test(tests, what_is_out_has_left);
	tcase_add_test(tests, asks_for_its_turn);
	tcase_add_test(tests, waits_for_room);
	tcase_add_test(tests, fails_without_room);
	tcase_add_test(tests, comes_back_late);
	tcase_set_timeout(tests, 240);
	suite_add_tcase(suite, tests);
	tcase_add_test(many, moving_needs_its_engine);
	tcase_add_test(many, random_schedules);
	tcase_set_timeout(many, 36000);
	suite_add_tcase(suite, many);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
