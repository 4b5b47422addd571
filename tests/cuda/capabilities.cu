/*
 * What a device says that it can do beyond its attributes: how long a texture of linear memory
 * may be, what is atomic across its links, and whether remote writes can be flushed.
 */
#include "test.h"

static int attribute(enum cudaDeviceAttr which)
{
	int value = -1;

	CUDA(cudaDeviceGetAttribute(&value, which, 0));
	return value;
}

static size_t width_of(const cudaChannelFormatDesc &desc)
{
	size_t width = 0;

	CUDA(cudaDeviceGetTexture1DLinearMaxWidth(&width, &desc, 0));
	return width;
}

static void linear_textures(void)
{
	cudaChannelFormatDesc one = cudaCreateChannelDesc<float>();
	cudaChannelFormatDesc odd = {24, 0, 0, 0, cudaChannelFormatKindUnsigned};
	size_t width;

	EXPECT(width_of(one) >= (size_t)1 << 27);
	EXPECT(width_of(cudaCreateChannelDesc<unsigned char>()) >= width_of(one));
	EXPECT(width_of(one) >= width_of(cudaCreateChannelDesc<float4>()));
	EXPECT(width_of(cudaCreateChannelDesc<float4>()) > 0);
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceGetTexture1DLinearMaxWidth(NULL, &one, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceGetTexture1DLinearMaxWidth(&width, NULL, 0));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceGetTexture1DLinearMaxWidth(&width, &one, 99));
	EXPECT(cudaDeviceGetTexture1DLinearMaxWidth(&width, &odd, 0) != cudaSuccess);
	cudaGetLastError();
}

static void atomics(void)
{
	const cudaAtomicOperation some[] = {cudaAtomicOperationCAS, cudaAtomicOperationFloatMax,
					    cudaAtomicOperationIntegerAdd};
	const cudaAtomicOperation none = (cudaAtomicOperation)1000;
	unsigned found[4] = {77, 77, 77, 77}, again;

	CUDA(cudaDeviceGetHostAtomicCapabilities(found, some, 3, 0));
	EXPECT_EQ(77, found[3]);
	CUDA(cudaDeviceGetHostAtomicCapabilities(&again, &some[2], 1, 0));
	EXPECT_EQ(found[2], again);
	if (attribute(cudaDevAttrHostNativeAtomicSupported))
		EXPECT(found[0] & cudaAtomicCapabilityScalar32);
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceGetHostAtomicCapabilities(NULL, some, 1, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceGetHostAtomicCapabilities(found, NULL, 1, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceGetHostAtomicCapabilities(found, some, 0, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceGetHostAtomicCapabilities(found, &none, 1, 0));
	EXPECT_CODE(cudaErrorInvalidDevice,
		    cudaDeviceGetHostAtomicCapabilities(found, some, 1, 99));
	EXPECT_CODE(cudaErrorInvalidDevice,
		    cudaDeviceGetP2PAtomicCapabilities(found, some, 1, 0, 0));
	EXPECT_CODE(cudaErrorInvalidDevice,
		    cudaDeviceGetP2PAtomicCapabilities(found, some, 1, 0, 99));
	cudaGetLastError();
}

static void remote_writes(void)
{
	int options = attribute(cudaDevAttrGPUDirectRDMAFlushWritesOptions);
	cudaError_t error =
		cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
						   cudaFlushGPUDirectRDMAWritesToOwner);

	EXPECT_EQ(options & cudaFlushGPUDirectRDMAWritesOptionHost ? cudaSuccess
								   : cudaErrorNotSupported,
		  error);
	cudaGetLastError();
}

int main(void)
{
	linear_textures();
	atomics();
	remote_writes();
	return 0;
}
