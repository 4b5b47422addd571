/*
 * Whatever a thread asks first, it has the device that the program uses.
 */
#include "test.h"

#include <thread>

static __global__ void nothing(void)
{
}

static char registered[2 * 4096] __attribute__((aligned(4096)));

struct fixture {
	void *pinned, *device;
	cudaStream_t stream;
	cudaEvent_t event;
};

template <typename Call> static void first(Call call)
{
	std::thread(call).join();
}

static void about_memory(const struct fixture *f)
{
	first([=] {
		cudaPointerAttributes got;

		CUDA(cudaPointerGetAttributes(&got, f->pinned));
		EXPECT(got.type == cudaMemoryTypeHost);
	});
	first([=] {
		cudaPointerAttributes got;

		CUDA(cudaPointerGetAttributes(&got, f->device));
		EXPECT(got.type == cudaMemoryTypeDevice);
	});
	first([=] {
		cudaPointerAttributes got;

		CUDA(cudaPointerGetAttributes(&got, registered));
		EXPECT(got.type == cudaMemoryTypeUnregistered);
	});
	first([=] {
		unsigned flags;

		CUDA(cudaHostGetFlags(&flags, f->pinned));
	});
	first([=] {
		void *mapped;

		CUDA(cudaHostGetDevicePointer(&mapped, f->pinned, 0));
	});
	first([] { CUDA(cudaHostRegister(registered, sizeof(registered), 0)); });
	first([] { CUDA(cudaHostUnregister(registered)); });
	first([] {
		void *memory;

		CUDA(cudaHostAlloc(&memory, 4096, cudaHostAllocPortable));
		CUDA(cudaFreeHost(memory));
	});
	first([] {
		size_t unused, total;

		CUDA(cudaMemGetInfo(&unused, &total));
	});
	first([=] { CUDA(cudaFreeHost(f->pinned)); });
}

static void about_work(const struct fixture *f)
{
	first([=] { CUDA(cudaStreamQuery(f->stream)); });
	first([=] { CUDA(cudaEventRecord(f->event, f->stream)); });
	first([=] { CUDA(cudaEventSynchronize(f->event)); });
	first([=] {
		cudaStreamCaptureStatus status;

		CUDA(cudaStreamIsCapturing(f->stream, &status));
	});
	first([] {
		cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

		CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
	});
	first([=] {
		CUDA(cudaMemcpyAsync(f->device, f->pinned, 64, cudaMemcpyDefault, f->stream));
	});
	first([] {
		nothing<<<1, 1>>>();
		CUDA(cudaGetLastError());
	});
	first([] {
		cudaFuncAttributes got;

		CUDA(cudaFuncGetAttributes(&got, nothing));
	});
	first([] { CUDA(cudaDeviceSynchronize()); });
}

int main(void)
{
	struct fixture f;

	CUDA(cudaHostAlloc(&f.pinned, 4096, cudaHostAllocDefault));
	CUDA(cudaMalloc(&f.device, 4096));
	CUDA(cudaStreamCreate(&f.stream));
	CUDA(cudaEventCreate(&f.event));
	about_work(&f);
	about_memory(&f);
	CUDA(cudaEventDestroy(f.event));
	CUDA(cudaStreamDestroy(f.stream));
	CUDA(cudaFree(f.device));
	return 0;
}
