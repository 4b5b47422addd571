/*
 * Following sequences; see batch_follow.h.
 */
#include "backend/vgpu/batch_follow.h"

#include "backend/vgpu/session.h"

/* To make a row costs as much as so many times that its launches go otherwise. Powers of two. */
#define WORTH_TIMES 4
#define WORTH_FIXED 2

/* A sequence whose arguments were others so many times in a row gets a twin. */
#define WORTH_TWIN 4

/* --- The row ------------------------------------------------------------------- */

static void link(struct fgv_session *session, struct fgv_batch_entry *entry)
{
	struct fgv_batch_stream *stream = fgv_batch_stream_of(session, session->batch.stream);

	if (stream->last && entry)
		stream->last->next = entry;
	stream->last = entry;
	if (entry)
		fgv_batch_cache_use(&session->batch.cache, entry);
}

/* The launches that @count nodes are, in the place of those that were kept. */
static void keep(struct fgv_batch *batch, const struct fgv_batch_row *row, uint32_t count)
{
	batch->first = batch->sent = 0;
	batch->count = count;
	for (uint32_t i = 0; i < count; i++)
		fgv_batch_row_get(row, i, &batch->launches[i]);
}

static uint64_t hash_args(uint64_t hash, const struct fgv_batch_row *row)
{
	for (uint32_t i = 0; i < row->count; i++) {
		const struct fgv_batch_kept *kept = &row->kept[i];

		for (uint32_t at = 0; at < kept->args_len; at += sizeof(uint64_t)) {
			uint64_t word;

			/* Arguments come padded to 8 bytes. */
			memcpy(&word, kept->args + at, sizeof(word));
			hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
			hash ^= hash >> 29;
		}
	}
	return hash;
}

/* What the row is now, in a row of its own. */
static struct fgv_batch_entry *add_like(struct fgv_session *session,
					const struct fgv_batch_entry *entry)
{
	struct fgv_batch *batch = &session->batch;
	uint32_t count = entry->row->count;
	struct fgv_batch_entry *added;

	keep(batch, entry->row, count);
	added = fgv_batch_cache_add(session, entry->stream, entry->hash, batch->launches, count);
	batch->count = 0;
	return added;
}

/*
 * Arguments of @entry were others than last time. Such as have come before get a row of their own,
 * that is not changed; where they are always others, two rows take turns.
 */
static struct fgv_batch_entry *note_changes(struct fgv_session *session,
					    struct fgv_batch_entry *entry)
{
	struct fgv_batch_cache *cache = &session->batch.cache;
	uint64_t hash = hash_args(entry->hash ^ (uintptr_t)entry->stream, entry->row);
	struct fgv_batch_entry *added = NULL;

	entry->changes++;
	if (fgv_batch_cache_is_due(cache, hash, WORTH_FIXED)) {
		added = add_like(session, entry);
		if (added)
			added->is_fixed = true;
	} else if (entry->changes >= WORTH_TWIN &&
		   fgv_batch_cache_count_to_change(cache, entry) == 1) {
		added = add_like(session, entry);
		if (added)
			added->changes = entry->changes;
	}
	return added && added->is_fixed ? added : entry;
}

/* All of the sequence has come. */
static void complete(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;
	struct fgv_batch_entry *entry = batch->followed;
	struct fgv_batch_row *row = entry->row;
	uint32_t changes = batch->changes;
	CUresult status;

	batch->followed = NULL;
	batch->at = batch->changes = 0;
	fgv_batch_cut_skip(&batch->cut, row);
	status = fgv_batch_row_launch(session, row, batch->stream);
	if (status != CUDA_SUCCESS) {
		keep(batch, row, row->count);
		fgv_batch_cache_drop(session, entry);
		fgv_batch_failed(session, status);
		fgv_batch_send_kept(session);
		batch->first = batch->sent = batch->count = 0;
		return;
	}
	fgv_account_add(&session->account->batched, row->count);
	fgv_account_add(&session->account->repeated, row->count);
	fgv_account_add(&session->account->changed, changes);
	batch->cache.launches += row->count;
	batch->sent_until_ns = *batch->ends_ns;
	fgv_batch_cache_use(&batch->cache, entry);
	if (changes)
		entry = note_changes(session, entry);
	else
		entry->changes = 0;
	link(session, entry);
}

/* --- One launch -------------------------------------------------------------------- */

/*
 * Makes the row of @to what came so far of the one that is followed, and follows that. False: they
 * are not the same sequence, as a hash is no proof.
 */
static bool change_over(struct fgv_batch *batch, struct fgv_batch_entry *to)
{
	struct fgv_batch_row *from_row = batch->followed->row, *to_row = to->row;

	for (uint32_t i = 0; i <= batch->at; i++) {
		if (!fgv_batch_same_shape(&to_row->kept[i].shape, &from_row->kept[i].shape))
			return false;
	}
	for (uint32_t i = 0; i < batch->at; i++) {
		const struct fgv_batch_kept *from = &from_row->kept[i];

		if (!memcmp(to_row->kept[i].args, from->args, from->args_len))
			continue;
		fgv_batch_row_set_args(to_row, i, from->args);
		batch->changes++;
	}
	batch->followed = to;
	return true;
}

