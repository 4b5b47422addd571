/*
 * The doorbell of the local transport: an eventfd, which is nonblocking and counts.
 * No state of its own; any thread may call.
 */
#define _GNU_SOURCE
#include "shmring/park.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/util.h"

int fgv_doorbell_create(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int fgv_doorbell_check(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], name[sizeof(want)];
	ssize_t len;
	int flags;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, name, sizeof(name));
	if (len < 0)
		return -errno;
	if (len != sizeof(want) - 1 || memcmp(name, want, sizeof(want) - 1))
		return -EINVAL;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return 0;
}

void fgv_doorbell_ring(int fd)
{
	uint64_t one = 1;

	/*
	 * It fails only where the counter is full, and then the sleeper has been rung
	 * already. So not even EINTR is a reason to try again: it says that the peer has
	 * made the eventfd blocking, and that a signal has got us out of there.
	 */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

void fgv_doorbell_clear(int fd)
{
	uint64_t count;
	struct iovec to = {&count, sizeof(count)};

	/* Does not block even if the peer has made the eventfd blocking. */
	if (preadv2(fd, &to, 1, -1, RWF_NOWAIT) < 0)
		return;
}

/* What is left of a limit, as ppoll() wants it; NULL where there is no limit. */
static const struct timespec *time_left(uint64_t deadline_ns, int64_t timeout_ns,
					struct timespec *ts)
{
	uint64_t now_ns, left_ns;

	if (timeout_ns < 0)
		return NULL;
	now_ns = fgv_now_ns();
	left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
	ts->tv_sec = (time_t)(left_ns / FGV_NS_PER_SEC);
	ts->tv_nsec = (long)(left_ns % FGV_NS_PER_SEC);
	return ts;
}

int fgv_doorbell_wait(int fd, int hangup_fd, int64_t timeout_ns)
{
	uint64_t deadline_ns = timeout_ns > 0 ? fgv_now_ns() + (uint64_t)timeout_ns : 0;
	struct pollfd fds[2] = {
		{.fd = fd, .events = POLLIN},
		{.fd = hangup_fd, .events = POLLIN | POLLRDHUP},
	};
	struct timespec ts;
	int ready;

	do
		ready = ppoll(fds, 2, time_left(deadline_ns, timeout_ns, &ts), NULL);
	while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return -errno;
	if (fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL))
		return -ECONNRESET;
	if (fds[1].revents & POLLIN)
		return -EAGAIN;
	if (fds[0].revents & ~POLLIN)
		return -EBADF;
	return fds[0].revents ? 1 : 0;
}
