/*
 * Which thread uses which lane. Lanes are attached one after another as threads need
 * them, and go to other threads when theirs have ended: a lane's ring and its count of
 * calls go on where they were.
 *
 * Locks: a pool's mutex guards all of it and, as only one attaches at a time, what
 * goes over the transport. It is held until the host has acknowledged.
 */
#define _GNU_SOURCE
#include "frontend/client/lane.h"

#include "frontend/client/thread.h"
#include "frontend/client/transport.h"

/* The last eighth of the lanes, at least one, is for sharing. */
#define SHARED_PART 8

/* Of one GPU. */
struct pool {
	pthread_mutex_t mutex;
	struct fgv_lane *lanes[FGV_LANES_MAX]; /* by index; NULL: not attached yet */
	struct fgv_lane *idle[FGV_LANES_MAX];  /* attached, and without a thread */
	uint32_t idle_count;
	uint32_t attached; /* of those that are not for sharing */
};

static struct pool pools[FGV_DEVICES_MAX] = {
	[0 ... FGV_DEVICES_MAX - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER},
};

/* What the thread has of GPUs that it has worked on. */
static __thread struct fgv_lane *own_lanes[FGV_DEVICES_MAX];

static struct pool *pool_of(const struct fgv_client *client)
{
	return &pools[client->device];
}

static uint32_t first_shared(const struct fgv_client *client)
{
	uint32_t lanes = client->window.lanes;

	return lanes - (lanes > SHARED_PART ? lanes / SHARED_PART : 1);
}

static CUresult attach_locked(struct fgv_client *client, uint32_t index, bool shared)
{
	struct fgv_lane *lane = fgv_lane_create(client, index, shared);
	struct pool *pool = pool_of(client);
	CUresult res;

	if (!lane)
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = client->transport->attach(client, index, lane->doorbell);
	if (!res) {
		/* Pairs with the acquire in fgv_lane_visit(): the lane is complete. */
		__atomic_store_n(&pool->lanes[index], lane, __ATOMIC_RELEASE);
		return CUDA_SUCCESS;
	}
	fgv_lane_destroy(lane);
	/* A refusal leaves the session as it was; no proper answer means that it is gone. */
	if (res == CUDA_ERROR_UNKNOWN) {
		fgv_session_lose(client, "the backend does not take a lane");
		return fgv_session_status(client);
	}
	return res;
}

/* The shared lane with the fewest threads. */
static CUresult take_shared_locked(struct fgv_client *client, struct fgv_lane **lane)
{
	uint32_t best = first_shared(client);
	struct pool *pool = pool_of(client);
	CUresult res;

	for (uint32_t i = best; i < client->window.lanes; i++) {
		if (!pool->lanes[i]) {
			best = i;
			break;
		}
		if (pool->lanes[i]->users < pool->lanes[best]->users)
			best = i;
	}
	if (!pool->lanes[best]) {
		res = attach_locked(client, best, true);
		if (res)
			return res;
	}
	pool->lanes[best]->users++;
	*lane = pool->lanes[best];
	return CUDA_SUCCESS;
}

static CUresult take_locked(struct fgv_client *client, struct fgv_lane **lane)
{
	struct pool *pool = pool_of(client);
	CUresult res;

	if (pool->idle_count) {
		*lane = pool->idle[--pool->idle_count];
		return CUDA_SUCCESS;
	}
	if (pool->attached == first_shared(client))
		return take_shared_locked(client, lane);
	res = attach_locked(client, pool->attached, false);
	if (!res)
		*lane = pool->lanes[pool->attached++];
	return res;
}

static CUresult take(struct fgv_client *client, struct fgv_lane **lane)
{
	CUresult res;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&pool_of(client)->mutex);
	res = fgv_session_status(client);
	if (!res)
		res = take_locked(client, lane);
	pthread_mutex_unlock(&pool_of(client)->mutex);
	pthread_setcancelstate(cancel, NULL);
	return res;
}

static void give_back(struct fgv_lane *lane)
{
	struct pool *pool = pool_of(lane->client);

	pthread_mutex_lock(&pool->mutex);
	if (lane->shared)
		lane->users--;
	else
		pool->idle[pool->idle_count++] = lane;
	pthread_mutex_unlock(&pool->mutex);
}

/* Nothing is given back to a session that has ended, least of all in a forked child. */
static void return_one(uint32_t device)
{
	struct fgv_lane *lane = own_lanes[device];

	if (!lane || fgv_session_status(lane->client))
		return;
	own_lanes[device] = NULL;
	if (fgv_thread_self.lane == lane)
		fgv_thread_self.lane = NULL;
	give_back(lane);
}

void fgv_lane_return(void)
{
	return_one(fgv_thread_self.device);
}

static void return_all(void)
{
	for (uint32_t i = 0; i < FGV_DEVICES_MAX; i++)
		return_one(i);
}

void fgv_lane_select(uint32_t device)
{
	fgv_thread_self.device = device;
	fgv_thread_self.lane = own_lanes[device];
}

CUresult fgv_lane_enter_on(uint32_t device, struct fgv_lane **lane)
{
	uint32_t before = fgv_thread_self.device;
	CUresult res;

	fgv_lane_select(device);
	res = fgv_lane_enter(lane);
	fgv_lane_select(before);
	return res;
}

static __thread struct fgv_thread_part part = {.end = return_all};

CUresult fgv_lane_take(struct fgv_lane **lane)
{
	struct fgv_client *client;
	CUresult res;

	if (fgv_thread_self.forbidden)
		return CUDA_ERROR_NOT_PERMITTED;
	res = fgv_session_open(fgv_thread_self.device, &client);
	if (!res && fgv_thread_add(&part))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	if (!res)
		res = take(client, lane);
	if (res)
		return res;
	if (!(*lane)->shared)
		fgv_lane_own(*lane);
	fgv_thread_self.lane = *lane;
	own_lanes[fgv_thread_self.device] = *lane;
	return CUDA_SUCCESS;
}

/*
 * Without the mutex: at the end of the process a thread may hold it for good. Lanes are attached
 * in their order, those for sharing last, so behind the first one that is not there are none.
 */
static void visit_pool(const struct pool *pool,
		       void (*visit)(const struct fgv_lane *lane, void *arg), void *arg)
{
	for (uint32_t i = 0; i < FGV_LANES_MAX; i++) {
		const struct fgv_lane *lane = __atomic_load_n(&pool->lanes[i], __ATOMIC_ACQUIRE);

		if (!lane)
			break;
		visit(lane, arg);
	}
}

void fgv_lane_visit(void (*visit)(const struct fgv_lane *lane, void *arg), void *arg)
{
	for (uint32_t i = 0; i < fgv_session_count(); i++)
		visit_pool(&pools[i], visit, arg);
}

void fgv_lane_visit_of(const struct fgv_client *client,
		       void (*visit)(const struct fgv_lane *lane, void *arg), void *arg)
{
	visit_pool(pool_of(client), visit, arg);
}
