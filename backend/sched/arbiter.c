/*
 * The arbiter of one soft device; see arbiter.h. A process that rings without a wish is not
 * listened to for a while.
 */
#define _GNU_SOURCE
#include "backend/sched/arbiter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>
#include "backend/memory.h"
#include "backend/sched/bells.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"
#include "softgpu/ledger.h"
#include "softgpu/seat.h"

#define NAME_LEN      64
#define EVENTS	      16
#define IDLE_RINGS    16 /* without a wish, in a row, until a seat is not listened to */
#define MUTED_NS      (10 * FGV_NS_PER_MS)
#define RACES	      8 /* with a holder whose word changes, until it is looked at later */
#define RACE_LATER_NS FGV_NS_PER_MS

struct fgv_arbiter_seat {
	LIST_ENTRY(fgv_arbiter_seat) link;
	TAILQ_ENTRY(fgv_arbiter_seat) waiting_link; /* while it waits */
	struct fgv_arbiter *arbiter;
	struct softgpu_seat *page;
	int page_fd; /* -1: not needed any more */
	int bell_fd;
	int arbiter_fd;
	pid_t pid; /* 0: not started yet */
	bool waits;
	bool condemned;
	bool held;
	unsigned idle_rings;
	uint32_t number; /* of its page in the ledger; SOFTGPU_LEDGER_PAGES: it has none */
	uint64_t muted_until_ns; /* 0: listened to */
};

struct fgv_arbiter {
	char name[NAME_LEN];
	uint64_t hang_ns;
	struct fgv_bells bells;
	struct softgpu_ledger *ledger;
	int ledger_fd;
	bool is_taken[SOFTGPU_LEDGER_PAGES];

	pthread_mutex_t lock; /* of all below */
	LIST_HEAD(, fgv_arbiter_seat) seats;
	TAILQ_HEAD(, fgv_arbiter_seat) waiting; /* in the order in which they were heard */
	struct fgv_arbiter_seat *holder;
	uint64_t asked_since_ns; /* the holder is asked to give back since; 0: it is not */
	/* The holder was told to stop at once then; 0: not since it has the engine. */
	uint64_t stopped_since_ns;
	bool stopping;
};

/* --- Deciding; the lock is held -------------------------------------------- */

static void condemn(struct fgv_arbiter_seat *seat, const char *why)
{
	seat->condemned = true;
	fgv_error_of(FGV_LOG_GPU(seat->arbiter->name), "process %d is killed: %s", (int)seat->pid,
		     why);
	if (seat->pid)
		kill(seat->pid, SIGKILL);
}

static bool has_engine(uint32_t state)
{
	return state == SOFTGPU_SEAT_BUSY || state == SOFTGPU_SEAT_ASKED ||
	       state == SOFTGPU_SEAT_IDLE || state == SOFTGPU_SEAT_STOP;
}

static void unqueue(struct fgv_arbiter_seat *seat)
{
	if (seat->waits)
		TAILQ_REMOVE(&seat->arbiter->waiting, seat, waiting_link);
	seat->waits = false;
}

static void vacate(struct fgv_arbiter *arbiter)
{
	arbiter->holder = NULL;
	arbiter->asked_since_ns = 0;
	arbiter->stopped_since_ns = 0;
}

static void listen_to(struct fgv_arbiter_seat *seat, bool listens)
{
	struct epoll_event event = {
		.events = listens ? EPOLLIN | EPOLLET : 0,
		.data.ptr = seat,
	};

	epoll_ctl(seat->arbiter->bells.epoll_fd, EPOLL_CTL_MOD, seat->arbiter_fd, &event);
}

static void count_ring(struct fgv_arbiter_seat *seat, bool brought_news)
{
	seat->idle_rings = brought_news ? 0 : seat->idle_rings + 1;
	if (seat->idle_rings < IDLE_RINGS)
		return;
	seat->muted_until_ns = fgv_now_ns() + MUTED_NS;
	listen_to(seat, false);
}

/* A seat has rung. */
static void hear(struct fgv_arbiter_seat *seat)
{
	struct fgv_arbiter *arbiter = seat->arbiter;
	uint32_t state = softgpu_seat_load(seat->page);
	bool gave_back = arbiter->holder == seat && !has_engine(state);
	bool asks = state == SOFTGPU_SEAT_WANTS && !seat->waits && !seat->condemned &&
		    (gave_back || arbiter->holder != seat);

	if (gave_back)
		vacate(arbiter);
	if (asks) {
		TAILQ_INSERT_TAIL(&arbiter->waiting, seat, waiting_link);
		seat->waits = true;
	}
	count_ring(seat, gave_back || asks);
}

