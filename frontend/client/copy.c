/*
 * A copy is one of a box: of so many bytes, rows and slices. What is only a row goes by
 * operations that know no more.
 *
 * Bulk copies go in pieces through staging chunks, several in flight, so that the
 * guest copies one piece to or from its chunk while the GPU copies another. The pieces
 * of one copy are answered in the order in which they were sent.
 *
 * A copy that is cut into fewer pieces than there are chunks would overlap little, so
 * a medium one goes in smaller pieces; below PIECE_MIN a piece's round trip
 * costs more than overlapping saves.
 */
#include "frontend/client/copy.h"

#include <stdbool.h>
#include <string.h>

#include "common/util.h"
#include "frontend/client/lane.h"
#include "frontend/client/staging.h"

#define PIECE_MIN (256u * 1024)

struct piece {
	uint64_t off;	 /* of its chunk in the window */
	uint64_t at[3];	 /* in the box */
	uint64_t box[3]; /* what of it the piece is */
	uint32_t call;
};

struct transfer {
	struct fgv_lane *lane;
	struct fgv_place device;
	struct fgv_rows host;
	bool is_out; /* from the device to the host */
	uint64_t box[3];
	uint64_t next[3]; /* where the next piece begins; behind the last slice: none is left */
	uint64_t piece_len;
	uint32_t stream;
	struct piece pieces[FGV_STAGING_CHUNKS]; /* in flight, a ring */
	uint32_t first, count;
};

static uint64_t piece_len(const struct fgv_client *client, uint64_t len)
{
	uint64_t share = fgv_align_up(len / FGV_STAGING_CHUNKS + 1, FGV_PAGE_BYTES);

	return fgv_min_u64(fgv_max_u64(share, PIECE_MIN), fgv_staging_chunk_len(client));
}

static uint64_t bytes_of(const uint64_t box[3])
{
	return box[0] * box[1] * box[2];
}

static uint8_t *row_of(const struct fgv_rows *rows, const uint64_t at[3], uint64_t y, uint64_t z)
{
	return rows->base + at[0] + ((at[2] + z) * rows->rows + at[1] + y) * rows->pitch;
}

/* Rows of the program's memory, without their gaps, to @to. */
static void pack(uint8_t *to, const struct fgv_rows *rows, const uint64_t at[3],
		 const uint64_t box[3])
{
	for (uint64_t z = 0; z < box[2]; z++) {
		for (uint64_t y = 0; y < box[1]; y++, to += box[0])
			memcpy(to, row_of(rows, at, y, z), box[0]);
	}
}

static void unpack(const struct fgv_rows *rows, const uint64_t at[3], const uint64_t box[3],
		   const uint8_t *from)
{
	for (uint64_t z = 0; z < box[2]; z++) {
		for (uint64_t y = 0; y < box[1]; y++, from += box[0])
			memcpy(row_of(rows, at, y, z), from, box[0]);
	}
}

/* Whole slices, else whole rows, else a part of a row, from the next place on. */
static void cut_piece(const struct transfer *transfer, uint64_t box[3])
{
	const uint64_t *all = transfer->box, *next = transfer->next;
	uint64_t len = transfer->piece_len;

	box[0] = fgv_min_u64(all[0] - next[0], len);
	box[1] = box[2] = 1;
	if (all[0] <= len)
		box[1] = fgv_min_u64(all[1] - next[1], len / all[0]);
	if (all[0] <= len && all[1] <= len / all[0])
		box[2] = fgv_min_u64(all[2] - next[2], len / (all[0] * all[1]));
}

static void advance(struct transfer *transfer, const uint64_t box[3])
{
	for (int i = 0; i < 3; i++) {
		transfer->next[i] += box[i];
		if (i == 2 || transfer->next[i] < transfer->box[i])
			return;
		transfer->next[i] = 0;
	}
}

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

static bool is_row(const struct fgv_place *place, const uint64_t box[3])
{
	return !place->array && box[1] == 1 && box[2] == 1;
}

static uint32_t send_in(const struct transfer *transfer, const struct piece *piece)
{
	struct fgv_place to = place_at(&transfer->device, piece->at);

	if (is_row(&to, piece->box))
		return fgv_send_copy_in_bulk(transfer->lane, to.at[0], piece->off, piece->box[0],
					     transfer->stream);
	return fgv_send_box_in_bulk(transfer->lane, to.array, transfer->stream, to.at, piece->box,
				    piece->off, bytes_of(piece->box));
}

