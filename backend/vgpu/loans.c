/* What the guest has lent; see loans.h. */
#include "backend/vgpu/loans.h"

#include <string.h>
#include "backend/vgpu/session.h"

/* Turns of the dispatcher from one look to the next while a reply waits for the GPU. */
#define LOOK_TURNS 8

static void give_back(struct fgv_session *session, uint32_t loan, uint32_t number)
{
	struct fgv_window_head *head = fgv_window_head(&session->window);

	/* Pairs with the guest's acquire: the GPU has read what the guest writes next. */
	__atomic_store_n(&head->staging_done[loan], number, __ATOMIC_RELEASE);
}

bool fgv_loans_is_free(const struct fgv_loans *loans, uint32_t loan)
{
	return loan < FGV_STAGING_LOANS && !loans->list[loan].fence;
}

CUresult fgv_loans_add(struct fgv_session *session, uint32_t loan, uint32_t number,
		       struct fgv_gpu_stream *stream)
{
	struct fgv_loan *lent = &session->loans.list[loan];
	CUresult status = session->gpu->ops->fence(session->gpu, stream, &lent->fence);

	if (status != CUDA_SUCCESS)
		return status;
	lent->number = number;
	session->loans.count++;
	return CUDA_SUCCESS;
}

void fgv_loans_refuse(struct fgv_session *session, uint16_t op, const void *message, uint32_t len)
{
	struct fgv_copy_in_bulk_request copy;
	struct fgv_box_in_bulk_request box;
	uint32_t loan, number;

	if (op == FGV_OP_COPY_IN_BULK && len == sizeof(copy)) {
		memcpy(&copy, message, sizeof(copy));
		loan = copy.loan;
		number = copy.number;
	} else if (op == FGV_OP_BOX_IN_BULK && len == sizeof(box)) {
		memcpy(&box, message, sizeof(box));
		loan = box.loan;
		number = box.number;
	} else {
		return;
	}
	if (fgv_loans_is_free(&session->loans, loan))
		give_back(session, loan, number);
}

static void end(struct fgv_session *session, struct fgv_loan *lent)
{
	session->gpu->ops->fence_put(session->gpu, lent->fence);
	lent->fence = NULL;
	session->loans.count--;
}

/* What has failed is over, too; the next call that synchronizes is told why. */
int fgv_loans_look(struct fgv_session *session)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	int done = 0;

	for (uint32_t i = 0; i < FGV_STAGING_LOANS && session->loans.count > 0; i++) {
		struct fgv_loan *lent = &session->loans.list[i];

		if (!lent->fence ||
		    ops->fence_query(session->gpu, lent->fence) == CUDA_ERROR_NOT_READY)
			continue;
		end(session, lent);
		give_back(session, i, lent->number);
		done++;
	}
	return done;
}

int fgv_loans_turn(struct fgv_session *session)
{
	struct fgv_loans *loans = &session->loans;

	if (loans->count == 0 || (session->waits.on_gpu > 0 && ++loans->turns % LOOK_TURNS))
		return 0;
	return fgv_loans_look(session);
}

void fgv_loans_fini(struct fgv_session *session)
{
	for (uint32_t i = 0; i < FGV_STAGING_LOANS; i++) {
		if (session->loans.list[i].fence)
			end(session, &session->loans.list[i]);
	}
}
