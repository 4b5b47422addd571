/*
 * A list of memory, each with its owner and whether it is allocated now.
 *
 * Lock: state.mutex guards all of it. It may be taken while captures are locked, or a graph that
 * is launched; nothing is taken while holding it.
 */
#include "frontend/cuda/memory/graph_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/pool.h"

/* Memory is given out again for at least this part of its size. */
#define WASTE_PART 2

struct fgv_graph_memory {
	LIST_ENTRY(fgv_graph_memory) link;
	uint64_t address;
	uint64_t bytes;
	uint32_t device;
	uint32_t references;
	CUgraph owner;	      /* that allocates it */
	const void *freed_by; /* the owner's node; NULL: it does not free it */
	bool freed_elsewhere; /* another graph has a node that does */
	bool is_live;
	bool is_counted; /* as used: launched, and not trimmed since */
	bool is_lost;	 /* the device has it back already */
	bool is_marked;	 /* by a launch: it allocates it */
	bool has_place;	 /* where it was used or freed last */
	struct fgv_graph_place place;
};

static struct {
	pthread_mutex_t mutex;
	LIST_HEAD(, fgv_graph_memory) list;
	struct amounts {
		uint64_t used_bytes, used_high_bytes;
		uint64_t reserved_bytes, reserved_high_bytes;
	} amounts[FGV_DEVICES_MAX];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
	pthread_mutex_lock(&state.mutex);
}

static void unlock(void)
{
	pthread_mutex_unlock(&state.mutex);
}

/* --- Memory and its references -------------------------------------------------- */

CUresult fgv_graph_memory_create(struct fgv_lane *lane, uint64_t bytes,
				 struct fgv_graph_memory **memory)
{
	struct amounts *amounts = &state.amounts[lane->client->device];
	struct fgv_graph_memory *made = calloc(1, sizeof(*made));
	CUresult res;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fgv_graph_memory_sweep(lane);
	res = fgv_pool_ask_device(lane, bytes, FGV_RANGE_GRAPH, &made->address);
	if (res) {
		free(made);
		return res;
	}
	made->bytes = bytes;
	made->device = lane->client->device;
	made->references = 1;
	lock();
	LIST_INSERT_HEAD(&state.list, made, link);
	amounts->reserved_bytes += bytes;
	amounts->reserved_high_bytes =
		fgv_max_u64(amounts->reserved_high_bytes, amounts->reserved_bytes);
	unlock();
	*memory = made;
	return CUDA_SUCCESS;
}

static bool fits(const struct fgv_graph_memory *memory, CUgraph graph, uint32_t device,
		 uint64_t bytes)
{
	return memory->owner == graph && memory->device == device && memory->freed_by &&
	       memory->bytes >= bytes && memory->bytes / WASTE_PART <= bytes;
}

struct fgv_graph_memory *fgv_graph_memory_reuse(CUgraph graph, uint32_t device, uint64_t bytes,
						bool (*may)(const void *node, void *arg), void *arg)
{
	struct fgv_graph_memory *each;

	lock();
	LIST_FOREACH(each, &state.list, link) {
		if (fits(each, graph, device, bytes) && may(each->freed_by, arg)) {
			each->references++;
			break;
		}
	}
	unlock();
	return each;
}

static struct fgv_graph_memory *find_locked(uint64_t address)
{
	struct fgv_graph_memory *each;

	LIST_FOREACH(each, &state.list, link) {
		if (each->address == address && !each->is_lost)
			return each;
	}
	return NULL;
}

