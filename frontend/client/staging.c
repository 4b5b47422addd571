/*
 * The chunks of the staging part: masks of those in use and of those lent, under one mutex, and a
 * condition for threads that wait. A thread that ends while holding one is not possible, as only a
 * copy in progress holds any.
 *
 * A thread that waits has a chunk reserved as soon as one is free: others take one only where there
 * are more free ones than threads that wait. So each put needs to wake but one. Nobody is woken
 * when the host gives back: a thread that waits then looks from time to time.
 */
#include "frontend/client/staging.h"

#include <pthread.h>

#include "common/util.h"
#include "frontend/client/lane.h"

/* Chunks are many, but not small, nor few, where the staging part is small. */
#define CHUNK_MIN  (256u * 1024)
#define CHUNKS_MIN 4

/* Of the chunks, for threads that have none. */
#define LAST_PART 4

/* Between two looks at what the host has. */
#define LOOK_NS (50 * FGV_NS_PER_US)

/* Of one GPU's window. */
struct pool {
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	uint32_t taken; /* one bit for each chunk */
	uint32_t taken_count;
	uint32_t lent;				  /* of those taken */
	uint32_t numbers[FGV_STAGING_CHUNKS_MAX]; /* of their loans, the last ones */
	uint32_t waiting;
};

static struct pool pools[FGV_DEVICES_MAX] = {
	[0 ... FGV_DEVICES_MAX - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER,
				       .freed = PTHREAD_COND_INITIALIZER},
};

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

static void free_locked(struct pool *pool, uint32_t index)
{
	pool->taken &= ~(1u << index);
	pool->lent &= ~(1u << index);
	pool->taken_count--;
}

/* What the host has given back meanwhile. */
static void collect_locked(const struct fgv_client *client)
{
	struct pool *pool = &pools[client->device];
	const uint32_t *done = fgv_window_head(&client->window)->staging_done;

	for (uint32_t left = pool->lent; left; left &= left - 1) {
		uint32_t index = (uint32_t)__builtin_ctz(left);

		if (__atomic_load_n(&done[index], __ATOMIC_ACQUIRE) == pool->numbers[index])
			free_locked(pool, index);
	}
}

/* Whether one is free for a thread that has not waited. */
static bool may_take_locked(const struct pool *pool, uint32_t count, bool holds_none)
{
	return count - pool->taken_count > pool->waiting + (holds_none ? 0 : count / LAST_PART);
}

/* The host says nothing when it gives back, nor if it will not any more. */
static void sleep_locked(struct fgv_lane *lane)
{
	struct pool *pool = &pools[lane->client->device];

	if (!pool->lent) {
		pthread_cond_wait(&pool->freed, &pool->mutex);
		return;
	}
	pthread_mutex_unlock(&pool->mutex);
	fgv_lane_doze(lane, LOOK_NS);
	pthread_mutex_lock(&pool->mutex);
}

/* False: the session has ended. */
static bool wait_locked(struct fgv_lane *lane, uint32_t count)
{
	struct pool *pool = &pools[lane->client->device];

	pool->waiting++;
	do {
		sleep_locked(lane);
		collect_locked(lane->client);
	} while (pool->taken_count == count && !fgv_session_status(lane->client));
	pool->waiting--;
	return pool->taken_count < count;
}

static void take_locked(const struct fgv_client *client, struct fgv_chunk *chunk)
{
	struct pool *pool = &pools[client->device];

	/* The one that was in use last, or near it, is in the processor's cache. */
	chunk->index = (uint32_t)__builtin_ctz(~pool->taken);
	chunk->device = client->device;
	chunk->off = client->window.arena_off + chunk->index * fgv_staging_chunk_len(client);
	pool->taken |= 1u << chunk->index;
	pool->taken_count++;
}

bool fgv_staging_get(struct fgv_lane *lane, bool holds_none, struct fgv_chunk *chunk)
{
	const struct fgv_client *client = lane->client;
	struct pool *pool = &pools[client->device];
	uint32_t count = chunks(client);
	bool got;

	pthread_mutex_lock(&pool->mutex);
	collect_locked(client);
	got = may_take_locked(pool, count, holds_none);
	if (!got && holds_none)
		got = wait_locked(lane, count);
	if (got)
		take_locked(client, chunk);
	pthread_mutex_unlock(&pool->mutex);
	return got;
}

void fgv_staging_put(const struct fgv_chunk *chunk)
{
	struct pool *pool = &pools[chunk->device];

	pthread_mutex_lock(&pool->mutex);
	free_locked(pool, chunk->index);
	pthread_cond_signal(&pool->freed);
	pthread_mutex_unlock(&pool->mutex);
}

void fgv_staging_lend(struct fgv_chunk *chunk)
{
	struct pool *pool = &pools[chunk->device];

	pthread_mutex_lock(&pool->mutex);
	chunk->number = ++pool->numbers[chunk->index];
	pool->lent |= 1u << chunk->index;
	/* Nobody will put it, so a thread that waits for that has to look. */
	if (pool->waiting)
		pthread_cond_broadcast(&pool->freed);
	pthread_mutex_unlock(&pool->mutex);
}
