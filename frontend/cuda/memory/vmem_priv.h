/*
 * Shared by vmem.c, which has addresses and mappings, and vmem_memory.c, which has what is mapped.
 */
#ifndef FGV_CUDA_VMEM_PRIV_H
#define FGV_CUDA_VMEM_PRIV_H

#include "frontend/client/lane.h"
#include "frontend/cuda/memory/vmem.h"

struct fgv_vmem_memory;

/* What @handle stands for, kept until fgv_vmem_put(); NULL: nothing. */
struct fgv_vmem_memory *fgv_vmem_get(CUmemGenericAllocationHandle handle);
/* Without a handle and any use it goes. No lane may be held for it. */
void fgv_vmem_put(struct fgv_vmem_memory *memory);

/* Of one that is kept: */
uint32_t fgv_vmem_device(const struct fgv_vmem_memory *memory);
uint32_t fgv_vmem_host_handle(const struct fgv_vmem_memory *memory);
unsigned fgv_vmem_handle_types(const struct fgv_vmem_memory *memory);
/* A further handle, which is the same number. */
CUmemGenericAllocationHandle fgv_vmem_add_handle(struct fgv_vmem_memory *memory);

/* Whether @location is a device; CUDA_ERROR_NOT_SUPPORTED, counted, for other kinds there are. */
CUresult fgv_vmem_check_location(const CUmemLocation *location);

#endif
