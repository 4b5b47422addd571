/*
 * Runs guest and host against each other: as threads of one process, where
 * ThreadSanitizer can see both; as two processes; and as two processes of which one is
 * killed at a random moment, when the other must notice, having lost nothing.
 *
 * FAIRGV_TORTURE_ROUNDS (default: ROUNDS) scales all of it, FAIRGV_TORTURE_SEED repeats the
 * messages and delays of a run (not its interleaving).
 */
#define _GNU_SOURCE
#include "tests/torture/torture.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shmring/spin.h"

#define REQUESTS_PER_ROUND 600
#ifdef __SANITIZE_THREAD__
#define ROUNDS 30
#else
#define ROUNDS 100
#endif
#define ENDLESS		  UINT64_MAX /* until somebody is killed */
#define KILL_DELAY_MAX_US 4000

/* No run takes nearly this long: whatever does, hangs. */
#define HANG_S 120

enum { HOST, GUEST, SIDES };

static const char *const spin_times_us[] = {"0", "1", "20", "500"};

static void on_hang(int number)
{
	static const char text[] = "torture: a side hangs\n";

	(void)number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static void choose_spin_time(uint64_t random)
{
	setenv("FAIRGV_SPIN_US", spin_times_us[random % 4], 1);
	fgv_spin_init();
}

static void *host_thread(void *arg)
{
	if (host_run(arg))
		torture_fail("the host thread saw a hang-up");
	return NULL;
}

static void run_threads(uint64_t requests, uint64_t *random)
{
	struct world world;
	pthread_t host;

	world_init(&world, requests, random_u64(random));
	choose_spin_time(random_u64(random));
	alarm(HANG_S);
	if (pthread_create(&host, NULL, host_thread, &world))
		torture_fail("no thread for the host");
	if (guest_run(&world))
		torture_fail("the guest saw a hang-up");
	pthread_join(host, NULL);
	world_fini(&world);
}

/* A side as a process of its own, which keeps nothing of the other's but what is shared. */
static pid_t start_side(struct world *world, int side, uint64_t random)
{
	pid_t parent = getpid(), pid = fork();
	int *other_socket = side == HOST ? &world->guest_socket : &world->host_socket;
	int end = world->requests == ENDLESS ? -ECONNRESET : 0, err;

	if (pid < 0)
		torture_fail("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(*other_socket);
	*other_socket = -1;
	choose_spin_time(random);
	err = side == HOST ? host_run(world) : guest_run(world);
	if (err != end)
		torture_fail("%s: %d", side == HOST ? "host" : "guest", err);
	exit(0);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			torture_fail("waitpid: %s", strerror(errno));
	}
	return status;
}

static void start_both(struct world *world, pid_t pids[SIDES], uint64_t *random)
{
	alarm(HANG_S);
	for (int side = 0; side < SIDES; side++)
		pids[side] = start_side(world, side, random_u64(random));
	close(world->host_socket);
	close(world->guest_socket);
	world->host_socket = world->guest_socket = -1;
}

static void run_processes(uint64_t requests, uint64_t *random)
{
	struct world world;
	pid_t pids[SIDES];

	world_init(&world, requests, random_u64(random));
	start_both(&world, pids, random);
	for (int side = 0; side < SIDES; side++) {
		int status = wait_for(pids[side]);

		if (status)
			torture_fail("side %d ended with status %#x", side, (unsigned int)status);
	}
	for (uint32_t i = 0; i < TORTURE_LANES; i++) {
		if (world.score->published[i] != requests)
			torture_fail("lane %u: %ju requests", i,
				     (uintmax_t)world.score->published[i]);
	}
	world_fini(&world);
}

/* The number of requests that got through before the end. */
static uint64_t run_kill(int victim, uint64_t *random)
{
	uint64_t delay_us = random_u64(random) % KILL_DELAY_MAX_US, count = 0;
	struct timespec delay = {0, (long)delay_us * 1000};
	struct world world;
	pid_t pids[SIDES];
	int status;

	world_init(&world, ENDLESS, random_u64(random));
	start_both(&world, pids, random);
	nanosleep(&delay, NULL);
	kill(pids[victim], SIGKILL);
	status = wait_for(pids[victim]);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		torture_fail("side %d ended before it was killed: %#x", victim,
			     (unsigned int)status);
	status = wait_for(pids[!victim]);
	if (status)
		torture_fail("side %d did not survive: %#x", !victim, (unsigned int)status);
	for (uint32_t i = 0; i < TORTURE_LANES; i++)
		count += world.score->published[i];
	world_fini(&world);
	return count;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

int main(void)
{
	uint64_t rounds = number_from("FAIRGV_TORTURE_ROUNDS", ROUNDS);
	uint64_t seed = number_from("FAIRGV_TORTURE_SEED", (uint64_t)time(NULL));
	uint64_t random = seed, through = 0;

	signal(SIGALRM, on_hang);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("torture: seed %" PRIu64 ", %" PRIu64 " rounds\n", seed, rounds);
	for (int i = 0; i < 4; i++)
		run_processes(rounds * REQUESTS_PER_ROUND / 4, &random);
	printf("torture: two processes: done\n");
	for (uint64_t i = 0; i < rounds * 2; i++)
		through += run_kill(i % SIDES, &random);
	printf("torture: one of two killed, %" PRIu64 " times: done, after %" PRIu64 " requests\n",
	       rounds * 2, through);
	for (int i = 0; i < 4; i++)
		run_threads(rounds * REQUESTS_PER_ROUND / 4, &random);
	printf("torture: threads: done\n");
	return 0;
}
