/*
 * Several pieces are on their way at once, each in two legs: between the program and its chunk,
 * and between the chunk and the GPU. The caller and its helpers (crew.h) copy pieces in any order;
 * all else is done by the caller, which sends pieces in their order.
 *
 * On the way in a piece is done with when it is sent: its chunk is lent to the host, and comes back
 * by itself. On the way out its first leg is the host's, which answers the pieces in the order
 * in which they were sent; the second one is the copy to the program, after which the chunk is given
 * back.
 *
 * The caller does first what keeps the GPU busy, then helps to copy, and waits only where there
 * is nothing to copy.
 */
#include "frontend/client/transfer.h"

#include <emmintrin.h>
#include <pthread.h>
#include <string.h>

#include "common/util.h"
#include "frontend/client/crew.h"
#include "frontend/client/lane.h"
#include "frontend/client/staging.h"

/* Below it a piece's round trip costs more than overlapping saves. */
#define PIECE_MIN (256u * 1024)

/* A piece is at most this part of what is left, so that in the end all end at once. */
#define PIECE_SHARE 8

/*
 * From here on helpers are worth it: they may take 50 us to wake up, in which the caller copies half
 * of this alone. What comes out has no use in the processor's caches.
 */
#define LARGE_MIN (1024u * 1024)

/* Shorter rows go by memcpy(), as what is not whole lines costs more than is saved. */
#define PAST_CACHES_MIN 4096u

struct piece {
	struct fgv_crew_job job; /* the first member */
	const struct transfer *transfer;
	struct fgv_chunk chunk;
	uint64_t at[3];	 /* in the box */
	uint64_t box[3]; /* what of it the piece is */
	uint32_t call;
	bool is_sent;
};

struct transfer {
	struct fgv_lane *lane;
	struct fgv_place device;
	struct fgv_rows host;
	bool is_out; /* from the device to the host */
	uint64_t box[3];
	uint64_t next[3]; /* where the next piece begins; behind the last slice: none is left */
	uint64_t len;
	uint64_t begun_len; /* of it, what is in pieces that have begun */
	uint32_t stream;
	bool is_large;
	bool is_counted; /* as a round trip; it is one, in however many pieces */
	unsigned helpers;
	CUresult error;	      /* the first; then no more is sent */
	struct piece *pieces; /* on their way, a ring of FGV_STAGING_CHUNKS_MAX */
	uint32_t first, count;
	uint32_t passed; /* of them, the oldest, those on their second leg, on the way out */
};

/* --- Between the program and a chunk --------------------------------------- */

/*
 * Past the caches on the way to memory, which saves reading what is written over: one thread was
 * seen to copy 14.2 GB/s out so, 6.9 by memcpy(). Chunks are used again and again, and are best
 * left in the caches, from which the GPU reads them, too: 8.3 GB/s in by memcpy(), 7.6 so.
 */
static void copy_past_caches(uint8_t *to, const uint8_t *from, uint64_t len)
{
	uint64_t head = fgv_align_up((uintptr_t)to, FGV_CACHE_LINE) - (uintptr_t)to;
	uint64_t end = head + (len - head) / FGV_CACHE_LINE * FGV_CACHE_LINE;

	memcpy(to, from, head);
	for (uint64_t i = head; i < end; i += FGV_CACHE_LINE) {
		const __m128i *source = (const __m128i *)(from + i);
		__m128i *line = (__m128i *)(to + i);
		__m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
		__m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);

		_mm_stream_si128(line, a);
		_mm_stream_si128(line + 1, b);
		_mm_stream_si128(line + 2, c);
		_mm_stream_si128(line + 3, d);
	}
	memcpy(to + end, from + end, len - end);
	/* Such stores are not ordered by the release with which the piece is handed on. */
	_mm_sfence();
}

