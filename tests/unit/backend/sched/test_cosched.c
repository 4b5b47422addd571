/*
 * Coscheduling of one guest: whose thread a vCPU is, whatever a guest or a QEMU says, and that
 * it is favoured and put back as the kernel has it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "backend/sched/cosched_proc.h"
#include "shmring/park.h"
#include "tests/unit/backend/sched/cosched_child.h"

static void attach(const struct fgv_vcpus *vcpus)
{
	struct fgv_cosched_owner owner = {.pid = child_pid, .uid = getuid(), .vcpus = vcpus};

	guest = fgv_cosched_attach(&cosched, &owner);
	ck_assert_ptr_nonnull(guest);
}

/* What the main thread does; whether it found one. */
static bool look_for(int32_t vcpu)
{
	pid_t thread = fgv_cosched_find(guest, vcpu);

	fgv_cosched_learn(guest, vcpu, thread);
	return thread != 0;
}

static void set_up(void)
{
	ck_assert_int_eq(fgv_cosched_init(&cosched), 0);
	cosched_child_start();
	attach(NULL);
}

static void tear_down(void)
{
	fgv_cosched_detach(guest);
	cosched_child_stop();
	fgv_cosched_fini(&cosched);
}

/* --- One thread ------------------------------------------------------------ */

START_TEST(favours_and_puts_back)
{
	pid_t thread = child->threads[1];

	/* Not known at first: the main thread is asked. */
	fgv_cosched_favour(guest, thread);
	ck_assert(cosched_is_usual(thread));
	ck_assert_int_eq(fgv_cosched_asks(guest), thread);
	ck_assert_int_eq(fgv_doorbell_wait(cosched.bell_fd, -1, 0), 1);
	ck_assert(look_for(thread));
	ck_assert_int_eq(fgv_cosched_asks(guest), -1);
	fgv_cosched_favour(guest, thread);
	ck_assert_int_eq(cosched_is_favoured(thread), cosched_may_favour());
	ck_assert_uint_eq(fgv_cosched_count(guest), cosched_may_favour());
	ck_assert(cosched_is_usual(child->threads[0]));
	ck_assert(cosched_is_usual(child->threads[2]));
	/* Once more changes nothing. */
	fgv_cosched_favour(guest, thread);
	ck_assert_uint_eq(fgv_cosched_count(guest), cosched_may_favour());
	fgv_cosched_put_back(guest);
	ck_assert(cosched_is_usual(thread));
	fgv_cosched_put_back(guest);
}
END_TEST

START_TEST(one_at_a_time)
{
	pid_t first = child->threads[0], second = child->threads[1];

	ck_assert(look_for(first));
	ck_assert(look_for(second));
	fgv_cosched_favour(guest, first);
	fgv_cosched_favour(guest, second);
	ck_assert(cosched_is_usual(first));
	ck_assert_int_eq(cosched_is_favoured(second), cosched_may_favour());
	/* A guest that goes puts back. */
	fgv_cosched_detach(guest);
	ck_assert(cosched_is_usual(second));
	attach(NULL);
}
END_TEST

/* Until a thread is judged anew. */
static void let_time_pass(void)
{
	uint64_t until_ns = fgv_now_ns() + 1100 * FGV_NS_PER_MS;

	while (fgv_now_ns() < until_ns)
		usleep(1000);
}

/* A thread that has waited for no processor for a second gains nothing by it. */
START_TEST(leaves_alone_who_does_not_wait)
{
	pid_t thread = child->threads[1];
	int folder = fgv_cosched_proc_open(child_pid);
	uint64_t waited_ns;
	bool is_told = fgv_cosched_proc_waited(folder, thread, &waited_ns);
	siginfo_t stop;

	close(folder);
	kill(child_pid, SIGSTOP);
	/* Until then it may be waiting for a processor. */
	ck_assert_int_eq(waitid(P_PID, (id_t)child_pid, &stop, WSTOPPED | WNOWAIT), 0);
	ck_assert(look_for(thread));
	fgv_cosched_favour(guest, thread);
	ck_assert_int_eq(cosched_is_favoured(thread), cosched_may_favour());
	fgv_cosched_put_back(guest);
	let_time_pass();
	fgv_cosched_favour(guest, thread);
	ck_assert_int_eq(cosched_is_favoured(thread), !is_told && cosched_may_favour());
	kill(child_pid, SIGCONT);
}
END_TEST

static void share_a_processor(pid_t first, pid_t second)
{
	cpu_set_t all, only;
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	ck_assert_int_eq(sched_setaffinity(first, sizeof(only), &only), 0);
	ck_assert_int_eq(sched_setaffinity(second, sizeof(only), &only), 0);
}

START_TEST(favours_who_waits)
{
	pid_t thread = child->threads[COSCHED_THREADS - 1], other = fork();

	ck_assert_int_ge(other, 0);
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			continue;
	}
	share_a_processor(thread, other);
	cosched_child_order(ORDER_SPIN);
	ck_assert(look_for(thread));
	let_time_pass();
	fgv_cosched_favour(guest, thread);
	ck_assert_int_eq(cosched_is_favoured(thread), cosched_may_favour());
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}
END_TEST

