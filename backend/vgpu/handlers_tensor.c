/*
 * The handlers of the operations on tensor maps; see handlers.c. A map is bytes that a kernel gets
 * among its arguments: nothing stands behind it, and nothing here looks at the memory it is of.
 */
#include "backend/vgpu/session.h"

#include <string.h>

_Static_assert(sizeof(CUtensorMap) == FGV_TENSOR_MAP_BYTES, "as on the wire");

/* What selects something in the driver must be one of what there is. */
static bool is_possible(const struct fgv_tensor_shape *shape)
{
	return shape->form <= FGV_TENSOR_IM2COL_WIDE &&
	       shape->type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B && shape->rank >= 1 &&
	       shape->rank <= FGV_TENSOR_RANK_MAX &&
	       shape->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
	       shape->swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
	       shape->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
	       shape->fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
	       shape->mode <= CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128;
}

CUresult fgv_do_tensor_map(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_tensor_map_in *in)
{
	struct fgv_tensor_shape shape;
	CUtensorMap map;
	CUresult status;

	(void)request;
	if (in->shape_len != sizeof(shape) || in->map_len != sizeof(map))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&shape, in->shape, sizeof(shape));
	if (!is_possible(&shape))
		return CUDA_ERROR_INVALID_VALUE;
	status = session->gpu->ops->tensor_map(session->gpu, &shape, &map);
	if (status == CUDA_SUCCESS)
		memcpy(in->map, &map, sizeof(map));
	return status;
}

CUresult fgv_do_tensor_map_replace(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_tensor_map_replace_in *in)
{
	CUtensorMap map;
	CUresult status;

	(void)request;
	if (in->old_len != sizeof(map) || in->map_len != sizeof(map))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&map, in->old, sizeof(map));
	status = session->gpu->ops->tensor_map_replace(session->gpu, &map, in->address);
	if (status == CUDA_SUCCESS)
		memcpy(in->map, &map, sizeof(map));
	return status;
}
