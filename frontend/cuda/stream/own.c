/*
 * Handles that were given back are used again in their order, and late (FGV_OWN_SPARE), each with
 * a new generation: so none is used twice in the life of a process, in effect, and the host has
 * come to the end of the one before.
 *
 * Handles are no two devices', so that what is captured is known by them. Room is each device's.
 * Room is reserved for as many more as there are, between the two bounds of a kind: programs make
 * a few, or many. What is kept of it without use is bounded by the second, too.
 *
 * Locks: one for each kind, over the host's answer: threads that need room wait for it together.
 */
#include "frontend/cuda/stream/own.h"

#include <pthread.h>
#include <stdlib.h>

#include "frontend/client/lane.h"

#define CAPACITY_0 64u

struct handle {
	uint32_t value; /* the next one of this index */
	uint32_t next;	/* index of the free one behind it */
};

struct handles {
	pthread_mutex_t mutex;
	const uint32_t most;	   /* at a time */
	const uint32_t least_room; /* to ask for; of streams, each takes memory */
	const uint32_t most_room;
	struct handle *all;
	uint32_t capacity;
	uint32_t count;		     /* indices that have ever been used */
	uint32_t first, last, spare; /* of the free ones */
	uint32_t live[FGV_DEVICES_MAX];
	uint32_t room[FGV_DEVICES_MAX]; /* reserved there and not used */
};

static struct handles kinds[FGV_OWN_KINDS] = {
	[FGV_OWN_STREAM] = {.mutex = PTHREAD_MUTEX_INITIALIZER,
			    .most = FGV_OWN_STREAMS_MAX,
			    .least_room = 1,
			    .most_room = 8},
	[FGV_OWN_EVENT] = {.mutex = PTHREAD_MUTEX_INITIALIZER,
			   .most = FGV_OWN_EVENTS_MAX,
			   .least_room = 16,
			   .most_room = 256},
};

static CUresult reserve_locked(struct fgv_lane *lane, enum fgv_own_kind kind)
{
	struct handles *handles = &kinds[kind];
	uint32_t device = lane->client->device;
	uint32_t count = handles->live[device];
	CUresult res;

	if (count < handles->least_room)
		count = handles->least_room;
	if (count > handles->most_room)
		count = handles->most_room;
	if (count > handles->most - handles->live[device])
		count = handles->most - handles->live[device];
	if (!count)
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = fgv_call_own_reserve(lane, kind, count);
	if (res == CUDA_ERROR_OUT_OF_MEMORY && count > 1) {
		count = 1;
		res = fgv_call_own_reserve(lane, kind, count);
	}
	if (!res)
		handles->room[device] += count;
	return res;
}

/* Makes room for one more index. */
static CUresult grow_locked(struct handles *handles)
{
	uint32_t capacity = handles->capacity ? 2 * handles->capacity : CAPACITY_0;
	struct handle *all;

	if (handles->count < handles->capacity)
		return CUDA_SUCCESS;
	all = realloc(handles->all, capacity * sizeof(*all));
	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handles->all = all;
	handles->capacity = capacity;
	return CUDA_SUCCESS;
}

static uint32_t index_of(uint32_t handle)
{
	return handle & (FGV_OWN_BIT - 1);
}

/* The first of the free ones, if there are enough; else one with an index that was never used. */
static CUresult take_locked(struct handles *handles, uint32_t *handle)
{
	CUresult res;

	if (handles->spare >= FGV_OWN_SPARE) {
		*handle = handles->all[handles->first].value;
		handles->first = handles->all[handles->first].next;
		handles->spare--;
		return CUDA_SUCCESS;
	}
	res = grow_locked(handles);
	if (!res)
		*handle = FGV_OWN_BIT | handles->count++;
	return res;
}

CUresult fgv_own_take(struct fgv_lane *lane, enum fgv_own_kind kind, uint32_t *handle)
{
	struct handles *handles = &kinds[kind];
	uint32_t device = lane->client->device;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&handles->mutex);
	if (!handles->room[device])
		res = reserve_locked(lane, kind);
	if (!res)
		res = take_locked(handles, handle);
	if (!res) {
		handles->room[device]--;
		handles->live[device]++;
	}
	pthread_mutex_unlock(&handles->mutex);
	return res;
}

static void give_locked(struct handles *handles, uint32_t handle)
{
	uint32_t index = index_of(handle);

	/* The bits above the index overflow: the generation begins again. */
	handles->all[index].value = handle + 2 * FGV_OWN_BIT;
	if (handles->spare)
		handles->all[handles->last].next = index;
	else
		handles->first = index;
	handles->last = index;
	handles->spare++;
}

void fgv_own_give(struct fgv_lane *lane, enum fgv_own_kind kind, uint32_t handle)
{
	struct handles *handles = &kinds[kind];
	uint32_t device = lane->client->device;

	pthread_mutex_lock(&handles->mutex);
	give_locked(handles, handle);
	handles->live[device]--;
	handles->room[device]++;
	if (handles->room[device] > handles->most_room) {
		fgv_post_own_return(lane, kind, handles->room[device] - handles->most_room / 2);
		handles->room[device] = handles->most_room / 2;
	}
	pthread_mutex_unlock(&handles->mutex);
}

void fgv_own_drain(struct fgv_lane *lane)
{
	for (unsigned kind = 0; kind < FGV_OWN_KINDS; kind++) {
		struct handles *handles = &kinds[kind];
		uint32_t device = lane->client->device;

		pthread_mutex_lock(&handles->mutex);
		if (handles->room[device])
			fgv_post_own_return(lane, kind, handles->room[device]);
		handles->room[device] = 0;
		pthread_mutex_unlock(&handles->mutex);
	}
}
