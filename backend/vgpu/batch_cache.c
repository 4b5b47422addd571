/*
 * Sequences that came before; see batch_cache.h.
 */
#include "backend/vgpu/batch_cache.h"

#include "backend/vgpu/batch_follow.h"
#include "backend/vgpu/session.h"

#define FOR_EACH_ENTRY(entry, cache)                                                               \
	for (struct fgv_batch_entry *entry = (cache)->entries;                                     \
	     entry < (cache)->entries + FGV_BATCH_ENTRIES; entry++)                                \
		if (!entry->row) {                                                                 \
		} else

/* The place of @hash; what was there longest is forgotten for it, and has to come again. */
static struct fgv_batch_seen *place_of(struct fgv_batch_cache *cache, uint64_t hash)
{
	struct fgv_batch_seen *set =
		&cache->seen[hash % (FGV_BATCH_SEEN / FGV_BATCH_WAYS) * FGV_BATCH_WAYS];
	struct fgv_batch_seen *oldest = set;

	for (unsigned i = 0; i < FGV_BATCH_WAYS; i++) {
		if (set[i].times && set[i].hash == hash)
			return &set[i];
		if (!set[i].times || set[i].at < oldest->at)
			oldest = &set[i];
	}
	*oldest = (struct fgv_batch_seen){.hash = hash};
	return oldest;
}

bool fgv_batch_cache_is_due(struct fgv_batch_cache *cache, uint64_t hash, uint32_t worth)
{
	struct fgv_batch_seen *seen = place_of(cache, hash);

	if (cache->launches - seen->at > FGV_BATCH_NODES)
		seen->times = 0;
	seen->at = cache->launches;
	seen->times++;
	return seen->times >= worth && !(seen->times & (seen->times - 1));
}

/* --- Finding ------------------------------------------------------------------- */

static bool is_like(const struct fgv_batch_entry *one, const struct fgv_batch_entry *other)
{
	return one->stream == other->stream && one->hash == other->hash &&
	       one->row->count == other->row->count;
}

struct fgv_batch_entry *fgv_batch_cache_find(struct fgv_batch_cache *cache,
					     const struct fgv_gpu_stream *stream, uint64_t hash,
					     uint32_t count)
{
	struct fgv_batch_entry *found = NULL;

	FOR_EACH_ENTRY(entry, cache)
	{
		if (entry->hash == hash && entry->stream == stream && entry->row->count == count &&
		    (!found || entry->stamp > found->stamp))
			found = entry;
	}
	return found;
}

struct fgv_batch_entry *fgv_batch_cache_begins(struct fgv_batch_cache *cache,
					       const struct fgv_gpu_stream *stream,
					       const struct fgv_batch_shape *shape)
{
	struct fgv_batch_entry *found = NULL;

	FOR_EACH_ENTRY(entry, cache)
	{
		if (entry->stream == stream &&
		    fgv_batch_same_shape(&entry->row->kept[0].shape, shape) &&
		    (!found || entry->stamp > found->stamp))
			found = entry;
	}
	return found;
}

static bool is_like_until(const struct fgv_batch_row *one, const struct fgv_batch_row *other,
			  uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!fgv_batch_same_shape(&one->kept[i].shape, &other->kept[i].shape) ||
		    memcmp(one->kept[i].args, other->kept[i].args, one->kept[i].args_len))
			return false;
	}
	return true;
}

/* The last ones are looked at first: where one launch differs, most that came before are alike. */
struct fgv_batch_entry *fgv_batch_cache_like(struct fgv_batch_cache *cache,
					     const struct fgv_batch_entry *entry, uint32_t number,
					     const void *args)
{
	const struct fgv_batch_kept *kept = &entry->row->kept[number];

	FOR_EACH_ENTRY(other, cache)
	{
		if (other != entry && is_like(other, entry) &&
		    fgv_batch_same_shape(&other->row->kept[number].shape, &kept->shape) &&
		    !memcmp(other->row->kept[number].args, args, kept->args_len) &&
		    is_like_until(other->row, entry->row, number))
			return other;
	}
	return NULL;
}

struct fgv_batch_entry *fgv_batch_cache_to_change(struct fgv_batch_cache *cache,
						  const struct fgv_batch_entry *entry)
{
	struct fgv_batch_entry *found = NULL;

	FOR_EACH_ENTRY(other, cache)
	{
		if (!other->is_fixed && is_like(other, entry) &&
		    (!found || other->stamp < found->stamp))
			found = other;
	}
	return found;
}

