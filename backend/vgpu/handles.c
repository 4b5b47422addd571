/*
 * Handle tables, one per kind: an array of slots that grows up to the kind's limit,
 * with a queue of free slots through it. A slot gets a new generation when its object
 * goes, so that an old handle names nothing; after GENERATIONS uses of one slot a very
 * old handle may name a newer object of the same session and kind.
 */
#include "backend/vgpu/handles.h"

#include <stdlib.h>
#include "common/util.h"

#define INDEX_BITS  20
#define INDEX_MASK  ((1u << INDEX_BITS) - 1)
#define GENERATIONS ((1u << (32 - INDEX_BITS)) - 1)
#define NO_SLOT	    UINT32_MAX
#define CAPACITY_0  16

_Static_assert(FGV_FUNCTIONS_MAX <= INDEX_MASK && FGV_EVENTS_MAX <= INDEX_MASK, "index bits");

static const uint32_t limits[FGV_KINDS] = {
	[FGV_KIND_MODULE] = FGV_MODULES_MAX, [FGV_KIND_FUNCTION] = FGV_FUNCTIONS_MAX,
	[FGV_KIND_STREAM] = FGV_STREAMS_MAX, [FGV_KIND_EVENT] = FGV_EVENTS_MAX,
	[FGV_KIND_ARRAY] = FGV_ARRAYS_MAX,   [FGV_KIND_TEXTURE] = FGV_TEXTURES_MAX,
	[FGV_KIND_GRAPH] = FGV_GRAPHS_MAX,
};

void fgv_handles_init(struct fgv_handles *handles)
{
	for (unsigned i = 0; i < FGV_KINDS; i++) {
		handles->tables[i] = (struct fgv_handle_table){
			.limit = limits[i],
			.free_head = NO_SLOT,
			.free_tail = NO_SLOT,
		};
	}
}

void fgv_handles_fini(struct fgv_handles *handles)
{
	for (unsigned i = 0; i < FGV_KINDS; i++)
		free(handles->tables[i].slots);
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

struct fgv_object *fgv_handles_find(const struct fgv_handles *handles, enum fgv_kind kind,
				    uint32_t handle)
{
	const struct fgv_handle_table *table = &handles->tables[kind];
	uint32_t index = handle & INDEX_MASK;
	const struct fgv_handle_slot *slot;

	if (index >= table->count)
		return NULL;
	slot = &table->slots[index];
	return slot->generation == handle >> INDEX_BITS ? slot->object : NULL;
}

void fgv_handles_remove(struct fgv_handles *handles, struct fgv_object *object)
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

struct fgv_object *fgv_handles_next(const struct fgv_handles *handles, enum fgv_kind kind,
				    uint32_t *at)
{
	const struct fgv_handle_table *table = &handles->tables[kind];

	while (*at < table->count) {
		struct fgv_object *object = table->slots[(*at)++].object;

		if (object)
			return object;
	}
	return NULL;
}
