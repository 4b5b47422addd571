/*
 * A list of memory, each with who owns it and whether it is allocated now.
 *
 * Lock: state.mutex guards all of it. It may be taken while captures are locked, or a graph that
 * is launched; nothing is taken while holding it.
 */
#include "frontend/libcudart/graph_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/util.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph.h"

/* Memory is given out again for at least this part of its size. */
#define WASTE_PART 2

struct fgv_graph_memory {
	LIST_ENTRY(fgv_graph_memory) link;
	uint64_t address;
	uint64_t bytes;
	uint32_t references;
	cudaGraph_t owner;		 /* that allocates it */
	const struct fgv_node *freed_by; /* the owner's node; NULL: it does not free it */
	bool freed_elsewhere;		 /* another graph has a node that does */
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
	uint64_t used_bytes, used_high_bytes;
	uint64_t reserved_bytes, reserved_high_bytes;
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

/* The program frees what a graph has allocated and not freed. */
static CUresult release_of_program(struct fgv_lane *lane, uint64_t address)
{
	if (fgv_graph_memory_free(address, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	fgv_graph_memory_sweep(lane);
	return CUDA_SUCCESS;
}

cudaError_t fgv_graph_memory_create(struct fgv_lane *lane, uint64_t bytes,
				    struct fgv_graph_memory **memory)
{
	struct fgv_graph_memory *made = calloc(1, sizeof(*made));
	CUresult res;

	if (!made)
		return cudaErrorMemoryAllocation;
	fgv_memory_set_release_of_graphs(release_of_program);
	fgv_graph_memory_sweep(lane);
	res = fgv_pool_ask_device(lane, bytes, FGV_RANGE_GRAPH, &made->address);
	if (res) {
		free(made);
		return fgv_error_from(res);
	}
	made->bytes = bytes;
	made->references = 1;
	lock();
	LIST_INSERT_HEAD(&state.list, made, link);
	state.reserved_bytes += bytes;
	state.reserved_high_bytes = fgv_max_u64(state.reserved_high_bytes, state.reserved_bytes);
	unlock();
	*memory = made;
	return cudaSuccess;
}

static bool may_reuse(const struct fgv_graph_memory *memory, const struct fgv_graph *graph,
		      uint64_t bytes)
{
	return memory->owner == graph->name && memory->freed_by && memory->bytes >= bytes &&
	       memory->bytes / WASTE_PART <= bytes;
}

static struct fgv_graph_memory *find_reusable_locked(struct fgv_graph *graph, uint64_t bytes,
						     bool only_marked)
{
	struct fgv_graph_memory *each;

	LIST_FOREACH(each, &state.list, link) {
		if (may_reuse(each, graph, bytes) && (!only_marked || each->freed_by->marked))
			return each;
	}
	return NULL;
}

struct fgv_graph_memory *fgv_graph_memory_reuse(struct fgv_graph *graph,
						struct fgv_node *const *before, size_t count,
						uint64_t bytes)
{
	struct fgv_graph_memory *found;

	lock();
	found = find_reusable_locked(graph, bytes, false);
	if (found) {
		found = fgv_graph_mark_before(graph, before, count)
				? NULL
				: find_reusable_locked(graph, bytes, true);
		if (found)
			found->references++;
	}
	unlock();
	return found;
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

cudaError_t fgv_graph_memory_find(const struct fgv_graph *graph, uint64_t address,
				  struct fgv_graph_memory **memory)
{
	struct fgv_graph_memory *found;
	bool is_allowed;

	lock();
	found = find_locked(address);
	is_allowed = found && !found->freed_by &&
		     !(found->freed_elsewhere && found->owner == graph->name);
	if (is_allowed)
		found->references++;
	unlock();
	*memory = found;
	return is_allowed ? cudaSuccess : cudaErrorInvalidValue;
}

uint64_t fgv_graph_memory_address(const struct fgv_graph_memory *memory)
{
	return memory->address;
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
		state.used_bytes -= memory->bytes;
	memory->is_counted = false;
}

/* Gives it back to the device, after the work that was queued before. */
static void release_locked(struct fgv_lane *lane, struct fgv_graph_memory *memory)
{
	if (memory->is_lost)
		return;
	uncount_locked(memory);
	state.reserved_bytes -= memory->bytes;
	memory->is_live = false;
	memory->is_lost = true;
	fgv_addrmap_remove(memory->address, FGV_RANGE_GRAPH);
	fgv_post_mem_free(lane, memory->address);
}

void fgv_graph_memory_sweep(struct fgv_lane *lane)
{
	struct fgv_graph_memory *each, *next;

	lock();
	for (each = LIST_FIRST(&state.list); each; each = next) {
		next = LIST_NEXT(each, link);
		if (each->references || each->is_live)
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
		release_locked(lane, each);
	}
	unlock();
}

void fgv_graph_memory_note(struct fgv_node *node)
{
	struct fgv_graph_memory *memory = node->work.memory;

	if (!memory)
		return;
	lock();
	if (node->work.params.type == cudaGraphNodeTypeMemAlloc) {
		memory->owner = node->graph->name;
		memory->freed_by = NULL;
	} else if (memory->owner == node->graph->name) {
		memory->freed_by = node;
	} else {
		memory->freed_elsewhere = true;
	}
	unlock();
}

/* --- Launches, and the program's frees ------------------------------------------- */

static bool is_allocation(const struct fgv_node *node)
{
	return node->work.params.type == cudaGraphNodeTypeMemAlloc;
}

/* Marks what the launch allocates: it is live for the nodes behind. */
static cudaError_t check_locked(struct fgv_node *const *nodes, uint32_t count, bool auto_free)
{
	for (uint32_t i = 0; i < count; i++) {
		if (nodes[i]->work.memory)
			nodes[i]->work.memory->is_marked = false;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct fgv_graph_memory *memory = nodes[i]->work.memory;

		if (!memory)
			continue;
		if (is_allocation(nodes[i])) {
			if (memory->is_live && !auto_free)
				return cudaErrorInvalidValue;
			memory->is_marked = true;
		} else if (!memory->is_live && !memory->is_marked) {
			return cudaErrorInvalidValue;
		}
	}
	return cudaSuccess;
}

static void count_locked(struct fgv_graph_memory *memory)
{
	if (memory->is_counted)
		return;
	memory->is_counted = true;
	state.used_bytes += memory->bytes;
	state.used_high_bytes = fgv_max_u64(state.used_high_bytes, state.used_bytes);
}

static void use_locked(const struct fgv_node *node, const struct fgv_graph_place *place)
{
	struct fgv_graph_memory *memory = node->work.memory;

	memory->is_live = is_allocation(node);
	memory->has_place = true;
	memory->place = *place;
	if (!memory->is_lost)
		count_locked(memory);
}

cudaError_t fgv_graph_memory_launch(struct fgv_node *const *nodes, uint32_t count,
				    const struct fgv_graph_place *place, bool auto_free)
{
	cudaError_t error;

	lock();
	error = check_locked(nodes, count, auto_free);
	for (uint32_t i = 0; i < count && !error; i++) {
		if (nodes[i]->work.memory)
			use_locked(nodes[i], place);
	}
	unlock();
	return error;
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

cudaError_t fgv_graph_memory_free(uint64_t address, const struct fgv_graph_place *place)
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
	return was_live ? cudaSuccess : cudaErrorInvalidValue;
}

/* --- How much there is ------------------------------------------------------------ */

void fgv_graph_memory_trim(void)
{
	struct fgv_graph_memory *each;

	lock();
	LIST_FOREACH(each, &state.list, link) {
		if (!each->is_live)
			uncount_locked(each);
	}
	unlock();
}

/* NULL: no such attribute. */
static const uint64_t *place_of(enum cudaGraphMemAttributeType attribute)
{
	switch (attribute) {
	case cudaGraphMemAttrUsedMemCurrent:
		return &state.used_bytes;
	case cudaGraphMemAttrUsedMemHigh:
		return &state.used_high_bytes;
	case cudaGraphMemAttrReservedMemCurrent:
		return &state.reserved_bytes;
	case cudaGraphMemAttrReservedMemHigh:
		return &state.reserved_high_bytes;
	}
	return NULL;
}

cudaError_t fgv_graph_memory_get_attribute(enum cudaGraphMemAttributeType attribute,
					   uint64_t *value)
{
	const uint64_t *place = place_of(attribute);

	if (!place)
		return cudaErrorInvalidValue;
	lock();
	*value = *place;
	unlock();
	return cudaSuccess;
}

cudaError_t fgv_graph_memory_reset_attribute(enum cudaGraphMemAttributeType attribute)
{
	cudaError_t error = cudaSuccess;

	lock();
	if (attribute == cudaGraphMemAttrUsedMemHigh)
		state.used_high_bytes = state.used_bytes;
	else if (attribute == cudaGraphMemAttrReservedMemHigh)
		state.reserved_high_bytes = state.reserved_bytes;
	else
		error = cudaErrorInvalidValue;
	unlock();
	return error;
}
