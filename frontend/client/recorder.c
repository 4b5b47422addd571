/*
 * Records are a list, each allocated by itself. What is opened is in the list at once:
 * between fgv_lane_begin() and fgv_lane_commit() nobody looks at it.
 */
#include "frontend/client/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