unsigned fgv_batch_cache_count_to_change(const struct fgv_batch_cache *cache,
					 const struct fgv_batch_entry *entry)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FGV_BATCH_ENTRIES; i++) {
		const struct fgv_batch_entry *other = &cache->entries[i];

		count += other->row && !other->is_fixed && is_like(other, entry);
	}
	return count;
}

/* --- Coming and going ------------------------------------------------------------ */

void fgv_batch_cache_use(struct fgv_batch_cache *cache, struct fgv_batch_entry *entry)
{
	entry->stamp = ++cache->stamp;
}

static int change_charge(struct fgv_session *session, int64_t bytes)
{
	struct fgv_charge *spare = &session->quota.spare;

	return fgv_quota_charge(&session->quota, spare, spare->bytes + (uint64_t)bytes);
}

void fgv_batch_cache_drop(struct fgv_session *session, struct fgv_batch_entry *entry)
{
	struct fgv_batch_cache *cache = &session->batch.cache;

	FOR_EACH_ENTRY(other, cache)
	{
		if (other->next == entry)
			other->next = NULL;
	}
	fgv_batch_lose_entry(session, entry);
	cache->nodes -= entry->row->count;
	fgv_batch_row_destroy(session, entry->row);
	change_charge(session, -(int64_t)entry->charged);
	*entry = (struct fgv_batch_entry){0};
}

/* A free place, and room for @count more nodes. */
static struct fgv_batch_entry *make_room(struct fgv_session *session, uint32_t count)
{
	struct fgv_batch_cache *cache = &session->batch.cache;
	struct fgv_batch_entry *oldest, *place;

	for (;;) {
		oldest = place = NULL;
		for (unsigned i = 0; i < FGV_BATCH_ENTRIES; i++) {
			struct fgv_batch_entry *entry = &cache->entries[i];

			if (!entry->row)
				place = entry;
			else if (!oldest || entry->stamp < oldest->stamp)
				oldest = entry;
		}
		if (place && cache->nodes + count <= FGV_BATCH_NODES)
			return place;
		fgv_batch_cache_drop(session, oldest);
	}
}

static struct fgv_batch_entry *add(struct fgv_session *session, struct fgv_gpu_stream *stream,
				   uint64_t hash, const struct fgv_batch_launch *launches,
				   uint32_t count)
{
	struct fgv_batch_entry *entry = make_room(session, count);
	uint64_t bytes = session->costs.graph + count * session->costs.graph_node;

	if (change_charge(session, (int64_t)bytes) < 0)
		return NULL;
	entry->row = fgv_batch_row_create(session, launches, count);
	if (!entry->row) {
		change_charge(session, -(int64_t)bytes);
		return NULL;
	}
	entry->charged = bytes;
	entry->stream = stream;
	entry->hash = hash;
	session->batch.cache.nodes += count;
	fgv_batch_cache_use(&session->batch.cache, entry);
	return entry;
}

/* Where the quota is full, it is left as it was: what is here is not given up for more of it. */
struct fgv_batch_entry *fgv_batch_cache_add(struct fgv_session *session,
					    struct fgv_gpu_stream *stream, uint64_t hash,
					    const struct fgv_batch_launch *launches, uint32_t count)
{
	struct fgv_batch_cache *cache = &session->batch.cache;
	uint64_t refused = session->quota.refused;
	struct fgv_batch_entry *entry;

	cache->is_adding = true;
	entry = add(session, stream, hash, launches, count);
	cache->is_adding = false;
	session->quota.refused = refused;
	return entry;
}

void fgv_batch_cache_forget_stream(struct fgv_session *session, const struct fgv_gpu_stream *stream)
{
	FOR_EACH_ENTRY(entry, &session->batch.cache)
	{
		if (entry->stream == stream)
			fgv_batch_cache_drop(session, entry);
	}
}

void fgv_batch_cache_forget_all(struct fgv_session *session)
{
	FOR_EACH_ENTRY(entry, &session->batch.cache)
	fgv_batch_cache_drop(session, entry);
	memset(session->batch.cache.seen, 0, sizeof(session->batch.cache.seen));
}

bool fgv_batch_cache_give_up(void *of)
{
	struct fgv_session *session = of;

	if (session->batch.cache.is_adding || !session->batch.cache.nodes)
		return false;
	fgv_batch_cache_forget_all(session);
	return true;
}
