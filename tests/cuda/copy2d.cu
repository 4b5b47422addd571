/*
 * cudaMemcpy2D: rows between pitched memory of any two kinds, in stream order, with what lies
 * between the rows left alone; large ones too. And what cudaMallocPitch gives.
 */
#include "test.h"

#define WIDTH  300
#define HEIGHT 41
#define PITCH  333 /* the host's */

static unsigned char in[PITCH * HEIGHT], out[PITCH * HEIGHT];

/* Rows of @width bytes as test_fill() made them with seed 1, and 0xee between them. */
static void expect_rows(size_t width, size_t height)
{
	for (size_t i = 0; i < sizeof(out); i++) {
		bool inside = i % PITCH < width && i / PITCH < height;

		EXPECT_EQ(inside ? test_byte(i, 1) : 0xee, out[i]);
	}
	memset(out, 0xee, sizeof(out));
}

static void pitches(void)
{
	size_t pitch, free_bytes, total;
	unsigned char *p;

	CUDA(cudaMallocPitch(&p, &pitch, 1, 1));
	EXPECT(pitch >= 1 && pitch % 256 == 0);
	CUDA(cudaFree(p));
	CUDA(cudaMallocPitch(&p, &pitch, 1025, 7));
	EXPECT(pitch >= 1025 && pitch % 256 == 0);
	EXPECT_EQ(0, (uintptr_t)p % 256);
	CUDA(cudaMemset2D(p, pitch, 1, pitch, 7));
	CUDA(cudaFree(p));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocPitch(&p, NULL, 16, 16));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocPitch((void **)NULL, &pitch, 16, 16));
	CUDA(cudaMemGetInfo(&free_bytes, &total));
	EXPECT_CODE(cudaErrorMemoryAllocation, cudaMallocPitch(&p, &pitch, total, 64));
	cudaGetLastError();
}

static void kinds(void)
{
	unsigned char *a, *b;
	size_t pitch_a, pitch_b;

	CUDA(cudaMallocPitch(&a, &pitch_a, WIDTH, HEIGHT));
	CUDA(cudaMallocPitch(&b, &pitch_b, 2 * WIDTH, HEIGHT));
	CUDA(cudaMemset(a, 0, pitch_a * HEIGHT));
	CUDA(cudaMemcpy2D(a, pitch_a, in, PITCH, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2D(b, pitch_b, a, pitch_a, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpy2D(out, PITCH, b, pitch_b, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
	expect_rows(WIDTH, HEIGHT);
	CUDA(cudaMemcpy2D(out, PITCH, a, pitch_a, 7, HEIGHT - 1, cudaMemcpyDefault));
	expect_rows(7, HEIGHT - 1);
	CUDA(cudaMemcpy2D(out, PITCH, in, PITCH, WIDTH, 2, cudaMemcpyHostToHost));
	expect_rows(WIDTH, 2);
	/* One row, and rows without a gap. */
	CUDA(cudaMemcpy2D(out, PITCH, a, pitch_a, WIDTH, 1, cudaMemcpyDeviceToHost));
	expect_rows(WIDTH, 1);
	CUDA(cudaMemcpy2D(a, PITCH, in, PITCH, PITCH, HEIGHT, cudaMemcpyDefault));
	CUDA(cudaMemcpy2D(out, PITCH, a, PITCH, PITCH, HEIGHT, cudaMemcpyDefault));
	expect_rows(PITCH, HEIGHT);
	/* Nothing. */
	CUDA(cudaMemcpy2D(a, pitch_a, in, PITCH, 0, HEIGHT, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2D(a, pitch_a, in, PITCH, WIDTH, 0, cudaMemcpyHostToDevice));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

/* What the source is when the call returns is what arrives, after what the stream does before. */
static void ordered(void)
{
	cudaStream_t stream;
	unsigned char *device, *copy;
	unsigned *work;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&device, sizeof(in)));
	CUDA(cudaMalloc(&copy, sizeof(in)));
	CUDA(cudaMalloc(&work, sizeof(*work)));
	CUDA(cudaMemset(work, 0, sizeof(*work)));
	CUDA(cudaDeviceSynchronize());
	memcpy(out, in, sizeof(in));
	LAUNCH(test_work<<<1, 1, 0, stream>>>(work, 100000));
	CUDA(cudaMemset2DAsync(device, PITCH, 0xee, PITCH, HEIGHT, stream));
	CUDA(cudaMemcpy2DAsync(device, PITCH, out, PITCH, WIDTH, HEIGHT, cudaMemcpyHostToDevice,
			       stream));
	memset(out, 0xee, sizeof(out));
	CUDA(cudaMemcpy2DAsync(copy, PITCH, device, PITCH, PITCH, HEIGHT,
			       cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaMemset2DAsync(device, PITCH, 0, PITCH, HEIGHT, stream));
	CUDA(cudaMemcpy2DAsync(out, PITCH, copy, PITCH, WIDTH, HEIGHT, cudaMemcpyDeviceToHost,
			       stream));
	CUDA(cudaStreamSynchronize(stream));
	expect_rows(WIDTH, HEIGHT);
	CUDA(cudaFree(device));
	CUDA(cudaFree(copy));
	CUDA(cudaFree(work));
	CUDA(cudaStreamDestroy(stream));
}

/* @width of every @pitch bytes there and back; the gaps hold something else. */
static void large(size_t width, size_t pitch, size_t height)
{
	unsigned char *host = (unsigned char *)malloc(pitch * height), *device;
	size_t device_pitch;

	EXPECT(host != NULL);
	test_fill(host, pitch * height, 5);
	CUDA(cudaMallocPitch(&device, &device_pitch, width, height));
	CUDA(cudaMemcpy2D(device, device_pitch, host, pitch, width, height, cudaMemcpyDefault));
	for (size_t y = 0; y < height; y++)
		memset(host + y * pitch, 0, width);
	CUDA(cudaMemcpy2D(host, pitch, device, device_pitch, width, height, cudaMemcpyDefault));
	EXPECT_EQ(pitch * height, test_compare(host, pitch * height, 5));
	CUDA(cudaFree(device));
	free(host);
}

static void mistakes(void)
{
	unsigned char *device;

	CUDA(cudaMalloc(&device, 4096));
	EXPECT_CODE(cudaErrorInvalidPitchValue,
		    cudaMemcpy2D(device, 99, in, PITCH, 100, 2, cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidPitchValue,
		    cudaMemcpy2D(device, 100, in, 99, 100, 2, cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidPitchValue, cudaPeekAtLastError());
	EXPECT_CODE(cudaErrorInvalidPitchValue, cudaGetLastError());
	EXPECT_CODE(cudaErrorInvalidMemcpyDirection,
		    cudaMemcpy2D(device, 100, in, 100, 100, 2, (enum cudaMemcpyKind)7));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy2D(NULL, 100, in, 100, 100, 2, cudaMemcpyHostToDevice));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemcpy2D(device, 100, NULL, 100, 100, 2, cudaMemcpyHostToDevice));
	cudaGetLastError();
	CUDA(cudaFree(device));
}

int main(void)
{
	test_fill(in, sizeof(in), 1);
	memset(out, 0xee, sizeof(out));
	pitches();
	kinds();
	ordered();
	large(1000, 1100, 1000);
	large(3000000, 3000001, 2);
	large(16, 64, 20000);
	mistakes();
	return 0;
}
