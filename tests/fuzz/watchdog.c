/* One thread for the whole process, which is told by fuzz_watch() what to look at. */
#include "tests/fuzz/watchdog.h"

#include <cuda.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include "common/util.h"
#include "softgpu/device/internal.h"

#define LOOK_MS 1

static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct {
		struct softgpu *gpu;
		uint64_t end_ns;
	} list[FUZZ_WATCHED];
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

void fuzz_stop(struct softgpu *gpu)
{
	pthread_mutex_lock(&gpu->job_lock);
	if (__atomic_load_n(&gpu->fault, __ATOMIC_RELAXED) == CUDA_SUCCESS)
		__atomic_store_n(&gpu->fault, CUDA_ERROR_LAUNCH_TIMEOUT, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&gpu->job_lock);
	fgv_workers_stop_jobs(gpu);
}

/* Again and again: a kernel may have been about to begin. */
static void *run(void *arg)
{
	(void)arg;
	for (;;) {
		poll(NULL, 0, LOOK_MS);
		pthread_mutex_lock(&watch.lock);
		for (unsigned i = 0; i < FUZZ_WATCHED; i++) {
			if (watch.list[i].gpu && fgv_now_ns() > watch.list[i].end_ns)
				fuzz_stop(watch.list[i].gpu);
		}
		pthread_mutex_unlock(&watch.lock);
	}
	return NULL;
}

static void start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		abort();
	pthread_detach(thread);
}

void fuzz_watch(unsigned number, struct softgpu *gpu, uint64_t limit_ns)
{
	pthread_once(&watch.once, start);
	pthread_mutex_lock(&watch.lock);
	watch.list[number].gpu = gpu;
	watch.list[number].end_ns = fgv_now_ns() + limit_ns;
	pthread_mutex_unlock(&watch.lock);
}
