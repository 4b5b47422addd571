/*
 * Textures whose coordinates are directions: every texel of every face is where CUDA's table of
 * faces says, in one cube and in a row of cubes. And colours that are kept as sRGB.
 */
#include "test.h"

#include <math.h>

#define EDGE  4
#define FACES 6
#define CUBES 2
#define COUNT (EDGE * EDGE * FACES)

static float texels[COUNT * CUBES], got[COUNT];

static __global__ void read_cube(cudaTextureObject_t texture, const float3 *where, float *out)
{
	float3 d = where[threadIdx.x];

	out[threadIdx.x] = texCubemap<float>(texture, d.x, d.y, d.z);
}

static __global__ void read_cubes(cudaTextureObject_t texture, const float3 *where, int cube,
				  float *out)
{
	float3 d = where[threadIdx.x];

	out[threadIdx.x] = texCubemapLayered<float>(texture, d.x, d.y, d.z, cube);
}

static __global__ void read_colour(cudaTextureObject_t texture, float4 *out)
{
	out[threadIdx.x] = tex1D<float4>(texture, threadIdx.x);
}

/* The direction, of length @m along its main axis, that leads to (s, t) in [-1, 1] of a face. */
static float3 direction(int face, float s, float t, float m)
{
	switch (face) {
	case 0:
		return make_float3(m, -t * m, -s * m);
	case 1:
		return make_float3(-m, -t * m, s * m);
	case 2:
		return make_float3(s * m, m, t * m);
	case 3:
		return make_float3(s * m, -m, -t * m);
	case 4:
		return make_float3(s * m, -t * m, m);
	default:
		return make_float3(-s * m, -t * m, -m);
	}
}

/* One for the middle of each texel, in the order of texels. */
static float3 *directions(void)
{
	float3 all[COUNT], *device;

	for (int i = 0; i < COUNT; i++) {
		float s = (float)(i % EDGE * 2 + 1) / EDGE - 1;
		float t = (float)(i / EDGE % EDGE * 2 + 1) / EDGE - 1;

		all[i] = direction(i / (EDGE * EDGE), s, t, i % 3 + 0.5f);
	}
	CUDA(cudaMalloc(&device, sizeof(all)));
	CUDA(cudaMemcpy(device, all, sizeof(all), cudaMemcpyHostToDevice));
	return device;
}

static cudaArray_t cubes(int count, unsigned flags)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaMemcpy3DParms copy = {};
	cudaArray_t array;

	copy.extent = make_cudaExtent(EDGE, EDGE, (size_t)(FACES * count));
	CUDA(cudaMalloc3DArray(&array, &format, copy.extent, flags));
	copy.srcPtr = make_cudaPitchedPtr(texels, EDGE * sizeof(float), EDGE, EDGE);
	copy.dstArray = array;
	copy.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&copy));
	return array;
}

static cudaTextureObject_t texture_of(cudaArray_t array, bool is_colour)
{
	cudaResourceDesc what = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;

	what.resType = cudaResourceTypeArray;
	what.res.array.array = array;
	how.normalizedCoords = !is_colour;
	how.sRGB = is_colour;
	how.readMode = is_colour ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
	CUDA(cudaCreateTextureObject(&texture, &what, &how, NULL));
	return texture;
}

static void expect_texels(const char *what, const float *out, int first)
{
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++) {
		if (got[i] != texels[first + i])
			FAIL("%s: texel %d of face %d is %g, not %g", what, i % (EDGE * EDGE),
			     i / (EDGE * EDGE), got[i], texels[first + i]);
	}
}

static void faces(void)
{
	cudaArray_t one = cubes(1, cudaArrayCubemap);
	cudaArray_t several = cubes(CUBES, cudaArrayCubemap | cudaArrayLayered);
	cudaTextureObject_t texture = texture_of(one, false);
	cudaTextureObject_t layered = texture_of(several, false);
	float3 *where = directions();
	float *out;

	CUDA(cudaMalloc(&out, sizeof(got)));
	LAUNCH(read_cube<<<1, COUNT>>>(texture, where, out));
	expect_texels("a cube", out, 0);
	for (int cube = 0; cube < CUBES; cube++) {
		LAUNCH(read_cubes<<<1, COUNT>>>(layered, where, cube, out));
		expect_texels("one of several cubes", out, cube * COUNT);
	}
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaDestroyTextureObject(layered));
	CUDA(cudaFreeArray(one));
	CUDA(cudaFreeArray(several));
	CUDA(cudaFree(where));
	CUDA(cudaFree(out));
}

static void expect_colour(float wanted, float value, const char *channel, int i)
{
	if (fabsf(value - wanted) > 1.0f / 256)
		FAIL("%s of colour %d is %g, not %g", channel, i, value, wanted);
}

static double from_srgb(double x)
{
	return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

/* Three channels are curved, the fourth is not. */
static void colours(void)
{
	static const unsigned char steps[] = {0, 5, 30, 64, 128, 200, 254, 255};
	const int count = sizeof(steps);
	cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
	cudaTextureObject_t texture;
	uchar4 colour[sizeof(steps)];
	float4 values[sizeof(steps)], *out;
	cudaArray_t array;

	for (int i = 0; i < count; i++)
		colour[i] = make_uchar4(steps[i], steps[count - 1 - i], 77, steps[i]);
	CUDA(cudaMallocArray(&array, &format, (size_t)count));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, colour, sizeof(colour), sizeof(colour), 1,
				 cudaMemcpyHostToDevice));
	texture = texture_of(array, true);
	CUDA(cudaMalloc(&out, sizeof(values)));
	LAUNCH(read_colour<<<1, count>>>(texture, out));
	CUDA(cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost));
	for (int i = 0; i < count; i++) {
		expect_colour((float)from_srgb(colour[i].x / 255.0), values[i].x, "red", i);
		expect_colour((float)from_srgb(colour[i].y / 255.0), values[i].y, "green", i);
		expect_colour((float)from_srgb(colour[i].z / 255.0), values[i].z, "blue", i);
		expect_colour(colour[i].w / 255.0f, values[i].w, "alpha", i);
	}
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(out));
}

int main(void)
{
	for (int i = 0; i < COUNT * CUBES; i++)
		texels[i] = (float)(i * 7 % 1000) + 1;
	faces();
	colours();
	return 0;
}
