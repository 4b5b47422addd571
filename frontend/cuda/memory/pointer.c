/*
 * Kinds of memory, as CUDA calls them.
 */
#include "frontend/cuda/memory/pointer.h"

#include "frontend/cuda/context/context.h"

static CUmemorytype type_of(enum fgv_range_kind kind)
{
	if (fgv_range_is_managed(kind))
		return CU_MEMORYTYPE_UNIFIED;
	return fgv_range_is_host(kind) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUresult fgv_pointer_describe(CUdeviceptr pointer, struct fgv_pointer *found)
{
	CUresult res = fgv_context_need();

	if (res)
		return res;
	*found = (struct fgv_pointer){0};
	if (fgv_addrmap_look(pointer, 1, &found->range) == FGV_FIT_UNKNOWN)
		return CUDA_SUCCESS;
	found->is_known = true;
	found->type = type_of(found->range.kind);
	found->is_host = fgv_range_is_host(found->range.kind);
	found->ordinal = (int)fgv_addrmap_device(pointer);
	return CUDA_SUCCESS;
}
