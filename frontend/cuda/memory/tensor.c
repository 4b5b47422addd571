/*
 * Tensor maps, and the memory of those that were made: a table with one place for each hash. A map
 * depends on nothing but its arguments, so what is remembered never becomes wrong.
 */
#include "frontend/cuda/memory/tensor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/context/context.h"

#define ALIGNMENT   64
#define PLACES_LOG2 10

struct made {
	struct fgv_tensor_shape shape; /* of rank 0: none */
	uint8_t map[FGV_TENSOR_MAP_BYTES];
};

/* Made with the first map; NULL then too where there is no memory, and nothing is remembered. */
static struct {
	pthread_mutex_t mutex;
	struct made *places;
} memory = {.mutex = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(sizeof(struct fgv_tensor_shape) % sizeof(uint64_t) == 0, "is hashed by words");

static uint32_t hash_of(const struct fgv_tensor_shape *shape)
{
	uint64_t words[sizeof(*shape) / sizeof(uint64_t)], hash = 0;

	memcpy(words, shape, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	return (uint32_t)hash >> (32 - PLACES_LOG2);
}

static bool recall(uint32_t hash, const struct fgv_tensor_shape *shape, CUtensorMap *map)
{
	const struct made *place;
	bool found = false;

	pthread_mutex_lock(&memory.mutex);
	if (memory.places) {
		place = &memory.places[hash];
		found = !memcmp(&place->shape, shape, sizeof(*shape));
		if (found)
			memcpy(map, place->map, sizeof(place->map));
	}
	pthread_mutex_unlock(&memory.mutex);
	return found;
}

static void remember(uint32_t hash, const struct fgv_tensor_shape *shape, const CUtensorMap *map)
{
	pthread_mutex_lock(&memory.mutex);
	if (!memory.places)
		memory.places = calloc(1u << PLACES_LOG2, sizeof(*memory.places));
	if (memory.places) {
		struct made *place = &memory.places[hash];

		place->shape = *shape;
		memcpy(place->map, map, sizeof(place->map));
	}
	pthread_mutex_unlock(&memory.mutex);
}

/* Asks the host for the map of @shape, or with NULL for @map with another address. */
static CUresult ask(struct fgv_lane *lane, const struct fgv_tensor_shape *shape,
		    CUdeviceptr address, CUtensorMap *map)
{
	struct fgv_client *client = lane->client;
	uint64_t off;
	CUresult res;

	if (fgv_arena_alloc(client->arena, sizeof(*map), &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (shape)
		res = fgv_call_tensor_map(lane, off, sizeof(*map), shape, sizeof(*shape));
	else
		res = fgv_call_tensor_map_replace(lane, address, off, sizeof(*map), map,
						  sizeof(*map));
	if (!res)
		memcpy(map, client->window.base + off, sizeof(*map));
	fgv_arena_free(client->arena, off);
	return res;
}

static bool is_place_for_map(const CUtensorMap *map)
{
	return map && (uintptr_t)map % ALIGNMENT == 0;
}

/* The program's map need not be aligned as the type is, so it is written by memcpy() alone. */
static CUresult ask_into(const struct fgv_tensor_shape *shape, CUdeviceptr address, void *map)
{
	struct fgv_lane *lane;
	CUtensorMap made;
	CUresult res = fgv_context_enter_any(&lane);

	if (res)
		return res;
	if (!shape)
		memcpy(&made, map, sizeof(made));
	res = ask(lane, shape, address, &made);
	fgv_lane_leave(lane);
	if (res)
		return res;
	memcpy(map, &made, sizeof(made));
	if (shape)
		remember(hash_of(shape), shape, &made);
	return CUDA_SUCCESS;
}

CUresult fgv_tensor_encode(CUtensorMap *map, const struct fgv_tensor_shape *shape)
{
	if (!is_place_for_map(map) || !shape->rank || shape->rank > FGV_TENSOR_RANK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (recall(hash_of(shape), shape, map))
		return CUDA_SUCCESS;
	return ask_into(shape, 0, map);
}

CUresult fgv_tensor_replace(CUtensorMap *map, CUdeviceptr address)
{
	return is_place_for_map(map) ? ask_into(NULL, address, map) : CUDA_ERROR_INVALID_VALUE;
}
