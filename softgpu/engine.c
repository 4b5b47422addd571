/*
 * The one engine of a device, shared by processes: first come, first served. A process has a
 * slot from attach to detach; to wait, it takes the next ticket and sleeps on its
 * slot's word. A process may die anywhere, also inside the lock: whoever gets the lock
 * next, and softgpu_shared_forget(), put the state in order.
 *
 * The lock guards all fields. granted is written under it and read without: the store
 * (release) pairs with the waiter's load (acquire).
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/internal.h"

#define SLOTS	1024
#define NOBODY	(-1)
#define POLL_MS 50 /* how often a waiter for the engine looks again */
#define LOCK_PAUSE_US 20

struct slot {
	pid_t pid;	  /* 0: free */
	uint32_t granted; /* futex */
	uint64_t ticket;  /* 0: not waiting */
};

struct engine {
	pthread_mutex_t lock;
	int holder;	  /* slot or NOBODY */
	unsigned waiting; /* slots with a ticket */
	uint64_t tickets; /* given out so far */
	struct slot slots[SLOTS];
};

size_t softgpu_shared_size(void)
{
	return sizeof(struct engine);
}

void softgpu_shared_init(void *shared)
{
	struct engine *e = shared;
	pthread_mutexattr_t attr;

	memset(e, 0, sizeof(*e));
	e->holder = NOBODY;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&e->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void wake(struct slot *s)
{
	__atomic_store_n(&s->granted, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &s->granted, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int first_in_line(const struct engine *e)
{
	int first = NOBODY;

	for (int i = 0; e->waiting && i < SLOTS; i++) {
		if (e->slots[i].ticket &&
		    (first == NOBODY || e->slots[i].ticket < e->slots[first].ticket))
			first = i;
	}
	return first;
}

/* Gives a free engine to the first in line. */
static void pass_on_locked(struct engine *e)
{
	int next = first_in_line(e);

	e->holder = next;
	if (next == NOBODY)
		return;
	e->slots[next].ticket = 0;
	e->waiting--;
	wake(&e->slots[next]);
}

/* Somebody died between two stores: counts are taken anew, and the holder is told again. */
static void repair_locked(struct engine *e)
{
	e->waiting = 0;
	for (int i = 0; i < SLOTS; i++) {
		if (i == e->holder)
			e->slots[i].ticket = 0;
		e->waiting += e->slots[i].ticket != 0;
	}
	if (e->holder == NOBODY)
		pass_on_locked(e);
	else
		wake(&e->slots[e->holder]);
}

/*
 * Never waits inside the mutex: a robust mutex can lose a wake-up when who was woken for it
 * is killed before he takes it. It is held for a few stores only, so looking again costs
 * little.
 */
static void lock(struct engine *e)
{
	static const struct timespec pause = {.tv_nsec = LOCK_PAUSE_US * 1000L};
	int error;

	while ((error = pthread_mutex_trylock(&e->lock)) == EBUSY)
		nanosleep(&pause, NULL);
	if (error == EOWNERDEAD) {
		pthread_mutex_consistent(&e->lock);
		repair_locked(e);
	}
}

static void vacate_locked(struct engine *e, int slot)
{
	struct slot *s = &e->slots[slot];

	if (s->ticket)
		e->waiting--;
	s->ticket = 0;
	s->pid = 0;
	if (e->holder == slot)
		pass_on_locked(e);
}

void softgpu_shared_forget(void *shared, pid_t pid)
{
	struct engine *e = shared;

	lock(e);
	for (int i = 0; i < SLOTS; i++) {
		if (e->slots[i].pid == pid)
			vacate_locked(e, i);
	}
	pthread_mutex_unlock(&e->lock);
}

int fgv_engine_attach(struct engine *e)
{
	int slot = 0;

	lock(e);
	while (slot < SLOTS && e->slots[slot].pid)
		slot++;
	if (slot < SLOTS)
		e->slots[slot] = (struct slot){.pid = getpid()};
	pthread_mutex_unlock(&e->lock);
	return slot < SLOTS ? slot : -EAGAIN;
}

void fgv_engine_detach(struct engine *e, int slot)
{
	lock(e);
	vacate_locked(e, slot);
	pthread_mutex_unlock(&e->lock);
}

/* The slot leaves the line, or gives back what it was granted meanwhile. */
static void give_up(struct engine *e, int slot)
{
	struct slot *s = &e->slots[slot];

	lock(e);
	if (s->ticket) {
		s->ticket = 0;
		e->waiting--;
	}
	if (e->holder == slot)
		pass_on_locked(e);
	pthread_mutex_unlock(&e->lock);
}

bool fgv_engine_acquire(struct engine *e, int slot, const int *stop)
{
	static const struct timespec poll = {.tv_nsec = POLL_MS * 1000000L};
	struct slot *s = &e->slots[slot];

	lock(e);
	if (e->holder == NOBODY) {
		e->holder = slot;
		pthread_mutex_unlock(&e->lock);
		return true;
	}
	/* Before the ticket: once that is there, others may grant. */
	__atomic_store_n(&s->granted, 0, __ATOMIC_RELAXED);
	s->ticket = ++e->tickets;
	e->waiting++;
	pthread_mutex_unlock(&e->lock);
	/* Acquire pairs with the release in wake(). */
	while (!__atomic_load_n(&s->granted, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(stop, __ATOMIC_RELAXED)) {
			give_up(e, slot);
			return false;
		}
		syscall(SYS_futex, &s->granted, FUTEX_WAIT, 0, &poll, NULL, 0);
	}
	return true;
}

void fgv_engine_release(struct engine *e, int slot)
{
	lock(e);
	if (e->holder == slot)
		pass_on_locked(e);
	pthread_mutex_unlock(&e->lock);
}
