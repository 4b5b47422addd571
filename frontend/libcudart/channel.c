/*
 * No GPU is asked; and as cudaCreateChannelDesc() returns a struct, no stub could stand for it.
 */
#include "frontend/libcudart/channel.h"

#include "common/texel.h"
#include "common/util.h"
#include "frontend/libcudart/cudart.h"

static const struct format {
	enum cudaChannelFormatKind kind;
	int bits;
	CUarray_format format;
} formats[] = {
	{cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
	{cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
	{cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
	{cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
	{cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
	{cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
	{cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
	{cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

static CUarray_format format_of(enum cudaChannelFormatKind kind, int bits)
{
	for (unsigned i = 0; i < FGV_ARRAY_LEN(formats); i++) {
		if (formats[i].kind == kind && formats[i].bits == bits)
			return formats[i].format;
	}
	return (CUarray_format)0;
}

cudaError_t fgv_channel_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format,
			       unsigned *channels)
{
	const int bits[] = {desc->x, desc->y, desc->z, desc->w};
	unsigned count = 0;

	if ((unsigned)desc->f > cudaChannelFormatKindNone)
		return cudaErrorNotSupported;
	while (count < 4 && bits[count])
		count++;
	for (unsigned i = 0; i < 4; i++) {
		if (bits[i] != (i < count ? desc->x : 0))
			return cudaErrorInvalidChannelDescriptor;
	}
	*format = format_of(desc->f, desc->x);
	*channels = count;
	if (!fgv_texel_bytes(*format, count))
		return cudaErrorInvalidChannelDescriptor;
	return cudaSuccess;
}

struct cudaChannelFormatDesc fgv_channel_desc(CUarray_format format, unsigned channels)
{
	struct cudaChannelFormatDesc desc = {.f = cudaChannelFormatKindNone};

	for (unsigned i = 0; i < FGV_ARRAY_LEN(formats); i++) {
		const struct format *each = &formats[i];

		if (each->format == format)
			desc = (struct cudaChannelFormatDesc){
				.x = each->bits,
				.y = channels > 1 ? each->bits : 0,
				.z = channels > 2 ? each->bits : 0,
				.w = channels > 3 ? each->bits : 0,
				.f = each->kind,
			};
	}
	return desc;
}

FGV_EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
							      enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = f};
}
