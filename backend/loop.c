/*
 * The event loop over epoll; see loop.h.
 */
#include "backend/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include "common/util.h"

int fgv_loop_create(void)
{
	int loop = epoll_create1(EPOLL_CLOEXEC);

	return loop < 0 ? -errno : loop;
}

static int control(int loop, int what, struct fgv_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(loop, what, watch->fd, &event) ? -errno : 0;
}

int fgv_loop_add(int loop, struct fgv_watch *watch, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, watch, events);
}

void fgv_loop_change(int loop, struct fgv_watch *watch, uint32_t events)
{
	control(loop, EPOLL_CTL_MOD, watch, events);
}

void fgv_loop_remove(int loop, struct fgv_watch *watch)
{
	control(loop, EPOLL_CTL_DEL, watch, 0);
}

/* In milliseconds, rounded up so that a turn never ends just before its deadline. */
static int time_left_ms(uint64_t deadline_ns)
{
	uint64_t now_ns = fgv_now_ns();
	uint64_t left_ms;

	if (!deadline_ns)
		return -1;
	if (deadline_ns <= now_ns)
		return 0;
	left_ms = (deadline_ns - now_ns + FGV_NS_PER_MS - 1) / FGV_NS_PER_MS;
	return (int)fgv_min_u64(left_ms, INT32_MAX);
}

void fgv_loop_turn(int loop, uint64_t deadline_ns)
{
	struct epoll_event event;
	struct fgv_watch *watch;

	if (epoll_wait(loop, &event, 1, time_left_ms(deadline_ns)) != 1)
		return;
	watch = event.data.ptr;
	watch->ready(watch, event.events);
}
