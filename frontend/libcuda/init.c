/*
 * Initialization, versions and errors: what works without a context, and some without cuInit().
 */
#include "common/util.h"
#include "frontend/libcuda/driver.h"

struct error {
	CUresult code;
	const char *name;
	const char *text;
};

/* By errgen.py: from the toolkit's cuda.h, and with the texts that the runtime's errors have. */
static const struct error errors[] = {
#include "frontend/libcuda/errtable.inc"
};

FGV_EXPORT CUresult cuInit(unsigned int Flags)
{
	return Flags ? CUDA_ERROR_INVALID_VALUE : fgv_ctx_init();
}

FGV_EXPORT CUresult cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = FGV_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

static const struct error *find(CUresult code)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(errors); i++) {
		if (errors[i].code == code)
			return &errors[i];
	}
	return NULL;
}

void fgv_driver_log(CUresult res, const char *call)
{
	const struct error *error = find(res);

	fgv_errlog_add((int)res, error ? error->name : "unrecognized error code", call);
}

FGV_EXPORT CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	const struct error *found = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = found ? found->name : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FGV_EXPORT CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	const struct error *found = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = found ? found->text : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What a profiler sees is the vGPU process; nothing to start here. */
static CUresult profile(void)
{
	struct fgv_ctx *context;

	return fgv_ctx_current(&context);
}

FGV_EXPORT CUresult cuProfilerStart(void)
{
	return profile();
}

FGV_EXPORT CUresult cuProfilerStop(void)
{
	return profile();
}
