/*
 * The handlers of what GPUs of a session do with each other's memory. A GPU is named by its number
 * among the session's own, so a guest can name none that is not its VM's.
 */
#include "backend/vgpu/parts.h"
#include "backend/vgpu/session.h"

/* Memory that may move is nobody's but its own GPU's (docs/design/0028-movable.md). */
static CUresult find(struct fgv_session *session, uint32_t number, struct fgv_gpu **peer)
{
	struct fgv_session *first = session->first ? session->first : session;
	struct fgv_session *other = fgv_parts_find(first, first->parts, number);

	if (!other || other == session)
		return CUDA_ERROR_INVALID_DEVICE;
	if (session->setup.movable || other->setup.movable)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	*peer = other->gpu;
	return CUDA_SUCCESS;
}

/* Arrays are copied through the program, whatever the link could do. */
CUresult fgv_do_peer_attribute(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_peer_attribute_in *in,
			       struct fgv_peer_attribute_out *out)
{
	struct fgv_gpu *peer;
	int value = 0;
	CUresult status;

	(void)request;
	if (in->attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
	    in->attribute > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	status = find(session, in->peer, &peer);
	if (status == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ||
	    (!status && in->attribute == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED)) {
		out->value = 0;
		return CUDA_SUCCESS;
	}
	if (status == CUDA_SUCCESS)
		status = session->gpu->ops->peer_attribute(
			session->gpu, peer, (CUdevice_P2PAttribute)in->attribute, &value);
	out->value = value;
	return status;
}

CUresult fgv_do_peer_enable(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_peer_enable_in *in)
{
	struct fgv_gpu *peer;
	CUresult status = find(session, in->peer, &peer);

	(void)request;
	return status ? status : session->gpu->ops->peer_enable(session->gpu, peer);
}

CUresult fgv_do_peer_disable(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_peer_disable_in *in)
{
	struct fgv_gpu *peer;
	CUresult status = find(session, in->peer, &peer);

	(void)request;
	return status ? status : session->gpu->ops->peer_disable(session->gpu, peer);
}
