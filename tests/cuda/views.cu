/*
 * Views of arrays that textures read: as elements of another type and the same size, from a
 * level on, and of some of the layers.
 */
#include "test.h"

enum { W = 16, H = 8, D = 4 };

static __global__ void read_floats(cudaTextureObject_t texture, float x, float y, float *out)
{
	*out = tex2D<float>(texture, x, y);
}

static __global__ void read_bits(cudaTextureObject_t texture, float x, float y, unsigned *out)
{
	*out = tex2D<unsigned>(texture, x, y);
}

static __global__ void read_level(cudaTextureObject_t texture, float level, float *out)
{
	*out = tex2DLod<float>(texture, 0.5f, 0.5f, level);
}

static __global__ void read_layer(cudaTextureObject_t texture, int layer, float *out)
{
	*out = tex2DLayered<float>(texture, 2.5f, 1.5f, layer);
}

static void *result;

#define READ(type, kernel, ...)                                                                    \
	({                                                                                         \
		type value;                                                                        \
                                                                                                   \
		kernel<<<1, 1>>>(__VA_ARGS__, (type *)result);                                     \
		CUDA(cudaGetLastError());                                                          \
		CUDA(cudaMemcpy(&value, result, sizeof(value), cudaMemcpyDeviceToHost));           \
		value;                                                                             \
	})

static cudaResourceViewDesc view_of(cudaResourceViewFormat format, size_t height, size_t depth)
{
	cudaResourceViewDesc view = {};

	view.format = format;
	view.width = W;
	view.height = height;
	view.depth = depth;
	return view;
}

static cudaResourceDesc of_array(cudaArray_t array)
{
	cudaResourceDesc desc = {};

	desc.resType = cudaResourceTypeArray;
	desc.res.array.array = array;
	return desc;
}

static cudaTextureObject_t make(const cudaResourceDesc *desc, const cudaResourceViewDesc *view,
				bool normalized)
{
	cudaTextureObject_t texture;
	cudaTextureDesc how = {};

	how.normalizedCoords = normalized;
	how.maxMipmapLevelClamp = 10;
	CUDA(cudaCreateTextureObject(&texture, desc, &how, view));
	return texture;
}

static void refuse(const cudaResourceDesc *desc, const cudaResourceViewDesc *view)
{
	cudaTextureObject_t texture;
	cudaTextureDesc how = {};

	EXPECT_CODE(cudaErrorInvalidValue, cudaCreateTextureObject(&texture, desc, &how, view));
	cudaGetLastError();
}

static void test_formats(void)
{
	cudaResourceViewDesc view = view_of(cudaResViewFormatUnsignedInt1, H, 0), got;
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaTextureObject_t texture;
	cudaResourceDesc desc;
	cudaArray_t array;
	float in[W * H];
	unsigned bits;

	for (int i = 0; i < W * H; i++)
		in[i] = 1.5f * i;
	CUDA(cudaMallocArray(&array, &floats, W, H));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	desc = of_array(array);
	memcpy(&bits, &in[3 * W + 5], sizeof(bits));
	texture = make(&desc, &view, false);
	EXPECT_EQ(bits, READ(unsigned, read_bits, texture, 5.5f, 3.5f));
	CUDA(cudaGetTextureObjectResourceViewDesc(&got, texture));
	EXPECT(got.format == cudaResViewFormatUnsignedInt1 && got.width == W);
	CUDA(cudaDestroyTextureObject(texture));
	texture = make(&desc, NULL, false);
	EXPECT(READ(float, read_floats, texture, 5.5f, 3.5f) == in[3 * W + 5]);
	/* Without a view there is nothing to tell, and it says so of textures only that are gone. */
	CUDA(cudaGetTextureObjectResourceViewDesc(&got, texture));
	CUDA(cudaDestroyTextureObject(texture));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGetTextureObjectResourceViewDesc(&got, texture));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGetTextureObjectResourceViewDesc(NULL, texture));
	cudaGetLastError();
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
}

