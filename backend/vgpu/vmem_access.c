/*
 * Who may use what is mapped: a part's GPU its own mappings, and those of which it has views.
 */
#include <stdlib.h>
#include "backend/vgpu/vmem_priv.h"

/* Viewed once more, the mapping at @address stays; NULL: it is this part's own, or closed. */
static struct fgv_mapping *pin(struct fgv_vmem *vmem, uint64_t address)
{
	struct fgv_mapping *found;

	fgv_vmem_lock(vmem);
	found = fgv_vmem_find_locked(vmem, address);
	if (found && (found->is_closed || found->owner == vmem || found->owner->is_alone))
		found = NULL;
	if (found)
		found->views++;
	fgv_vmem_unlock(vmem);
	return found;
}

static void unpin(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	fgv_vmem_lock(vmem);
	mapping->views--;
	fgv_vmem_unlock(vmem);
}

/* A new view of the mapping of another part at @address. */
static CUresult view(struct fgv_vmem *vmem, uint64_t address, uint32_t flags)
{
	struct fgv_gpu *gpu = vmem->gpu;
	struct fgv_mapping *mapping, *made;
	CUresult status;

	if (vmem->mappings_count >= FGV_MAPPINGS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapping = vmem->is_alone ? NULL : pin(vmem, address);
	if (!mapping)
		return CUDA_ERROR_INVALID_DEVICE;
	made = malloc(sizeof(*made));
	status =
		made ? gpu->ops->memory_view(gpu, address, mapping->bytes, (CUmemAccess_flags)flags)
		     : CUDA_ERROR_OUT_OF_MEMORY;
	if (status != CUDA_SUCCESS) {
		unpin(vmem, mapping);
		free(made);
		return status;
	}
	*made = (struct fgv_mapping){
		.address = address, .bytes = mapping->bytes, .owner = vmem, .viewed = mapping};
	fgv_vmem_add_view(vmem, made);
	return CUDA_SUCCESS;
}

/* What begins at @address: *bytes of it, and whether it is this part's own. */
static bool look(struct fgv_vmem *vmem, uint64_t address, uint64_t *bytes, bool *is_own)
{
	struct fgv_mapping *found;

	fgv_vmem_lock(vmem);
	found = fgv_vmem_find_locked(vmem, address);
	if (found) {
		*bytes = found->bytes;
		*is_own = found->owner == vmem;
	}
	fgv_vmem_unlock(vmem);
	return found;
}

/* One mapping after another, of which some are views, or will be. */
static CUresult access_each(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint32_t flags)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = CUDA_SUCCESS;
	uint64_t len = 0;

	for (uint64_t at = address; at - address < bytes && !status; at += len) {
		bool is_own;

		if (!look(vmem, at, &len, &is_own))
			return CUDA_ERROR_INVALID_VALUE;
		if (is_own || fgv_vmem_find_view(vmem, at))
			status = gpu->ops->memory_access(gpu, at, len, (CUmemAccess_flags)flags);
		else
			status = view(vmem, at, flags);
	}
	return status;
}

CUresult fgv_vmem_access(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint32_t flags)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = fgv_vmem_check_span(vmem, address, bytes);
	bool is_own, is_whole;

	if (status != CUDA_SUCCESS)
		return status;
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	    flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	fgv_vmem_lock(vmem);
	is_whole = fgv_vmem_find_whole_locked(vmem, &vmem->addresses->mappings, address, bytes,
					      &is_own);
	fgv_vmem_unlock(vmem);
	if (!is_whole || (!is_own && flags == CU_MEM_ACCESS_FLAGS_PROT_NONE))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_own)
		return gpu->ops->memory_access(gpu, address, bytes, (CUmemAccess_flags)flags);
	return access_each(vmem, address, bytes, flags);
}
