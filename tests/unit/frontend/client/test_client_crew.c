/*
 * The crew: each job is run once, by helpers and by the thread that they help, in their order; what
 * it takes from the environment; and that neither signals nor forks find its threads.
 */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "frontend/client/crew.h"

#define HELPERS 3

/* What a test's job notes. */
struct note {
	struct fgv_crew_job job; /* the first member */
	pthread_t thread;
	unsigned turn; /* of all that ran */
	uint32_t runs; /* atomic */
};

static uint32_t turns; /* atomic */

static void take_note(struct fgv_crew_job *job)
{
	struct note *note = (struct note *)job;

	note->thread = pthread_self();
	note->turn = __atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&note->runs, 1, __ATOMIC_RELAXED);
}

static struct note new_note(void)
{
	return (struct note){.job = {.run = take_note}};
}

/* Keeps a helper busy until it is let go. */
struct block {
	struct fgv_crew_job job; /* the first member */
	sem_t begun, go;
};

static void stand_still(struct fgv_crew_job *job)
{
	struct block *block = (struct block *)job;

	sem_post(&block->begun);
	sem_wait(&block->go);
}

static struct block blocks[HELPERS];

static void block_helpers(void)
{
	for (int i = 0; i < HELPERS; i++) {
		blocks[i].job = (struct fgv_crew_job){.run = stand_still};
		sem_init(&blocks[i].begun, 0, 0);
		sem_init(&blocks[i].go, 0, 0);
		fgv_crew_add(&blocks[i].job);
	}
	for (int i = 0; i < HELPERS; i++)
		sem_wait(&blocks[i].begun);
}

static void let_helpers_go(void)
{
	for (int i = 0; i < HELPERS; i++) {
		sem_post(&blocks[i].go);
		fgv_crew_wait(&blocks[i].job);
	}
}

static void setup(void)
{
	setenv("FAIRGV_COPY_THREADS", "3", 1);
	ck_assert_uint_eq(fgv_crew_need(), HELPERS);
	ck_assert_uint_eq(fgv_crew_need(), HELPERS);
}

/* All helpers are in a job at once, so each of these is with another thread. */
START_TEST(helpers_work_at_once)
{
	block_helpers();
	ck_assert(!fgv_crew_is_done(&blocks[0].job));
	let_helpers_go();
	ck_assert(fgv_crew_is_done(&blocks[0].job));
}
END_TEST

START_TEST(who_helps_does_it_in_order)
{
	struct note notes[5];

	ck_assert(!fgv_crew_help());
	block_helpers();
	for (int i = 0; i < 5; i++) {
		notes[i] = new_note();
		fgv_crew_add(&notes[i].job);
	}
	for (int i = 0; i < 5; i++)
		ck_assert(fgv_crew_help());
	ck_assert(!fgv_crew_help());
	for (unsigned i = 0; i < 5; i++) {
		ck_assert(fgv_crew_is_done(&notes[i].job));
		ck_assert(pthread_equal(notes[i].thread, pthread_self()));
		ck_assert_uint_eq(notes[i].turn, i + 1);
	}
	let_helpers_go();
}
END_TEST

/* Helpers that have gone to sleep come back, and so does a thread that has slept for a job. */
START_TEST(sleepers_wake)
{
	setenv("FAIRGV_SPIN_US", "0", 1);
	for (int i = 0; i < 200; i++) {
		struct note note = new_note();

		if (i % 50 == 0)
			usleep(2000);
		fgv_crew_add(&note.job);
		fgv_crew_wait(&note.job);
		ck_assert_uint_eq(note.runs, 1);
		ck_assert(!pthread_equal(note.thread, pthread_self()));
	}
}
END_TEST

static void *add_many(void *unused)
{
	struct note notes[8];

	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 8; i++) {
			notes[i] = new_note();
			fgv_crew_add(&notes[i].job);
		}
		while (round % 2 && fgv_crew_help())
			continue;
		for (int i = 7; i >= 0; i--) {
			fgv_crew_wait(&notes[i].job);
			ck_assert_uint_eq(notes[i].runs, 1);
		}
	}
	return unused;
}

START_TEST(many_threads_share_it)
{
	pthread_t threads[6];

	for (unsigned i = 0; i < FGV_ARRAY_LEN(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, NULL), 0);
	for (unsigned i = 0; i < FGV_ARRAY_LEN(threads); i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_uint_eq(__atomic_load_n(&turns, __ATOMIC_RELAXED), 6 * 500 * 8);
}
END_TEST

struct mask {
	struct fgv_crew_job job; /* the first member */
	sigset_t blocked;
};

static void look_at_mask(struct fgv_crew_job *job)
{
	pthread_sigmask(SIG_BLOCK, NULL, &((struct mask *)job)->blocked);
}

/* Its faults are the program's to handle. */
START_TEST(only_faults_reach_helpers)
{
	struct mask mask = {.job = {.run = look_at_mask}};
	sigset_t own;

	fgv_crew_add(&mask.job);
	fgv_crew_wait(&mask.job);
	ck_assert_int_eq(sigismember(&mask.blocked, SIGINT), 1);
	ck_assert_int_eq(sigismember(&mask.blocked, SIGUSR1), 1);
	ck_assert_int_eq(sigismember(&mask.blocked, SIGSEGV), 0);
	ck_assert_int_eq(sigismember(&mask.blocked, SIGBUS), 0);
	pthread_sigmask(SIG_BLOCK, NULL, &own);
	ck_assert_int_eq(sigismember(&own, SIGINT), 0);
}
END_TEST

/* In the middle of its work; the parent's goes on. */
START_TEST(a_fork_takes_no_helpers)
{
	int status;
	pid_t pid;

	block_helpers();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		exit(0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	let_helpers_go();
}
END_TEST

static const char *const asked[] = {"0", "1", "16", "17", "-1", "two", "", NULL};

/* In the place of the C library's, so that the machine has ten. */
int sched_getaffinity(pid_t pid, size_t len, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(len, set);
	for (size_t i = 0; i < 10; i++)
		CPU_SET_S(i, len, set);
	return 0;
}

START_TEST(obeys_the_environment)
{
	static const unsigned wanted[] = {0, 1, 16, 4, 4, 4, 4, 4};

	if (asked[_i])
		setenv("FAIRGV_COPY_THREADS", asked[_i], 1);
	else
		unsetenv("FAIRGV_COPY_THREADS");
	ck_assert_uint_eq(fgv_crew_need(), wanted[_i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client: crew");
	TCase *three = tcase_create("three"), *any = tcase_create("any");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(three, 60);
	tcase_add_checked_fixture(three, setup, NULL);
	tcase_add_test(three, helpers_work_at_once);
	tcase_add_test(three, who_helps_does_it_in_order);
	tcase_add_test(three, sleepers_wake);
	tcase_add_test(three, many_threads_share_it);
	tcase_add_test(three, only_faults_reach_helpers);
	tcase_add_test(three, a_fork_takes_no_helpers);
	suite_add_tcase(suite, three);
	tcase_add_loop_test(any, obeys_the_environment, 0, FGV_ARRAY_LEN(asked));
	suite_add_tcase(suite, any);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