/* The chunk has the piece's rows without their gaps. */
static void copy_piece(struct fgv_crew_job *job)
{
	const struct piece *piece = (const struct piece *)job;
	const struct transfer *transfer = piece->transfer;
	uint8_t *chunk = transfer->lane->client->window.base + piece->chunk.off;
	bool past_caches = transfer->is_large && piece->box[0] >= PAST_CACHES_MIN;

	for (uint64_t z = 0; z < piece->box[2]; z++) {
		for (uint64_t y = 0; y < piece->box[1]; y++, chunk += piece->box[0]) {
			uint8_t *row = fgv_rows_at(&transfer->host, piece->at, y, z);

			if (!transfer->is_out)
				memcpy(chunk, row, piece->box[0]);
			else if (past_caches)
				copy_past_caches(row, chunk, piece->box[0]);
			else
				memcpy(row, chunk, piece->box[0]);
		}
	}
}

static void begin_copy(const struct transfer *transfer, struct piece *piece)
{
	if (transfer->helpers) {
		fgv_crew_add(&piece->job);
	} else {
		copy_piece(&piece->job);
		piece->job.done = 1;
	}
}

/* --- Between a chunk and the GPU ------------------------------------------- */

/* Where @at of the box is on the device. */
static struct fgv_place place_at(const struct fgv_place *device, const uint64_t at[3])
{
	struct fgv_place place = *device;

	if (device->array) {
		for (int i = 0; i < 3; i++)
			place.at[i] += at[i];
	} else {
		place.at[0] += at[0] + (at[2] * device->at[2] + at[1]) * device->at[1];
	}
	return place;
}

static CUresult post_in(const struct transfer *transfer, const struct piece *piece)
{
	const struct fgv_chunk *chunk = &piece->chunk;
	struct fgv_place to = place_at(&transfer->device, piece->at);

	if (fgv_place_is_row(&to, piece->box))
		return fgv_post_copy_in_bulk(transfer->lane, to.at[0], chunk->off, piece->box[0],
					     transfer->stream, chunk->index, chunk->number);
	return fgv_post_box_in_bulk(transfer->lane, to.array, transfer->stream, to.at, piece->box,
				    chunk->off, fgv_box_bytes(piece->box), chunk->index,
				    chunk->number);
}

static uint32_t send_out(const struct transfer *transfer, const struct piece *piece)
{
	struct fgv_place from = place_at(&transfer->device, piece->at);

	if (fgv_place_is_row(&from, piece->box))
		return fgv_send_copy_out(transfer->lane, from.at[0], piece->chunk.off,
					 piece->box[0], transfer->stream);
	return fgv_send_box_out(transfer->lane, from.array, transfer->stream, from.at, piece->box,
				piece->chunk.off, fgv_box_bytes(piece->box));
}

static void fail(struct transfer *transfer, CUresult res)
{
	if (!transfer->error)
		transfer->error = res;
}

/* Has the host copy from the piece's chunk, and give it back. */
static void lend(struct transfer *transfer, struct piece *piece)
{
	CUresult res = transfer->error;

	fgv_staging_lend(&piece->chunk);
	if (!res)
		res = post_in(transfer, piece);
	if (res) {
		fail(transfer, res);
		fgv_staging_put(&piece->chunk);
	}
}

static CUresult wait_for(struct transfer *transfer, const struct piece *piece)
{
	if (transfer->is_counted)
		return fgv_lane_wait_more(transfer->lane, piece->call);
	transfer->is_counted = true;
	return fgv_lane_wait(transfer->lane, piece->call, NULL, 0);
}

/* What the lane refuses has its answer at once. */
static void ask(struct transfer *transfer, struct piece *piece)
{
	piece->call = send_out(transfer, piece);
	piece->is_sent = !transfer->lane->refused;
	if (!piece->is_sent)
		fail(transfer, wait_for(transfer, piece));
}

/* Whether the GPU has done it. */
static bool await_answer(struct transfer *transfer, const struct piece *piece)
{
	CUresult res;

	if (!piece->is_sent)
		return false;
	res = wait_for(transfer, piece);
	fail(transfer, res);
	return !res;
}

/* --- Pieces ---------------------------------------------------------------- */

/* Of those on their way, from the oldest on. */
static struct piece *piece_at(struct transfer *transfer, uint32_t place)
{
	return &transfer->pieces[(transfer->first + place) % FGV_STAGING_CHUNKS_MAX];
}

