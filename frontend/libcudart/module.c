/*
 * What nvcc's start-up code calls: registering fat binaries, kernels and variables.
 * The handle that it passes around is the module.
 */
#include "frontend/cuda/module/registry.h"
#include "frontend/libcudart/cudart.h"

FGV_EXPORT void **__cudaRegisterFatBinary(void *wrapper)
{
	return (void **)fgv_registry_add(wrapper);
}

/* All is registered; nothing is sent before it is used. */
FGV_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

FGV_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	fgv_registry_remove((struct fgv_module *)handle);
}

/* Without memory the kernel stays unknown, and its launch says so. */
FGV_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
				       const char *name, int thread_limit, uint3 *tid, uint3 *bid,
				       dim3 *block, dim3 *grid, int *warp_size)
{
	(void)device, (void)thread_limit, (void)tid, (void)bid;
	(void)block, (void)grid, (void)warp_size;
	fgv_registry_add_kernel((struct fgv_module *)handle, host, name);
}

FGV_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
				  int external, size_t size, int constant, int global)
{
	(void)device, (void)external, (void)constant, (void)global;
	fgv_registry_add_variable((struct fgv_module *)handle, host, name, size);
}

/* The program reaches the variable through the pointer at @host. */
FGV_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
					 int external, size_t size, int constant, int global)
{
	(void)device, (void)external, (void)constant, (void)global;
	fgv_registry_add_managed((struct fgv_module *)handle, host, name, size);
}

static cudaError_t init_module(struct fgv_module *module)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_module_need(lane, module));
	fgv_lane_leave(lane);
	return error;
}

/* Asked for before a managed variable is used; nonzero: don't ask again. */
FGV_EXPORT char __cudaInitModule(void **handle)
{
	struct fgv_module *module = (struct fgv_module *)handle;

	return !fgv_registry_has_managed(module) || !fgv_error_set(init_module(module));
}