/* What a thread had is what it gets back. */
START_TEST(keeps_what_there_was)
{
	pid_t thread = child->threads[1];
	struct cosched_attributes before, after;

	setpriority(PRIO_PROCESS, (id_t)thread, cosched_usual_nice() - 3);
	before = cosched_attributes(thread);
	before.size = 48;
	before.runtime_ns = 3000000;
	syscall(SYS_sched_setattr, thread, &before, 0);
	before = cosched_attributes(thread);
	ck_assert(look_for(thread));
	fgv_cosched_favour(guest, thread);
	if (cosched_may_nice())
		ck_assert_int_eq(cosched_attributes(thread).nice, before.nice - 10);
	fgv_cosched_put_back(guest);
	after = cosched_attributes(thread);
	ck_assert_mem_eq(&before, &after, sizeof(before));
}
END_TEST

/* Or it could start something with a better one, for good. */
START_TEST(bad_nice_stays)
{
	pid_t thread = child->threads[1];
	int nice = cosched_usual_nice() < 0 ? 5 : cosched_usual_nice() + 5;

	setpriority(PRIO_PROCESS, (id_t)thread, nice);
	ck_assert(look_for(thread));
	fgv_cosched_favour(guest, thread);
	ck_assert_int_eq(cosched_attributes(thread).nice, nice);
	ck_assert_int_eq(cosched_attributes(thread).flags, 0);
	ck_assert_uint_eq(fgv_cosched_count(guest), cosched.slice_ns ? 1 : 0);
}
END_TEST

START_TEST(leaves_other_policies_alone)
{
	struct sched_param param = {0};
	pid_t thread = child->threads[1];

	ck_assert_int_eq(sched_setscheduler(thread, SCHED_BATCH, &param), 0);
	ck_assert(look_for(thread));
	fgv_cosched_favour(guest, thread);
	ck_assert_int_eq(cosched_attributes(thread).nice, cosched_usual_nice());
	ck_assert_uint_eq(cosched_attributes(thread).policy, SCHED_BATCH);
	ck_assert_uint_eq(fgv_cosched_count(guest), 0);
}
END_TEST

/* Nobody is favoured but the guest's own threads, whatever it says. */
START_TEST(believes_no_lie)
{
	const int32_t lies[] = {0, -1, INT32_MIN, INT32_MAX, 1, getpid(), gettid(), getppid()};

	for (size_t i = 0; i < FGV_ARRAY_LEN(lies); i++) {
		fgv_cosched_favour(guest, lies[i]);
		ck_assert(!look_for(lies[i]));
		fgv_cosched_favour(guest, lies[i]);
		ck_assert_uint_eq(fgv_cosched_count(guest), 0);
	}
	ck_assert(cosched_is_usual(getpid()));
}
END_TEST

START_TEST(other_users_process_is_not_its_own)
{
	struct fgv_cosched_owner owner = {.pid = child_pid, .uid = getuid() + 1};

	fgv_cosched_detach(guest);
	guest = fgv_cosched_attach(&cosched, &owner);
	ck_assert(!look_for(child->threads[0]));
}
END_TEST

