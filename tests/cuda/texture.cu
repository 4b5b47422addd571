/*
 * Texture objects: arrays, linear and pitched memory; address modes, filtering, read modes,
 * layers, levels; and what is refused. Weights are multiples of 1/4, which all GPUs
 * represent.
 */
#include "test.h"

enum { W = 16, H = 8, D = 4 };

static float in[W * H * D], *results;

static cudaResourceDesc of_array(cudaArray_t array)
{
	cudaResourceDesc desc;

	memset(&desc, 0, sizeof(desc));
	desc.resType = cudaResourceTypeArray;
	desc.res.array.array = array;
	return desc;
}

static cudaTextureDesc plain(cudaTextureAddressMode mode, cudaTextureFilterMode filter,
			     bool normalized)
{
	cudaTextureDesc how;

	memset(&how, 0, sizeof(how));
	for (int i = 0; i < 3; i++)
		how.addressMode[i] = mode;
	how.filterMode = filter;
	how.normalizedCoords = normalized;
	return how;
}

static cudaTextureObject_t make(cudaResourceDesc desc, cudaTextureDesc how)
{
	cudaTextureObject_t texture;

	CUDA(cudaCreateTextureObject(&texture, &desc, &how, NULL));
	return texture;
}

static __global__ void read_1d(cudaTextureObject_t texture, float x, float *out)
{
	*out = tex1D<float>(texture, x);
}

static __global__ void read_2d(cudaTextureObject_t texture, float x, float y, float *out)
{
	*out = tex2D<float>(texture, x, y);
}

static __global__ void read_3d(cudaTextureObject_t texture, float x, float y, float z, float *out)
{
	*out = tex3D<float>(texture, x, y, z);
}

static __global__ void read_layer(cudaTextureObject_t texture, float x, float y, int layer,
				  float *out)
{
	*out = tex2DLayered<float>(texture, x, y, layer);
}

static __global__ void read_level(cudaTextureObject_t texture, float x, float y, float level,
				  float *out)
{
	*out = tex2DLod<float>(texture, x, y, level);
}

static __global__ void fetch_all(cudaTextureObject_t texture, int count, int first, float *out)
{
	int i = threadIdx.x;

	if (i < count)
		out[i] = tex1Dfetch<float>(texture, i + first);
}

static __global__ void read_pixels(cudaTextureObject_t texture, uchar4 *out)
{
	out[threadIdx.x] = tex2D<uchar4>(texture, threadIdx.x, 1);
}

static __global__ void read_fractions(cudaTextureObject_t texture, float4 *out)
{
	*out = tex2D<float4>(texture, 1, 1);
}

