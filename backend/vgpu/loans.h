/*
 * Parts of the window that the guest has lent for a copy to the GPU, and gets back when that is
 * done. No reply says so, which would have to come in the order of its lane's: the number that
 * came with the loan is written into the window.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_LOANS_H
#define FGV_VGPU_LOANS_H

#include "backend/gpu/gpu_ops.h"

struct fgv_session;

struct fgv_loan {
	struct fgv_gpu_fence *fence; /* NULL: it is not lent */
	uint32_t number;
};

struct fgv_loans {
	struct fgv_loan list[FGV_STAGING_LOANS];
	uint32_t count; /* of those lent */
	uint32_t turns;
};

/* The copy from what is lent as @loan was queued in @stream; an error if its end can't be told. */
CUresult fgv_loans_add(struct fgv_session *session, uint32_t loan, uint32_t number,
		       struct fgv_gpu_stream *stream);

/* Operation @op of this @message failed, wherever: what came with it as a loan goes back. */
void fgv_loans_refuse(struct fgv_session *session, uint16_t op, const void *message, uint32_t len);

/* Whether @loan can be lent now; a guest that says otherwise is wrong. */
bool fgv_loans_is_free(const struct fgv_loans *loans, uint32_t loan);

/* Gives back what is done: how many. */
int fgv_loans_look(struct fgv_session *session);
/* The same, once in a while if somebody waits for a reply, as each look asks the driver. */
int fgv_loans_turn(struct fgv_session *session);

/* Puts the fences. */
void fgv_loans_fini(struct fgv_session *session);

#endif
