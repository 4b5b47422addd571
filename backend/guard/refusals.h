/*
 * The system calls that a vGPU process makes and may not (backend/vgpu/sandbox/filter.h). The
 * kernel asks here about each; the answer is ENOSYS, and the first of each kind is a line in the
 * log. A process that asks over and over is not listened to any more, and then the kernel gives
 * that answer by itself.
 *
 * Where the daemon records (key "sandbox"), the answer is to go on, there is no end to asking,
 * and the lines are those of a list of system calls.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_GUARD_REFUSALS_H
#define FGV_BACKEND_GUARD_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/loop.h"
#include "common/log.h"

/* Answers to one process; and kinds of calls of it that are told apart. */
#define FGV_REFUSALS_MAX      256
#define FGV_REFUSAL_KINDS_MAX 256

struct fgv_refusal_kind {
	int number;
	bool has_argument;
	uint32_t argument; /* the command, of those that have one */
};

struct fgv_refusals {
	struct fgv_watch watch; /* the listener; first, so that its address is ours */
	int loop;
	bool record;
	const struct fgv_log_subject *subject;
	uint64_t count;
	unsigned kind_count;
	struct fgv_refusal_kind kinds[FGV_REFUSAL_KINDS_MAX];
};

/* Nobody's; fgv_refusals_fini() does nothing. */
void fgv_refusals_init(struct fgv_refusals *refusals);

/* Takes over @listener. @subject stays. 0 or a negative errno, and then it is closed. */
int fgv_refusals_listen(struct fgv_refusals *refusals, int loop, int listener,
			const struct fgv_log_subject *subject, bool record);

/* From now on the kernel answers by itself. May be called again. */
void fgv_refusals_fini(struct fgv_refusals *refusals);

#endif
