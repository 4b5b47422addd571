/*
 * A copy is one of a box: of so many bytes, rows and slices. What is only a row goes by
 * operations that know no more. What is small is posted in a message, and all that is larger
 * or comes from the GPU is a transfer (transfer.h).
 */
#include "frontend/cuda/memory/copy.h"

#include <stdbool.h>
#include <string.h>

#include "frontend/client/sync.h"
#include "frontend/client/transfer.h"
#include "frontend/cuda/context/context.h"

/*
 * A message is copied twice more on its way, by the host and by the driver. A chunk is not, but
 * its end has to be waited for, which costs about as much as that.
 */
#define STAGED_MIN (16u * 1024)

/* Rows of the program's memory, without their gaps, to @to. */
static void pack(uint8_t *to, const struct fgv_rows *rows, const uint64_t box[3])
{
	static const uint64_t origin[3];

	for (uint64_t z = 0; z < box[2]; z++) {
		for (uint64_t y = 0; y < box[1]; y++, to += box[0])
			memcpy(to, fgv_rows_at(rows, origin, y, z), box[0]);
	}
}

static CUresult post_in(struct fgv_lane *lane, const struct fgv_place *to,
			const struct fgv_rows *from, const uint64_t box[3], uint32_t stream)
{
	if (fgv_place_is_row(to, box))
		return fgv_post_copy_in(lane, to->at[0], stream, from->base, (uint32_t)box[0]);
	pack(fgv_begin_box_in(lane, to->array, stream, to->at, box, (uint32_t)fgv_box_bytes(box)),
	     from, box);
	fgv_lane_commit(lane);
	return fgv_lane_status(lane);
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
	uint64_t len = fgv_box_bytes(box);
	CUresult res;

	if (lane->recorder)
		return keep_box(lane, box_in_again, to, from, box);
	if (len > FGV_DATA_MAX)
		return fgv_transfer_in(lane, to, from, box, stream);
	if (len >= STAGED_MIN && fgv_transfer_try_in(lane, to, from, box, stream, &res))
		return res;
	return post_in(lane, to, from, box, stream);
}

CUresult fgv_copy_box_out(struct fgv_lane *lane, const struct fgv_rows *to,
			  const struct fgv_place *from, const uint64_t box[3], uint32_t stream)
{
	if (lane->recorder)
		return keep_box(lane, box_out_again, from, to, box);
	return fgv_transfer_out(lane, to, from, box, stream);
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
	res = fgv_sync_stream(lane, stream);
	if (!res)
		memmove(to, from, len);
	return res;
}