/* The launch has other arguments than the node that it should be. False: nothing takes those. */
static bool take_args(struct fgv_session *session, const struct fgv_batch_asked *asked)
{
	struct fgv_batch *batch = &session->batch;
	struct fgv_batch_entry *other = NULL;

	if (!batch->changes)
		other = fgv_batch_cache_like(&batch->cache, batch->followed, batch->at,
					     asked->args);
	if (other) {
		batch->followed = other;
		return true;
	}
	if (batch->followed->is_fixed) {
		other = fgv_batch_cache_to_change(&batch->cache, batch->followed);
		if (!other || !change_over(batch, other))
			return false;
	}
	fgv_batch_row_set_args(batch->followed->row, batch->at, asked->args);
	batch->changes++;
	return true;
}

/* Which sequence begins with the launch, or NULL. */
static struct fgv_batch_entry *expect(struct fgv_session *session,
				      const struct fgv_batch_asked *asked)
{
	struct fgv_batch *batch = &session->batch;
	struct fgv_batch_stream *stream = fgv_batch_stream_of(session, batch->stream);
	struct fgv_batch_entry *entry = stream->last ? stream->last->next : NULL;

	if (!entry || !fgv_batch_same_shape(&entry->row->kept[0].shape, &asked->shape))
		entry = fgv_batch_cache_begins(&batch->cache, batch->stream, &asked->shape);
	/* One whose arguments are always others is likely to be still at work. */
	if (entry && entry->changes)
		entry = fgv_batch_cache_to_change(&batch->cache, entry);
	return entry;
}

static bool begin(struct fgv_session *session, const struct fgv_batch_asked *asked)
{
	struct fgv_batch *batch = &session->batch;
	struct fgv_batch_entry *entry;

	if (batch->cut.count || !batch->cache.nodes)
		return false;
	entry = expect(session, asked);
	if (!entry)
		return false;
	fgv_batch_send_kept(session);
	batch->first = batch->sent = batch->count = 0;
	if (!batch->is_on)
		return false;
	batch->followed = entry;
	return true;
}

bool fgv_batch_follow(struct fgv_session *session, const struct fgv_batch_asked *asked)
{
	struct fgv_batch *batch = &session->batch;
	const struct fgv_batch_kept *kept;

	if (!batch->followed && !begin(session, asked))
		return false;
	kept = &batch->followed->row->kept[batch->at];
	if (!fgv_batch_same_shape(&kept->shape, &asked->shape) ||
	    (asked->args_len && memcmp(kept->args, asked->args, asked->args_len) &&
	     !take_args(session, asked))) {
		fgv_batch_unfollow(session);
		return false;
	}
	if (++batch->at == batch->followed->row->count)
		complete(session);
	return true;
}

/*
 * What came so far may be more than one sequence, where the one that was followed is longer and
 * began alike. Those that are whole are learned: else they would be taken for the other one again.
 */
static void stop_following(struct fgv_session *session, bool learns)
{
	struct fgv_batch *batch = &session->batch;
	uint32_t count = batch->at;

	keep(batch, batch->followed->row, count);
	batch->followed = NULL;
	batch->at = batch->changes = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!fgv_batch_cut_add(&batch->cut, &batch->launches[i].shape))
			continue;
		batch->count = i + 1;
		if (learns)
			fgv_batch_learn(session);
		else
			fgv_batch_cut_begin(&batch->cut);
		batch->first = i + 1;
	}
	batch->count = count;
}

void fgv_batch_unfollow(struct fgv_session *session)
{
	if (session->batch.followed)
		stop_following(session, true);
}

void fgv_batch_lose_entry(struct fgv_session *session, const struct fgv_batch_entry *entry)
{
	struct fgv_batch *batch = &session->batch;

	if (batch->followed == entry)
		stop_following(session, false);
	for (unsigned i = 0; i < FGV_BATCH_STREAMS; i++) {
		if (batch->streams[i].last == entry)
			batch->streams[i].last = NULL;
	}
}

/* --- Learning ------------------------------------------------------------------------- */

void fgv_batch_learn(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;
	uint64_t hash = batch->cut.hash;
	uint32_t count = batch->cut.count;
	bool is_whole = batch->count - batch->first == count;
	struct fgv_batch_entry *entry;

	fgv_batch_cut_begin(&batch->cut);
	batch->cache.launches += count;
	if (count < FGV_BATCH_SMALLEST)
		return;
	entry = fgv_batch_cache_find(&batch->cache, batch->stream, hash, count);
	if (!entry && is_whole &&
	    fgv_batch_cache_is_due(&batch->cache, hash ^ (uintptr_t)batch->stream, WORTH_TIMES))
		entry = fgv_batch_cache_add(session, batch->stream, hash,
					    &batch->launches[batch->first], count);
	link(session, entry);
}