CUresult fgv_graph_memory_find(CUgraph graph, uint64_t address, struct fgv_graph_memory **memory)
{
	struct fgv_graph_memory *found;
	bool is_allowed;

	lock();
	found = find_locked(address);
	is_allowed =
		found && !found->freed_by && !(found->freed_elsewhere && found->owner == graph);
	if (is_allowed)
		found->references++;
	unlock();
	*memory = found;
	return is_allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

uint64_t fgv_graph_memory_address(const struct fgv_graph_memory *memory)
{
	return memory->address;
}

uint32_t fgv_graph_memory_device(const struct fgv_graph_memory *memory)
{
	return memory->device;
}

struct fgv_graph_memory *fgv_graph_memory_get(struct fgv_graph_memory *memory)
{
	if (memory) {
		lock();
		memory->references++;
		unlock();
	}
	return memory;
}

void fgv_graph_memory_put(struct fgv_graph_memory *memory)
{
	if (!memory)
		return;
	lock();
	memory->references--;
	unlock();
}

static void uncount_locked(struct fgv_graph_memory *memory)
{
	if (memory->is_counted)
		state.amounts[memory->device].used_bytes -= memory->bytes;
	memory->is_counted = false;
}

/* Gives it back to the device, after the work that was queued before. */
static void release_locked(struct fgv_lane *lane, struct fgv_graph_memory *memory)
{
	if (memory->is_lost)
		return;
	uncount_locked(memory);
	state.amounts[memory->device].reserved_bytes -= memory->bytes;
	memory->is_live = false;
	memory->is_lost = true;
	fgv_addrmap_remove(memory->address, FGV_RANGE_GRAPH);
	fgv_post_mem_free(lane, memory->address);
}

static bool is_idle(const struct fgv_graph_memory *memory, uint32_t device)
{
	return memory->device == device && !memory->references && !memory->is_live;
}

bool fgv_graph_memory_is_idle(uint32_t device)
{
	const struct fgv_graph_memory *each;

	lock();
	LIST_FOREACH(each, &state.list, link) {
		if (is_idle(each, device))
			break;
	}
	unlock();
	return each;
}

void fgv_graph_memory_sweep(struct fgv_lane *lane)
{
	struct fgv_graph_memory *each, *next;

	lock();
	for (each = LIST_FIRST(&state.list); each; each = next) {
		next = LIST_NEXT(each, link);
		if (!is_idle(each, lane->client->device))
			continue;
		release_locked(lane, each);
		LIST_REMOVE(each, link);
		free(each);
	}
	unlock();
}

void fgv_graph_memory_drain(struct fgv_lane *lane)
{
	struct fgv_graph_memory *each;

	lock();
	LIST_FOREACH(each, &state.list, link) {
		if (each->device == lane->client->device)
			release_locked(lane, each);
	}
	unlock();
}

void fgv_graph_memory_note_alloc(struct fgv_graph_memory *memory, CUgraph graph)
{
	lock();
	memory->owner = graph;
	memory->freed_by = NULL;
	unlock();
}

void fgv_graph_memory_note_free(struct fgv_graph_memory *memory, CUgraph graph, const void *node)
{
	lock();
	if (memory->owner == graph)
		memory->freed_by = node;
	else
		memory->freed_elsewhere = true;
	unlock();
}

/* --- Launches, and the program's frees ------------------------------------------- */

/* Marks what the launch allocates: it is live for the nodes behind. */
static CUresult check_locked(const struct fgv_graph_memory_use *uses, uint32_t count,
			     bool auto_free)
{
	for (uint32_t i = 0; i < count; i++)
		uses[i].memory->is_marked = false;
	for (uint32_t i = 0; i < count; i++) {
		struct fgv_graph_memory *memory = uses[i].memory;

		if (uses[i].allocates) {
			if (memory->is_live && !auto_free)
				return CUDA_ERROR_INVALID_VALUE;
			memory->is_marked = true;
		} else if (!memory->is_live && !memory->is_marked) {
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return CUDA_SUCCESS;
}

static void count_locked(struct fgv_graph_memory *memory)
{
	struct amounts *amounts = &state.amounts[memory->device];

	if (memory->is_counted)
		return;
	memory->is_counted = true;
	amounts->used_bytes += memory->bytes;
	amounts->used_high_bytes = fgv_max_u64(amounts->used_high_bytes, amounts->used_bytes);
}

static void use_locked(const struct fgv_graph_memory_use *use, const struct fgv_graph_place *place)
{
	struct fgv_graph_memory *memory = use->memory;

	memory->is_live = use->allocates;
	memory->has_place = true;
	memory->place = *place;
	if (!memory->is_lost)
		count_locked(memory);
}

CUresult fgv_graph_memory_launch(const struct fgv_graph_memory_use *uses, uint32_t count,
				 const struct fgv_graph_place *place, bool auto_free)
{
	CUresult res;

	lock();
	res = check_locked(uses, count, auto_free);
	for (uint32_t i = 0; i < count && !res; i++)
		use_locked(&uses[i], place);
	unlock();
	return res;
}

bool fgv_graph_memory_last(const struct fgv_graph_memory *memory, struct fgv_graph_place *place)
{
	bool has_place;

	lock();
	has_place = memory->has_place;
	*place = memory->place;
	unlock();
	return has_place;
}

CUresult fgv_graph_memory_free(uint64_t address, const struct fgv_graph_place *place)
{
	struct fgv_graph_memory *memory;
	bool was_live;

	lock();
	memory = find_locked(address);
	was_live = memory && memory->is_live;
	if (was_live) {
		memory->is_live = false;
		memory->has_place = place != NULL;
		if (place)
			memory->place = *place;
	}
	unlock();
	return was_live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- How much there is ------------------------------------------------------------ */

static CUresult check_device(int ordinal)
{
	const struct fgv_device_info *info;

	return fgv_context_find_device(ordinal, &info);
}

static void uncount_unused(uint32_t device)
{
	struct fgv_graph_memory *each;

	lock();
	LIST_FOREACH(each, &state.list, link) {
		if (each->device == device && !each->is_live)
			uncount_locked(each);
	}
	unlock();
}

/* What is not needed goes at once as it is; so there is nothing that could be kept for longer. */
CUresult fgv_graph_memory_trim(int ordinal)
{
	struct fgv_lane *lane;
	CUresult res = check_device(ordinal);

	if (!res)
		res = fgv_context_enter_on((uint32_t)ordinal, &lane);
	if (res)
		return res;
	uncount_unused((uint32_t)ordinal);
	fgv_graph_memory_sweep(lane);
	fgv_lane_leave(lane);
	return CUDA_SUCCESS;
}

/* NULL: no such attribute. */
static const uint64_t *place_of(const struct amounts *amounts, CUgraphMem_attribute attribute)
{
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		return &amounts->used_bytes;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		return &amounts->used_high_bytes;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		return &amounts->reserved_bytes;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		return &amounts->reserved_high_bytes;
	}
	return NULL;
}

CUresult fgv_graph_memory_get_attribute(int ordinal, CUgraphMem_attribute attribute,
					uint64_t *value)
{
	CUresult res = check_device(ordinal);
	const uint64_t *place;

	if (res)
		return res;
	place = place_of(&state.amounts[ordinal], attribute);
	if (!place || !value)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	*value = *place;
	unlock();
	return CUDA_SUCCESS;
}

/* A highest value starts anew. */
static CUresult reset_locked(struct amounts *amounts, CUgraphMem_attribute attribute)
{
	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		amounts->used_high_bytes = amounts->used_bytes;
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		amounts->reserved_high_bytes = amounts->reserved_bytes;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult fgv_graph_memory_set_attribute(int ordinal, CUgraphMem_attribute attribute,
					const uint64_t *value)
{
	CUresult res = check_device(ordinal);

	if (!res && (!value || *value))
		res = CUDA_ERROR_INVALID_VALUE;
	if (res)
		return res;
	lock();
	res = reset_locked(&state.amounts[ordinal], attribute);
	unlock();
	return res;
}
