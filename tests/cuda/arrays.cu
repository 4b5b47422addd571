/*
 * CUDA arrays: their descriptions, copies to and from them in all forms, layers, mipmap
 * levels, and that they are freed.
 */
#include "test.h"

enum { W = 64, H = 24, D = 5 };

static int in[W * H * D], out[W * H * D];

/* Elements of `out`: those of `in` from @from on where inside, else 0xeeeeeeee. */
static void expect_run(size_t first, size_t count, size_t from)
{
	for (size_t i = 0; i < W * H * D; i++)
		EXPECT_EQ(i - first < count ? in[i - first + from] : (int)0xeeeeeeee, out[i]);
	memset(out, 0xee, sizeof(out));
}

static void descriptions(void)
{
	cudaChannelFormatDesc wanted = cudaCreateChannelDesc<ushort4>(), desc;
	cudaExtent extent;
	cudaArray_t array;
	unsigned flags;

	CUDA(cudaMallocArray(&array, &wanted, 7, 9, cudaArraySurfaceLoadStore));
	CUDA(cudaArrayGetInfo(&desc, &extent, &flags, array));
	EXPECT(!memcmp(&desc, &wanted, sizeof(desc)));
	EXPECT_EQ(7, extent.width);
	EXPECT_EQ(9, extent.height);
	EXPECT_EQ(0, extent.depth);
	EXPECT_EQ(cudaArraySurfaceLoadStore, flags);
	memset(&desc, 0, sizeof(desc));
	CUDA(cudaGetChannelDesc(&desc, array));
	EXPECT(!memcmp(&desc, &wanted, sizeof(desc)));
	CUDA(cudaArrayGetInfo(NULL, &extent, NULL, array));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(NULL));
}

static void rectangles(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
	cudaArray_t array, other;

	CUDA(cudaMallocArray(&array, &desc, W, H));
	CUDA(cudaMallocArray(&other, &desc, 2 * W, 2 * H));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2DFromArray(out, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	expect_run(0, W * H, 0);
	CUDA(cudaMemcpy2DArrayToArray(other, 32, 5, array, 0, 0, W * 4, H,
				      cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpy2DFromArrayAsync(out, W * 4, other, 32, 6, W * 4, H - 1, cudaMemcpyDefault,
					0));
	CUDA(cudaStreamSynchronize(0));
	expect_run(0, W * (H - 1), W);
	CUDA(cudaMemcpy2DToArrayAsync(array, 8, 3, in, W * 4, 16, 1, cudaMemcpyHostToDevice, 0));
	CUDA(cudaMemcpy2DFromArray(out, 16, array, 8, 3, 16, 1, cudaMemcpyDeviceToHost));
	expect_run(0, 4, 0);
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(other));
}

/* Between arrays and linear memory of the device, and in both directions with the host. */
static void boxes(unsigned flags)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int2>();
	cudaExtent extent = make_cudaExtent(W / 2, H, D);
	cudaMemcpy3DParms p = {};
	cudaPitchedPtr linear;
	cudaArray_t array;

	CUDA(cudaMalloc3DArray(&array, &desc, extent, flags));
	CUDA(cudaMalloc3D(&linear, make_cudaExtent(W * 4, H, D)));
	p.srcPtr = make_cudaPitchedPtr(in, W * 4, W / 2, H);
	p.dstArray = array;
	p.extent = extent;
	p.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&p));
	memset(&p.srcPtr, 0, sizeof(p.srcPtr));
	p.srcArray = array;
	p.dstArray = NULL;
	p.dstPtr = linear;
	p.kind = cudaMemcpyDeviceToDevice;
	CUDA(cudaMemcpy3D(&p));
	p.srcArray = NULL;
	p.srcPtr = linear;
	p.extent.width = W * 4;
	p.dstPtr = make_cudaPitchedPtr(out, W * 4, W * 4, H);
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&p));
	expect_run(0, W * H * D, 0);
	/* A slice's row from its middle. */
	memset(&p.srcPtr, 0, sizeof(p.srcPtr));
	p.srcArray = array;
	p.srcPos = make_cudaPos(3, 2, 4);
	p.extent = make_cudaExtent(5, 1, 1);
	CUDA(cudaMemcpy3D(&p));
	expect_run(0, 10, 6 + W * (2 + H * 4));
	CUDA(cudaFree(linear.ptr));
	CUDA(cudaFreeArray(array));
}

