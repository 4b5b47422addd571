/*
 * The watcher's thread. It touches two descriptors and one word of the session, which
 * lives as long as the process.
 */
#define _GNU_SOURCE
#include "backend/vgpu/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/vgpu/session.h"
#include "common/log.h"

/* What an orderly end may take: destroying a context takes tens of milliseconds. */
#define GRACE_MS 3000

bool fgv_watch_may_leave(const struct fgv_session *session)
{
	struct pollfd fd = {.fd = session->fds[FGV_SETUP_CONNECTION], .events = POLLRDHUP};

	return !session->prepare.shares_context && poll(&fd, 1, 0) > 0 &&
	       fd.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/*
 * Into the VM's control group. Here, as the kernel takes milliseconds for it, and nobody waits
 * for this thread; the process's own limits hold already.
 */
static void join_group(struct fgv_session *session)
{
	int fd = session->fds[FGV_SETUP_CGROUP];

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		fgv_warning("can't join its VM's control group: %s", strerror(errno));
	close(fd);
	session->fds[FGV_SETUP_CGROUP] = -1;
}

static void *watch(void *arg)
{
	struct fgv_session *session = arg;
	struct pollfd fds[] = {
		{.fd = session->fds[FGV_SETUP_CONNECTION], .events = POLLRDHUP},
		{.fd = FGV_CONTROL_FD, .events = POLLRDHUP},
	};

	join_group(session);
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		continue;
	if (fgv_watch_may_leave(session))
		_exit(EXIT_SUCCESS);
	__atomic_store_n(&session->is_over, 1, __ATOMIC_RELAXED);
	poll(NULL, 0, GRACE_MS);
	fgv_debug("does not stop, killed");
	_exit(EXIT_SUCCESS);
}

int fgv_watch_start(struct fgv_session *session)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, watch, session);

	if (err)
		return -err;
	return -pthread_detach(thread);
}
