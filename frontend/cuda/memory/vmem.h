/*
 * Virtual memory: addresses that are reserved, memory that has none, and the mapping of the one at
 * the other. The host does it; what programs ask about it is answered here.
 *
 * Memory is a device's own; others may be given access. What CUDA has of host memory, of memory for
 * other processes beyond descriptors, for network cards and for sparse arrays is
 * CUDA_ERROR_NOT_SUPPORTED, counted. CUDA_ERROR_INVALID_VALUE for what is no handle, reservation or
 * mapping, or not whole granules; CUDA_ERROR_INVALID_DEVICE for an ordinal that the session does
 * not have.
 *
 * Threads: any. Mutexes inside, never held over a call of the host.
 */
#ifndef FGV_CUDA_VMEM_H
#define FGV_CUDA_VMEM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- Addresses: vmem.c --- */

CUresult fgv_vmem_reserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
			  unsigned long long flags);
CUresult fgv_vmem_free(CUdeviceptr address, size_t bytes);
CUresult fgv_vmem_map(CUdeviceptr address, size_t bytes, size_t offset,
		      CUmemGenericAllocationHandle handle, unsigned long long flags);
/* Waits for the work that was asked for before. One or several whole mappings, side by side. */
CUresult fgv_vmem_unmap(CUdeviceptr address, size_t bytes);
CUresult fgv_vmem_set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *list,
			     size_t count);
CUresult fgv_vmem_get_access(unsigned long long *flags, const CUmemLocation *location,
			     CUdeviceptr address);
/* A further handle of what is mapped there. */
CUresult fgv_vmem_retain(CUmemGenericAllocationHandle *handle, CUdeviceptr address);

/* What is known of mapped memory beyond its range in the address map. */
struct fgv_vmem_view {
	uint64_t start; /* of the reservation */
	uint64_t len;
	unsigned handle_types;
	CUmemAccess_flags access;
};

/* False: nothing is mapped there. @device: whose access is asked for. */
bool fgv_vmem_look(CUdeviceptr address, int device, struct fgv_vmem_view *view);
/* Which device copies and fills what is mapped there: @device if it may, else one that does. */
uint32_t fgv_vmem_user(CUdeviceptr address, uint32_t device);

/* Whether it lies in a reservation; where nothing is mapped there, nobody can use it. */
bool fgv_vmem_is_reserved(CUdeviceptr address);

/* --- Memory: vmem_memory.c --- */

CUresult fgv_vmem_granularity(size_t *bytes, const CUmemAllocationProp *prop,
			      CUmemAllocationGranularity_flags option);
CUresult fgv_vmem_create(CUmemGenericAllocationHandle *handle, size_t bytes,
			 const CUmemAllocationProp *prop, unsigned long long flags);
CUresult fgv_vmem_release(CUmemGenericAllocationHandle handle);
CUresult fgv_vmem_get_prop(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle);

/*
 * Descriptors: good in this process, to which another may have sent them in between; and in others
 * of the VM if its configuration lets programs share memory, where importing one is
 * CUDA_ERROR_NOT_SUPPORTED otherwise. Memory stays as long as one is open, and this process or one
 * that has imported it is there; that the last has been closed is noticed with the next call that
 * makes or releases memory.
 */
CUresult fgv_vmem_export(void *shareable, CUmemGenericAllocationHandle handle,
			 CUmemAllocationHandleType type, unsigned long long flags);
CUresult fgv_vmem_import(CUmemGenericAllocationHandle *handle, void *shareable,
			 CUmemAllocationHandleType type);

#endif