static void hear_all(struct fgv_arbiter *arbiter)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(arbiter->bells.epoll_fd, events, EVENTS, 0);

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			hear(events[i].data.ptr);
	}
}

/*
 * Listens to muted processes again whose time is over; when to do so next. Each edge that was missed
 * comes now.
 */
static uint64_t unmute(struct fgv_arbiter *arbiter, uint64_t now_ns)
{
	struct fgv_arbiter_seat *seat;
	uint64_t next_ns = 0;

	LIST_FOREACH(seat, &arbiter->seats, link) {
		if (!seat->muted_until_ns)
			continue;
		if (now_ns < seat->muted_until_ns) {
			next_ns = fgv_earlier_ns(next_ns, seat->muted_until_ns);
			continue;
		}
		seat->muted_until_ns = 0;
		seat->idle_rings = 0;
		listen_to(seat, true);
	}
	return next_ns;
}

/* The first in line that is not held; NULL: there is none. */
static struct fgv_arbiter_seat *first_waiting(const struct fgv_arbiter *arbiter)
{
	struct fgv_arbiter_seat *seat;

	TAILQ_FOREACH(seat, &arbiter->waiting, waiting_link) {
		if (!seat->held)
			return seat;
	}
	return NULL;
}

/* @seat, which is first in line, has the engine now, unless it has changed its mind. */
static void give_to(struct fgv_arbiter *arbiter, struct fgv_arbiter_seat *seat)
{
	unqueue(seat);
	if (!softgpu_seat_move(seat->page, SOFTGPU_SEAT_WANTS, SOFTGPU_SEAT_BUSY))
		return;
	arbiter->holder = seat;
	if (fgv_bell_ring(&arbiter->bells.bell, seat->bell_fd))
		return;
	condemn(seat, "it has made its doorbell block");
	vacate(arbiter);
}

/* Tells the holder to give the engine back. False: it has been told. */
static bool ask_holder(const struct fgv_arbiter_seat *holder, uint32_t state)
{
	enum softgpu_seat_state asked = holder->held ? SOFTGPU_SEAT_STOP : SOFTGPU_SEAT_ASKED;

	if (state == asked)
		return false;
	if (holder->held && state == SOFTGPU_SEAT_ASKED)
		return !softgpu_seat_move(holder->page, SOFTGPU_SEAT_ASKED, asked);
	return !softgpu_seat_move(holder->page, SOFTGPU_SEAT_BUSY, asked);
}

/*
 * Others wait, or the holder is held: takes the engine from it, or asks for it. False: it has to be
 * waited for.
 */
static bool reclaim(struct fgv_arbiter *arbiter)
{
	struct fgv_arbiter_seat *holder = arbiter->holder;
	uint32_t state = softgpu_seat_load(holder->page);

	if (!has_engine(state) ||
	    softgpu_seat_move(holder->page, SOFTGPU_SEAT_IDLE, SOFTGPU_SEAT_FREE)) {
		vacate(arbiter);
		return true;
	}
	/* One that was let go before it had stopped gives the engine back, and asks again. */
	return state != SOFTGPU_SEAT_STOP && ask_holder(holder, state);
}

/*
 * When the holder is killed; 0: never. Told to stop, it has to give the engine back though it may
 * have been let go since, and whatever it writes: a process that stands still would otherwise be
 * given time anew with each turn that it has.
 */
static uint64_t patience_ends_ns(const struct fgv_arbiter *arbiter)
{
	uint64_t stop_ns = arbiter->hang_ns ? arbiter->hang_ns : FGV_ARBITER_STOP_NS;

	if (arbiter->stopped_since_ns)
		return arbiter->stopped_since_ns + stop_ns;
	return arbiter->asked_since_ns && arbiter->hang_ns
		       ? arbiter->asked_since_ns + arbiter->hang_ns
		       : 0;
}

/* When to look again; 0: when somebody rings. */
static uint64_t lose_patience(struct fgv_arbiter *arbiter, uint64_t now_ns)
{
	uint64_t end_ns = patience_ends_ns(arbiter);

	if (!end_ns || now_ns < end_ns)
		return end_ns;
	condemn(arbiter->holder, arbiter->stopped_since_ns ? "it does not stop its kernel"
							   : "it does not give the engine back");
	vacate(arbiter);
	return now_ns;
}

/*
 * The same of a holder whose engine is wanted. @is_told: it has been asked for it, or told to stop;
 * else its state changed each time that it was to be.
 */
static uint64_t check_holder(struct fgv_arbiter *arbiter, uint64_t now_ns, bool is_told)
{
	if (!arbiter->asked_since_ns)
		arbiter->asked_since_ns = now_ns;
	if (is_told && arbiter->holder->held && !arbiter->stopped_since_ns)
		arbiter->stopped_since_ns = now_ns;
	return lose_patience(arbiter, now_ns);
}

