/*
 * Reserving room for what the guest makes with handles of its own.
 */
#include "backend/vgpu/own.h"

#include <errno.h>
#include <stdlib.h>
#include "backend/vgpu/session.h"
#include "common/util.h"

/* Requests that were taken from their lanes and wait can't hide more handles than are spared. */
_Static_assert(FGV_OWN_SPARE >= 2 * (FGV_HELD_MAX + FGV_LANES_MAX), "handles are spared");

static const uint32_t most[FGV_OWN_KINDS] = {
	[FGV_OWN_STREAM] = FGV_OWN_STREAMS_MAX,
	[FGV_OWN_EVENT] = FGV_OWN_EVENTS_MAX,
};

static uint64_t cost_of(const struct fgv_session *session, uint32_t which)
{
	return which == FGV_OWN_STREAM ? session->costs.stream : session->costs.event;
}

static uint32_t which_of(enum fgv_kind kind)
{
	return kind == FGV_KIND_STREAM ? FGV_OWN_STREAM : FGV_OWN_EVENT;
}

/* Charges for so many: those that there are, or more that are reserved. */
static int charge(struct fgv_session *session, uint32_t which, uint32_t reserved, uint32_t used)
{
	struct fgv_own *own = &session->own[which];
	uint64_t bytes = fgv_max_u64(reserved, used) * cost_of(session, which);

	if (bytes != own->charge.bytes &&
	    fgv_quota_charge(&session->quota, &own->charge, bytes) < 0)
		return -ENOMEM;
	own->reserved = reserved;
	own->used = used;
	return 0;
}

CUresult fgv_do_own_reserve(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_own_reserve_in *in)
{
	CUresult status = fgv_session_take_deferred(session);
	const struct fgv_own *own;

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (in->kind >= FGV_OWN_KINDS)
		return CUDA_ERROR_INVALID_VALUE;
	own = &session->own[in->kind];
	if (in->count > most[in->kind] - own->reserved ||
	    charge(session, in->kind, own->reserved + in->count, own->used) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult fgv_do_own_return(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_own_return_in *in)
{
	const struct fgv_own *own;

	(void)request;
	if (in->kind >= FGV_OWN_KINDS || in->count > session->own[in->kind].reserved)
		return CUDA_ERROR_INVALID_VALUE;
	own = &session->own[in->kind];
	charge(session, in->kind, own->reserved - in->count, own->used);
	return CUDA_SUCCESS;
}

CUresult fgv_own_add(struct fgv_session *session, enum fgv_kind kind, uint32_t handle,
		     struct fgv_object **object)
{
	uint32_t which = which_of(kind);
	const struct fgv_own *own = &session->own[which];
	int err = fgv_handles_add_own(&session->handles, kind, handle, object);

	if (err < 0)
		return err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE;
	if (charge(session, which, own->reserved, own->used + 1) == 0)
		return CUDA_SUCCESS;
	fgv_handles_remove(&session->handles, *object);
	free(*object);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void fgv_own_remove(struct fgv_session *session, enum fgv_kind kind)
{
	uint32_t which = which_of(kind);
	const struct fgv_own *own = &session->own[which];

	charge(session, which, own->reserved, own->used - 1);
}
