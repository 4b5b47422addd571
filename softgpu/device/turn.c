/*
 * The process's turns at the engine that processes share, as far as kernels see them: those that
 * run side by side have it together, and stand still together where it is taken from them.
 */
#include "common/util.h"
#include "softgpu/device/internal.h"

/* --- The engine ------------------------------------------------------------------ */

/* The others of this process do not prolong its turn once another process wants the engine. */
static bool share_engine(struct softgpu *gpu)
{
	if (!gpu->engine_users || fgv_engine_is_wanted(&gpu->config.engine))
		return false;
	gpu->engine_users++;
	return true;
}

/* False: the device is being taken down. */
static bool fetch_engine(struct softgpu *gpu)
{
	bool got;

	gpu->engine_asked = true;
	pthread_mutex_unlock(&gpu->job_lock);
	got = fgv_engine_acquire(&gpu->config.engine, &gpu->stop);
	pthread_mutex_lock(&gpu->job_lock);
	gpu->engine_asked = false;
	gpu->engine_users += got;
	pthread_cond_broadcast(&gpu->job_moved);
	return got;
}

bool fgv_turn_begin(struct softgpu *gpu)
{
	if (!gpu->config.engine.seat)
		return true;
	while (!share_engine(gpu)) {
		if (__atomic_load_n(&gpu->stop, __ATOMIC_RELAXED))
			return false;
		if (!gpu->engine_users && !gpu->engine_asked)
			return fetch_engine(gpu);
		pthread_cond_wait(&gpu->job_moved, &gpu->job_lock);
	}
	return true;
}

void fgv_turn_end(struct softgpu *gpu)
{
	if (!gpu->config.engine.seat || --gpu->engine_users)
		return;
	fgv_engine_release(&gpu->config.engine);
	pthread_cond_broadcast(&gpu->job_moved);
}

/* --- Standing still -------------------------------------------------------------- */

/*
 * All stand still: gives the engine away until it comes back. Under job_lock but for the time
 * without the engine.
 */
static void give_engine_away(struct softgpu *gpu)
{
	uint64_t since_ns = fgv_now_ns();

	gpu->is_away = true;
	pthread_mutex_unlock(&gpu->job_lock);
	fgv_engine_stand_still(&gpu->config.engine, &gpu->stop);
	pthread_mutex_lock(&gpu->job_lock);
	gpu->is_away = false;
	for (unsigned i = 0; i < COMPUTE_QUEUES; i++)
		__atomic_fetch_add(&gpu->executors[i].job.away_ns, fgv_now_ns() - since_ns,
				   __ATOMIC_RELAXED);
	__atomic_store_n(&gpu->held, 0, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&gpu->job_moved);
	fgv_workers_tell_others(gpu);
}

/* Whichever worker comes first tells the others, and the last one gives the engine away. */
void fgv_turn_stand_still(struct softgpu *gpu)
{
	pthread_mutex_lock(&gpu->job_lock);
	__atomic_store_n(&gpu->held, 1, __ATOMIC_RELAXED);
	gpu->still++;
	pthread_cond_broadcast(&gpu->job_moved);
	while (__atomic_load_n(&gpu->held, __ATOMIC_RELAXED)) {
		if (gpu->still == gpu->at_work && !gpu->is_away)
			give_engine_away(gpu);
		else
			pthread_cond_wait(&gpu->job_moved, &gpu->job_lock);
	}
	gpu->still--;
	pthread_mutex_unlock(&gpu->job_lock);
}
