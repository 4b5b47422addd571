/* The handlers of the tests' host for tensor maps: a map is what it was made of, as far as it goes.
 */
#include <string.h>

#include "tests/unit/frontend/client/test_client_host.h"

CUresult fgv_do_tensor_map(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_tensor_map_in *in)
{
	(void)session;
	if (in->map_len != FGV_TENSOR_MAP_BYTES || in->shape_len != sizeof(struct fgv_tensor_shape))
		return CUDA_ERROR_UNKNOWN;
	memcpy(in->map, in->shape, FGV_TENSOR_MAP_BYTES);
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_tensor_map_replace(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_tensor_map_replace_in *in)
{
	(void)session;
	if (in->map_len != FGV_TENSOR_MAP_BYTES || in->old_len != FGV_TENSOR_MAP_BYTES)
		return CUDA_ERROR_UNKNOWN;
	memset(in->map, 0, in->map_len);
	memcpy(in->map, &in->address, sizeof(in->address));
	return (CUresult)HOST_GET(status[request->op]);
}
