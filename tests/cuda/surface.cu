/*
 * Surface objects: kernels write to arrays and read from them, with what lies outside left
 * out where they ask for that; and what is refused.
 */
#include "test.h"

enum { W = 24, H = 6, D = 3 };

static __global__ void write_2d(cudaSurfaceObject_t surface)
{
	surf2Dwrite((int)(threadIdx.x + 100 * threadIdx.y), surface, threadIdx.x * 4, threadIdx.y);
}

static __global__ void add_2d(cudaSurfaceObject_t surface, int more)
{
	int value = surf2Dread<int>(surface, threadIdx.x * 4, threadIdx.y);

	surf2Dwrite(value + more, surface, threadIdx.x * 4, threadIdx.y);
}

static __global__ void write_zero(cudaSurfaceObject_t surface, int *out)
{
	int x = (int)threadIdx.x - 1;

	surf2Dwrite(7, surface, x * 4, 0, cudaBoundaryModeZero);
	out[threadIdx.x] = surf2Dread<int>(surface, x * 4, 0, cudaBoundaryModeZero);
}

static __global__ void read_clamped(cudaSurfaceObject_t surface, int *out)
{
	out[threadIdx.x] = surf2Dread<int>(surface, ((int)threadIdx.x - 1) * 4, H + 2,
					   cudaBoundaryModeClamp);
}

static __global__ void write_3d(cudaSurfaceObject_t surface)
{
	float2 value = make_float2((float)threadIdx.x, (float)(threadIdx.y + 10 * threadIdx.z));

	surf3Dwrite(value, surface, threadIdx.x * sizeof(float2), threadIdx.y, threadIdx.z);
}

static cudaSurfaceObject_t make(cudaArray_t array)
{
	cudaSurfaceObject_t surface;
	cudaResourceDesc desc;

	memset(&desc, 0, sizeof(desc));
	desc.resType = cudaResourceTypeArray;
	desc.res.array.array = array;
	CUDA(cudaCreateSurfaceObject(&surface, &desc));
	return surface;
}

static void flat(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
	cudaSurfaceObject_t surface;
	int host[W * H], *out;
	cudaArray_t array;

	CUDA(cudaMalloc(&out, (W + 2) * sizeof(int)));
	CUDA(cudaMallocArray(&array, &desc, W, H, cudaArraySurfaceLoadStore));
	surface = make(array);
	LAUNCH(write_2d<<<1, dim3(W, H)>>>(surface));
	LAUNCH(add_2d<<<1, dim3(W, H)>>>(surface, 5));
	CUDA(cudaMemcpy2DFromArray(host, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * H; i++)
		EXPECT_EQ(i % W + 100 * (i / W) + 5, host[i]);
	LAUNCH(read_clamped<<<1, W + 2>>>(surface, out));
	CUDA(cudaMemcpy(host, out, (W + 2) * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < W + 2; i++)
		EXPECT_EQ((i < 1 ? 0 : i > W ? W - 1 : i - 1) + 100 * (H - 1) + 5, host[i]);
	LAUNCH(write_zero<<<1, W + 2>>>(surface, out));
	CUDA(cudaMemcpy(host, out, (W + 2) * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < W + 2; i++)
		EXPECT_EQ(i < 1 || i > W ? 0 : 7, host[i]);
	CUDA(cudaDestroySurfaceObject(surface));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(out));
}

static void deep(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float2>();
	static float2 host[W * H * D];
	cudaMemcpy3DParms p = {};
	cudaArray_t array;
	cudaSurfaceObject_t surface;

	CUDA(cudaMalloc3DArray(&array, &desc, make_cudaExtent(W, H, D),
			       cudaArraySurfaceLoadStore));
	surface = make(array);
	LAUNCH(write_3d<<<1, dim3(W, H, D)>>>(surface));
	p.srcArray = array;
	p.dstPtr = make_cudaPitchedPtr(host, W * sizeof(float2), W, H);
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&p));
	for (int i = 0; i < W * H * D; i++) {
		EXPECT_EQ(i % W, host[i].x);
		EXPECT_EQ(i / W % H + 10 * (i / W / H), host[i].y);
	}
	CUDA(cudaDestroySurfaceObject(surface));
	CUDA(cudaFreeArray(array));
}

static void mistakes(void)
{
	cudaSurfaceObject_t surface;
	cudaResourceDesc desc;

	memset(&desc, 0, sizeof(desc));
	EXPECT_CODE(cudaErrorInvalidValue, cudaCreateSurfaceObject(&surface, NULL));
	EXPECT_CODE(cudaErrorInvalidValue, cudaCreateSurfaceObject(NULL, &desc));
	cudaGetLastError();
}

int main(void)
{
	flat();
	deep();
	mistakes();
	return 0;
}
