/*
 * The handlers of limits. Some of them make the driver take memory of the GPU, which the VM
 * is charged for: beyond what CUDA's defaults take, which is a part of what a context costs.
 */
#include "backend/vgpu/session.h"

#include "common/util.h"

CUresult fgv_do_limit_get(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_limit_get_in *in, struct fgv_limit_get_out *out)
{
	size_t value = 0;
	CUresult status = CUDA_ERROR_UNSUPPORTED_LIMIT;

	(void)request;
	if (in->limit < CU_LIMIT_MAX)
		status = session->gpu->ops->limit_get(session->gpu, (CUlimit)in->limit, &value);
	out->value = value;
	return status;
}

/* How many times @limit's value is taken of the device's memory; 0: not at all. */
static uint64_t factor_of(const struct fgv_session *session, CUlimit limit)
{
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		return session->costs.threads;
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		return 1;
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		return 4096; /* more than a launch's parameters */
	default:
		return 0;
	}
}

/* What @value, over what the limit was at first, takes of the quota. */
static uint64_t price(struct fgv_limit *limit, uint64_t value)
{
	uint64_t more = value > limit->first ? value - limit->first : 0;

	return limit->factor && more > UINT64_MAX / limit->factor ? UINT64_MAX
								  : more * limit->factor;
}

/* The limit's account, opened with what the limit is before it is ever set. */
static CUresult open_account(struct fgv_session *session, CUlimit which, struct fgv_limit **limit)
{
	struct fgv_limit *found = &session->limits[which];
	size_t first = 0;
	CUresult status;

	*limit = found;
	if (found->known)
		return CUDA_SUCCESS;
	status = session->gpu->ops->limit_get(session->gpu, which, &first);
	if (status == CUDA_SUCCESS)
		*found = (struct fgv_limit){
			.known = true, .first = first, .factor = factor_of(session, which)};
	return status;
}

/*
 * The stack is what a thread's local memory is made of: the GPU keeps as much as the largest kernel
 * so far has needed, or as the limit says.
 */
static uint64_t value_to_pay(const struct fgv_session *session, CUlimit which, uint64_t value)
{
	return which == CU_LIMIT_STACK_SIZE ? fgv_max_u64(value, session->local_bytes) : value;
}

CUresult fgv_session_grow_local(struct fgv_session *session, uint32_t bytes)
{
	struct fgv_limit *limit;
	size_t stack = 0;
	CUresult status = open_account(session, CU_LIMIT_STACK_SIZE, &limit);

	if (status == CUDA_SUCCESS)
		status = session->gpu->ops->limit_get(session->gpu, CU_LIMIT_STACK_SIZE, &stack);
	if (status != CUDA_SUCCESS)
		return status;
	if (fgv_quota_charge(&session->quota, &limit->charge,
			     price(limit, fgv_max_u64(stack, bytes))) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	session->local_bytes = bytes;
	return CUDA_SUCCESS;
}

CUresult fgv_do_limit_set(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_limit_set_in *in)
{
	CUlimit which = (CUlimit)in->limit;
	struct fgv_limit *limit;
	struct fgv_charge before;
	CUresult status;
	uint64_t cost;

	(void)request;
	if (in->limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	status = open_account(session, which, &limit);
	if (status != CUDA_SUCCESS)
		return status;
	before = limit->charge;
	cost = price(limit, value_to_pay(session, which, in->value));
	/* More is charged before the driver takes it, less when it has given it back. */
	if (fgv_quota_charge(&session->quota, &limit->charge, fgv_max_u64(cost, before.bytes)) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = session->gpu->ops->limit_set(session->gpu, which, in->value);
	fgv_quota_charge(&session->quota, &limit->charge,
			 status == CUDA_SUCCESS ? cost : before.bytes);
	return status;
}
