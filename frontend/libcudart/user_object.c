/*
 * References, and the thread that calls the program when there are none left. The thread is
 * started for the first object that ends, and stays.
 *
 * Lock: state.mutex guards all counts and the list of objects that have ended.
 */
#include "frontend/libcudart/user_object.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "frontend/cuda/context/object.h"
#include "frontend/client/thread.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph.h"

struct fgv_user_object {
	struct fgv_user_object *next; /* that has ended, too */
	cudaUserObject_t name;
	uint64_t references;
	cudaHostFn_t destroy;
	void *data;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t has_ended;
	struct fgv_user_object *first;
	struct fgv_user_object **end;
	bool has_thread;
} state = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.has_ended = PTHREAD_COND_INITIALIZER,
	.end = &state.first,
};

static struct fgv_user_object *object_of(cudaUserObject_t name)
{
	return fgv_object_address(FGV_OBJECT_USER, name);
}

static bool is_count(unsigned count)
{
	return count && count <= INT_MAX;
}

/* --- Ends ---------------------------------------------------------------------------- */

static struct fgv_user_object *take_ended(void)
{
	struct fgv_user_object *object;

	pthread_mutex_lock(&state.mutex);
	while (!state.first)
		pthread_cond_wait(&state.has_ended, &state.mutex);
	object = state.first;
	state.first = object->next;
	if (!state.first)
		state.end = &state.first;
	pthread_mutex_unlock(&state.mutex);
	return object;
}

static void *serve(void *unused)
{
	(void)unused;
	fgv_thread_self.forbidden = 1;
	for (;;) {
		struct fgv_user_object *object = take_ended();

		object->destroy(object->data);
		free(object);
	}
	return NULL;
}

static void end_locked(struct fgv_user_object *object)
{
	struct fgv_object_info info;

	fgv_object_destroy(FGV_OBJECT_USER, object->name, &info);
	object->next = NULL;
	*state.end = object;
	state.end = &object->next;
	if (!state.has_thread)
		state.has_thread = !fgv_thread_start(serve);
	pthread_cond_signal(&state.has_ended);
}

/* False if there are not so many. */
static bool drop_locked(struct fgv_user_object *object, uint64_t count)
{
	if (count > object->references)
		return false;
	object->references -= count;
	if (!object->references)
		end_locked(object);
	return true;
}

/* --- References of graphs ------------------------------------------------------------ */

cudaError_t fgv_held_copy(const struct fgv_held *held, struct fgv_held **copy)
{
	cudaError_t error = cudaSuccess;

	*copy = NULL;
	pthread_mutex_lock(&state.mutex);
	for (; held && !error; held = held->next) {
		struct fgv_held *made = malloc(sizeof(*made));

		if (!made) {
			error = cudaErrorMemoryAllocation;
			break;
		}
		*made = (struct fgv_held){*copy, held->object, held->count};
		made->object->references += made->count;
		*copy = made;
	}
	pthread_mutex_unlock(&state.mutex);
	if (!error)
		return cudaSuccess;
	fgv_held_release(*copy);
	*copy = NULL;
	return error;
}

void fgv_held_release(struct fgv_held *held)
{
	pthread_mutex_lock(&state.mutex);
	while (held) {
		struct fgv_held *next = held->next;

		drop_locked(held->object, held->count);
		free(held);
		held = next;
	}
	pthread_mutex_unlock(&state.mutex);
}

/* The place in @graph's list that says of @object, or its end. */
static struct fgv_held **find(struct fgv_graph *graph, const struct fgv_user_object *object)
{
	struct fgv_held **link = &graph->held;

	while (*link && (*link)->object != object)
		link = &(*link)->next;
	return link;
}

static cudaError_t hold_locked(struct fgv_graph *graph, struct fgv_user_object *object,
			       unsigned count, bool move)
{
	struct fgv_held **link = find(graph, object);

	if (move && count > object->references)
		return cudaErrorInvalidValue;
	if (!*link) {
		*link = calloc(1, sizeof(**link));
		if (!*link)
			return cudaErrorMemoryAllocation;
		(*link)->object = object;
	}
	(*link)->count += count;
	if (!move)
		object->references += count;
	return cudaSuccess;
}

static cudaError_t unhold_locked(struct fgv_graph *graph, struct fgv_user_object *object,
				 unsigned count)
{
	struct fgv_held **link = find(graph, object), *held = *link;

	if (!held || held->count < count)
		return cudaErrorInvalidValue;
	held->count -= count;
	if (!held->count) {
		*link = held->next;
		free(held);
	}
	drop_locked(object, count);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
						 unsigned int count, unsigned int flags)
{
	struct fgv_user_object *found = object_of(object);
	struct fgv_graph *holder = fgv_graph_of(graph);
	cudaError_t error;

	if (!found || !holder || !is_count(count) || (flags & ~(unsigned)cudaGraphUserObjectMove))
		return fgv_error_set(cudaErrorInvalidValue);
	pthread_mutex_lock(&state.mutex);
	error = hold_locked(holder, found, count, flags & cudaGraphUserObjectMove);
	pthread_mutex_unlock(&state.mutex);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
						  unsigned int count)
{
	struct fgv_user_object *found = object_of(object);
	struct fgv_graph *holder = fgv_graph_of(graph);
	cudaError_t error;

	if (!found || !holder || !is_count(count))
		return fgv_error_set(cudaErrorInvalidValue);
	pthread_mutex_lock(&state.mutex);
	error = unhold_locked(holder, found, count);
	pthread_mutex_unlock(&state.mutex);
	return fgv_error_set(error);
}

/* --- References of the program --------------------------------------------------------- */

static cudaError_t create(cudaUserObject_t *name, void *data, cudaHostFn_t destroy, unsigned count,
			  unsigned flags)
{
	struct fgv_user_object *object;

	if (!name || !destroy || !is_count(count) || flags != cudaUserObjectNoDestructorSync)
		return cudaErrorInvalidValue;
	object = calloc(1, sizeof(*object));
	if (!object)
		return cudaErrorMemoryAllocation;
	object->references = count;
	object->destroy = destroy;
	object->data = data;
	object->name = fgv_object_create_for(FGV_OBJECT_USER, object);
	if (!object->name) {
		free(object);
		return cudaErrorMemoryAllocation;
	}
	*name = object->name;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr,
					    cudaHostFn_t destroy, unsigned int initialRefcount,
					    unsigned int flags)
{
	return fgv_error_set(create(object_out, ptr, destroy, initialRefcount, flags));
}

FGV_EXPORT cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	struct fgv_user_object *found = object_of(object);

	if (!found || !is_count(count))
		return fgv_error_set(cudaErrorInvalidValue);
	pthread_mutex_lock(&state.mutex);
	found->references += count;
	pthread_mutex_unlock(&state.mutex);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	struct fgv_user_object *found = object_of(object);
	bool had_so_many;

	if (!found || !is_count(count))
		return fgv_error_set(cudaErrorInvalidValue);
	pthread_mutex_lock(&state.mutex);
	had_so_many = drop_locked(found, count);
	pthread_mutex_unlock(&state.mutex);
	return fgv_error_set(had_so_many ? cudaSuccess : cudaErrorInvalidValue);
}
