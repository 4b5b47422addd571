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

static uint64_t attribute(struct fgv_session *session, CUdevice_attribute attribute)
{
	struct fgv_device_info info;

	if (session->gpu->ops->info(session->gpu, &info) != CUDA_SUCCESS)
		return 0;
	return info.attributes[attribute] < 0 ? 0 : (uint64_t)info.attributes[attribute];
}

/* How many times @limit's value is taken of the device's memory; 0: not at all. */
static uint64_t factor_of(struct fgv_session *session, CUlimit limit)
{
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		/* For every thread that can be there at once. */
		return attribute(session, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
		       attribute(session, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
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

CUresult fgv_do_limit_set(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_limit_set_in *in)
{
	struct fgv_limit *limit;
	CUresult status;
	uint64_t cost;

	(void)request;
	if (in->limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	status = open_account(session, (CUlimit)in->limit, &limit);
	if (status != CUDA_SUCCESS)
		return status;
	cost = price(limit, in->value);
	if (cost > limit->charged && fgv_quota_take(&session->quota, cost - limit->charged) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = session->gpu->ops->limit_set(session->gpu, (CUlimit)in->limit, in->value);
	if (status != CUDA_SUCCESS) {
		if (cost > limit->charged)
			fgv_quota_give(&session->quota, cost - limit->charged);
		return status;
	}
	if (cost < limit->charged)
		fgv_quota_give(&session->quota, limit->charged - cost);
	limit->charged = cost;
	return CUDA_SUCCESS;
}
