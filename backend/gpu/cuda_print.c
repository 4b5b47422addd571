/*
 * Text that kernels print. The driver takes it out of the GPU's buffer when it synchronizes,
 * and writes it to this process's standard output and, of assertions, standard error. Nothing
 * here synchronizes otherwise; so for sessions with code that prints, what was seen to be
 * done is synchronized with too, which does not wait.
 */
#include "backend/gpu/cuda_internal.h"

#include <stdio.h>
#include "backend/gpu/fatbin.h"
#include "common/util.h"

void fgv_cuda_note_image(struct cuda *cuda, const void *image, size_t len)
{
	static const char *const printing[] = {"vprintf", "__assertfail"};

	if (!cuda->prints)
		cuda->prints = fgv_fatbin_mentions(image, len, fgv_cuda_sm(cuda), printing,
						   FGV_ARRAY_LEN(printing));
}

void fgv_cuda_flush_stream(struct cuda *cuda, CUstream stream)
{
	if (cuda->prints)
		cuda->driver->stream_sync(stream);
}

void fgv_cuda_flush_event(struct cuda *cuda, CUevent event)
{
	if (cuda->prints)
		cuda->driver->event_sync(event);
}

bool fgv_cuda_print(struct fgv_gpu *gpu, const size_t room[2])
{
	struct cuda *cuda = cuda_of(gpu);
	CUresult status;

	(void)room;
	if (!cuda->prints)
		return false;
	/* With a fault everything is done. */
	status = cuda->driver->stream_query(NULL);
	if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY)
		cuda->driver->context_sync();
	fflush(stdout);
	return true;
}
