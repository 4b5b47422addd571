/*
 * Codes, names and texts. The table is made by errgen.py from the toolkit's
 * driver_types.h, so that a newer toolkit's errors have their names, and from
 * errors.txt, so that the common ones have a better text than their name.
 */
#include "frontend/libcudart/errors.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/libcudart/thread.h"

/* What cuda12.c's functions are called among us. */
#define PREFIX_12 "fgv_12_"

__thread struct fgv_cudart_thread fgv_cudart_self;

struct error {
	int code;
	const char *name;
	const char *text;
};

static const struct error errors[] = {
#include "frontend/libcudart/errtable.h"
};

static const struct error *find(int code)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(errors); i++) {
		if (errors[i].code == code)
			return &errors[i];
	}
	return NULL;
}

/* Since CUDA 10.1 a driver error has the same number in the runtime, if it is there. */
cudaError_t fgv_error_convert(CUresult res)
{
	switch (res) {
	case CUDA_ERROR_CONTEXT_ALREADY_CURRENT:
		return cudaErrorInvalidValue;
	default:
		return find((int)res) ? (cudaError_t)res : cudaErrorUnknown;
	}
}

void fgv_error_keep(cudaError_t error, const char *call)
{
	size_t prefix = strncmp(call, PREFIX_12, strlen(PREFIX_12)) ? 0 : strlen(PREFIX_12);

	fgv_cudart_self.last_error = error;
	fgv_errlog_add((int)error, fgv_error_name(error), call + prefix);
}

const char *fgv_error_name(cudaError_t code)
{
	const struct error *error = find((int)code);

	return error ? error->name : "unrecognized error code";
}

const char *fgv_error_text(cudaError_t code)
{
	const struct error *error = find((int)code);

	return error ? error->text : "unrecognized error code";
}
