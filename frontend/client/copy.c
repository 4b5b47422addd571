/*
 * Bulk copies go in pieces through staging chunks, several in flight, so that the
 * guest copies one piece to or from its chunk while the GPU copies another. The pieces
 * of one copy are answered in the order in which they were sent.
 *
 * A copy that is cut into fewer pieces than there are chunks would overlap little, so
 * a medium one goes in smaller pieces; below PIECE_MIN a piece's round trip
 * costs more than overlapping saves.
 */
#include "frontend/client/copy.h"

#include <string.h>

#include "common/util.h"
#include "frontend/client/lane.h"
#include "frontend/client/staging.h"

#define PIECE_MIN (256u * 1024)

struct piece {
	uint64_t off;  /* of its chunk in the window */
	uint64_t done; /* bytes of the copy before it */
	uint64_t len;
	uint32_t call;
};

struct transfer {
	struct fgv_lane *lane;
	uint64_t device;     /* address */
	const uint8_t *from; /* in the program, where the device is the destination */
	uint8_t *to;	     /* where it is the source */
	uint64_t len;
	uint64_t sent; /* bytes in pieces that were sent */
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

/* Sends the next piece by way of the chunk at @off. */
static void send_piece(struct transfer *transfer, uint64_t off)
{
	struct fgv_lane *lane = transfer->lane;
	struct piece *piece =
		&transfer->pieces[(transfer->first + transfer->count) % FGV_STAGING_CHUNKS];
	uint64_t at = transfer->sent;
	uint64_t len = fgv_min_u64(transfer->len - at, transfer->piece_len);

	*piece = (struct piece){.off = off, .done = at, .len = len};
	if (transfer->from) {
		memcpy(lane->client->window.base + off, transfer->from + at, len);
		piece->call = fgv_send_copy_in_bulk(lane, transfer->device + at, off, len,
						    transfer->stream);
	} else {
		piece->call =
			fgv_send_copy_out(lane, transfer->device + at, off, len, transfer->stream);
	}
	transfer->sent += len;
	transfer->count++;
}

/* Waits for the oldest piece in flight and gives its chunk back. */
static CUresult finish_piece(struct transfer *transfer)
{
	const struct fgv_client *client = transfer->lane->client;
	struct piece *piece = &transfer->pieces[transfer->first];
	CUresult res = fgv_lane_wait(transfer->lane, piece->call, NULL, 0);

	if (!res && transfer->to)
		memcpy(transfer->to + piece->done, client->window.base + piece->off, piece->len);
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

	while (transfer->count || (transfer->sent < transfer->len && !first_error)) {
		bool more = transfer->sent < transfer->len && !first_error &&
			    transfer->count < FGV_STAGING_CHUNKS;

		if (more && fgv_staging_get(transfer->lane->client, !transfer->count, &off)) {
			send_piece(transfer, off);
			continue;
		}
		res = finish_piece(transfer);
		if (!first_error)
			first_error = res;
	}
	return first_error;
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

CUresult fgv_copy_in(struct fgv_lane *lane, uint64_t to, const void *from, uint64_t len,
		     uint32_t stream)
{
	struct transfer transfer = {
		.lane = lane,
		.device = to,
		.from = from,
		.len = len,
		.stream = stream,
		.piece_len = piece_len(lane->client, len),
	};

	if (lane->recorder)
		return keep(lane, copy_in_again, from, to, len);
	if (len <= FGV_DATA_MAX)
		return fgv_post_copy_in(lane, to, stream, from, (uint32_t)len);
	return run(&transfer);
}

CUresult fgv_copy_out(struct fgv_lane *lane, void *to, uint64_t from, uint64_t len, uint32_t stream)
{
	struct transfer transfer = {
		.lane = lane,
		.device = from,
		.to = to,
		.len = len,
		.stream = stream,
		.piece_len = piece_len(lane->client, len),
	};

	if (lane->recorder)
		return keep(lane, copy_out_again, to, from, len);
	return run(&transfer);
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