static void test_levels(void)
{
	cudaResourceViewDesc view = view_of(cudaResViewFormatFloat1, H, 0);
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaTextureObject_t texture;
	cudaMipmappedArray_t whole;
	cudaResourceDesc desc = {};
	cudaArray_t level;
	float in[W * H];

	CUDA(cudaMallocMipmappedArray(&whole, &floats, make_cudaExtent(W, H, 0), 4));
	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < W * H; j++)
			in[j] = i + 1;
		CUDA(cudaGetMipmappedArrayLevel(&level, whole, i));
		CUDA(cudaMemcpy2DToArray(level, 0, 0, in, (W >> i) * 4, (W >> i) * 4, H >> i,
					 cudaMemcpyHostToDevice));
	}
	desc.resType = cudaResourceTypeMipmappedArray;
	desc.res.mipmap.mipmap = whole;
	view.firstMipmapLevel = 1;
	view.lastMipmapLevel = 2;
	texture = make(&desc, &view, true);
	EXPECT(READ(float, read_level, texture, 0.f) == 2);
	EXPECT(READ(float, read_level, texture, 1.f) == 3);
	EXPECT(READ(float, read_level, texture, 5.f) == 3);
	CUDA(cudaDestroyTextureObject(texture));
	view.lastMipmapLevel = 4;
	texture = make(&desc, &view, true);
	EXPECT(READ(float, read_level, texture, 0.f) == 2);
	CUDA(cudaDestroyTextureObject(texture));
	view.firstMipmapLevel = 3;
	view.lastMipmapLevel = 1;
	refuse(&desc, &view);
	view = view_of(cudaResViewFormatFloat1, H / 2, 0);
	view.width = W / 2;
	view.firstMipmapLevel = 1;
	view.lastMipmapLevel = 2;
	refuse(&desc, &view);
	CUDA(cudaFreeMipmappedArray(whole));
}

static void test_layers(void)
{
	cudaResourceViewDesc view = view_of(cudaResViewFormatFloat1, H, D);
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaMemcpy3DParms copy = {};
	cudaTextureObject_t texture;
	cudaResourceDesc desc;
	float in[W * H * D];
	cudaArray_t array;

	for (int i = 0; i < W * H * D; i++)
		in[i] = i;
	CUDA(cudaMalloc3DArray(&array, &floats, make_cudaExtent(W, H, D), cudaArrayLayered));
	copy.srcPtr = make_cudaPitchedPtr(in, W * 4, W, H);
	copy.dstArray = array;
	copy.extent = make_cudaExtent(W, H, D);
	copy.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&copy));
	desc = of_array(array);
	view.firstLayer = 1;
	view.lastLayer = 2;
	texture = make(&desc, &view, false);
	EXPECT(READ(float, read_layer, texture, 0) == W * H + W + 2);
	EXPECT(READ(float, read_layer, texture, 1) == 2 * W * H + W + 2);
	CUDA(cudaDestroyTextureObject(texture));
	view.lastLayer = D;
	texture = make(&desc, &view, false);
	CUDA(cudaDestroyTextureObject(texture));
	view = view_of(cudaResViewFormatFloat1, H, 2);
	view.firstLayer = 1;
	view.lastLayer = 2;
	refuse(&desc, &view);
	CUDA(cudaFreeArray(array));
}

static void test_wrong(void)
{
	cudaResourceViewDesc view = view_of(cudaResViewFormatFloat1, H + 1, 0);
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaResourceDesc desc, linear = {};
	cudaTextureObject_t texture;
	cudaArray_t array;

	CUDA(cudaMallocArray(&array, &floats, W, H));
	desc = of_array(array);
	refuse(&desc, &view);
	view = view_of(cudaResViewFormatNone, H, 0);
	refuse(&desc, &view);
	view = view_of(cudaResViewFormatFloat2, H, 0);
	refuse(&desc, &view);
	view = view_of(cudaResViewFormatFloat1, H, 0);
	view.lastMipmapLevel = 1;
	refuse(&desc, &view);
	view = view_of(cudaResViewFormatFloat1, H, 0);
	view.firstLayer = 1;
	refuse(&desc, &view);
	CUDA(cudaFreeArray(array));
	/* Of memory there is no view, and CUDA does not look at it. */
	linear.resType = cudaResourceTypeLinear;
	linear.res.linear.devPtr = result;
	linear.res.linear.desc = floats;
	linear.res.linear.sizeInBytes = 64;
	texture = make(&linear, &view, false);
	CUDA(cudaDestroyTextureObject(texture));
}

int main(void)
{
	CUDA(cudaMalloc(&result, 64));
	test_formats();
	test_levels();
	test_layers();
	test_wrong();
	CUDA(cudaFree(result));
	return 0;
}