static bool is_wrong_holder(const struct fgv_arbiter *arbiter)
{
	return arbiter->holder && arbiter->holder->held;
}

/* Returns when to look again though nobody rings (fgv_now_ns()); 0: not at all. */
static uint64_t decide(struct fgv_arbiter *arbiter, uint64_t now_ns)
{
	struct fgv_arbiter_seat *first;

	for (int races = 0; (first = first_waiting(arbiter)) || is_wrong_holder(arbiter);) {
		if (!arbiter->holder) {
			give_to(arbiter, first);
		} else if (!reclaim(arbiter)) {
			return check_holder(arbiter, now_ns, true);
		} else if (arbiter->holder && ++races == RACES) {
			uint64_t look_ns = check_holder(arbiter, now_ns, false);

			return fgv_earlier_ns(look_ns, now_ns + RACE_LATER_NS);
		}
	}
	arbiter->asked_since_ns = 0;
	return lose_patience(arbiter, now_ns);
}

static uint64_t take_turn(struct fgv_arbiter *arbiter)
{
	uint64_t now_ns = fgv_now_ns();
	uint64_t unmute_ns = unmute(arbiter, now_ns);

	hear_all(arbiter);
	return fgv_earlier_ns(decide(arbiter, now_ns), unmute_ns);
}

/* --- The thread ------------------------------------------------------------ */

static void serve(void *arg)
{
	struct fgv_arbiter *arbiter = arg;

	pthread_mutex_lock(&arbiter->lock);
	while (!arbiter->stopping) {
		uint64_t until_ns = take_turn(arbiter);

		pthread_mutex_unlock(&arbiter->lock);
		fgv_bells_sleep(&arbiter->bells, until_ns ? until_ns : UINT64_MAX);
		pthread_mutex_lock(&arbiter->lock);
	}
	pthread_mutex_unlock(&arbiter->lock);
}

/* --- Set-up ---------------------------------------------------------------- */

static void close_ledger(struct fgv_arbiter *arbiter)
{
	munmap(arbiter->ledger, sizeof(*arbiter->ledger));
	close(arbiter->ledger_fd);
}

int fgv_arbiter_create(struct fgv_arbiter **out, const char *name, uint64_t hang_ns)
{
	struct fgv_arbiter *arbiter = calloc(1, sizeof(*arbiter));
	void *ledger;
	int ret;

	if (!arbiter)
		return -ENOMEM;
	snprintf(arbiter->name, sizeof(arbiter->name), "%s", name);
	arbiter->hang_ns = hang_ns;
	pthread_mutex_init(&arbiter->lock, NULL);
	LIST_INIT(&arbiter->seats);
	TAILQ_INIT(&arbiter->waiting);
	arbiter->ledger_fd = fgv_memory_create("fairgv-ledger", sizeof(*arbiter->ledger), &ledger);
	if (arbiter->ledger_fd < 0) {
		ret = arbiter->ledger_fd;
		goto free_arbiter;
	}
	arbiter->ledger = ledger;
	ret = fgv_bells_init(&arbiter->bells);
	if (ret)
		goto close_ledger;
	ret = fgv_bells_start(&arbiter->bells, serve, arbiter);
	if (ret)
		goto close_bells;
	*out = arbiter;
	return 0;
close_bells:
	fgv_bells_fini(&arbiter->bells);
close_ledger:
	close_ledger(arbiter);
free_arbiter:
	pthread_mutex_destroy(&arbiter->lock);
	free(arbiter);
	return ret;
}

void fgv_arbiter_destroy(struct fgv_arbiter *arbiter)
{
	if (!arbiter)
		return;
	pthread_mutex_lock(&arbiter->lock);
	arbiter->stopping = true;
	pthread_mutex_unlock(&arbiter->lock);
	fgv_bells_join(&arbiter->bells);
	fgv_bells_fini(&arbiter->bells);
	close_ledger(arbiter);
	pthread_mutex_destroy(&arbiter->lock);
	free(arbiter);
}

/* The lowest free page, so that few have to be looked at. */
static int take_page(struct fgv_arbiter *arbiter, uint32_t *number)
{
	for (uint32_t i = 0; i < SOFTGPU_LEDGER_PAGES; i++) {
		if (arbiter->is_taken[i])
			continue;
		arbiter->is_taken[i] = true;
		*number = i;
		if (i >= arbiter->ledger->bound)
			__atomic_store_n(&arbiter->ledger->bound, i + 1, __ATOMIC_SEQ_CST);
		return 0;
	}
	return -EUSERS;
}

