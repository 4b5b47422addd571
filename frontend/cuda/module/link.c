/*
 * Parts are kept as they will travel: one behind another in the form of operation link.
 */
#include "frontend/cuda/module/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/module/image.h"

/* What more there may be of what is linked than of the parts, where that is not known yet. */
#define FIRST_ROOM   (1u << 20)
#define NAME_MAX_LEN 255
#define PART_MAX     (1l << 31)

struct link {
	void *owner;
	uint8_t *parts;
	size_t len, room;
	struct fgv_link_option options[FGV_LINK_OPTIONS_MAX];
	unsigned options_count;
	void *image; /* once it is complete */
};

static struct link *link_of(CUlinkState state)
{
	return fgv_object_address(FGV_OBJECT_LINK, state);
}

CUresult fgv_link_create(const struct fgv_link_option *options, unsigned count, void *owner,
			 CUlinkState *state)
{
	struct link *made;

	if (!state || count > FGV_LINK_OPTIONS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->owner = owner;
	made->options_count = count;
	if (count)
		memcpy(made->options, options, count * sizeof(*options));
	*state = fgv_object_create_for(FGV_OBJECT_LINK, made);
	if (*state)
		return CUDA_SUCCESS;
	free(made);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_link_owner(CUlinkState state, void **owner)
{
	const struct link *link = link_of(state);

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	*owner = link->owner;
	return CUDA_SUCCESS;
}

/* Room for @bytes more, all zero. */
static bool make_room(struct link *link, size_t bytes)
{
	size_t room = fgv_max_u64(2 * link->room, link->len + bytes);
	uint8_t *parts = link->parts;

	if (link->len + bytes > link->room) {
		parts = realloc(link->parts, room);
		if (!parts)
			return false;
		link->parts = parts;
		link->room = room;
	}
	memset(parts + link->len, 0, bytes);
	return true;
}

CUresult fgv_link_add(CUlinkState state, CUjitInputType type, const void *data, size_t len,
		      const char *name)
{
	struct link *link = link_of(state);
	struct fgv_link_input head = {.type = (uint32_t)type, .data_len = len};
	size_t bytes;
	uint8_t *at;

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !len || len > PART_MAX || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES ||
	    link->image)
		return CUDA_ERROR_INVALID_VALUE;
	name = name ? name : "";
	head.name_len = (uint32_t)strnlen(name, NAME_MAX_LEN);
	bytes = fgv_align_up(sizeof(head) + head.name_len + 1 + len + 1, 8);
	if (!make_room(link, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	at = link->parts + link->len;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), name, head.name_len);
	memcpy(at + sizeof(head) + head.name_len + 1, data, len);
	link->len += bytes;
	return CUDA_SUCCESS;
}

CUresult fgv_link_add_file(CUlinkState state, CUjitInputType type, const char *path)
{
	CUresult res;
	size_t len;
	char *data;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_image_read_file(path, &data, &len);
	if (res)
		return res;
	res = fgv_link_add(state, type, data, len, path);
	free(data);
	return res;
}

/* Places in the window for what goes to the host and what comes from it; 0: none. */
struct places {
	uint64_t parts, image, log;
	size_t room; /* for the image */
};

static bool get_places(struct fgv_client *client, const struct link *link, struct places *places)
{
	return !fgv_arena_alloc(client->arena, link->len, &places->parts) &&
	       !fgv_arena_alloc(client->arena, places->room, &places->image) &&
	       !fgv_arena_alloc(client->arena, sizeof(struct fgv_link_log), &places->log);
}

static void put_places(struct fgv_client *client, const struct places *places)
{
	if (places->parts)
		fgv_arena_free(client->arena, places->parts);
	if (places->image)
		fgv_arena_free(client->arena, places->image);
	if (places->log)
		fgv_arena_free(client->arena, places->log);
}

/* What the host wrote may be anything. */
static void read_log(const struct fgv_client *client, const struct places *places,
		     struct fgv_link_log *log)
{
	memcpy(log, client->window.base + places->log, sizeof(*log));
	log->errors[sizeof(log->errors) - 1] = '\0';
	log->info[sizeof(log->info) - 1] = '\0';
}

static CUresult ask_at(struct fgv_lane *lane, struct link *link, const struct places *places,
		       size_t *len, struct fgv_link_log *log)
{
	struct fgv_client *client = lane->client;
	uint64_t needed;
	CUresult res;

	memcpy(client->window.base + places->parts, link->parts, link->len);
	memset(client->window.base + places->log, 0, sizeof(*log));
	res = fgv_call_link(lane, places->parts, link->len, places->image, places->room,
			    places->log, sizeof(*log), link->options,
			    link->options_count * (uint32_t)sizeof(link->options[0]), &needed);
	read_log(client, places, log);
	if (res)
		return res;
	*len = needed;
	if (!needed || needed > places->room)
		return CUDA_SUCCESS;
	link->image = malloc(needed);
	if (!link->image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(link->image, client->window.base + places->image, needed);
	return CUDA_SUCCESS;
}

static CUresult ask(struct fgv_lane *lane, struct link *link, size_t *len, struct fgv_link_log *log)
{
	struct places places = {.room = *len};
	CUresult res = CUDA_ERROR_OUT_OF_MEMORY;

	if (get_places(lane->client, link, &places))
		res = ask_at(lane, link, &places, len, log);
	put_places(lane->client, &places);
	return res;
}

/* A second time where the first guess of its length was wrong. */
CUresult fgv_link_complete(CUlinkState state, void **image, size_t *len, struct fgv_link_log *log)
{
	struct link *link = link_of(state);
	struct fgv_lane *lane;
	size_t needed;
	CUresult res;

	*log = (struct fgv_link_log){0};
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!image || !len || !link->len || link->image)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	needed = 2 * link->len + FIRST_ROOM;
	for (int i = 0; i < 2 && !res && !link->image; i++)
		res = ask(lane, link, &needed, log);
	fgv_lane_leave(lane);
	if (!res && !link->image)
		res = CUDA_ERROR_UNKNOWN;
	if (res)
		return res;
	*image = link->image;
	*len = needed;
	return CUDA_SUCCESS;
}

CUresult fgv_link_destroy(CUlinkState state, void **owner)
{
	struct link *link = link_of(state);
	struct fgv_object_info info;

	if (!link || !fgv_object_destroy(FGV_OBJECT_LINK, state, &info))
		return CUDA_ERROR_INVALID_HANDLE;
	*owner = link->owner;
	free(link->image);
	free(link->parts);
	free(link);
	return CUDA_SUCCESS;
}
