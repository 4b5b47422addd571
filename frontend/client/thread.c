/*
 * The state of a thread, and its end. A thread that ends gives back its default stream,
 * its lane and its stack of launch configurations. Destructors of other libraries may
 * still call CUDA after that: then the thread gets them anew and is watched again,
 * as often as the C library runs destructors.
 */
#include "frontend/client/thread.h"

#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "api/gpu_guest.h"
#include "frontend/client/lane.h"

__thread struct fgv_thread fgv_thread_self;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key_error;

static void thread_end(void *arg)
{
	struct fgv_thread *self = arg;
	struct fgv_lane *lane = self->lane;

	self->watched = 0;
	/* Nothing is given back to a session that has ended, least of all in a forked child. */
	if (lane && !fgv_lane_enter(&lane)) {
		if (self->default_stream)
			fgv_post_stream_destroy(lane, self->default_stream);
		fgv_lane_leave(lane);
		self->default_stream = 0;
		self->lane = NULL;
		fgv_lane_return(lane);
	}
	free(self->configs);
	self->configs = NULL;
	self->config_count = self->config_room = 0;
}

static void make_key(void)
{
	key_error = pthread_key_create(&key, thread_end);
}

int fgv_thread_watch(void)
{
	struct fgv_thread *self = &fgv_thread_self;

	if (self->watched)
		return 0;
	pthread_once(&key_once, make_key);
	if (key_error || pthread_setspecific(key, self))
		return CUDA_ERROR_OUT_OF_MEMORY;
	self->watched = 1;
	return 0;
}

int fgv_thread_start(void *(*serve)(void *unused))
{
	sigset_t all, earlier;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &earlier);
	err = pthread_create(&thread, &attr, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &earlier, NULL);
	pthread_attr_destroy(&attr);
	return err;
}
