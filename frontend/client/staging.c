/*
 * The chunks of the staging part: a mask of those in use under one mutex, and a
 * condition for who waits. A thread that ends while holding one is not possible, as
 * only a copy in progress holds any.
 */
#include "frontend/client/staging.h"

#include <pthread.h>

#define ALL_TAKEN ((1u << FGV_STAGING_CHUNKS) - 1)

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	uint32_t taken; /* one bit for each chunk */
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

uint64_t fgv_staging_chunk_len(const struct fgv_client *client)
{
	uint64_t len = client->window.staging_len / FGV_STAGING_CHUNKS;

	return len - len % FGV_CACHE_LINE;
}

bool fgv_staging_get(const struct fgv_client *client, bool wait, uint64_t *off)
{
	uint32_t chunk = 0;
	bool got;

	pthread_mutex_lock(&pool.mutex);
	while (wait && pool.taken == ALL_TAKEN)
		pthread_cond_wait(&pool.freed, &pool.mutex);
	got = pool.taken != ALL_TAKEN;
	if (got) {
		chunk = (uint32_t)__builtin_ctz(~pool.taken);
		pool.taken |= 1u << chunk;
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
	pthread_cond_signal(&pool.freed);
	pthread_mutex_unlock(&pool.mutex);
}
