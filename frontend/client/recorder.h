/*
 * Requests that are kept instead of posted, to be posted later, as often as wanted, in
 * any stream: what graphs are made of. While a lane has a recorder, everything that is asked
 * of it and has to do with the order of work goes there: a function that puts work into a
 * stream needs to know nothing of it. A call can't be kept, as it has to be answered: it
 * fails with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and so does the recorder.
 *
 * Calls that have nothing to do with the order of work (`apart` in gpu.api) are made as ever.
 *
 * Threads: a recorder belongs to the thread of its lane; fgv_record_forbid() may be called
 * by any.
 */
#ifndef FGV_CLIENT_RECORDER_H
#define FGV_CLIENT_RECORDER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;

/* What is done by this process, not by posting a request: it gets the record's message. */
typedef CUresult (*fgv_record_run)(struct fgv_lane *lane, void *message, uint32_t stream);

struct fgv_record {
	struct fgv_record *next;
	fgv_record_run run; /* NULL: post the message as operation @op */
	uint16_t op;
	uint32_t len;
	uint64_t message[];
};

struct fgv_recorder {
	struct fgv_record *first;
	struct fgv_record **end;
	const void *subject; /* the struct fgv_kernel of the launch, or the event */
	bool is_early;	     /* the launch need not wait for the end of the kernel before it */
	int priority;	     /* of the stream, or the launch's own */
	CUresult failed;     /* the first failure */
	/* Called by fgv_lane_leave() when the lane has it no more; NULL: nobody wants to know. */
	void (*finish)(struct fgv_recorder *recorder);
};

void fgv_recorder_init(struct fgv_recorder *recorder);
/* Room for the message of a new record; NULL without memory, and then it has failed. */
void *fgv_recorder_add(struct fgv_recorder *recorder, fgv_record_run run, uint16_t op,
		       uint32_t len);
void fgv_recorder_fail(struct fgv_recorder *recorder, CUresult code);

/* -ENOMEM. */
int fgv_records_copy(const struct fgv_record *first, struct fgv_record **copy);
void fgv_records_free(struct fgv_record *first);

/*
 * While @judge is set, it is asked before every call that has to do with the order of work;
 * the call fails with the code that it returns. NULL: none is asked.
 */
void fgv_record_forbid(CUresult (*judge)(void));
extern CUresult (*fgv_record_judge)(void); /* atomic */

#endif
