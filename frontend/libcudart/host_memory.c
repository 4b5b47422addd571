/*
 * Pinned and registered host memory, and what a pointer points to. All host memory that the GPU
 * sees is mapped and portable, whatever its flags, and has one address for both.
 */
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/unsupported.h"

#define ALLOC_FLAGS    (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)
#define REGISTER_FLAGS (cudaHostRegisterPortable | cudaHostRegisterMapped)
#define REGISTER_OTHER (cudaHostRegisterIoMemory | cudaHostRegisterReadOnly)

cudaError_t fgv_host_allocate(void **ptr, size_t size, enum fgv_range_kind kind, unsigned flags)
{
	struct fgv_lane *lane;
	uint64_t address = 0;
	cudaError_t error;

	if (!ptr)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	if (size)
		error = fgv_error_from(fgv_hostmem_alloc(lane, size, kind, flags, &address));
	fgv_lane_leave(lane);
	if (!error)
		*ptr = (void *)(uintptr_t)address;
	return error;
}

FGV_EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	if (flags & ~(unsigned)ALLOC_FLAGS)
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(fgv_host_allocate(pHost, size, FGV_RANGE_PINNED, flags));
}

FGV_EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return fgv_error_set(fgv_host_allocate(ptr, size, FGV_RANGE_PINNED, cudaHostAllocDefault));
}

static cudaError_t release(void *ptr, enum fgv_range_kind kind)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_hostmem_free(lane, (uint64_t)(uintptr_t)ptr, kind));
	fgv_lane_leave(lane);
	return error;
}

FGV_EXPORT cudaError_t cudaFreeHost(void *ptr)
{
	return fgv_error_set(ptr ? release(ptr, FGV_RANGE_PINNED) : cudaSuccess);
}

static cudaError_t register_memory(void *ptr, size_t size, unsigned flags)
{
	static struct fgv_unsupported unsupported = {.name = "cudaHostRegister (of such memory)"};
	struct fgv_lane *lane;
	cudaError_t error;

	if (flags & ~(unsigned)(REGISTER_FLAGS | REGISTER_OTHER))
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = cudaErrorNotSupported;
	if (!(flags & REGISTER_OTHER))
		error = fgv_error_from(
			fgv_hostmem_register(lane, (uint64_t)(uintptr_t)ptr, size, flags));
	fgv_lane_leave(lane);
	if (error == cudaErrorNotSupported)
		fgv_errlog_unsupported(&unsupported);
	return error;
}

FGV_EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	return fgv_error_set(register_memory(ptr, size, flags));
}

FGV_EXPORT cudaError_t cudaHostUnregister(void *ptr)
{
	return fgv_error_set(ptr ? release(ptr, FGV_RANGE_REGISTERED) : cudaErrorInvalidValue);
}

/* The allocation that @ptr lies in; false: in none. */
static bool look(const void *ptr, struct fgv_range_view *view)
{
	return fgv_addrmap_look((uint64_t)(uintptr_t)ptr, 1, view) != FGV_FIT_UNKNOWN;
}

static cudaError_t device_pointer(void **device, void *host, unsigned flags)
{
	struct fgv_range_view view;

	if (!device || !host || flags)
		return cudaErrorInvalidValue;
	if (!look(host, &view) || !fgv_range_is_host(view.kind))
		return cudaErrorInvalidValue;
	*device = host;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	return fgv_error_set(device_pointer(pDevice, pHost, flags));
}

FGV_EXPORT cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
	if (!pFlags || !fgv_hostmem_flags((uint64_t)(uintptr_t)pHost, FGV_RANGE_PINNED, pFlags))
		return fgv_error_set(cudaErrorInvalidValue);
	return cudaSuccess;
}

static enum cudaMemoryType type_of(enum fgv_range_kind kind)
{
	switch (kind) {
	case FGV_RANGE_MEMORY:
	case FGV_RANGE_VARIABLE:
	case FGV_RANGE_POOLED:
	case FGV_RANGE_GRAPH:
		return cudaMemoryTypeDevice;
	case FGV_RANGE_PINNED:
	case FGV_RANGE_REGISTERED:
		return cudaMemoryTypeHost;
	case FGV_RANGE_MANAGED:
	case FGV_RANGE_MANAGED_VARIABLE:
		return cudaMemoryTypeManaged;
	}
	return cudaMemoryTypeUnregistered;
}

static cudaError_t pointer_attributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	struct fgv_range_view view;
	struct fgv_lane *lane;
	cudaError_t error;

	if (!attributes)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	fgv_lane_leave(lane);
	*attributes = (struct cudaPointerAttributes){
		.type = cudaMemoryTypeUnregistered,
		.device = cudaInvalidDeviceId,
		.hostPointer = (void *)(uintptr_t)ptr,
	};
	if (!look(ptr, &view))
		return cudaSuccess;
	attributes->type = type_of(view.kind);
	attributes->device = fgv_context_get_device();
	attributes->devicePointer = (void *)(uintptr_t)ptr;
	if (!fgv_range_is_host(view.kind))
		attributes->hostPointer = NULL;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
						const void *ptr)
{
	return fgv_error_set(pointer_attributes(attributes, ptr));
}
