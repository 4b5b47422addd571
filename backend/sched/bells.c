/*
 * See bells.h.
 */
#define _GNU_SOURCE
#include "backend/sched/bells.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "common/util.h"
#include "shmring/park.h"

struct start {
	struct fgv_bells *bells;
	void (*serve)(void *arg);
	void *arg;
	sem_t done;
	int ret;
};

int fgv_bells_watch(const struct fgv_bells *bells, int fd, void *whose)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = whose};

	return epoll_ctl(bells->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void fgv_bells_forget(const struct fgv_bells *bells, int fd)
{
	epoll_ctl(bells->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

int fgv_bells_init(struct fgv_bells *bells)
{
	int ret;

	bells->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (bells->epoll_fd < 0)
		return -errno;
	bells->kick_fd = fgv_doorbell_create();
	ret = bells->kick_fd;
	if (ret < 0)
		goto close_epoll;
	ret = fgv_bells_watch(bells, bells->kick_fd, NULL);
	if (!ret)
		return 0;
	close(bells->kick_fd);
close_epoll:
	close(bells->epoll_fd);
	return ret;
}

void fgv_bells_fini(struct fgv_bells *bells)
{
	close(bells->kick_fd);
	close(bells->epoll_fd);
}

static void *run(void *arg)
{
	struct start *start = arg;
	void (*serve)(void *arg) = start->serve;
	struct fgv_bells *bells = start->bells;
	void *serve_arg = start->arg;
	int ret = fgv_bell_init(&bells->bell);

	start->ret = ret;
	sem_post(&start->done); /* and *start is gone */
	if (ret)
		return NULL;
	serve(serve_arg);
	fgv_bell_fini(&bells->bell);
	return NULL;
}

int fgv_bells_start(struct fgv_bells *bells, void (*serve)(void *arg), void *arg)
{
	struct start start = {.bells = bells, .serve = serve, .arg = arg};
	sigset_t all, before;
	int ret;

	sem_init(&start.done, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(&bells->thread, NULL, run, &start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret) {
		while (sem_wait(&start.done) && errno == EINTR)
			continue;
		ret = start.ret;
		if (ret)
			pthread_join(bells->thread, NULL);
	}
	sem_destroy(&start.done);
	return ret;
}

void fgv_bells_kick(const struct fgv_bells *bells)
{
	fgv_doorbell_ring(bells->kick_fd);
}

void fgv_bells_join(struct fgv_bells *bells)
{
	fgv_bells_kick(bells);
	pthread_join(bells->thread, NULL);
}

void fgv_bells_sleep(const struct fgv_bells *bells, uint64_t until_ns)
{
	struct pollfd rings = {.fd = bells->epoll_fd, .events = POLLIN};
	uint64_t now_ns = fgv_now_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec left = {
		.tv_sec = (time_t)(left_ns / FGV_NS_PER_SEC),
		.tv_nsec = (long)(left_ns % FGV_NS_PER_SEC),
	};

	ppoll(&rings, 1, until_ns == UINT64_MAX ? NULL : &left, NULL);
}
