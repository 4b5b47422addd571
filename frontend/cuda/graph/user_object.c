/*
 * References, and the thread that calls the program when there are none left. The thread is
 * started for the first object that ends, and stays.
 *
 * Lock: state.mutex guards all counts and the list of objects that have ended.
 */
#include "frontend/cuda/graph/user_object.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "frontend/client/thread.h"
#include "frontend/cuda/context/object.h"

struct fgv_user_object {
	struct fgv_user_object *next; /* that has ended, too */
	CUuserObject name;
	uint64_t references;
	CUhostFn destroy;
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

static struct fgv_user_object *object_of(CUuserObject name)
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
		state.has_thread = !fgv_thread_start(serve, NULL);
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

CUresult fgv_held_copy(const struct fgv_held *held, struct fgv_held **copy)
{
	CUresult res = CUDA_SUCCESS;

	*copy = NULL;
	pthread_mutex_lock(&state.mutex);
	for (; held && !res; held = held->next) {
		struct fgv_held *made = malloc(sizeof(*made));

		if (!made) {
			res = CUDA_ERROR_OUT_OF_MEMORY;
			break;
		}
		*made = (struct fgv_held){*copy, held->object, held->count};
		made->object->references += made->count;
		*copy = made;
	}
	pthread_mutex_unlock(&state.mutex);
	if (!res)
		return CUDA_SUCCESS;
	fgv_held_release(*copy);
	*copy = NULL;
	return res;
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

/* The place in the list @held that says of @object, or its end. */
static struct fgv_held **find(struct fgv_held **held, const struct fgv_user_object *object)
{
	while (*held && (*held)->object != object)
		held = &(*held)->next;
	return held;
}

static CUresult hold_locked(struct fgv_held **held, struct fgv_user_object *object, unsigned count,
			    bool move)
{
	struct fgv_held **link = find(held, object);

	if (move && count > object->references)
		return CUDA_ERROR_INVALID_VALUE;
	if (!*link) {
		*link = calloc(1, sizeof(**link));
		if (!*link)
			return CUDA_ERROR_OUT_OF_MEMORY;
		(*link)->object = object;
	}
	(*link)->count += count;
	if (!move)
		object->references += count;
	return CUDA_SUCCESS;
}

CUresult fgv_held_add(struct fgv_held **held, CUuserObject object, unsigned count, bool move)
{
	struct fgv_user_object *found = object_of(object);
	CUresult res;

	if (!found || !is_count(count))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&state.mutex);
	res = hold_locked(held, found, count, move);
	pthread_mutex_unlock(&state.mutex);
	return res;
}

static CUresult unhold_locked(struct fgv_held **held, struct fgv_user_object *object,
			      unsigned count)
{
	struct fgv_held **link = find(held, object), *found = *link;

	if (!found || found->count < count)
		return CUDA_ERROR_INVALID_VALUE;
	found->count -= count;
	if (!found->count) {
		*link = found->next;
		free(found);
	}
	drop_locked(object, count);
	return CUDA_SUCCESS;
}

CUresult fgv_held_drop(struct fgv_held **held, CUuserObject object, unsigned count)
{
	struct fgv_user_object *found = object_of(object);
	CUresult res;

	if (!found || !is_count(count))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&state.mutex);
	res = unhold_locked(held, found, count);
	pthread_mutex_unlock(&state.mutex);
	return res;
}

/* --- References of the program --------------------------------------------------------- */

CUresult fgv_user_object_create(CUuserObject *name, void *data, CUhostFn destroy, unsigned count,
				unsigned flags)
{
	struct fgv_user_object *object;

	if (!name || !destroy || !is_count(count) || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	object = calloc(1, sizeof(*object));
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->references = count;
	object->destroy = destroy;
	object->data = data;
	object->name = fgv_object_create_for(FGV_OBJECT_USER, object);
	if (!object->name) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*name = object->name;
	return CUDA_SUCCESS;
}

CUresult fgv_user_object_retain(CUuserObject object, unsigned count)
{
	struct fgv_user_object *found = object_of(object);

	if (!found || !is_count(count))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&state.mutex);
	found->references += count;
	pthread_mutex_unlock(&state.mutex);
	return CUDA_SUCCESS;
}

CUresult fgv_user_object_release(CUuserObject object, unsigned count)
{
	struct fgv_user_object *found = object_of(object);
	bool had_so_many;

	if (!found || !is_count(count))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&state.mutex);
	had_so_many = drop_locked(found, count);
	pthread_mutex_unlock(&state.mutex);
	return had_so_many ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
