/*
 * Conditions and their homes.
 */
#include "frontend/cuda/graph/home.h"

#include <bsd/sys/queue.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/gpu_guest.h"
#include "frontend/client/lane.h"

struct fgv_home {
	LIST_ENTRY(fgv_home) link;
	uint32_t device;
	uint32_t handle; /* the host's; 0: it has gone */
	uint32_t refs;	 /* of the graph, and of what was instantiated; guarded by homes.mutex */
	uint32_t count;
	struct fgv_condition *conditions;
};

static struct {
	pthread_mutex_t mutex;
	LIST_HEAD(, fgv_home) list;
} homes = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct fgv_home *fgv_home_get(struct fgv_home *home)
{
	if (!home)
		return NULL;
	pthread_mutex_lock(&homes.mutex);
	home->refs++;
	pthread_mutex_unlock(&homes.mutex);
	return home;
}

void fgv_home_put(struct fgv_home *home)
{
	struct fgv_lane *lane;
	bool is_last;

	if (!home)
		return;
	pthread_mutex_lock(&homes.mutex);
	is_last = --home->refs == 0;
	if (is_last)
		LIST_REMOVE(home, link);
	pthread_mutex_unlock(&homes.mutex);
	if (!is_last)
		return;
	if (home->handle && fgv_session_existing() && !fgv_lane_enter_on(home->device, &lane)) {
		fgv_post_graph_destroy(lane, home->handle);
		fgv_lane_leave(lane);
	}
	free(home->conditions);
	free(home);
}

uint32_t fgv_home_device(const struct fgv_home *home)
{
	return home->device;
}

uint32_t fgv_home_handle(const struct fgv_home *home)
{
	return home ? home->handle : 0;
}

void fgv_home_drain(struct fgv_lane *lane)
{
	struct fgv_home *home;

	pthread_mutex_lock(&homes.mutex);
	LIST_FOREACH(home, &homes.list, link) {
		if (home->device != lane->client->device)
			continue;
		if (home->handle)
			fgv_post_graph_destroy(lane, home->handle);
		home->handle = 0;
	}
	pthread_mutex_unlock(&homes.mutex);
}

CUresult fgv_home_create(struct fgv_lane *lane, struct fgv_home **home)
{
	struct fgv_home *made = calloc(1, sizeof(*made));
	CUresult res;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->refs = 1;
	made->device = lane->client->device;
	res = fgv_call_graph_home(lane, &made->handle);
	if (res) {
		free(made);
		return res;
	}
	pthread_mutex_lock(&homes.mutex);
	LIST_INSERT_HEAD(&homes.list, made, link);
	pthread_mutex_unlock(&homes.mutex);
	*home = made;
	return CUDA_SUCCESS;
}

CUresult fgv_home_add(struct fgv_lane *lane, struct fgv_home *home, unsigned value, unsigned flags,
		      uint64_t *number)
{
	struct fgv_condition *grown =
		realloc(home->conditions, ((size_t)home->count + 1) * sizeof(*grown));
	CUresult res;

	if (!grown)
		return CUDA_ERROR_OUT_OF_MEMORY;
	home->conditions = grown;
	res = fgv_call_graph_condition(lane, home->handle, value, flags, number);
	if (!res)
		grown[home->count++] = (struct fgv_condition){.number = *number};
	return res;
}

struct fgv_condition *fgv_home_find(const struct fgv_home *home, uint64_t number)
{
	for (uint32_t i = 0; home && i < home->count; i++) {
		if (home->conditions[i].number == number)
			return &home->conditions[i];
	}
	return NULL;
}

bool fgv_home_is_used(const struct fgv_home *home)
{
	for (uint32_t i = 0; home && i < home->count; i++) {
		if (!home->conditions[i].is_used)
			return false;
	}
	return true;
}
