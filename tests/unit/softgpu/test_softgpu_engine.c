/*
 * The engine that processes share: one at a time, first come first served, and none that dies,
 * keeps it or writes what it likes keeps it from the others.
 */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/sched/arbiter.h"
#include "common/util.h"
#include "shmring/park.h"
#include "softgpu/device/internal.h"

#define HANG_NS (200 * FGV_NS_PER_MS)

/* What the processes of a test tell each other. */
struct arena {
	int inside;	  /* processes that hold the engine */
	int violations;	  /* more than one did */
	unsigned rounds;  /* how often it was held */
	unsigned started; /* processes that are at it */
	unsigned order;
};

struct seat {
	struct fgv_arbiter_seat *seat;
	struct softgpu_engine engine;
	int fds[FGV_SEAT_FDS];
};

static struct fgv_arbiter *arbiter;
static struct arena *arena;
static const int never;

static void setup_with(uint64_t hang_ns)
{
	arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ck_assert_ptr_ne(arena, MAP_FAILED);
	ck_assert_int_eq(fgv_arbiter_create(&arbiter, "soft GPU 0", hang_ns), 0);
}

static void setup(void)
{
	setup_with(0);
}

static void setup_impatient(void)
{
	setup_with(HANG_NS);
}

static void teardown(void)
{
	fgv_arbiter_destroy(arbiter);
	munmap(arena, sizeof(*arena));
}

