/*
 * Ringing with a way out; see bell.h.
 */
#define _GNU_SOURCE
#include "backend/bell.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
#include "common/util.h"

/* A write that does not block is done in a fraction of this. */
#define PATIENCE_NS (100 * FGV_NS_PER_US)

#ifndef sigev_notify_thread_id /* glibc has the field without its name */
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void interrupt(int signal)
{
	(void)signal;
}

int fgv_bell_init(struct fgv_bell *bell)
{
	struct sigaction action = {.sa_handler = interrupt}; /* and no SA_RESTART */
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	sigset_t set;

	event.sigev_notify_thread_id = gettid();
	if (sigaction(SIGRTMIN, &action, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &event, &bell->timer))
		return -errno;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return 0;
}

void fgv_bell_fini(struct fgv_bell *bell)
{
	timer_delete(bell->timer);
}

bool fgv_bell_ring(struct fgv_bell *bell, int fd)
{
	/* Over and over: the first may come before the write begins. */
	static const struct itimerspec often = {
		.it_interval.tv_nsec = PATIENCE_NS,
		.it_value.tv_nsec = PATIENCE_NS,
	};
	static const struct itimerspec never;
	uint64_t one = 1;
	bool blocked;

	timer_settime(bell->timer, 0, &often, NULL);
	blocked = write(fd, &one, sizeof(one)) < 0 && errno == EINTR;
	timer_settime(bell->timer, 0, &never, NULL);
	return !blocked;
}