/* A process that is the first of a pid namespace of its own; -1 where there can be none. */
static pid_t start_in_namespace(void)
{
	int pipe_fds[2];
	pid_t inner = -1, maker;

	ck_assert_int_eq(pipe(pipe_fds), 0);
	maker = fork();
	ck_assert_int_ge(maker, 0);
	if (maker == 0) {
		if (!unshare(CLONE_NEWPID) || !unshare(CLONE_NEWUSER | CLONE_NEWPID))
			inner = fork();
		while (inner == 0)
			pause();
		_exit(write(pipe_fds[1], &inner, sizeof(inner)) != sizeof(inner));
	}
	ck_assert_int_eq(read(pipe_fds[0], &inner, sizeof(inner)), sizeof(inner));
	waitpid(maker, NULL, 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return inner;
}

START_TEST(thread_in_a_pid_namespace)
{
	pid_t inner = start_in_namespace();
	struct fgv_cosched_owner owner = {.pid = inner, .uid = getuid()};

	if (inner < 0) {
		fprintf(stderr, "pid namespaces can't be made here, and are not tested\n");
		return;
	}
	fgv_cosched_detach(guest);
	guest = fgv_cosched_attach(&cosched, &owner);
	ck_assert_int_eq(fgv_cosched_find(guest, 1), inner);
	ck_assert(!look_for(inner));
	ck_assert(!look_for(INT32_MAX));
	ck_assert(look_for(1));
	fgv_cosched_favour(guest, 1);
	ck_assert_int_eq(cosched_is_favoured(inner), cosched_may_favour());
	fgv_cosched_put_back(guest);
	ck_assert(cosched_is_usual(inner));
	kill(inner, SIGKILL);
}
END_TEST

START_TEST(process_that_is_gone)
{
	struct fgv_cosched_owner owner = {.uid = getuid()};
	pid_t gone = fork();

	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	fgv_cosched_detach(guest);
	for (int i = 0; i < 2; i++) {
		owner.pid = i ? gone : 0;
		guest = fgv_cosched_attach(&cosched, &owner);
		fgv_cosched_favour(guest, gone);
		ck_assert(!look_for(gone));
		fgv_cosched_put_back(guest);
		fgv_cosched_detach(guest);
	}
	attach(NULL);
}
END_TEST

/* A guest that names strangers over and over is not looked for over and over. */
START_TEST(asks_at_intervals)
{
	uint64_t from_ns = fgv_now_ns();
	unsigned asked = 0;

	while (fgv_now_ns() - from_ns < 250 * FGV_NS_PER_MS) {
		fgv_cosched_favour(guest, getpid());
		if (fgv_cosched_asks(guest) < 0)
			continue;
		asked++;
		look_for(getpid());
	}
	ck_assert_uint_ge(asked, 1);
	ck_assert_uint_le(asked, (fgv_now_ns() - from_ns) / (100 * FGV_NS_PER_MS) + 1);
}
END_TEST

START_TEST(thread_that_ended)
{
	pid_t thread = child->threads[COSCHED_THREADS - 1];

	ck_assert(look_for(thread));
	fgv_cosched_favour(guest, thread);
	cosched_child_order(ORDER_END_THREAD);
	AWAIT(!look_for(thread));
	fgv_cosched_put_back(guest);
	fgv_cosched_favour(guest, thread);
	ck_assert_uint_eq(fgv_cosched_count(guest), cosched_may_favour());
	ck_assert(cosched_is_usual(child->threads[0]));
}
END_TEST

/* What a favoured thread starts is as usual, and so is the process that it becomes. */
START_TEST(favour_is_not_inherited)
{
	pid_t thread = child->threads[COSCHED_THREADS - 1];

	if (!cosched_may_nice())
		return;
	ck_assert(look_for(thread));
	fgv_cosched_favour(guest, thread);
	cosched_child_order(ORDER_FORK);
	AWAIT(__atomic_load_n(&child->forked, __ATOMIC_ACQUIRE));
	ck_assert_int_ge(cosched_attributes(child->forked).nice, cosched_usual_nice());
	kill(child->forked, SIGKILL);
	AWAIT(!__atomic_load_n(&child->order, __ATOMIC_ACQUIRE));
	cosched_child_order(ORDER_EXEC);
	AWAIT(cosched_attributes(child_pid).nice < cosched_usual_nice());
	fgv_cosched_put_back(guest);
	ck_assert(cosched_is_usual(child_pid));
}
END_TEST

/* --- QEMU's word ----------------------------------------------------------- */

START_TEST(vcpus_are_the_process_own)
{
	static struct fgv_vcpus vcpus;

	vcpus = (struct fgv_vcpus){
		.pid = child_pid,
		.count = 3,
		.threads = {child->threads[0], child->threads[1], getpid()},
	};
	fgv_cosched_detach(guest);
	attach(&vcpus);
	ck_assert(!fgv_cosched_is_local(guest));
	ck_assert(look_for(1));
	fgv_cosched_favour(guest, 1);
	ck_assert_int_eq(cosched_is_favoured(child->threads[1]), cosched_may_favour());
	fgv_cosched_put_back(guest);
	ck_assert(!look_for(2));
	ck_assert(!look_for(3));
	ck_assert(!look_for(-1));
	ck_assert(!look_for(FGV_VCPUS_MAX));
	ck_assert(!look_for(child->threads[0]));
	/* What another QEMU of the VM has said is not about this one. */
	vcpus.pid = getpid();
	ck_assert(!look_for(0));
}
END_TEST

static void add_threads(Suite *suite)
{
	TCase *threads = tcase_create("threads");

	tcase_set_timeout(threads, 2 * HANG_LIMIT_SEC);
	tcase_add_checked_fixture(threads, set_up, tear_down);
	tcase_add_test(threads, favours_and_puts_back);
	tcase_add_test(threads, one_at_a_time);
	tcase_add_test(threads, leaves_alone_who_does_not_wait);
	tcase_add_test(threads, favours_who_waits);
	tcase_add_test(threads, keeps_what_there_was);
	tcase_add_test(threads, bad_nice_stays);
	tcase_add_test(threads, leaves_other_policies_alone);
	tcase_add_test(threads, believes_no_lie);
	tcase_add_test(threads, other_users_process_is_not_its_own);
	tcase_add_test(threads, thread_in_a_pid_namespace);
	tcase_add_test(threads, process_that_is_gone);
	tcase_add_test(threads, asks_at_intervals);
	tcase_add_test(threads, thread_that_ended);
	tcase_add_test(threads, favour_is_not_inherited);
	tcase_add_test(threads, vcpus_are_the_process_own);
	suite_add_tcase(suite, threads);
}

int main(void)
{
	Suite *suite = suite_create("cosched");
	SRunner *runner = srunner_create(suite);
	int failed;

	add_threads(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