static void take_seat(struct seat *seat)
{
	void *page;

	ck_assert_int_eq(fgv_arbiter_attach(arbiter, false, &seat->seat, seat->fds), 0);
	page = mmap(NULL, sizeof(struct softgpu_seat), PROT_READ | PROT_WRITE, MAP_SHARED,
		    seat->fds[FGV_SEAT_PAGE], 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	seat->engine = (struct softgpu_engine){page, seat->fds[FGV_SEAT_BELL],
					       seat->fds[FGV_SEAT_ARBITER]};
}

/* As the daemon does it: a seat, a process, and the process's end. */
static pid_t spawn(struct seat *seat)
{
	pid_t pid;

	take_seat(seat);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid) {
		munmap(seat->engine.seat, sizeof(struct softgpu_seat));
		fgv_arbiter_started(seat->seat, pid);
	} else {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	return pid;
}

/* How it ended. */
static int reap(pid_t pid)
{
	siginfo_t end;
	int status;

	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
	fgv_arbiter_forget(arbiter, pid);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static void must_exit(pid_t pid)
{
	int status = reap(pid);

	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void must_be_killed(pid_t pid)
{
	int status = reap(pid);

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void hold_once(const struct seat *seat)
{
	fgv_engine_acquire(&seat->engine, &never);
	if (__atomic_add_fetch(&arena->inside, 1, __ATOMIC_SEQ_CST) != 1)
		__atomic_store_n(&arena->violations, 1, __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&arena->inside, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&arena->rounds, 1, __ATOMIC_SEQ_CST);
	fgv_engine_release(&seat->engine);
}

/* Takes and releases until killed, or @rounds times. */
static pid_t contender(unsigned rounds)
{
	struct seat seat;
	pid_t pid = spawn(&seat);

	if (pid)
		return pid;
	__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < rounds; i++)
		hold_once(&seat);
	_exit(0);
}

/* Holds the engine until it is killed. */
static pid_t hog(void)
{
	struct seat seat;
	pid_t pid = spawn(&seat);

	if (pid)
		return pid;
	fgv_engine_acquire(&seat.engine, &never);
	__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static void await_started(unsigned count)
{
	while (__atomic_load_n(&arena->started, __ATOMIC_SEQ_CST) < count)
		usleep(100);
}

START_TEST(one_at_a_time)
{
	pid_t pids[4];

	for (int i = 0; i < 4; i++)
		pids[i] = contender(2000);
	for (int i = 0; i < 4; i++)
		must_exit(pids[i]);
	ck_assert_int_eq(arena->violations, 0);
	ck_assert_uint_eq(arena->rounds, 8000);
}
END_TEST

/* A process that is alone asks once, and never sleeps again. */
START_TEST(alone_asks_once)
{
	struct seat seat;
	uint64_t rings;

	take_seat(&seat);
	for (int i = 0; i < 1000; i++) {
		ck_assert(fgv_engine_acquire(&seat.engine, &never));
		fgv_engine_release(&seat.engine);
	}
	ck_assert_int_eq(read(seat.fds[FGV_SEAT_ARBITER], &rings, sizeof(rings)), sizeof(rings));
	ck_assert_uint_eq(rings, 1);
	fgv_arbiter_detach(seat.seat);
}
END_TEST

START_TEST(holder_dies)
{
	pid_t holder = hog();
	pid_t waiter;

	await_started(1);
	waiter = contender(10);
	await_started(2);
	ck_assert_uint_eq(arena->rounds, 0);
	kill(holder, SIGKILL);
	must_be_killed(holder);
	must_exit(waiter);
	ck_assert_uint_eq(arena->rounds, 10);
}
END_TEST

/* Waits for its first. The arbiter hears rings in their order, and reads none of them. */
static void await_ring(const struct seat *seat)
{
	struct pollfd ring = {.fd = seat->fds[FGV_SEAT_ARBITER], .events = POLLIN};

	ck_assert_int_eq(poll(&ring, 1, -1), 1);
}

/* First come, first served: their order decides, not luck. */
START_TEST(in_order)
{
	struct seat first, seats[3];
	pid_t pids[3];

	take_seat(&first);
	ck_assert(fgv_engine_acquire(&first.engine, &never));
	for (unsigned i = 0; i < 3; i++) {
		pids[i] = spawn(&seats[i]);
		if (!pids[i]) {
			fgv_engine_acquire(&seats[i].engine, &never);
			arena->order = arena->order * 10 + i + 1;
			fgv_engine_release(&seats[i].engine);
			_exit(0);
		}
		await_ring(&seats[i]);
	}
	fgv_engine_release(&first.engine);
	for (int i = 0; i < 3; i++)
		must_exit(pids[i]);
	ck_assert_uint_eq(arena->order, 123);
	fgv_arbiter_detach(first.seat);
}
END_TEST

START_TEST(stopped_while_waiting)
{
	static const int now = 1;
	struct seat a, b;

	take_seat(&a);
	take_seat(&b);
	ck_assert(fgv_engine_acquire(&a.engine, &never));
	ck_assert(!fgv_engine_acquire(&b.engine, &now));
	fgv_engine_release(&a.engine);
	ck_assert(fgv_engine_acquire(&b.engine, &never));
	fgv_engine_leave(&b.engine);
	ck_assert(fgv_engine_acquire(&a.engine, &never));
	fgv_arbiter_detach(a.seat);
	fgv_arbiter_detach(b.seat);
}
END_TEST

/* Has a kernel that never ends, and stops it when it is held. */
static pid_t holdable(struct seat *seat)
{
	pid_t pid = spawn(seat);

	if (pid)
		return pid;
	fgv_engine_acquire(&seat->engine, &never);
	__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		if (!fgv_engine_is_held(&seat->engine))
			continue;
		fgv_engine_stand_still(&seat->engine, &never);
		__atomic_add_fetch(&arena->order, 1, __ATOMIC_SEQ_CST);
	}
}

static void await_order(unsigned order)
{
	while (__atomic_load_n(&arena->order, __ATOMIC_SEQ_CST) < order)
		usleep(100);
}

/* One whose kernel never ends is held, again and again, and others have the engine meanwhile. */
START_TEST(held_in_the_middle)
{
	struct seat seat;
	pid_t pid = holdable(&seat);

	await_started(1);
	for (unsigned i = 1; i <= 20; i++) {
		fgv_arbiter_hold(seat.seat, true);
		must_exit(contender(10));
		ck_assert_uint_eq(arena->order, i - 1);
		fgv_arbiter_hold(seat.seat, false);
		await_order(i);
	}
	ck_assert_uint_eq(arena->rounds, 200);
	kill(pid, SIGKILL);
	must_be_killed(pid);
}
END_TEST

START_TEST(held_before_it_has_it)
{
	struct seat seat;
	pid_t pid = spawn(&seat);

	if (!pid) {
		while (!__atomic_load_n(&arena->order, __ATOMIC_SEQ_CST))
			usleep(100);
		__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
		hold_once(&seat);
		_exit(0);
	}
	fgv_arbiter_hold(seat.seat, true);
	arena->order = 1;
	await_started(1);
	must_exit(contender(10));
	ck_assert_uint_eq(arena->rounds, 10);
	fgv_arbiter_hold(seat.seat, false);
	must_exit(pid);
	ck_assert_uint_eq(arena->rounds, 11);
}
END_TEST

/* One that has the engine for later kernels, too, is held without being asked. */
START_TEST(held_while_idle)
{
	struct seat seat;

	take_seat(&seat);
	ck_assert(fgv_engine_acquire(&seat.engine, &never));
	fgv_engine_release(&seat.engine);
	fgv_arbiter_hold(seat.seat, true);
	while (softgpu_seat_load(seat.engine.seat) != SOFTGPU_SEAT_FREE)
		usleep(100);
	fgv_arbiter_hold(seat.seat, false);
	ck_assert(fgv_engine_acquire(&seat.engine, &never));
	fgv_engine_release(&seat.engine);
	fgv_arbiter_detach(seat.seat);
}
END_TEST

/* One that does not stop is killed, though nobody waits. */
START_TEST(does_not_stop)
{
	struct seat seat;
	pid_t pid = spawn(&seat);

	if (!pid) {
		fgv_engine_acquire(&seat.engine, &never);
		__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
		for (;;)
			pause();
	}
	await_started(1);
	fgv_arbiter_hold(seat.seat, true);
	must_be_killed(pid);
}
END_TEST

/* As it is stopped, or as it says that it has the engine, whatever it is told. */
static void stand_still(const struct seat *seat, bool scribbles)
{
	fgv_engine_acquire(&seat->engine, &never);
	__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
	while (scribbles) {
		__atomic_store_n(&seat->engine.seat->state, SOFTGPU_SEAT_BUSY, __ATOMIC_SEQ_CST);
		fgv_doorbell_ring(seat->engine.arbiter_fd);
		usleep(100);
	}
	for (;;)
		pause();
}

static bool has_ended(pid_t pid)
{
	siginfo_t end = {0};

	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT), 0);
	return end.si_pid != 0;
}

/* It has turns like the others, in which nobody holds it: that makes its time no longer. */
static void give_turns_to(bool scribbles)
{
	struct seat seat;
	pid_t pid = spawn(&seat);

	if (!pid)
		stand_still(&seat, scribbles);
	await_started(1);
	for (bool held = true; !has_ended(pid); held = !held) {
		fgv_arbiter_hold(seat.seat, held);
		usleep(HANG_NS / 20 / FGV_NS_PER_US);
	}
	must_be_killed(pid);
	must_exit(contender(10));
}

START_TEST(does_not_stop_between_turns)
{
	give_turns_to(false);
}
END_TEST

START_TEST(denies_that_it_is_to_stop)
{
	give_turns_to(true);
}
END_TEST

/* Killed at any moment, over and over; the one that is left gets through. */
START_TEST(killed_anywhere)
{
	srandom(1);
	for (int round = 0; round < 50; round++) {
		pid_t victims[3];
		pid_t survivor;

		arena->started = 0;
		for (int i = 0; i < 3; i++)
			victims[i] = contender(~0u);
		survivor = contender(200);
		await_started(4);
		for (int i = 0; i < 3; i++) {
			usleep((useconds_t)(random() % 300));
			kill(victims[i], SIGKILL);
			must_be_killed(victims[i]);
		}
		must_exit(survivor);
	}
}
END_TEST

/* A process that writes what it likes where it can, and rings all the time. */
static pid_t scribbler(unsigned seed)
{
	struct seat seat;
	pid_t pid = spawn(&seat);
	const uint64_t one = 1;

	if (pid)
		return pid;
	srandom(seed);
	__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		uint32_t word = (uint32_t)random() % 8;

		__atomic_store_n(&seat.engine.seat->state, word == 7 ? (uint32_t)random() : word,
				 __ATOMIC_SEQ_CST);
		if (word & 1 && write(seat.engine.arbiter_fd, &one, sizeof(one)) < 0)
			_exit(1);
	}
}