static void give_page(struct fgv_arbiter_seat *seat)
{
	struct fgv_arbiter *arbiter = seat->arbiter;

	if (seat->number == SOFTGPU_LEDGER_PAGES)
		return;
	__atomic_store_n(&arbiter->ledger->pages[seat->number].used_bytes, 0, __ATOMIC_SEQ_CST);
	arbiter->is_taken[seat->number] = false;
}

static void close_seat(struct fgv_arbiter_seat *seat)
{
	give_page(seat);
	if (seat->arbiter_fd >= 0)
		close(seat->arbiter_fd);
	if (seat->bell_fd >= 0)
		close(seat->bell_fd);
	if (seat->page)
		munmap(seat->page, sizeof(*seat->page));
	if (seat->page_fd >= 0)
		close(seat->page_fd);
	free(seat);
}

static int open_seat(struct fgv_arbiter_seat *seat)
{
	void *memory;

	seat->page_fd = fgv_memory_create("fairgv-seat", sizeof(*seat->page), &memory);
	if (seat->page_fd < 0)
		return seat->page_fd;
	seat->page = memory;
	seat->page->number = seat->number;
	seat->bell_fd = fgv_doorbell_create();
	if (seat->bell_fd < 0)
		return seat->bell_fd;
	seat->arbiter_fd = fgv_doorbell_create();
	if (seat->arbiter_fd < 0)
		return seat->arbiter_fd;
	return fgv_bells_watch(&seat->arbiter->bells, seat->arbiter_fd, seat);
}

int fgv_arbiter_attach(struct fgv_arbiter *arbiter, bool shares_memory,
		       struct fgv_arbiter_seat **out, int fds[FGV_SEAT_FDS])
{
	struct fgv_arbiter_seat *seat = calloc(1, sizeof(*seat));
	int ret;

	if (!seat)
		return -ENOMEM;
	seat->arbiter = arbiter;
	seat->page_fd = seat->bell_fd = seat->arbiter_fd = -1;
	seat->number = SOFTGPU_LEDGER_PAGES;
	pthread_mutex_lock(&arbiter->lock);
	ret = shares_memory ? take_page(arbiter, &seat->number) : 0;
	if (!ret)
		ret = open_seat(seat);
	if (!ret)
		LIST_INSERT_HEAD(&arbiter->seats, seat, link);
	pthread_mutex_unlock(&arbiter->lock);
	if (ret) {
		close_seat(seat);
		return ret;
	}
	fds[FGV_SEAT_PAGE] = seat->page_fd;
	fds[FGV_SEAT_BELL] = seat->bell_fd;
	fds[FGV_SEAT_ARBITER] = seat->arbiter_fd;
	/* One without a page does not even see it. */
	fds[FGV_SEAT_LEDGER] = shares_memory ? arbiter->ledger_fd : seat->page_fd;
	*out = seat;
	return 0;
}

void fgv_arbiter_started(struct fgv_arbiter_seat *seat, pid_t pid)
{
	close(seat->page_fd);
	seat->page_fd = -1;
	pthread_mutex_lock(&seat->arbiter->lock);
	seat->pid = pid;
	if (seat->condemned)
		kill(pid, SIGKILL);
	pthread_mutex_unlock(&seat->arbiter->lock);
}

void fgv_arbiter_detach(struct fgv_arbiter_seat *seat)
{
	struct fgv_arbiter *arbiter = seat->arbiter;

	pthread_mutex_lock(&arbiter->lock);
	fgv_bells_forget(&arbiter->bells, seat->arbiter_fd);
	unqueue(seat);
	if (arbiter->holder == seat)
		vacate(arbiter);
	LIST_REMOVE(seat, link);
	pthread_mutex_unlock(&arbiter->lock);
	fgv_bells_kick(&arbiter->bells);
	close_seat(seat);
}

/* Seats are taken and left by the main thread alone, so the list does not change meanwhile. */
struct fgv_arbiter_seat *fgv_arbiter_find(struct fgv_arbiter *arbiter, pid_t pid)
{
	struct fgv_arbiter_seat *seat;

	LIST_FOREACH(seat, &arbiter->seats, link) {
		if (seat->pid == pid)
			return seat;
	}
	return NULL;
}

void fgv_arbiter_forget(struct fgv_arbiter *arbiter, pid_t pid)
{
	struct fgv_arbiter_seat *seat = fgv_arbiter_find(arbiter, pid);

	if (seat)
		fgv_arbiter_detach(seat);
}

void fgv_arbiter_hold(struct fgv_arbiter_seat *seat, bool held)
{
	struct fgv_arbiter *arbiter = seat->arbiter;

	pthread_mutex_lock(&arbiter->lock);
	seat->held = held;
	pthread_mutex_unlock(&arbiter->lock);
	fgv_bells_kick(&arbiter->bells);
}
