/*
 * What all stubs do.
 */
#include "frontend/libcudart/unsupported.h"

#include "frontend/libcudart/cudart.h"

int fgv_unsupported_call(struct fgv_unsupported *unsupported)
{
	fgv_errlog_unsupported(unsupported);
	return fgv_error_note(cudaErrorNotSupported, unsupported->name);
}