static void mipmapped(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
	cudaMipmappedArray_t whole;
	cudaArray_t level, again;
	cudaExtent extent;

	CUDA(cudaMallocMipmappedArray(&whole, &desc, make_cudaExtent(W, H, 0), 3));
	CUDA(cudaGetMipmappedArrayLevel(&level, whole, 1));
	CUDA(cudaArrayGetInfo(NULL, &extent, NULL, level));
	EXPECT_EQ(W / 2, extent.width);
	EXPECT_EQ(H / 2, extent.height);
	CUDA(cudaMemcpy2DToArray(level, 0, 0, in, W * 2, W * 2, H / 2, cudaMemcpyHostToDevice));
	CUDA(cudaGetMipmappedArrayLevel(&level, whole, 0));
	CUDA(cudaMemcpy2DToArray(level, 0, 0, in + 8, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CUDA(cudaGetMipmappedArrayLevel(&again, whole, 1));
	CUDA(cudaMemcpy2DFromArray(out, W * 2, again, 0, 0, W * 2, H / 2, cudaMemcpyDeviceToHost));
	expect_run(0, W / 2 * H / 2, 0);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&again, whole, 3));
	cudaGetLastError();
	CUDA(cudaFreeMipmappedArray(whole));
}

/* More than the device's memory in all, if they were not freed. */
static void freed(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int4>();
	size_t before, after, total;
	cudaArray_t array;

	CUDA(cudaMallocArray(&array, &desc, 64, 64));
	CUDA(cudaFreeArray(array));
	CUDA(cudaMemGetInfo(&before, &total));
	for (int i = 0; i < 200; i++) {
		CUDA(cudaMallocArray(&array, &desc, 1024, 256));
		CUDA(cudaFreeArray(array));
	}
	CUDA(cudaMemGetInfo(&after, &total));
	EXPECT(after + (64 << 20) > before);
}

/* Old, but there. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Whole rows, and a piece of one. */
static void between(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
	cudaArray_t one, two;

	CUDA(cudaMallocArray(&one, &desc, W, H));
	CUDA(cudaMallocArray(&two, &desc, W, H));
	CUDA(cudaMemcpy2DToArray(one, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpyArrayToArray(two, 0, 0, one, 0, 1, (H - 1) * W * 4,
				    cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpyArrayToArray(two, 8, H - 1, one, 4, 0, 12, cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpy2DFromArray(out, W * 4, two, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	for (int i = 0; i < (H - 1) * W; i++)
		EXPECT_EQ(in[W + i], out[i]);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(in[1 + i], out[(H - 1) * W + 2 + i]);
	CUDA(cudaFreeArray(one));
	CUDA(cudaFreeArray(two));
}

/* What only arrays have that are made in ways of their own. */
static void no_parts(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
	cudaArrayMemoryRequirements requirements;
	cudaArraySparseProperties sparse;
	cudaArray_t array, plane;

	CUDA(cudaMallocArray(&array, &desc, W, H));
	EXPECT_CODE(cudaErrorInvalidValue, cudaArrayGetPlane(&plane, array, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaArrayGetSparseProperties(&sparse, array));
	EXPECT_CODE(cudaErrorInvalidValue, cudaArrayGetMemoryRequirements(&requirements, array, 0));
	cudaGetLastError();
	CUDA(cudaFreeArray(array));
}

static void mistakes(void)
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>(), odd = desc;
	cudaArray_t array;

	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocArray(NULL, &desc, W, H));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocArray(&array, NULL, W, H));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocArray(&array, &desc, 0, H));
	odd.x = 7;
	EXPECT_CODE(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &odd, W, H));
	CUDA(cudaMallocArray(&array, &desc, W, H));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy2DToArray(array, 4, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy2DToArray(array, 0, 1, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	EXPECT_CODE(
		cudaErrorInvalidPitchValue,
		cudaMemcpy2DToArray(array, 0, 0, in, W * 4 - 1, W * 4, H, cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 0, 0, NULL, W * 4, W * 4, H,
							       cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidMemcpyDirection,
		    cudaMemcpy2DToArray(array, 0, 0, in, W * 4, W * 4, H, (cudaMemcpyKind)8));
	cudaGetLastError();
	CUDA(cudaFreeArray(array));
}

int main(void)
{
	for (int i = 0; i < W * H * D; i++)
		in[i] = 7 * i + 1;
	memset(out, 0xee, sizeof(out));
	descriptions();
	rectangles();
	boxes(0);
	boxes(cudaArrayLayered);
	mipmapped();
	between();
	no_parts();
	freed();
	mistakes();
	return 0;
}
