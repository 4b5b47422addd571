/*
 * What hostmem.h has, with CUDA's checks.
 */
#include "frontend/cuda/memory/host.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/hostmem.h"

#define ALLOC_FLAGS                                                                                \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)
#define REGISTER_OTHER (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

static uint64_t address_of(const void *ptr)
{
	return (uint64_t)(uintptr_t)ptr;
}

/*
 * Of several devices the first one has all host memory, whichever the thread works on, and the
 * others are shown it.
 */
static CUresult enter(struct fgv_lane **lane)
{
	CUresult res;

	*lane = NULL;
	res = fgv_context_need();
	return res ? res : fgv_context_enter_on(0, lane);
}

static CUresult release(uint64_t address, enum fgv_range_kind kind)
{
	CUresult hidden = fgv_hostmem_hide(address, kind), res;
	struct fgv_lane *lane;

	if (hidden == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
		return hidden;
	res = enter(&lane);
	if (res)
		return res;
	res = fgv_hostmem_free(lane, address, kind);
	fgv_lane_leave(lane);
	return res ? res : hidden;
}

static CUresult show(uint64_t address, enum fgv_range_kind kind)
{
	CUresult res = fgv_hostmem_show(address);

	if (res)
		release(address, kind);
	return res;
}

static CUresult allocate(uint64_t *address, size_t bytes, enum fgv_range_kind kind, unsigned flags)
{
	struct fgv_lane *lane;
	CUresult res;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	res = enter(&lane);
	if (res)
		return res;
	res = fgv_hostmem_alloc(lane, bytes, kind, flags, address);
	fgv_lane_leave(lane);
	return res ? res : show(*address, kind);
}

CUresult fgv_host_alloc(void **ptr, size_t bytes, unsigned flags)
{
	uint64_t address;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (ptr && !(flags & ~(unsigned)ALLOC_FLAGS))
		res = allocate(&address, bytes, FGV_RANGE_PINNED, flags);
	if (!res)
		*ptr = (void *)(uintptr_t)address;
	return res;
}

CUresult fgv_host_alloc_managed(CUdeviceptr *address, size_t bytes, unsigned flags)
{
	uint64_t made;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (address && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST))
		res = allocate(&made, bytes, FGV_RANGE_MANAGED, flags);
	if (!res)
		*address = made;
	return res;
}

CUresult fgv_host_free(void *ptr)
{
	return release(address_of(ptr), FGV_RANGE_PINNED);
}

CUresult fgv_host_free_managed(CUdeviceptr address)
{
	return release(address, FGV_RANGE_MANAGED);
}

/* What a capture keeps from being freed stays. */
void fgv_host_drain(uint32_t device)
{
	enum fgv_range_kind kind;
	uint64_t address;

	while (fgv_hostmem_first(device, &address, &kind)) {
		if (release(address, kind) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			break;
	}
}

CUresult fgv_host_register(void *ptr, size_t bytes, unsigned flags)
{
	struct fgv_lane *lane;
	CUresult res;

	if (flags & ~(unsigned)(REGISTER_FLAGS | REGISTER_OTHER))
		return CUDA_ERROR_INVALID_VALUE;
	res = enter(&lane);
	if (res)
		return res;
	res = CUDA_ERROR_NOT_SUPPORTED;
	if (!(flags & REGISTER_OTHER))
		res = fgv_hostmem_register(lane, address_of(ptr), bytes, flags);
	fgv_lane_leave(lane);
	if (!res)
		res = show(address_of(ptr), FGV_RANGE_REGISTERED);
	return res == CUDA_ERROR_NOT_SUPPORTED ? FGV_UNSUPPORTED("registering of such host memory")
					       : res;
}

CUresult fgv_host_unregister(void *ptr)
{
	return ptr ? release(address_of(ptr), FGV_RANGE_REGISTERED) : CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_host_get_device_pointer(CUdeviceptr *address, void *ptr, unsigned flags)
{
	struct fgv_range_view view;

	if (!address || !ptr || flags ||
	    fgv_addrmap_look(address_of(ptr), 1, &view) == FGV_FIT_UNKNOWN ||
	    !fgv_range_is_host(view.kind))
		return CUDA_ERROR_INVALID_VALUE;
	*address = address_of(ptr);
	return CUDA_SUCCESS;
}

CUresult fgv_host_get_flags(unsigned *flags, const void *ptr)
{
	if (!flags || !fgv_hostmem_flags(address_of(ptr), FGV_RANGE_PINNED, flags))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
