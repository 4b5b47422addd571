/*
 * Handle tables, one per kind: an array of slots that grows up to the kind's limit,
 * with a queue of free slots through it. A slot gets a new generation when its object
 * goes, so that an old handle names nothing; after GENERATIONS uses of one slot a very
 * old handle may name a newer object of the same session and kind.
 *
 * Objects with handles of the guest's own are in an array by themselves, so that no handle that the
 * guest may choose is one that is given out here.
 */
#include "backend/vgpu/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"

#define INDEX_BITS  20
#define INDEX_MASK  ((1u << INDEX_BITS) - 1)
#define GENERATIONS ((1u << (32 - INDEX_BITS)) - 1)
#define NO_SLOT	    UINT32_MAX
#define CAPACITY_0  16

_Static_assert(FGV_FUNCTIONS_MAX <= FGV_OWN_BIT && FGV_EVENTS_MAX <= FGV_OWN_BIT &&
		       FGV_MEMORIES_MAX <= FGV_OWN_BIT,
	       "index bits");
_Static_assert(FGV_OWN_BITS < INDEX_BITS, "a bit of the index");

static const uint32_t limits[FGV_KINDS] = {
	[FGV_KIND_MODULE] = FGV_MODULES_MAX, [FGV_KIND_FUNCTION] = FGV_FUNCTIONS_MAX,
	[FGV_KIND_STREAM] = FGV_STREAMS_MAX, [FGV_KIND_EVENT] = FGV_EVENTS_MAX,
	[FGV_KIND_ARRAY] = FGV_ARRAYS_MAX,   [FGV_KIND_TEXTURE] = FGV_TEXTURES_MAX,
	[FGV_KIND_GRAPH] = FGV_GRAPHS_MAX,   [FGV_KIND_MEMORY] = FGV_MEMORIES_MAX,
};

static const uint32_t own_limits[FGV_KINDS] = {
	[FGV_KIND_STREAM] = FGV_OWN_STREAMS_MAX + FGV_OWN_SPARE,
	[FGV_KIND_EVENT] = FGV_OWN_EVENTS_MAX + FGV_OWN_SPARE,
};

void fgv_handles_init(struct fgv_handles *handles)
{
	for (unsigned i = 0; i < FGV_KINDS; i++) {
		handles->tables[i] = (struct fgv_handle_table){
			.limit = limits[i],
			.free_head = NO_SLOT,
			.free_tail = NO_SLOT,
		};
		handles->own[i] = (struct fgv_own_table){.limit = own_limits[i]};
	}
}

void fgv_handles_fini(struct fgv_handles *handles)
{
	for (unsigned i = 0; i < FGV_KINDS; i++) {
		free(handles->tables[i].slots);
		free(handles->own[i].objects);
	}
}

static bool grow(struct fgv_handle_table *table)
{
	uint32_t capacity = table->capacity ? table->capacity * 2 : CAPACITY_0;
	struct fgv_handle_slot *slots;

	if (capacity > table->limit)
		capacity = table->limit;
	slots = realloc(table->slots, capacity * sizeof(*slots));
	if (!slots)
		return false;
	table->slots = slots;
	table->capacity = capacity;
	return true;
}

/* The index of a slot to use, or NO_SLOT. */
static uint32_t take_slot(struct fgv_handle_table *table)
{
	uint32_t index = table->free_head;

	if (index != NO_SLOT) {
		table->free_head = table->slots[index].next_free;
		if (table->free_head == NO_SLOT)
			table->free_tail = NO_SLOT;
		return index;
	}
	if (table->count == table->limit || (table->count == table->capacity && !grow(table)))
		return NO_SLOT;
	index = table->count++;
	table->slots[index].generation = 1;
	return index;
}

struct fgv_object *fgv_handles_add(struct fgv_handles *handles, enum fgv_kind kind)
{
	struct fgv_handle_table *table = &handles->tables[kind];
	struct fgv_object *object = calloc(1, sizeof(*object));
	uint32_t index;

