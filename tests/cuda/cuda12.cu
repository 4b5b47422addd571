/*
 * A program of CUDA 12: linked with a libcudart.so.12 (of which only the names are needed to
 * link), it meets FairGV's under that name. What 12 declares otherwise than the headers at
 * hand is declared here, as 12 has it.
 */
#include "test.h"

/* The first and the last members that a program is likely to look at. */
struct prop_12 {
	char name[256];
	char uuid[16], luid[8];
	unsigned luid_mask;
	size_t memory_bytes, shared_bytes;
	int registers, warp_size;
	size_t pitch;
	int threads_max, threads_dim[3], grid[3], clock_rate;
	size_t const_bytes;
	int major, minor;
	char middle[728 - 368];
	int host_register_supported;
	char rest[1032 - 732];
};
static_assert(sizeof(struct prop_12) == 1032, "as in CUDA 12");
static_assert(offsetof(struct prop_12, major) == 360, "as in CUDA 12");

struct pointer_12 {
	enum cudaMemoryType type;
	int device;
	void *device_pointer, *host_pointer;
};

extern "C" {
cudaError_t properties_11(void *, int) __asm__("cudaGetDeviceProperties");
cudaError_t properties_12(void *, int) __asm__("cudaGetDeviceProperties_v2");
cudaError_t pointer_12(void *, const void *) __asm__("cudaPointerGetAttributes");
cudaError_t advise_12(const void *, size_t, int, int) __asm__("cudaMemAdvise");
cudaError_t prefetch_12(const void *, size_t, int, cudaStream_t) __asm__("cudaMemPrefetchAsync");
cudaError_t elapsed_12(float *, cudaEvent_t, cudaEvent_t) __asm__("cudaEventElapsedTime_v2");
cudaError_t thread_synchronize_12(void) __asm__("cudaThreadSynchronize");
}

#define COUNT 1000
#define GUARD 0x5a

static __global__ void twice(int *values, int count)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < count)
		values[i] *= 2;
}

/* @bytes of the structure are written, and none behind. */
static void check_properties(cudaError_t (*get)(void *, int), size_t bytes)
{
	unsigned char memory[2048];
	struct prop_12 *prop = (struct prop_12 *)memory;
	int value;

	memset(memory, GUARD, sizeof(memory));
	CUDA(get(prop, 0));
	for (size_t i = bytes; i < sizeof(memory); i++)
		EXPECT_EQ(GUARD, memory[i]);
	EXPECT(memory[bytes - 1] != GUARD);
	EXPECT(strlen(prop->name) > 0);
	EXPECT_EQ(32, prop->warp_size);
	CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
	EXPECT_EQ(value, prop->threads_max);
	CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
	EXPECT_EQ(value, prop->major);
	CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0));
	EXPECT_EQ(value, prop->clock_rate);
}

static void check_pointer(void *device)
{
	struct {
		struct pointer_12 attributes;
		unsigned char guard[64];
	} memory;

	memset(&memory, GUARD, sizeof(memory));
	CUDA(pointer_12(&memory.attributes, device));
	EXPECT_EQ(cudaMemoryTypeDevice, memory.attributes.type);
	EXPECT(memory.attributes.device_pointer == device);
	for (size_t i = 0; i < sizeof(memory.guard); i++)
		EXPECT_EQ(GUARD, memory.guard[i]);
}

static void check_managed(void)
{
	const int prefer = 3, cpu = -1;
	int *values;

	CUDA(cudaMallocManaged(&values, COUNT * sizeof(*values), cudaMemAttachGlobal));
	for (int i = 0; i < COUNT; i++)
		values[i] = i;
	CUDA(advise_12(values, COUNT * sizeof(*values), prefer, 0));
	CUDA(prefetch_12(values, COUNT * sizeof(*values), 0, NULL));
	LAUNCH(twice<<<(COUNT + 127) / 128, 128>>>(values, COUNT));
	CUDA(prefetch_12(values, COUNT * sizeof(*values), cpu, NULL));
	CUDA(thread_synchronize_12());
	for (int i = 0; i < COUNT; i++)
		EXPECT_EQ(2 * i, values[i]);
	CUDA(cudaFree(values));
}

int main(void)
{
	cudaEvent_t event;
	int version, *device;
	float ms;

	CUDA(cudaRuntimeGetVersion(&version));
	EXPECT(version >= 12000 && version < 13000);
	check_properties(properties_11, 728);
	check_properties(properties_12, 1032);
	CUDA(cudaMalloc(&device, COUNT * sizeof(*device)));
	check_pointer(device);
	CUDA(cudaFree(device));
	check_managed();
	CUDA(cudaEventCreate(&event));
	CUDA(cudaEventRecord(event));
	CUDA(cudaEventSynchronize(event));
	CUDA(elapsed_12(&ms, event, event));
	CUDA(cudaEventDestroy(event));
	return 0;
}