static uint32_t send_out(const struct transfer *transfer, const struct piece *piece)
{
	struct fgv_place from = place_at(&transfer->device, piece->at);

	if (is_row(&from, piece->box))
		return fgv_send_copy_out(transfer->lane, from.at[0], piece->off, piece->box[0],
					 transfer->stream);
	return fgv_send_box_out(transfer->lane, from.array, transfer->stream, from.at, piece->box,
				piece->off, bytes_of(piece->box));
}

/* Sends the next piece by way of the chunk at @off. */
static void send_piece(struct transfer *transfer, uint64_t off)
{
	struct piece *piece =
		&transfer->pieces[(transfer->first + transfer->count) % FGV_STAGING_CHUNKS];

	piece->off = off;
	memcpy(piece->at, transfer->next, sizeof(piece->at));
	cut_piece(transfer, piece->box);
	if (transfer->is_out) {
		piece->call = send_out(transfer, piece);
	} else {
		pack(transfer->lane->client->window.base + off, &transfer->host, piece->at,
		     piece->box);
		piece->call = send_in(transfer, piece);
	}
	advance(transfer, piece->box);
	transfer->count++;
}

/* Waits for the oldest piece in flight and gives its chunk back. */
static CUresult finish_piece(struct transfer *transfer)
{
	const struct fgv_client *client = transfer->lane->client;
	struct piece *piece = &transfer->pieces[transfer->first];
	CUresult res = fgv_lane_wait(transfer->lane, piece->call, NULL, 0);

	if (!res && transfer->is_out)
		unpack(&transfer->host, piece->at, piece->box, client->window.base + piece->off);
	fgv_staging_put(client, piece->off);
	transfer->first = (transfer->first + 1) % FGV_STAGING_CHUNKS;
	transfer->count--;
	return res;
}

/* After an error nothing more is sent, but what is in flight is waited for. */
static CUresult run(struct transfer *transfer)
{
	CUresult first_error = CUDA_SUCCESS;
	CUresult res;
	uint64_t off;

	while (true) {
		bool is_left = transfer->next[2] < transfer->box[2] && !first_error;
		bool more = is_left && transfer->count < FGV_STAGING_CHUNKS;

		if (!is_left && !transfer->count)
			return first_error;
		if (more && fgv_staging_get(transfer->lane->client, !transfer->count, &off)) {
			send_piece(transfer, off);
			continue;
		}
		res = finish_piece(transfer);
		if (!first_error)
			first_error = res;
	}
}

static CUresult post_in(struct fgv_lane *lane, const struct fgv_place *to,
			const struct fgv_rows *from, const uint64_t box[3], uint32_t stream)
{
	static const uint64_t origin[3];

	if (is_row(to, box))
		return fgv_post_copy_in(lane, to->at[0], stream, from->base, (uint32_t)box[0]);
	pack(fgv_begin_box_in(lane, to->array, stream, to->at, box, (uint32_t)bytes_of(box)), from,
	     origin, box);
	fgv_lane_commit(lane);
	return fgv_lane_status(lane);
}

static struct transfer transfer_of(struct fgv_lane *lane, const struct fgv_place *device,
				   const struct fgv_rows *host, const uint64_t box[3],
				   uint32_t stream)
{
	return (struct transfer){
		.lane = lane,
		.device = *device,
		.host = *host,
		.box = {box[0], box[1], box[2]},
		.stream = stream,
		.piece_len = piece_len(lane->client, bytes_of(box)),
	};
}

/* A copy that a recorder keeps: the program's memory is looked at when it is done. */
struct kept_copy {
	void *program; /* the program's side */
	uint64_t other;
	uint64_t len;
};

static CUresult keep(struct fgv_lane *lane, fgv_record_run again, const void *program,
		     uint64_t other, uint64_t len)
{
	struct kept_copy *kept = fgv_recorder_add(lane->recorder, again, 0, sizeof(*kept));

	if (kept)
		*kept = (struct kept_copy){(void *)program, other, len};
	return lane->recorder->failed;
}

static CUresult copy_in_again(struct fgv_lane *lane, void *message, uint32_t stream)
{
	const struct kept_copy *kept = message;

	return fgv_copy_in(lane, kept->other, kept->program, kept->len, stream);
}

static CUresult copy_out_again(struct fgv_lane *lane, void *message, uint32_t stream)
{
	const struct kept_copy *kept = message;

	return fgv_copy_out(lane, kept->program, kept->other, kept->len, stream);
}