	if (!object)
		return NULL;
	index = take_slot(table);
	if (index == NO_SLOT) {
		free(object);
		return NULL;
	}
	table->slots[index].object = object;
	object->kind = kind;
	object->handle = table->slots[index].generation << INDEX_BITS | index;
	object->refs = 1;
	return object;
}

static uint32_t own_index(uint32_t handle)
{
	return handle & (FGV_OWN_BIT - 1);
}

/* Makes room for index @index, which is less than the limit. */
static bool grow_own(struct fgv_own_table *table, uint32_t index)
{
	uint32_t capacity = table->capacity ? table->capacity : CAPACITY_0;
	struct fgv_object **objects;

	while (capacity <= index)
		capacity *= 2;
	if (capacity > table->limit)
		capacity = table->limit;
	objects = realloc(table->objects, capacity * sizeof(*objects));
	if (!objects)
		return false;
	memset(objects + table->capacity, 0, (capacity - table->capacity) * sizeof(*objects));
	table->objects = objects;
	table->capacity = capacity;
	return true;
}

int fgv_handles_add_own(struct fgv_handles *handles, enum fgv_kind kind, uint32_t handle,
			struct fgv_object **object)
{
	struct fgv_own_table *table = &handles->own[kind];
	uint32_t index = own_index(handle);
	struct fgv_object *made;

	if (!(handle & FGV_OWN_BIT) || index >= table->limit)
		return -EINVAL;
	if (index < table->capacity && table->objects[index])
		return -EINVAL;
	if (index >= table->capacity && !grow_own(table, index))
		return -ENOMEM;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->kind = kind;
	made->handle = handle;
	made->refs = 1;
	made->is_own = true;
	table->objects[index] = made;
	*object = made;
	return 0;
}

static struct fgv_object *find_own(const struct fgv_own_table *table, uint32_t handle)
{
	uint32_t index = own_index(handle);
	struct fgv_object *object = index < table->capacity ? table->objects[index] : NULL;

	return object && object->handle == handle ? object : NULL;
}

struct fgv_object *fgv_handles_find(const struct fgv_handles *handles, enum fgv_kind kind,
				    uint32_t handle)
{
	const struct fgv_handle_table *table = &handles->tables[kind];
	uint32_t index = handle & INDEX_MASK;
	const struct fgv_handle_slot *slot;

	if (handle & FGV_OWN_BIT)
		return find_own(&handles->own[kind], handle);
	if (index >= table->count)
		return NULL;
	slot = &table->slots[index];
	return slot->generation == handle >> INDEX_BITS ? slot->object : NULL;
}

static void remove_own(struct fgv_handles *handles, struct fgv_object *object)
{
	handles->own[object->kind].objects[own_index(object->handle)] = NULL;
	object->handle = 0;
}

static void remove_given(struct fgv_handles *handles, struct fgv_object *object)
{
	struct fgv_handle_table *table = &handles->tables[object->kind];
	uint32_t index = object->handle & INDEX_MASK;
	struct fgv_handle_slot *slot = &table->slots[index];

	slot->object = NULL;
	slot->generation = slot->generation == GENERATIONS ? 1 : slot->generation + 1;
	slot->next_free = NO_SLOT;
	if (table->free_tail == NO_SLOT)
		table->free_head = index;
	else
		table->slots[table->free_tail].next_free = index;
	table->free_tail = index;
	object->handle = 0;
}

void fgv_handles_remove(struct fgv_handles *handles, struct fgv_object *object)
{
	if (object->is_own)
		remove_own(handles, object);
	else
		remove_given(handles, object);
}

struct fgv_object *fgv_handles_next(const struct fgv_handles *handles, enum fgv_kind kind,
				    uint32_t *at)
{
	const struct fgv_handle_table *table = &handles->tables[kind];
	const struct fgv_own_table *own = &handles->own[kind];
	struct fgv_object *object = NULL;

	while (!object && *at < table->count)
		object = table->slots[(*at)++].object;
	while (!object && *at < table->count + own->capacity)
		object = own->objects[(*at)++ - table->count];
	return object;
}
