/*
 * The chunks of the staging part: a mask of those in use under one mutex, and a
 * condition for who waits. A thread that ends while holding one is not possible, as
 * only a copy in progress holds any.
 *
 * Who waits has a chunk reserved as soon as one is free: others take one only where there are
 * more free ones than threads that wait. So each put needs to wake but one.
 */
#include "frontend/client/staging.h"

#include <pthread.h>

#include "common/util.h"

/* Chunks are many, but not small, nor few, where the staging part is small. */
#define CHUNK_MIN  (256u * 1024)
#define CHUNKS_MIN 4

/* Of the chunks, for those who have none. */
#define LAST_PART 4

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	uint32_t taken; /* one bit for each chunk */
	uint32_t taken_count;
	uint32_t waiting;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

uint64_t fgv_staging_chunk_len(const struct fgv_client *client)
{
	uint64_t all = client->window.staging_len;
	uint64_t len =
		fgv_max_u64(all / FGV_STAGING_CHUNKS_MAX, fgv_min_u64(all / CHUNKS_MIN, CHUNK_MIN));

	return len - len % FGV_CACHE_LINE;
}

static uint32_t chunks(const struct fgv_client *client)
{
	uint64_t count = client->window.staging_len / fgv_staging_chunk_len(client);

	return (uint32_t)fgv_min_u64(count, FGV_STAGING_CHUNKS_MAX);
}

/* Whether one is free for who has not waited. */
static bool may_take_locked(uint32_t count, bool holds_none)
{
	return count - pool.taken_count > pool.waiting + (holds_none ? 0 : count / LAST_PART);
}

static void wait_locked(uint32_t count)
{
	pool.waiting++;
	do
		pthread_cond_wait(&pool.freed, &pool.mutex);
	while (pool.taken_count == count);
	pool.waiting--;
}

bool fgv_staging_get(const struct fgv_client *client, bool holds_none, uint64_t *off)
{
	uint32_t count = chunks(client), chunk = 0;
	bool got;

	pthread_mutex_lock(&pool.mutex);
	got = may_take_locked(count, holds_none);
	if (!got && holds_none) {
		wait_locked(count);
		got = true;
	}
	if (got) {
		/* The one that was in use last, or near it, is in the processor's cache. */
		chunk = (uint32_t)__builtin_ctz(~pool.taken);
		pool.taken |= 1u << chunk;
		pool.taken_count++;
	}
	pthread_mutex_unlock(&pool.mutex);
	if (got)
		*off = client->window.arena_off + chunk * fgv_staging_chunk_len(client);
	return got;
}

void fgv_staging_put(const struct fgv_client *client, uint64_t off)
{
	uint64_t chunk = (off - client->window.arena_off) / fgv_staging_chunk_len(client);

	pthread_mutex_lock(&pool.mutex);
	pool.taken &= ~(1u << chunk);
	pool.taken_count--;
	pthread_cond_signal(&pool.freed);
	pthread_mutex_unlock(&pool.mutex);
}
