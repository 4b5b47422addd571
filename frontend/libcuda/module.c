/*
 * Modules: code that the program loads into a context. Each is a library (library.c) that is
 * used in one context, and its functions are the library's kernels.
 */
#include <stdlib.h>
#include <strings.h>

#include "frontend/cuda/module/library.h"
#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/jit.h"

/* What the program's environment asks of the runtime, which asks here. */
FGV_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	const char *wanted = getenv("CUDA_MODULE_LOADING");
	CUresult res = fgv_ctx_status();

	if (!res && !mode)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*mode = wanted && !strcasecmp(wanted, "EAGER") ? CU_MODULE_EAGER_LOADING
							       : CU_MODULE_LAZY_LOADING;
	return res;
}

FGV_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	return FGV_CALL(fgv_library_load_file((CUlibrary *)module, fname));
}

FGV_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return FGV_CALL(fgv_library_load_data((CUlibrary *)module, image));
}

FGV_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return FGV_CALL(fgv_library_load_data((CUlibrary *)module, fatCubin));
}

static CUresult load_with(CUmodule *module, const void *image, const struct fgv_jit *jit)
{
	CUresult res = fgv_jit_check(jit);

	return res ? res : fgv_jit_finish(jit, fgv_library_load_data((CUlibrary *)module, image));
}

FGV_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
				       CUjit_option *options, void **optionValues)
{
	const struct fgv_jit jit = {numOptions, options, optionValues};

	return FGV_CALL(load_with(module, image, &jit));
}

FGV_EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
	return FGV_CALL(fgv_library_unload((CUlibrary)hmod));
}

FGV_EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	return FGV_CALL(fgv_library_get_kernel((CUkernel *)hfunc, (CUlibrary)hmod, name));
}

FGV_EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	return FGV_CALL(fgv_library_count_kernels(count, (CUlibrary)mod));
}

FGV_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
					       CUmodule mod)
{
	return FGV_CALL(
		fgv_library_list_kernels((CUkernel *)functions, numFunctions, (CUlibrary)mod));
}

FGV_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
					 const char *name)
{
	return FGV_CALL(fgv_library_get_global(dptr, bytes, (CUlibrary)hmod, name));
}