static float result(void)
{
	float value;

	EXPECT_CODE(cudaSuccess, cudaGetLastError());
	CUDA(cudaMemcpy(&value, results, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static float at_1d(cudaTextureObject_t texture, float x)
{
	read_1d<<<1, 1>>>(texture, x, results);
	return result();
}

static float at_2d(cudaTextureObject_t texture, float x, float y)
{
	read_2d<<<1, 1>>>(texture, x, y, results);
	return result();
}

static void expect_near(float wanted, float value, int line)
{
	if (!(value - wanted < 1e-4f && wanted - value < 1e-4f))
		FAIL("line %d: %f, not %f", line, value, wanted);
}

#define NEAR(wanted, value) expect_near(wanted, value, __LINE__)

/* in[x] = x in an array of W. */
static void one_dimension(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
	cudaTextureObject_t texture;
	cudaArray_t array;

	CUDA(cudaMallocArray(&array, &desc, W));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, in, W * 4, W * 4, 1, cudaMemcpyHostToDevice));
	texture = make(of_array(array), plain(cudaAddressModeClamp, cudaFilterModePoint, false));
	NEAR(3, at_1d(texture, 3.75f));
	NEAR(0, at_1d(texture, -5));
	NEAR(W - 1, at_1d(texture, W + 3));
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(of_array(array), plain(cudaAddressModeClamp, cudaFilterModeLinear, false));
	NEAR(3, at_1d(texture, 3.5f));
	NEAR(3.25f, at_1d(texture, 3.75f));
	NEAR(0, at_1d(texture, 0.25f));
	NEAR(W - 1, at_1d(texture, W - 0.25f));
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(of_array(array), plain(cudaAddressModeBorder, cudaFilterModePoint, false));
	NEAR(0, at_1d(texture, -1));
	NEAR(0, at_1d(texture, W + 0.5f));
	NEAR(W - 1, at_1d(texture, W - 0.5f));
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(of_array(array), plain(cudaAddressModeWrap, cudaFilterModePoint, true));
	NEAR(4, at_1d(texture, 4.5f / W));
	NEAR(4, at_1d(texture, 2 + 4.5f / W));
	NEAR(W - 2, at_1d(texture, -1.5f / W));
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(of_array(array), plain(cudaAddressModeWrap, cudaFilterModeLinear, true));
	NEAR((W - 1) * 0.5f, at_1d(texture, 0));
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(of_array(array), plain(cudaAddressModeMirror, cudaFilterModePoint, true));
	NEAR(1, at_1d(texture, -1.5f / W));
	NEAR(W - 3, at_1d(texture, 1 + 2.5f / W));
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
}

static void two_dimensions(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
	cudaTextureObject_t texture;
	cudaResourceDesc pitched;
	cudaArray_t array;
	size_t pitch;
	float *rows;

	CUDA(cudaMallocArray(&array, &desc, W, H));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	texture = make(of_array(array), plain(cudaAddressModeClamp, cudaFilterModePoint, false));
	NEAR(5 + 3 * W, at_2d(texture, 5, 3));
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(of_array(array), plain(cudaAddressModeClamp, cudaFilterModeLinear, true));
	NEAR(5.25f + 3.5f * W, at_2d(texture, 5.75f / W, 4.0f / H));
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));

	CUDA(cudaMallocPitch(&rows, &pitch, W * 4, H));
	CUDA(cudaMemcpy2D(rows, pitch, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	memset(&pitched, 0, sizeof(pitched));
	pitched.resType = cudaResourceTypePitch2D;
	pitched.res.pitch2D.devPtr = rows;
	pitched.res.pitch2D.desc = desc;
	pitched.res.pitch2D.width = W;
	pitched.res.pitch2D.height = H;
	pitched.res.pitch2D.pitchInBytes = pitch;
	texture = make(pitched, plain(cudaAddressModeClamp, cudaFilterModeLinear, false));
	NEAR(5.5f + 2.25f * W, at_2d(texture, 6, 2.75f));
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFree(rows));
}

static cudaArray_t volume(unsigned flags)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
	cudaMemcpy3DParms p = {};
	cudaArray_t array;

	CUDA(cudaMalloc3DArray(&array, &desc, make_cudaExtent(W, H, D), flags));
	p.srcPtr = make_cudaPitchedPtr(in, W * 4, W, H);
	p.dstArray = array;
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&p));
	return array;
}

static void three_dimensions(void)
{
	cudaArray_t array = volume(0), layers = volume(cudaArrayLayered);
	cudaTextureObject_t texture =
		make(of_array(array), plain(cudaAddressModeClamp, cudaFilterModeLinear, false));

	read_3d<<<1, 1>>>(texture, 6, 3.5f, 1.75f, results);
	NEAR(5.5f + 3 * W + 1.25f * W * H, result());
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(of_array(layers),
		       plain(cudaAddressModeClamp, cudaFilterModeLinear, false));
	read_layer<<<1, 1>>>(texture, 6, 3.5f, 2, results);
	NEAR(5.5f + 3 * W + 2 * W * H, result());
	read_layer<<<1, 1>>>(texture, 6, 3.5f, D + 5, results);
	NEAR(5.5f + 3 * W + (D - 1) * W * H, result());
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(layers));
}

