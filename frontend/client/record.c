/*
 * Records are a list, each allocated by itself. What is opened is in the list at once:
 * between fgv_lane_begin() and fgv_lane_commit() nobody looks at it.
 */
#include "frontend/client/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/client/lane.h"

CUresult (*fgv_record_judge)(void);

void fgv_recorder_init(struct fgv_recorder *recorder)
{
	*recorder = (struct fgv_recorder){.end = &recorder->first};
}

void fgv_recorder_fail(struct fgv_recorder *recorder, CUresult code)
{
	if (!recorder->failed)
		recorder->failed = code;
}

static struct fgv_record *make(fgv_record_run run, uint16_t op, uint32_t len)
{
	struct fgv_record *record = malloc(sizeof(*record) + len);

	if (record)
		*record = (struct fgv_record){.run = run, .op = op, .len = len};
	return record;
}

void *fgv_recorder_add(struct fgv_recorder *recorder, fgv_record_run run, uint16_t op, uint32_t len)
{
	struct fgv_record *record = make(run, op, len);

	if (!record) {
		fgv_recorder_fail(recorder, CUDA_ERROR_OUT_OF_MEMORY);
		return NULL;
	}
	*recorder->end = record;
	recorder->end = &record->next;
	return record->message;
}

void fgv_record_forbid(CUresult (*judge)(void))
{
	__atomic_store_n(&fgv_record_judge, judge, __ATOMIC_RELEASE);
}

static void *refuse(struct fgv_lane *lane, const struct fgv_op_info *info, CUresult code)
{
	if (info->call)
		lane->refused = code;
	return lane->nowhere;
}

void *fgv_record_begin(struct fgv_lane *lane, uint16_t op, uint32_t len)
{
	const struct fgv_op_info *info = &fgv_op_infos[op];
	CUresult (*judge)(void);
	CUresult res = CUDA_SUCCESS;
	void *message;

	if (info->apart)
		return NULL;
	if (!lane->recorder) {
		/* Pairs with the release in fgv_record_forbid(). */
		judge = __atomic_load_n(&fgv_record_judge, __ATOMIC_ACQUIRE);
		if (judge && info->call)
			res = judge();
		return res ? refuse(lane, info, res) : NULL;
	}
	if (info->call || info->stream_off == FGV_OP_NO_STREAM) {
		fgv_recorder_fail(lane->recorder, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		return refuse(lane, info, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	message = fgv_recorder_add(lane->recorder, NULL, op, len);
	return message ? message : lane->nowhere;
}

void fgv_record_leave(struct fgv_lane *lane)
{
	struct fgv_recorder *recorder = lane->recorder;

	lane->recorder = NULL;
	if (recorder->finish)
		recorder->finish(recorder);
}

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

int fgv_records_copy(const struct fgv_record *first, struct fgv_record **copy)
{
	struct fgv_record *made = NULL, **end = &made;

	for (const struct fgv_record *each = first; each; each = each->next) {
		*end = make(each->run, each->op, each->len);
		if (!*end) {
			fgv_records_free(made);
			return -ENOMEM;
		}
		memcpy((*end)->message, each->message, each->len);
		end = &(*end)->next;
	}
	*copy = made;
	return 0;
}

void fgv_records_free(struct fgv_record *first)
{
	while (first) {
		struct fgv_record *next = first->next;

		free(first);
		first = next;
	}
}
