/*
 * Posting records again, each for the stream at hand.
 */
#include "frontend/client/record.h"

#include <string.h>

#include "frontend/client/lane.h"

static CUresult post(struct fgv_lane *lane, const struct fgv_record *record, uint32_t stream)
{
	uint8_t *message = fgv_lane_begin(lane, record->op, record->len);

	memcpy(message, record->message, record->len);
	memcpy(message + fgv_op_infos[record->op].stream_off, &stream, sizeof(stream));
	fgv_lane_commit(lane);
	return fgv_lane_status(lane);
}

CUresult fgv_records_run(struct fgv_lane *lane, struct fgv_record *first, uint32_t stream)
{
	CUresult res = CUDA_SUCCESS;

	for (struct fgv_record *each = first; each && !res; each = each->next)
		res = each->run ? each->run(lane, each->message, stream) : post(lane, each, stream);
	return res;
}