START_TEST(scribbled_over)
{
	pid_t scribblers[2], honest[2];

	for (unsigned i = 0; i < 2; i++)
		scribblers[i] = scribbler(i + 1);
	await_started(2);
	for (int i = 0; i < 2; i++)
		honest[i] = contender(300);
	for (int i = 0; i < 2; i++)
		must_exit(honest[i]);
	ck_assert_int_eq(arena->violations, 0);
	ck_assert_uint_eq(arena->rounds, 600);
	for (int i = 0; i < 2; i++) {
		kill(scribblers[i], SIGKILL);
		must_be_killed(scribblers[i]);
	}
}
END_TEST

/* One that does not give the engine back, though others wait, is killed; not before. */
START_TEST(kept_too_long)
{
	pid_t keeper = hog();
	pid_t waiter;

	await_started(1);
	usleep(3 * HANG_NS / FGV_NS_PER_US / 2);
	ck_assert_int_eq(kill(keeper, 0), 0);
	waiter = contender(10);
	must_be_killed(keeper);
	must_exit(waiter);
	ck_assert_uint_eq(arena->rounds, 10);
}
END_TEST

START_TEST(blocked_bell)
{
	struct seat first, seat;
	pid_t pid, other;

	take_seat(&first);
	ck_assert(fgv_engine_acquire(&first.engine, &never));
	pid = spawn(&seat);
	if (!pid) {
		const uint64_t full = UINT64_MAX - 1;

		if (fcntl(seat.engine.bell_fd, F_SETFL, 0) ||
		    write(seat.engine.bell_fd, &full, sizeof(full)) < 0)
			_exit(1);
		softgpu_seat_move(seat.engine.seat, SOFTGPU_SEAT_FREE, SOFTGPU_SEAT_WANTS);
		fgv_engine_wake(&(struct softgpu_engine){.bell_fd = seat.engine.arbiter_fd});
		__atomic_add_fetch(&arena->started, 1, __ATOMIC_SEQ_CST);
		for (;;)
			pause();
	}
	await_started(1);
	fgv_engine_release(&first.engine);
	must_be_killed(pid);
	other = contender(10);
	must_exit(other);
	fgv_arbiter_detach(first.seat);
}
END_TEST

static void add_case(Suite *s, const char *name, void (*before)(void), const TTest *const *tests)
{
	TCase *t = tcase_create(name);

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, before, teardown);
	for (; *tests; tests++)
		tcase_add_test(t, *tests);
	suite_add_tcase(s, t);
}

static Suite *suite(void)
{
	const TTest *const patient[] = {one_at_a_time,
					alone_asks_once,
					holder_dies,
					in_order,
					stopped_while_waiting,
					killed_anywhere,
					scribbled_over,
					held_in_the_middle,
					held_before_it_has_it,
					held_while_idle,
					NULL};
	const TTest *const impatient[] = {kept_too_long,
					  blocked_bell,
					  does_not_stop,
					  does_not_stop_between_turns,
					  denies_that_it_is_to_stop,
					  NULL};
	Suite *s = suite_create("softgpu_engine");

	add_case(s, "engine", setup, patient);
	add_case(s, "ended", setup_impatient, impatient);
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
