/*
 * The table of objects: chunks of entries that never move. An entry is live
 * while its generation is odd; whoever looks one up reads the generation, the content,
 * and the generation again.
 *
 *   bits 63..56  tag, which makes it no address	55..52  kind
 *   bits 51..24  generation				23..0   index
 *
 * Lock: table.mutex guards everything but reading entries. Every field of an entry is
 * atomic for that.
 */
#include "frontend/cuda/context/object.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "frontend/client/thread.h"
#include "frontend/cuda/context/ctx_stack.h"

#define TAG		0x46ull
#define TAG_SHIFT	56
#define KIND_SHIFT	52
#define GENERATION_BITS 28
#define INDEX_BITS	24
#define CHUNK_ENTRIES	1024u
#define CHUNKS		((1u << INDEX_BITS) / CHUNK_ENTRIES)
#define NONE		UINT32_MAX

struct entry {
	uint32_t generation; /* odd: live */
	uint32_t kind;
	uint32_t handle;
	uint32_t flags;
	int32_t priority;
	uint32_t device;
	void *data;
	CUcontext context;
	uint32_t next_free; /* index of the next free entry; the mutex's */
};

static struct {
	pthread_mutex_t mutex;
	struct entry *chunks[CHUNKS]; /* atomic */
	uint32_t count;		      /* entries that have ever been used */
	uint32_t free;
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER, .free = NONE};

/*
 * All reads acquire, all writes release, each the other's partner: a thread that reads a field
 * that was written after the generation went up sees that it did.
 */
static uint32_t get(const uint32_t *field)
{
	return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

static void set(uint32_t *field, uint32_t v)
{
	__atomic_store_n(field, v, __ATOMIC_RELEASE);
}

static struct entry *entry_at(uint32_t index)
{
	/* Pairs with the release in free_entry_locked(): the chunk is zeroed. */
	struct entry *chunk =
		__atomic_load_n(&table.chunks[index / CHUNK_ENTRIES], __ATOMIC_ACQUIRE);

	return chunk ? &chunk[index % CHUNK_ENTRIES] : NULL;
}

static void *encode(enum fgv_object_kind kind, uint32_t index, uint32_t generation)
{
	uint64_t v = TAG << TAG_SHIFT | (uint64_t)kind << KIND_SHIFT |
		     (uint64_t)(generation & ((1u << GENERATION_BITS) - 1)) << INDEX_BITS | index;

	return (void *)(uintptr_t)v;
}

/* Index of an entry that is not live; NONE without memory. */
static uint32_t free_entry_locked(void)
{
	uint32_t index = table.free;
	struct entry *chunk;

	if (index != NONE) {
		table.free = entry_at(index)->next_free;
		return index;
	}
	if (table.count == CHUNKS * CHUNK_ENTRIES)
		return NONE;
	if (!(table.count % CHUNK_ENTRIES)) {
		chunk = calloc(CHUNK_ENTRIES, sizeof(*chunk));
		if (!chunk)
			return NONE;
		__atomic_store_n(&table.chunks[table.count / CHUNK_ENTRIES], chunk,
				 __ATOMIC_RELEASE);
	}
	return table.count++;
}

void *fgv_object_create(enum fgv_object_kind kind, const struct fgv_object_info *info)
{
	struct entry *entry;
	uint32_t index;
	void *object = NULL;

	pthread_mutex_lock(&table.mutex);
	index = free_entry_locked();
	entry = index != NONE ? entry_at(index) : NULL;
	if (entry) {
		set(&entry->kind, kind);
		set(&entry->handle, info->handle);
		set(&entry->flags, info->flags);
		set((uint32_t *)&entry->priority, (uint32_t)info->priority);
		set(&entry->device, fgv_thread_self.device);
		__atomic_store_n(&entry->data, info->data, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->context, fgv_ctx_top(), __ATOMIC_RELEASE);
		set(&entry->generation, entry->generation + 1);
		object = encode(kind, index, entry->generation);
	}
	pthread_mutex_unlock(&table.mutex);
	return object;
}

/* The entry that @object once named, live or not. */
static struct entry *entry_of(enum fgv_object_kind kind, const void *object)
{
	uint64_t v = (uint64_t)(uintptr_t)object;

	if (v >> KIND_SHIFT != (TAG << (TAG_SHIFT - KIND_SHIFT) | kind))
		return NULL;
	return entry_at((uint32_t)v & ((1u << INDEX_BITS) - 1));
}

static struct fgv_object_info content_of(const struct entry *entry)
{
	return (struct fgv_object_info){
		.handle = get(&entry->handle),
		.flags = get(&entry->flags),
		.priority = (int32_t)get((const uint32_t *)&entry->priority),
		.device = get(&entry->device),
		.data = __atomic_load_n(&entry->data, __ATOMIC_ACQUIRE),
		.context = __atomic_load_n(&entry->context, __ATOMIC_ACQUIRE),
	};
}

/* Whether @entry is live as @object, and its content. */
static bool read_entry(struct entry *entry, enum fgv_object_kind kind, const void *object,
		       struct fgv_object_info *info)
{
	uint32_t wanted = (uint32_t)((uint64_t)(uintptr_t)object >> INDEX_BITS) &
			  ((1u << GENERATION_BITS) - 1);
	uint32_t generation = get(&entry->generation);

	if (!(generation & 1) || (generation & ((1u << GENERATION_BITS) - 1)) != wanted ||
	    get(&entry->kind) != kind)
		return false;
	*info = content_of(entry);
	/* Else it was destroyed, and perhaps used again, meanwhile. */
	return get(&entry->generation) == generation;
}

bool fgv_object_find(enum fgv_object_kind kind, const void *object, struct fgv_object_info *info)
{
	struct entry *entry = entry_of(kind, object);

	return entry && read_entry(entry, kind, object, info);
}

/* An entry that was ever used has a generation, and none is used that often. */
bool fgv_object_was(enum fgv_object_kind kind, const void *object)
{
	uint32_t generation = (uint32_t)((uint64_t)(uintptr_t)object >> INDEX_BITS) &
			      ((1u << GENERATION_BITS) - 1);
	struct entry *entry = entry_of(kind, object);

	return entry && (generation & 1) && generation <= get(&entry->generation);
}

static void free_locked(struct entry *entry, uint32_t index)
{
	set(&entry->generation, entry->generation + 1);
	entry->next_free = table.free;
	table.free = index;
}

bool fgv_object_destroy(enum fgv_object_kind kind, const void *object, struct fgv_object_info *info)
{
	struct entry *entry = entry_of(kind, object);
	bool live;

	if (!entry)
		return false;
	pthread_mutex_lock(&table.mutex);
	live = read_entry(entry, kind, object, info);
	if (live)
		free_locked(entry, (uint32_t)(uintptr_t)object & ((1u << INDEX_BITS) - 1));
	pthread_mutex_unlock(&table.mutex);
	return live;
}

void fgv_object_drain(enum fgv_object_kind kind, uint32_t device,
		      void (*each)(const struct fgv_object_info *info, void *arg), void *arg)
{
	struct fgv_object_info info;

	pthread_mutex_lock(&table.mutex);
	for (uint32_t i = 0; i < table.count; i++) {
		struct entry *entry = entry_at(i);

		if (!(entry->generation & 1) || entry->kind != kind || entry->device != device)
			continue;
		info = content_of(entry);
		each(&info, arg);
		free_locked(entry, i);
	}
	pthread_mutex_unlock(&table.mutex);
}
