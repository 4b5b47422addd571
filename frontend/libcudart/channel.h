/*
 * Descriptions of texture channels, and the driver's names for them: all of the same width, of 1, 2
 * or 4 of them.
 */
#ifndef FGV_LIBCUDART_CHANNEL_H
#define FGV_LIBCUDART_CHANNEL_H

#include <cuda.h>
#include <cuda_runtime_api.h>

/* cudaErrorInvalidChannelDescriptor; cudaErrorNotSupported for what is compressed or planar. */
cudaError_t fgv_channel_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format,
			       unsigned *channels);
/* The way back. */
struct cudaChannelFormatDesc fgv_channel_desc(CUarray_format format, unsigned channels);

#endif
