/*
 * One queue under one mutex, which is held for a few instructions at a time. A helper that
 * has had something to do looks for more for as long as one looks for a reply, so that it is
 * woken once for a copy and not for each of its pieces.
 */
#define _GNU_SOURCE
#include "frontend/client/crew.h"

#include <pthread.h>
#include <signal.h>

#include "common/env.h"
#include "common/util.h"
#include "shmring/spin.h"

/*
 * With the caller five threads, which copy more than a bus brings: one thread was seen to copy
 * 11.7 GB/s where the bus has 55.
 */
#define HELPERS_MAX 4
#define ASKED_MAX   16

/* Room for the static TLS of the program's libraries, and for a handler of a signal. */
#define STACK_BYTES (256u * 1024)

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t added;		     /* for helpers */
	pthread_cond_t done;		     /* for threads that wait for a job */
	STAILQ_HEAD(, fgv_crew_job) waiting; /* that nobody has begun */
	uint32_t waiting_count;		     /* of them; atomic: helpers look without the mutex */
	unsigned asleep;		     /* helpers */
	unsigned waiters;
	bool is_started;
	unsigned helpers;
} crew = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.added = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.waiting = STAILQ_HEAD_INITIALIZER(crew.waiting),
};

static void count_waiting_locked(int change)
{
	__atomic_store_n(&crew.waiting_count, crew.waiting_count + (uint32_t)change,
			 __ATOMIC_RELAXED);
}

static bool is_any_waiting(void)
{
	return __atomic_load_n(&crew.waiting_count, __ATOMIC_RELAXED);
}

static struct fgv_crew_job *take_locked(void)
{
	struct fgv_crew_job *job = STAILQ_FIRST(&crew.waiting);

	if (job) {
		STAILQ_REMOVE_HEAD(&crew.waiting, link);
		count_waiting_locked(-1);
	}
	return job;
}

static void run(struct fgv_crew_job *job)
{
	job->run(job);
	pthread_mutex_lock(&crew.mutex);
	/* Pairs with the acquire in fgv_crew_is_done(). Then the job is its owner's again. */
	__atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);
	if (crew.waiters)
		pthread_cond_broadcast(&crew.done);
	pthread_mutex_unlock(&crew.mutex);
}

static struct fgv_crew_job *await_job(void)
{
	struct fgv_spin spin = fgv_spin_start();
	struct fgv_crew_job *job;

	while (!is_any_waiting() && fgv_spin_again(&spin))
		continue;
	pthread_mutex_lock(&crew.mutex);
	while (!(job = take_locked())) {
		crew.asleep++;
		pthread_cond_wait(&crew.added, &crew.mutex);
		crew.asleep--;
	}
	pthread_mutex_unlock(&crew.mutex);
	return job;
}

static void *serve(void *unused)
{
	(void)unused;
	while (true)
		run(await_job());
	return NULL;
}

/*
 * The program's signals are for its own threads. But where it handles faults, it must get those
 * that a copy raises, as if its own thread had copied.
 */
static void block_signals(sigset_t *earlier)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, earlier);
}

/* Where a thread can't be had the crew does without. */
static void start_locked(unsigned count)
{
	sigset_t earlier;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	block_signals(&earlier);
	while (crew.helpers < count && !pthread_create(&thread, &attr, serve, NULL)) {
		pthread_setname_np(thread, "fairgv-copy");
		crew.helpers++;
	}
	pthread_sigmask(SIG_SETMASK, &earlier, NULL);
	pthread_attr_destroy(&attr);
}

unsigned fgv_crew_need(void)
{
	unsigned helpers;
	uint64_t usual;

	pthread_mutex_lock(&crew.mutex);
	if (!crew.is_started) {
		crew.is_started = true;
		usual = fgv_min_u64(fgv_env_processors() / 2, HELPERS_MAX);
		start_locked((unsigned)fgv_env_number("FAIRGV_COPY_THREADS", ASKED_MAX, usual));
	}
	helpers = crew.helpers;
	pthread_mutex_unlock(&crew.mutex);
	return helpers;
}

void fgv_crew_add(struct fgv_crew_job *job)
{
	pthread_mutex_lock(&crew.mutex);
	STAILQ_INSERT_TAIL(&crew.waiting, job, link);
	count_waiting_locked(1);
	if (crew.asleep)
		pthread_cond_signal(&crew.added);
	pthread_mutex_unlock(&crew.mutex);
}

bool fgv_crew_help(void)
{
	struct fgv_crew_job *job;

	if (!is_any_waiting())
		return false;
	pthread_mutex_lock(&crew.mutex);
	job = take_locked();
	pthread_mutex_unlock(&crew.mutex);
	if (job)
		run(job);
	return job;
}

static void sleep_until_done(const struct fgv_crew_job *job)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&crew.mutex);
	crew.waiters++;
	while (!fgv_crew_is_done(job))
		pthread_cond_wait(&crew.done, &crew.mutex);
	crew.waiters--;
	pthread_mutex_unlock(&crew.mutex);
	pthread_setcancelstate(cancel, NULL);
}

void fgv_crew_wait(const struct fgv_crew_job *job)
{
	struct fgv_spin spin = fgv_spin_start();

	while (!fgv_crew_is_done(job)) {
		if (!fgv_spin_again(&spin)) {
			sleep_until_done(job);
			return;
		}
	}
}
