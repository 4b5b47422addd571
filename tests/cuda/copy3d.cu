/*
 * cudaMemcpy3D and cudaMemset3D on pitched memory: boxes in the middle of other boxes, with
 * everything around them left alone.
 */
#include "test.h"

enum { W = 96, H = 20, D = 6 };

static unsigned char in[W * H * D], out[W * H * D];

static size_t at(size_t x, size_t y, size_t z)
{
	return x + W * (y + H * z);
}

static bool inside(const cudaPos *from, const cudaExtent *extent, size_t x, size_t y, size_t z)
{
	return x - from->x < extent->width && y - from->y < extent->height &&
	       z - from->z < extent->depth;
}

/* The box at @to in `out` is that at @from in `in`; around it is 0xee. */
static void expect_box(cudaPos from, cudaPos to, cudaExtent extent)
{
	for (size_t z = 0; z < D; z++)
		for (size_t y = 0; y < H; y++)
			for (size_t x = 0; x < W; x++)
				EXPECT_EQ(inside(&to, &extent, x, y, z)
						  ? in[at(x - to.x + from.x, y - to.y + from.y,
							  z - to.z + from.z)]
						  : 0xee,
					  out[at(x, y, z)]);
	memset(out, 0xee, sizeof(out));
}

static cudaPitchedPtr host_of(unsigned char *host)
{
	return make_cudaPitchedPtr(host, W, W, H);
}

static void boxes(cudaPitchedPtr device, cudaPitchedPtr other)
{
	cudaPos here = make_cudaPos(3, 4, 1), there = make_cudaPos(10, 2, 0);
	cudaExtent extent = make_cudaExtent(50, 7, 4);
	cudaMemcpy3DParms p = {};

	p.srcPtr = host_of(in);
	p.srcPos = here;
	p.dstPtr = device;
	p.dstPos = there;
	p.extent = extent;
	p.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&p));
	p.srcPtr = device;
	p.srcPos = there;
	p.dstPtr = other;
	p.dstPos = make_cudaPos(0, 5, 2);
	p.kind = cudaMemcpyDeviceToDevice;
	CUDA(cudaMemcpy3D(&p));
	p.srcPtr = other;
	p.srcPos = p.dstPos;
	p.dstPtr = host_of(out);
	p.dstPos = there;
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&p));
	expect_box(here, there, extent);
	p.srcPtr = host_of(in);
	p.srcPos = here;
	p.kind = cudaMemcpyDefault;
	CUDA(cudaMemcpy3D(&p));
	expect_box(here, there, extent);
	p.extent.depth = 0;
	CUDA(cudaMemcpy3D(&p));
}

static void whole(cudaPitchedPtr device)
{
	cudaMemcpy3DParms p = {};
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	p.srcPtr = host_of(in);
	p.dstPtr = device;
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3DAsync(&p, stream));
	p.srcPtr = device;
	p.dstPtr = host_of(out);
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3DAsync(&p, stream));
	CUDA(cudaStreamSynchronize(stream));
	expect_box(make_cudaPos(0, 0, 0), make_cudaPos(0, 0, 0), p.extent);
	CUDA(cudaStreamDestroy(stream));
}

/* Larger than goes in one piece, with slices that have rows to spare. */
static void large(void)
{
	size_t width = 700, height = 400, depth = 9, rows = 403, pitch = 1000;
	size_t bytes = pitch * rows * depth;
	unsigned char *host = (unsigned char *)malloc(bytes);
	cudaMemcpy3DParms p = {};
	cudaPitchedPtr device;

	EXPECT(host != NULL);
	test_fill(host, bytes, 9);
	p.extent = make_cudaExtent(width, height, depth);
	CUDA(cudaMalloc3D(&device, p.extent));
	p.srcPtr = make_cudaPitchedPtr(host, pitch, width, rows);
	p.dstPtr = device;
	p.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&p));
	for (size_t y = 0; y < rows * depth; y++)
		if (y % rows < height)
			memset(host + y * pitch, 0, width);
	p.dstPtr = p.srcPtr;
	p.srcPtr = device;
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&p));
	EXPECT_EQ(bytes, test_compare(host, bytes, 9));
	CUDA(cudaFree(device.ptr));
	free(host);
}

/* A box at the start of each slice, whose slices have more rows than it. */
static void fills(cudaPitchedPtr device)
{
	cudaMemcpy3DParms p = {};

	CUDA(cudaMemset3D(device, 1, make_cudaExtent(W, H, D)));
	CUDA(cudaMemset3D(device, 2, make_cudaExtent(W, H, 1)));
	CUDA(cudaMemset3DAsync(device, 3, make_cudaExtent(10, 3, 2), 0));
	CUDA(cudaMemset3D(device, 4, make_cudaExtent(10, 0, 2)));
	p.srcPtr = device;
	p.dstPtr = host_of(out);
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&p));
	for (size_t z = 0; z < D; z++)
		for (size_t y = 0; y < H; y++)
			for (size_t x = 0; x < W; x++)
				EXPECT_EQ(x < 10 && y < 3 && z < 2 ? 3 : z < 1 ? 2 : 1,
					  out[at(x, y, z)]);
}

static void mistakes(cudaPitchedPtr device)
{
	cudaMemcpy3DParms p = {}, wrong;

	p.srcPtr = host_of(in);
	p.dstPtr = device;
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyHostToDevice;
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy3D(NULL));
	wrong = p;
	wrong.srcPtr.ptr = NULL;
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy3D(&wrong));
	wrong = p;
	wrong.kind = (enum cudaMemcpyKind)9;
	EXPECT_CODE(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&wrong));
	wrong = p;
	wrong.srcPtr.pitch = W - 1;
	EXPECT_CODE(cudaErrorInvalidPitchValue, cudaMemcpy3D(&wrong));
	cudaGetLastError();
}

int main(void)
{
	cudaPitchedPtr device, other;

	test_fill(in, sizeof(in), 1);
	memset(out, 0xee, sizeof(out));
	CUDA(cudaMalloc3D(&device, make_cudaExtent(W, H, D)));
	EXPECT(device.ptr && device.pitch >= W);
	EXPECT_EQ(W, device.xsize);
	EXPECT_EQ(H, device.ysize);
	CUDA(cudaMalloc3D(&other, make_cudaExtent(W, H, D)));
	boxes(device, other);
	whole(device);
	large();
	fills(device);
	mistakes(device);
	CUDA(cudaFree(device.ptr));
	CUDA(cudaFree(other.ptr));
	return 0;
}
