/*
 * See cosched_child.h.
 */
#define _GNU_SOURCE
#include "tests/unit/backend/sched/cosched_child.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct cosched_child *child;
pid_t child_pid;
struct fgv_cosched cosched;
struct fgv_cosched_guest *guest;

static void end_with_the_test(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static pid_t fork_idle(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	end_with_the_test();
	for (;;)
		pause();
}

static void obey(struct cosched_child *shared, enum order order)
{
	switch (order) {
	case ORDER_FORK:
		__atomic_store_n(&shared->forked, fork_idle(), __ATOMIC_RELEASE);
		break;
	case ORDER_EXEC:
		execl("/bin/sleep", "sleep", "1000", NULL);
		break;
	case ORDER_END_THREAD:
		pthread_exit(NULL);
	case ORDER_SPIN:
		for (;;)
			continue;
	case ORDER_NONE:
		break;
	}
	__atomic_store_n(&shared->order, ORDER_NONE, __ATOMIC_RELEASE);
}

static void *live(void *arg)
{
	pid_t *thread = arg;
	bool is_last = thread == &child->threads[COSCHED_THREADS - 1];

	__atomic_store_n(thread, gettid(), __ATOMIC_RELEASE);
	for (;;) {
		enum order order = __atomic_load_n(&child->order, __ATOMIC_ACQUIRE);

		if (is_last && order)
			obey(child, order);
		usleep(1000);
	}
	return NULL;
}

void cosched_child_start(void)
{
	pthread_t thread;

	child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ck_assert_ptr_ne(child, MAP_FAILED);
	child_pid = fork();
	ck_assert_int_ge(child_pid, 0);
	if (child_pid == 0) {
		end_with_the_test();
		for (int i = 1; i < COSCHED_THREADS; i++)
			pthread_create(&thread, NULL, live, &child->threads[i]);
		live(&child->threads[0]);
	}
	for (int i = 0; i < COSCHED_THREADS; i++)
		AWAIT(__atomic_load_n(&child->threads[i], __ATOMIC_ACQUIRE));
}

void cosched_child_stop(void)
{
	kill(child_pid, SIGKILL);
	waitpid(child_pid, NULL, 0);
	munmap(child, sizeof(*child));
}

void cosched_child_order(enum order order)
{
	__atomic_store_n(&child->order, order, __ATOMIC_RELEASE);
}

struct cosched_attributes cosched_attributes(pid_t thread)
{
	struct cosched_attributes attributes = {0};

	ck_assert_int_eq(syscall(SYS_sched_getattr, thread, &attributes, sizeof(attributes), 0), 0);
	return attributes;
}

bool cosched_is_usual(pid_t thread)
{
	struct cosched_attributes now = cosched_attributes(thread), own = cosched_attributes(0);

	return now.policy == own.policy && now.nice == own.nice && now.flags == own.flags &&
	       now.runtime_ns == own.runtime_ns;
}

int cosched_usual_nice(void)
{
	return cosched_attributes(0).nice;
}

static int favoured_nice(void)
{
	int nice = cosched_usual_nice() - 10;

	return nice < -20 ? -20 : nice;
}

bool cosched_may_nice(void)
{
	id_t thread = (id_t)child->threads[0];
	bool may = !setpriority(PRIO_PROCESS, thread, cosched_usual_nice() - 1);

	setpriority(PRIO_PROCESS, thread, cosched_usual_nice());
	return may && cosched_usual_nice() <= 0;
}

bool cosched_may_favour(void)
{
	return cosched_may_nice() || cosched.slice_ns;
}

bool cosched_is_favoured(pid_t thread)
{
	struct cosched_attributes now = cosched_attributes(thread);

	if (cosched_may_nice())
		return now.nice == favoured_nice();
	return now.nice == cosched_usual_nice() && now.runtime_ns != cosched.slice_ns;
}
