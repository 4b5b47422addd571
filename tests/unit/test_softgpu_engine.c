/*
 * The engine that processes share: one at a time, and none that dies, waiting or
 * holding or in the middle of taking it, keeps it from the others.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/internal.h"

struct arena {
	int inside;	  /* processes that hold the engine */
	int violations;	  /* more than one did */
	unsigned rounds;  /* how often it was held */
	unsigned started; /* processes that are at it */
};

static struct engine *engine;
static struct arena *arena;

static void setup(void)
{
	void *p = mmap(NULL, softgpu_shared_size() + 4096, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	arena = p;
	engine = (struct engine *)((char *)p + 4096);
	softgpu_shared_init(engine);
}

static void teardown(void)
{
	munmap(arena, softgpu_shared_size() + 4096);
}

/* Takes and releases until killed, or @rounds times; dies holding with @die. */
static pid_t contender(unsigned rounds, bool die)
{
	static const int never;
	pid_t pid = fork();
	int slot;

	if (pid)
		return pid;
	slot = fgv_engine_attach(engine);
	__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < rounds; i++) {
		fgv_engine_acquire(engine, slot, &never);
		if (__atomic_add_fetch(&arena->inside, 1, __ATOMIC_SEQ_CST) != 1)
			__atomic_store_n(&arena->violations, 1, __ATOMIC_SEQ_CST);
		if (die)
			raise(SIGKILL);
		__atomic_sub_fetch(&arena->inside, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&arena->rounds, 1, __ATOMIC_SEQ_CST);
		fgv_engine_release(engine, slot);
	}
	fgv_engine_detach(engine, slot);
	_exit(0);
}

static void must_exit(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
}

START_TEST(one_at_a_time)
{
	pid_t pids[4];

	for (int i = 0; i < 4; i++)
		pids[i] = contender(5000, false);
	for (int i = 0; i < 4; i++)
		must_exit(pids[i]);
	ck_assert_int_eq(arena->violations, 0);
	ck_assert_uint_eq(arena->rounds, 20000);
}
END_TEST

START_TEST(holder_dies)
{
	pid_t holder = contender(1, true);
	pid_t waiter;

	waitpid(holder, NULL, 0);
	arena->inside = 0;
	waiter = contender(10, false);
	while (!__atomic_load_n(&arena->started, __ATOMIC_SEQ_CST))
		usleep(100);
	softgpu_shared_forget(engine, holder);
	must_exit(waiter);
	ck_assert_uint_eq(arena->rounds, 10);
}
END_TEST

/* First come, first served: tickets decide, not luck. */
START_TEST(in_order)
{
	static const int never;
	int first = fgv_engine_attach(engine);
	pid_t pids[3];
	unsigned order = 0;

	ck_assert(fgv_engine_acquire(engine, first, &never));
	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			int slot = fgv_engine_attach(engine);

			__atomic_store_n(&arena->started, (unsigned)i + 1, __ATOMIC_SEQ_CST);
			fgv_engine_acquire(engine, slot, &never);
			arena->rounds = arena->rounds * 10 + (unsigned)i + 1;
			fgv_engine_release(engine, slot);
			_exit(0);
		}
		while (__atomic_load_n(&arena->started, __ATOMIC_SEQ_CST) != (unsigned)i + 1)
			usleep(100);
		usleep(20000);
	}
	fgv_engine_release(engine, first);
	for (int i = 0; i < 3; i++)
		must_exit(pids[i]);
	order = arena->rounds;
	ck_assert_uint_eq(order, 123);
}
END_TEST

START_TEST(stopped_while_waiting)
{
	static const int never;
	static const int now = 1;
	int a = fgv_engine_attach(engine);
	int b = fgv_engine_attach(engine);

	ck_assert(fgv_engine_acquire(engine, a, &never));
	ck_assert(!fgv_engine_acquire(engine, b, &now));
	fgv_engine_release(engine, a);
	ck_assert(fgv_engine_acquire(engine, b, &never));
	fgv_engine_release(engine, b);
}
END_TEST

/* Killed at any moment, over and over; the one that is left gets through. */
START_TEST(killed_anywhere)
{
	srandom(1);
	for (int round = 0; round < 150; round++) {
		pid_t victims[3];
		pid_t survivor;

		arena->started = 0;
		for (int i = 0; i < 3; i++)
			victims[i] = contender(~0u, false);
		survivor = contender(200, false);
		while (__atomic_load_n(&arena->started, __ATOMIC_SEQ_CST) < 4)
			usleep(50);
		for (int i = 0; i < 3; i++) {
			usleep((useconds_t)(random() % 300));
			kill(victims[i], SIGKILL);
			waitpid(victims[i], NULL, 0);
			softgpu_shared_forget(engine, victims[i]);
		}
		must_exit(survivor);
		arena->inside = 0;
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("softgpu_engine");
	TCase *t = tcase_create("engine");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, one_at_a_time);
	tcase_add_test(t, holder_dies);
	tcase_add_test(t, in_order);
	tcase_add_test(t, stopped_while_waiting);
	tcase_add_test(t, killed_anywhere);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
