/*
 * Descriptions of texture channels. No GPU is asked; and as it returns a struct, no
 * stub could stand for it.
 */
#include "frontend/libcudart/cudart.h"

FGV_EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
							      enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = f};
}
