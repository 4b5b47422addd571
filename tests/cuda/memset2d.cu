/*
 * cudaMemset2D fills the beginnings of rows and nothing between them, in stream order;
 * a width beyond the pitch is refused.
 */
#include "test.h"

#define PITCH  512
#define HEIGHT 37

static unsigned char host[PITCH * HEIGHT];

static void expect_rows(size_t width, unsigned char inside, unsigned char outside)
{
	for (size_t i = 0; i < sizeof(host); i++)
		EXPECT_EQ(i % PITCH < width ? inside : outside, host[i]);
}

int main(void)
{
	unsigned char *device;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA(cudaMemset(device, 1, sizeof(host)));
	CUDA(cudaMemset2D(device, PITCH, 0x102, 100, HEIGHT));
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	expect_rows(100, 2, 1);
	CUDA(cudaMemset2DAsync(device, PITCH, 3, PITCH, HEIGHT, stream));
	CUDA(cudaMemset2DAsync(device, PITCH, 4, 1, HEIGHT, stream));
	CUDA(cudaMemcpyAsync(host, device, sizeof(host), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	expect_rows(1, 4, 3);
	CUDA(cudaMemset2D(device, PITCH, 5, 0, HEIGHT));
	CUDA(cudaMemset2D(device, PITCH, 5, 1, 0));
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	expect_rows(1, 4, 3);
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemset2D(device, 100, 5, 101, 2));
	CUDA(cudaFree(device));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
