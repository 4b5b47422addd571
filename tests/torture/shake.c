/*
 * Changes the order in which threads and processes run: a library to preload, which now and then
 * puts a thread to sleep before and after calls by which it speaks with others. In a build with
 * ThreadSanitizer the atomic operations are such calls, too. A test that fails then may fail on any
 * machine that is busy.
 *
 * Each thread is quick or slow for a while, so that one thread may do a lot while another does
 * nothing. No order is excluded.
 *
 * FGV_SHAKE_SEED chooses other sleeps; the same seed does not bring the same run again, as the
 * machine has a part in it. FGV_SHAKE_MOST_US is the longest sleep.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define MOST_US 5000

/* A thread sleeps in one of so many calls, and one sleep in 20 may be long. */
static const uint32_t paces[] = {4, 30, 300, 3000};

static __thread uint64_t random_state;
static __thread uint32_t pace, pace_calls;
static __thread int in_shake;

static uint32_t random_u32(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33);
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

static void begin_thread(void)
{
	static uint64_t threads;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	random_state = from_env("FGV_SHAKE_SEED", 0) * 1000003 + (uint64_t)now.tv_nsec +
		       __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) * 7919;
	random_u32();
}

static void sleep_for(uint64_t time_us)
{
	struct timespec time = {.tv_sec = (time_t)(time_us / 1000000),
				.tv_nsec = (long)(time_us % 1000000 * 1000)};

	/* Not the function: sanitizers have one of their own, and the sandbox allows the call. */
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Leaves errno as it was. */
static void shake(void)
{
	if (in_shake)
		return;
	in_shake = 1;
	if (!random_state)
		begin_thread();
	if (pace_calls-- == 0) {
		pace = paces[random_u32() % 4];
		pace_calls = random_u32() % 2000;
	}
	if (random_u32() % pace == 0) {
		uint64_t most_us = from_env("FGV_SHAKE_MOST_US", MOST_US);
		int error = errno;

		sleep_for(random_u32() % ((random_u32() % 20 ? most_us / 50 : most_us) + 1));
		errno = error;
	}
	in_shake = 0;
}

static void begin_child(void)
{
	random_state = 0;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(NULL, NULL, begin_child);
}

/*
 * All of these have at most six arguments, each a number or a pointer, and return one. So they are
 * called alike on x86-64, and one function fits all; only its name in the library is the call's.
 */
typedef long any_function(long a, long b, long c, long d, long e, long f);

#define SHAKEN(name)                                                                               \
	any_function shaken_##name __asm__(#name);                                                 \
	long shaken_##name(long a, long b, long c, long d, long e, long f)                         \
	{                                                                                          \
		static any_function *next;                                                         \
		long result;                                                                       \
                                                                                                   \
		if (!next)                                                                         \
			next = (any_function *)dlsym(RTLD_NEXT, #name);                            \
		shake();                                                                           \
		result = next(a, b, c, d, e, f);                                                   \
		shake();                                                                           \
		return result;                                                                     \
	}

SHAKEN(accept4)
SHAKEN(connect)
SHAKEN(epoll_wait)
SHAKEN(eventfd_read)
SHAKEN(eventfd_write)
SHAKEN(fork)
SHAKEN(kill)
SHAKEN(poll)
SHAKEN(posix_spawn)
SHAKEN(ppoll)
SHAKEN(pthread_cond_broadcast)
SHAKEN(pthread_cond_signal)
SHAKEN(pthread_cond_timedwait)
SHAKEN(pthread_cond_wait)
SHAKEN(pthread_create)
SHAKEN(pthread_mutex_lock)
SHAKEN(pthread_mutex_unlock)
SHAKEN(pthread_rwlock_rdlock)
SHAKEN(pthread_rwlock_unlock)
SHAKEN(pthread_rwlock_wrlock)
SHAKEN(read)
SHAKEN(recv)
SHAKEN(recvmsg)
SHAKEN(sched_yield)
SHAKEN(send)
SHAKEN(sendmsg)
SHAKEN(waitid)
SHAKEN(waitpid)
SHAKEN(write)

#define SHAKEN_ATOMICS(bits)                                                                       \
	SHAKEN(__tsan_atomic##bits##_load)                                                         \
	SHAKEN(__tsan_atomic##bits##_store)                                                        \
	SHAKEN(__tsan_atomic##bits##_exchange)                                                     \
	SHAKEN(__tsan_atomic##bits##_fetch_add)                                                    \
	SHAKEN(__tsan_atomic##bits##_fetch_sub)                                                    \
	SHAKEN(__tsan_atomic##bits##_fetch_and)                                                    \
	SHAKEN(__tsan_atomic##bits##_fetch_or)                                                     \
	SHAKEN(__tsan_atomic##bits##_compare_exchange_strong)                                      \
	SHAKEN(__tsan_atomic##bits##_compare_exchange_weak)

SHAKEN_ATOMICS(8)
SHAKEN_ATOMICS(16)
SHAKEN_ATOMICS(32)
SHAKEN_ATOMICS(64)
