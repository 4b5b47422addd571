/*
 * Kernels, of libraries and as functions of modules: one thing by two names. What is asked of a
 * kernel for one device is the same for all that a session has.
 */
#include "frontend/cuda/module/function.h"

#include "frontend/cuda/module/library.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/kernel.h"

static CUresult get_attribute(const void *handle, CUfunction_attribute attribute, int *value)
{
	struct fgv_kernel *kernel;
	CUresult res = value ? fgv_driver_kernel(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	return res ? res : fgv_function_get_attribute(kernel, attribute, value);
}

static CUresult set_attribute(const void *handle, CUfunction_attribute attribute, int value)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(handle, &kernel);

	return res ? res : fgv_function_set_attribute(kernel, attribute, value);
}

FGV_EXPORT CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	return FGV_CALL(get_attribute(hfunc, attrib, pi));
}

FGV_EXPORT CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	return FGV_CALL(set_attribute(hfunc, attrib, value));
}

static CUresult get_attribute_on(const void *handle, CUfunction_attribute attribute, int *value,
				 CUdevice device)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(device, &info);

	return res ? res : get_attribute(handle, attribute, value);
}

static CUresult set_attribute_on(const void *handle, CUfunction_attribute attribute, int value,
				 CUdevice device)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(device, &info);

	return res ? res : set_attribute(handle, attribute, value);
}

FGV_EXPORT CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
					 CUdevice dev)
{
	return FGV_CALL_ANYWHERE(get_attribute_on(kernel, attrib, pi, dev));
}

FGV_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
					 CUdevice dev)
{
	return FGV_CALL_ANYWHERE(set_attribute_on(kernel, attrib, val, dev));
}

/* A hint, of which nobody sees anything. */
static CUresult prefer_cache(const void *handle, CUfunc_cache config)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(handle, &kernel);

	if (!res && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		res = CUDA_ERROR_INVALID_VALUE;
	return res;
}

FGV_EXPORT CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	return FGV_CALL(prefer_cache(hfunc, config));
}

FGV_EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_driver_device(dev, &info);

	return FGV_CALL_ANYWHERE(res ? res : prefer_cache(kernel, config));
}

static CUresult prefer_banks(const void *handle, CUsharedconfig config)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(handle, &kernel);

	if (!res && (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		res = CUDA_ERROR_INVALID_VALUE;
	return res;
}

FGV_EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	return FGV_CALL(prefer_banks(hfunc, config));
}

static CUresult get_name(const char **name, const void *handle)
{
	struct fgv_kernel *kernel;
	CUresult res = name ? fgv_driver_kernel(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*name = kernel->name;
	return res;
}

FGV_EXPORT CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	return FGV_CALL(get_name(name, hfunc));
}

FGV_EXPORT CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	return FGV_CALL_ANYWHERE(get_name(name, hfunc));
}

static CUresult get_param(const void *handle, size_t index, size_t *offset, size_t *size)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(handle, &kernel);

	return res ? res : fgv_function_get_param(kernel, index, offset, size);
}

FGV_EXPORT CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
				       size_t *paramSize)
{
	return FGV_CALL(get_param(func, paramIndex, paramOffset, paramSize));
}

FGV_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
					 size_t *paramSize)
{
	return FGV_CALL_ANYWHERE(get_param(kernel, paramIndex, paramOffset, paramSize));
}

static CUresult get_function(CUfunction *function, CUkernel handle)
{
	struct fgv_kernel *kernel;
	CUresult res = function ? fgv_driver_kernel(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		res = fgv_function_need(&kernel);
	if (!res)
		*function = (CUfunction)handle;
	return res;
}

FGV_EXPORT CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	return FGV_CALL(get_function(pFunc, kernel));
}

static CUresult get_library(CUlibrary *library, const void *handle)
{
	struct fgv_kernel *kernel;
	CUresult res = library ? fgv_driver_kernel(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	return res ? res : fgv_library_of(kernel, library);
}

FGV_EXPORT CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	return FGV_CALL_ANYWHERE(get_library(pLib, kernel));
}

FGV_EXPORT CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	return FGV_CALL(get_library((CUlibrary *)hmod, hfunc));
}

static CUresult get_state(CUfunctionLoadingState *state, CUfunction handle)
{
	struct fgv_kernel *kernel;
	CUresult res = state ? fgv_driver_kernel(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		*state = __atomic_load_n(&kernel->ready, __ATOMIC_ACQUIRE)
				 ? CU_FUNCTION_LOADING_STATE_LOADED
				 : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return res;
}

FGV_EXPORT CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	return FGV_CALL(get_state(state, function));
}

static CUresult load(CUfunction handle)
{
	struct fgv_kernel *kernel;
	CUresult res = fgv_driver_kernel(handle, &kernel);

	return res ? res : fgv_function_need(&kernel);
}

FGV_EXPORT CUresult cuFuncLoad(CUfunction function)
{
	return FGV_CALL(load(function));
}