static void levels(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
	cudaTextureDesc how = plain(cudaAddressModeClamp, cudaFilterModePoint, true);
	cudaMipmappedArray_t whole;
	cudaTextureObject_t texture;
	cudaResourceDesc resource;
	cudaArray_t level;

	CUDA(cudaMallocMipmappedArray(&whole, &desc, make_cudaExtent(W, H, 0), 2));
	CUDA(cudaGetMipmappedArrayLevel(&level, whole, 0));
	CUDA(cudaMemcpy2DToArray(level, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CUDA(cudaGetMipmappedArrayLevel(&level, whole, 1));
	CUDA(cudaMemcpy2DToArray(level, 0, 0, in + 100, W * 2, W * 2, H / 2,
				 cudaMemcpyHostToDevice));
	memset(&resource, 0, sizeof(resource));
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = whole;
	how.mipmapFilterMode = cudaFilterModeLinear;
	how.maxMipmapLevelClamp = 1;
	texture = make(resource, how);
	read_level<<<1, 1>>>(texture, 0.01f, 0.01f, 0, results);
	NEAR(0, result());
	read_level<<<1, 1>>>(texture, 0.01f, 0.01f, 5, results);
	NEAR(100, result());
	read_level<<<1, 1>>>(texture, 0.01f, 0.01f, 0.5f, results);
	NEAR(50, result());
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeMipmappedArray(whole));
}

static void linear_memory(void)
{
	cudaTextureDesc how = plain(cudaAddressModeClamp, cudaFilterModePoint, false);
	cudaTextureObject_t texture;
	cudaResourceDesc resource, told;
	float *memory, out[32];

	CUDA(cudaMalloc(&memory, sizeof(in)));
	CUDA(cudaMemcpy(memory, in, sizeof(in), cudaMemcpyHostToDevice));
	memset(&resource, 0, sizeof(resource));
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.desc = cudaCreateChannelDesc<float>();
	resource.res.linear.sizeInBytes = sizeof(in);
	texture = make(resource, how);
	LAUNCH(fetch_all<<<1, 32>>>(texture, 32, W * H * D - 30, results));
	CUDA(cudaMemcpy(out, results, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 30; i++)
		NEAR((float)(W * H * D - 30 + i), out[i]);
	NEAR(0, out[30]);
	memset(&told, 0xff, sizeof(told));
	CUDA(cudaGetTextureObjectResourceDesc(&told, texture));
	EXPECT(told.resType == cudaResourceTypeLinear && told.res.linear.devPtr == memory);
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFree(memory));
}

static void pixels(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<uchar4>();
	cudaTextureDesc how = plain(cudaAddressModeClamp, cudaFilterModePoint, false);
	unsigned char image[2 * 4 * 4], out[16];
	cudaTextureObject_t texture;
	cudaArray_t array;
	float fractions[4];

	for (unsigned i = 0; i < sizeof(image); i++)
		image[i] = (unsigned char)(i * 7);
	CUDA(cudaMallocArray(&array, &desc, 4, 2));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, image, 16, 16, 2, cudaMemcpyHostToDevice));
	texture = make(of_array(array), how);
	LAUNCH(read_pixels<<<1, 4>>>(texture, (uchar4 *)results));
	CUDA(cudaMemcpy(out, results, sizeof(out), cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(out, image + 16, sizeof(out)));
	CUDA(cudaDestroyTextureObject(texture));
	how.readMode = cudaReadModeNormalizedFloat;
	texture = make(of_array(array), how);
	LAUNCH(read_fractions<<<1, 1>>>(texture, (float4 *)results));
	CUDA(cudaMemcpy(fractions, results, sizeof(fractions), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 4; i++)
		NEAR(image[20 + i] / 255.0f, fractions[i]);
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
}

static void mistakes(void)
{
	cudaTextureDesc how = plain(cudaAddressModeClamp, cudaFilterModePoint, false);
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
	cudaTextureObject_t texture;
	cudaResourceDesc resource;
	cudaArray_t array;

	CUDA(cudaMallocArray(&array, &desc, W, H));
	resource = of_array(array);
	EXPECT_CODE(cudaErrorInvalidValue, cudaCreateTextureObject(NULL, &resource, &how, NULL));
	EXPECT_CODE(cudaErrorInvalidValue, cudaCreateTextureObject(&texture, NULL, &how, NULL));
	EXPECT_CODE(cudaErrorInvalidResourceHandle,
		    cudaCreateTextureObject(&texture, &resource, NULL, NULL));
	cudaGetLastError();
	CUDA(cudaFreeArray(array));
}

int main(void)
{
	for (int i = 0; i < W * H * D; i++)
		in[i] = (float)i;
	CUDA(cudaMalloc(&results, 4096));
	one_dimension();
	two_dimensions();
	three_dimensions();
	levels();
	linear_memory();
	pixels();
	mistakes();
	CUDA(cudaFree(results));
	return 0;
}