/* Small ones first, so that the second leg begins early, and last, so that it ends soon. */
static uint64_t piece_len(const struct transfer *transfer)
{
	uint64_t share = (transfer->len - transfer->begun_len) / PIECE_SHARE;
	uint64_t len = fgv_max_u64(fgv_min_u64(share, transfer->begun_len), PIECE_MIN);

	return fgv_min_u64(len, fgv_staging_chunk_len(transfer->lane->client));
}

/* Whole slices, else whole rows, else a part of a row, from the next place on. */
static void cut_piece(const struct transfer *transfer, uint64_t box[3])
{
	const uint64_t *all = transfer->box, *next = transfer->next;
	uint64_t len = piece_len(transfer);

	box[0] = fgv_min_u64(all[0] - next[0], len);
	box[1] = box[2] = 1;
	if (box[0] == all[0])
		box[1] = fgv_min_u64(all[1] - next[1], len / all[0]);
	if (box[0] == all[0] && box[1] == all[1])
		box[2] = fgv_min_u64(all[2] - next[2], len / (all[0] * all[1]));
}

static void advance(struct transfer *transfer, const uint64_t box[3])
{
	transfer->begun_len += fgv_box_bytes(box);
	for (int i = 0; i < 3; i++) {
		transfer->next[i] += box[i];
		if (i == 2 || transfer->next[i] < transfer->box[i])
			return;
		transfer->next[i] = 0;
	}
}

static bool is_all_begun(const struct transfer *transfer)
{
	return transfer->next[2] == transfer->box[2];
}

/* The next piece, with a chunk, if there is one; without others it waits for that. */
static struct piece *begin_piece(struct transfer *transfer)
{
	struct piece *piece = piece_at(transfer, transfer->count);
	struct fgv_chunk chunk;

	if (transfer->error || is_all_begun(transfer) || transfer->count == FGV_STAGING_CHUNKS_MAX)
		return NULL;
	if (!fgv_staging_get(transfer->lane, !transfer->count, &chunk)) {
		if (!transfer->count)
			fail(transfer, fgv_session_status(transfer->lane->client));
		return NULL;
	}
	*piece = (struct piece){.job = {.run = copy_piece}, .transfer = transfer, .chunk = chunk};
	memcpy(piece->at, transfer->next, sizeof(piece->at));
	cut_piece(transfer, piece->box);
	advance(transfer, piece->box);
	transfer->count++;
	return piece;
}

static void drop_oldest(struct transfer *transfer)
{
	transfer->first = (transfer->first + 1) % FGV_STAGING_CHUNKS_MAX;
	transfer->count--;
}

static bool is_copied(const struct piece *piece)
{
	return fgv_crew_is_done(&piece->job);
}

/* --- On the way in --------------------------------------------------------- */

/* Copied ahead is as much as the helpers may do while the caller copies a piece. */
static bool begin_in(struct transfer *transfer)
{
	struct piece *piece =
		transfer->count <= 2 * transfer->helpers ? begin_piece(transfer) : NULL;

	if (piece)
		begin_copy(transfer, piece);
	return piece;
}

static void end_in(struct transfer *transfer)
{
	struct piece *piece = piece_at(transfer, 0);

	fgv_crew_wait(&piece->job);
	lend(transfer, piece);
	drop_oldest(transfer);
}

static CUresult run_in(struct transfer *transfer)
{
	while (true) {
		if (transfer->count && is_copied(piece_at(transfer, 0)))
			end_in(transfer);
		else if (begin_in(transfer))
			continue;
		else if (!transfer->count)
			return transfer->error;
		else if (!transfer->helpers || !fgv_crew_help())
			end_in(transfer);
	}
}

/* --- On the way out -------------------------------------------------------- */

static bool begin_out(struct transfer *transfer)
{
	struct piece *piece = begin_piece(transfer);

	if (piece)
		ask(transfer, piece);
	return piece;
}

/* Waits for the answer to the oldest that has none, and sends it on its second leg. */
static void pass_out(struct transfer *transfer)
{
	struct piece *piece = piece_at(transfer, transfer->passed++);

	if (await_answer(transfer, piece))
		begin_copy(transfer, piece);
	else
		piece->job.done = 1;
}

