/*
 * The end of a thread: its parts are given back, the last added first. Destructors of other
 * libraries may still call CUDA after that: then the thread gets them anew and is watched again,
 * as often as the C library runs destructors.
 */
#include "frontend/client/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

__thread struct fgv_thread fgv_thread_self;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key_error;

static void thread_end(void *arg)
{
	struct fgv_thread *self = arg;
	struct fgv_thread_part *part;

	self->is_watched = false;
	while ((part = self->parts)) {
		self->parts = part->next;
		part->is_added = false;
		part->end();
	}
}

static void make_key(void)
{
	key_error = pthread_key_create(&key, thread_end);
}

static int watch(struct fgv_thread *self)
{
	if (self->is_watched)
		return 0;
	pthread_once(&key_once, make_key);
	if (key_error || pthread_setspecific(key, self))
		return -ENOMEM;
	self->is_watched = true;
	return 0;
}

int fgv_thread_add(struct fgv_thread_part *part)
{
	struct fgv_thread *self = &fgv_thread_self;

	if (part->is_added)
		return 0;
	if (watch(self))
		return -ENOMEM;
	part->is_added = true;
	part->next = self->parts;
	self->parts = part;
	return 0;
}

int fgv_thread_start(void *(*serve)(void *arg), void *arg)
{
	sigset_t all, earlier;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &earlier);
	err = pthread_create(&thread, &attr, serve, arg);
	pthread_sigmask(SIG_SETMASK, &earlier, NULL);
	pthread_attr_destroy(&attr);
	return err;
}
