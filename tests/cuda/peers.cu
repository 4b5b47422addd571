/*
 * What a program that looks for peers finds, on a machine with any number of devices; and
 * copies between devices of which both are the same. The codes of wrong uses.
 */
#include "test.h"

#include <vector>

static void access(void)
{
	int count, can = -1, value;

	CUDA(cudaGetDeviceCount(&count));
	CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
	EXPECT_EQ(0, can);
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, count));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, -1, 0));
	EXPECT_CODE(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(count, 0));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceDisablePeerAccess(count));
	EXPECT_CODE(cudaErrorInvalidDevice,
		    cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, count));
	for (int peer = 1; peer < count; peer++)
		CUDA(cudaDeviceCanAccessPeer(&can, 0, peer));
	cudaGetLastError();
}

static void copies(void)
{
	const size_t bytes = 100000;
	std::vector<unsigned char> host(bytes), result(bytes);
	unsigned char *a, *b;
	cudaStream_t stream;
	int count;

	CUDA(cudaGetDeviceCount(&count));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&a, bytes));
	CUDA(cudaMalloc(&b, bytes));
	test_fill(host.data(), bytes, 1);
	CUDA(cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpyPeerAsync(b, 0, a, 0, bytes, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(result.data(), b, bytes, cudaMemcpyDeviceToHost));
	EXPECT_EQ(bytes, test_compare(result.data(), bytes, 1));
	CUDA(cudaMemset(b, 0, bytes));
	CUDA(cudaMemcpyPeer(b, 0, a, 0, bytes));
	CUDA(cudaMemcpy(result.data(), b, bytes, cudaMemcpyDeviceToHost));
	EXPECT_EQ(bytes, test_compare(result.data(), bytes, 1));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaMemcpyPeer(b, count, a, 0, bytes));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaStreamDestroy(stream));
	cudaGetLastError();
}

static void boxes(void)
{
	const size_t width = 100, height = 30, bytes = width * height;
	std::vector<unsigned char> host(bytes), result(bytes);
	struct cudaMemcpy3DPeerParms box = {};
	unsigned char *a, *b;
	int count;

	CUDA(cudaGetDeviceCount(&count));
	CUDA(cudaMalloc(&a, bytes));
	CUDA(cudaMalloc(&b, bytes));
	test_fill(host.data(), bytes, 1);
	CUDA(cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice));
	CUDA(cudaMemset(b, 0, bytes));
	box.srcPtr = make_cudaPitchedPtr(a, width, width, height);
	box.dstPtr = make_cudaPitchedPtr(b, width, width, height);
	box.extent = make_cudaExtent(width / 2, height, 1);
	CUDA(cudaMemcpy3DPeer(&box));
	CUDA(cudaMemcpy(result.data(), b, bytes, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < bytes; i++)
		EXPECT_EQ(i % width < width / 2 ? host[i] : 0, result[i]);
	box.srcDevice = count;
	EXPECT_CODE(cudaErrorInvalidDevice, cudaMemcpy3DPeerAsync(&box, NULL));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	cudaGetLastError();
}

int main(void)
{
	access();
	copies();
	boxes();
	return 0;
}