/* Waits for the second leg of the oldest, and gives its chunk back. */
static void end_out(struct transfer *transfer)
{
	struct piece *piece = piece_at(transfer, 0);

	fgv_crew_wait(&piece->job);
	fgv_staging_put(&piece->chunk);
	drop_oldest(transfer);
	transfer->passed--;
}

static bool can_pass(struct transfer *transfer)
{
	const struct piece *piece = piece_at(transfer, transfer->passed);

	return transfer->passed < transfer->count &&
	       (!piece->is_sent || fgv_lane_is_answered(transfer->lane));
}

/* After an error nothing more is begun, but what is on its way is waited for. */
static CUresult run_out(struct transfer *transfer)
{
	while (true) {
		if (transfer->passed && is_copied(piece_at(transfer, 0)))
			end_out(transfer);
		else if (can_pass(transfer))
			pass_out(transfer);
		else if (begin_out(transfer))
			continue;
		else if (!transfer->count)
			return transfer->error;
		else if (transfer->helpers && fgv_crew_help())
			continue;
		else if (transfer->passed < transfer->count)
			pass_out(transfer);
		else
			end_out(transfer);
	}
}

/* One piece, which most copies are. */
static CUresult fetch(struct transfer *transfer)
{
	struct piece piece = {.transfer = transfer};

	memcpy(piece.box, transfer->box, sizeof(piece.box));
	if (!fgv_staging_get(transfer->lane, true, &piece.chunk))
		return fgv_session_status(transfer->lane->client);
	ask(transfer, &piece);
	if (await_answer(transfer, &piece))
		copy_piece(&piece.job);
	fgv_staging_put(&piece.chunk);
	return transfer->error;
}

/* --- The whole ------------------------------------------------------------- */

static CUresult run(struct transfer *transfer)
{
	struct piece pieces[FGV_STAGING_CHUNKS_MAX];

	transfer->pieces = pieces;
	transfer->is_large = transfer->len >= LARGE_MIN;
	if (transfer->is_large)
		transfer->helpers = fgv_crew_need();
	return transfer->is_out ? run_out(transfer) : run_in(transfer);
}

/* Chunks are held, and helpers work on what lies on the stack: it is no place to be cancelled. */
static CUresult run_uncancelled(struct transfer *transfer)
{
	CUresult res;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (transfer->is_out && transfer->len <= PIECE_MIN)
		res = fetch(transfer);
	else
		res = run(transfer);
	pthread_setcancelstate(cancel, NULL);
	return res;
}

bool fgv_transfer_try_in(struct fgv_lane *lane, const struct fgv_place *to,
			 const struct fgv_rows *from, const uint64_t box[3], uint32_t stream,
			 CUresult *res)
{
	struct transfer transfer = {.lane = lane, .device = *to, .host = *from, .stream = stream};
	struct piece piece = {.transfer = &transfer, .box = {box[0], box[1], box[2]}};

	if (!fgv_staging_get(lane, false, &piece.chunk))
		return false;
	copy_piece(&piece.job);
	lend(&transfer, &piece);
	*res = transfer.error;
	return true;
}

CUresult fgv_transfer_in(struct fgv_lane *lane, const struct fgv_place *to,
			 const struct fgv_rows *from, const uint64_t box[3], uint32_t stream)
{
	struct transfer transfer = {
		.lane = lane,
		.device = *to,
		.host = *from,
		.box = {box[0], box[1], box[2]},
		.len = fgv_box_bytes(box),
		.stream = stream,
	};

	return run_uncancelled(&transfer);
}

CUresult fgv_transfer_out(struct fgv_lane *lane, const struct fgv_rows *to,
			  const struct fgv_place *from, const uint64_t box[3], uint32_t stream)
{
	struct transfer transfer = {
		.lane = lane,
		.device = *from,
		.host = *to,
		.is_out = true,
		.box = {box[0], box[1], box[2]},
		.len = fgv_box_bytes(box),
		.stream = stream,
	};

	return run_uncancelled(&transfer);
}
