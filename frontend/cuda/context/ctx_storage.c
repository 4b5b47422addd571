/*
 * A list for each context: there are as many entries as libraries with a runtime in them, and
 * the one that was found last comes first.
 */
#include "frontend/cuda/context/ctx_storage.h"

#include <pthread.h>
#include <stdlib.h>

struct fgv_ctx_storage_entry {
	void *key;
	void *value;
	fgv_ctx_storage_end end;
	struct fgv_ctx_storage_entry *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all lists */

/* Takes the entry out of the list. */
static struct fgv_ctx_storage_entry *take_locked(struct fgv_ctx_storage *storage, const void *key)
{
	struct fgv_ctx_storage_entry **link = &storage->first, *entry;

	while (*link && (*link)->key != key)
		link = &(*link)->next;
	entry = *link;
	if (entry)
		*link = entry->next;
	return entry;
}

static void add_locked(struct fgv_ctx_storage *storage, struct fgv_ctx_storage_entry *entry)
{
	entry->next = storage->first;
	storage->first = entry;
}

CUresult fgv_ctx_storage_put(struct fgv_ctx_storage *storage, void *key, void *value,
			     fgv_ctx_storage_end end)
{
	struct fgv_ctx_storage_entry *entry = malloc(sizeof(*entry)), *before;

	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*entry = (struct fgv_ctx_storage_entry){.key = key, .value = value, .end = end};
	pthread_mutex_lock(&mutex);
	before = take_locked(storage, key);
	add_locked(storage, entry);
	pthread_mutex_unlock(&mutex);
	free(before);
	return CUDA_SUCCESS;
}

CUresult fgv_ctx_storage_remove(struct fgv_ctx_storage *storage, void *key)
{
	struct fgv_ctx_storage_entry *entry;

	pthread_mutex_lock(&mutex);
	entry = take_locked(storage, key);
	pthread_mutex_unlock(&mutex);
	free(entry);
	return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fgv_ctx_storage_get(struct fgv_ctx_storage *storage, void *key, void **value)
{
	struct fgv_ctx_storage_entry *entry;

	pthread_mutex_lock(&mutex);
	entry = take_locked(storage, key);
	if (entry) {
		add_locked(storage, entry);
		*value = entry->value;
	}
	pthread_mutex_unlock(&mutex);
	return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void fgv_ctx_storage_drain(struct fgv_ctx_storage *storage, CUcontext context)
{
	struct fgv_ctx_storage_entry *entry;

	for (;;) {
		pthread_mutex_lock(&mutex);
		entry = storage->first;
		if (entry)
			storage->first = entry->next;
		pthread_mutex_unlock(&mutex);
		if (!entry)
			return;
		if (entry->end)
			entry->end(context, entry->key, entry->value);
		free(entry);
	}
}