static CUresult copy_host_again(struct fgv_lane *lane, void *message, uint32_t stream)
{
	const struct kept_copy *kept = message;

	return fgv_copy_host(lane, kept->program, (const void *)(uintptr_t)kept->other, kept->len,
			     stream);
}

bool fgv_copy_describe(const struct fgv_record *record, struct fgv_copy_sides *sides)
{
	const struct fgv_copy_device_request *device = (const void *)record->message;
	const struct kept_copy *kept = (const void *)record->message;
	void *other = (void *)(uintptr_t)kept->other;

	if (record->run == copy_in_again)
		*sides = (struct fgv_copy_sides){other, kept->program, kept->len};
	else if (record->run == copy_out_again || record->run == copy_host_again)
		*sides = (struct fgv_copy_sides){kept->program, other, kept->len};
	else if (!record->run && record->op == FGV_OP_COPY_DEVICE)
		*sides = (struct fgv_copy_sides){(void *)(uintptr_t)device->to,
						 (void *)(uintptr_t)device->from, device->size};
	else
		return false;
	return true;
}

/* The same for a box. */
struct kept_box {
	struct fgv_place device;
	struct fgv_rows program;
	uint64_t box[3];
};

static CUresult keep_box(struct fgv_lane *lane, fgv_record_run again,
			 const struct fgv_place *device, const struct fgv_rows *program,
			 const uint64_t box[3])
{
	struct kept_box *kept = fgv_recorder_add(lane->recorder, again, 0, sizeof(*kept));

	if (kept)
		*kept = (struct kept_box){*device, *program, {box[0], box[1], box[2]}};
	return lane->recorder->failed;
}

static CUresult box_in_again(struct fgv_lane *lane, void *message, uint32_t stream)
{
	const struct kept_box *kept = message;

	return fgv_copy_box_in(lane, &kept->device, &kept->program, kept->box, stream);
}

static CUresult box_out_again(struct fgv_lane *lane, void *message, uint32_t stream)
{
	const struct kept_box *kept = message;

	return fgv_copy_box_out(lane, &kept->program, &kept->device, kept->box, stream);
}

CUresult fgv_copy_box_in(struct fgv_lane *lane, const struct fgv_place *to,
			 const struct fgv_rows *from, const uint64_t box[3], uint32_t stream)
{
	struct transfer transfer;

	if (lane->recorder)
		return keep_box(lane, box_in_again, to, from, box);
	if (bytes_of(box) <= FGV_DATA_MAX)
		return post_in(lane, to, from, box, stream);
	transfer = transfer_of(lane, to, from, box, stream);
	return run(&transfer);
}

CUresult fgv_copy_box_out(struct fgv_lane *lane, const struct fgv_rows *to,
			  const struct fgv_place *from, const uint64_t box[3], uint32_t stream)
{
	struct transfer transfer = transfer_of(lane, from, to, box, stream);

	if (lane->recorder)
		return keep_box(lane, box_out_again, from, to, box);
	transfer.is_out = true;
	return run(&transfer);
}

CUresult fgv_copy_in(struct fgv_lane *lane, uint64_t to, const void *from, uint64_t len,
		     uint32_t stream)
{
	struct fgv_rows rows = {(uint8_t *)(uintptr_t)from, len, 1};

	if (lane->recorder)
		return keep(lane, copy_in_again, from, to, len);
	return fgv_copy_box_in(lane, &(struct fgv_place){0, {to, len, 1}}, &rows,
			       (uint64_t[3]){len, 1, 1}, stream);
}

CUresult fgv_copy_out(struct fgv_lane *lane, void *to, uint64_t from, uint64_t len, uint32_t stream)
{
	struct fgv_rows rows = {to, len, 1};

	if (lane->recorder)
		return keep(lane, copy_out_again, to, from, len);
	return fgv_copy_box_out(lane, &rows, &(struct fgv_place){0, {from, len, 1}},
				(uint64_t[3]){len, 1, 1}, stream);
}

CUresult fgv_copy_host(struct fgv_lane *lane, void *to, const void *from, uint64_t len,
		       uint32_t stream)
{
	CUresult res;

	if (lane->recorder)
		return keep(lane, copy_host_again, to, (uint64_t)(uintptr_t)from, len);
	res = fgv_call_stream_sync(lane, stream);
	if (!res)
		memmove(to, from, len);
	return res;
}
