/*
 * Stream-ordered allocation: memory in the order of a stream, what pools keep and give back,
 * and the codes of wrong uses.
 */
#include "test.h"

#include <vector>

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)

static __global__ void fill(unsigned *values, unsigned count, unsigned value)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		values[i] = value + i;
}

static uint64_t attribute(cudaMemPool_t pool, enum cudaMemPoolAttr which)
{
	uint64_t value;

	CUDA(cudaMemPoolGetAttribute(pool, which, &value));
	return value;
}

/* Allocated, used, copied out and freed without a wait in between, again and again. */
static void in_order(cudaStream_t stream)
{
	const unsigned count = 5000, rounds = 20;
	unsigned *results, *memory;

	CUDA(cudaMallocHost(&results, rounds * count * sizeof(*results)));
	for (unsigned round = 0; round < rounds; round++) {
		CUDA(cudaMallocAsync(&memory, count * sizeof(*memory), stream));
		EXPECT_EQ(0, (uintptr_t)memory % 256);
		LAUNCH(fill<<<(count + 255) / 256, 256, 0, stream>>>(memory, count, round * 77));
		CUDA(cudaMemcpyAsync(results + round * count, memory, count * sizeof(*memory),
				     cudaMemcpyDeviceToHost, stream));
		CUDA(cudaFreeAsync(memory, stream));
	}
	CUDA(cudaStreamSynchronize(stream));
	for (unsigned i = 0; i < rounds * count; i++)
		EXPECT_EQ(i / count * 77 + i % count, results[i]);
	CUDA(cudaFreeHost(results));
}

/* Two streams at once never get the same memory. */
static void apart(void)
{
	const unsigned count = 20000;
	std::vector<unsigned> result(count);
	cudaStream_t streams[2];
	unsigned *memory[2];

	for (int i = 0; i < 2; i++)
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 2; i++) {
			CUDA(cudaMallocAsync(&memory[i], count * sizeof(unsigned), streams[i]));
			LAUNCH(fill<<<(count + 255) / 256, 256, 0, streams[i]>>>(memory[i], count,
										 i * 1000));
		}
		EXPECT(memory[0] != memory[1]);
		for (int i = 0; i < 2; i++) {
			CUDA(cudaMemcpyAsync(result.data(), memory[i], count * sizeof(unsigned),
					     cudaMemcpyDeviceToHost, streams[i]));
			CUDA(cudaFreeAsync(memory[i], streams[i]));
			CUDA(cudaStreamSynchronize(streams[i]));
			EXPECT_EQ(i * 1000 + count - 1, result[count - 1]);
		}
	}
	for (int i = 0; i < 2; i++)
		CUDA(cudaStreamDestroy(streams[i]));
}

/* Without a threshold the pool keeps what is freed until the program synchronizes. */
static void until_synchronized(cudaStream_t stream)
{
	cudaMemPool_t pool;
	void *memory, *again;

	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	CUDA(cudaMallocAsync(&memory, 2 * MIB, stream));
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaMallocAsync(&again, 2 * MIB, stream));
	EXPECT(again == memory);
	CUDA(cudaFreeAsync(again, stream));
	EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= 2 * MIB);
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(0, attribute(pool, cudaMemPoolAttrReservedMemCurrent));
}

/* With a threshold the pool keeps what is freed, until it is trimmed. */
static void threshold(cudaStream_t stream)
{
	cudaMemPool_t pool;
	uint64_t most = UINT64_MAX, none = 0;
	void *memory;

	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(0, attribute(pool, cudaMemPoolAttrUsedMemCurrent));
	EXPECT_EQ(0, attribute(pool, cudaMemPoolAttrReleaseThreshold));
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most));
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none));
	CUDA(cudaMallocAsync(&memory, 2 * MIB, stream));
	EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= 2 * MIB);
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(0, attribute(pool, cudaMemPoolAttrUsedMemCurrent));
	EXPECT(attribute(pool, cudaMemPoolAttrUsedMemHigh) >= 2 * MIB);
	EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= 2 * MIB);
	CUDA(cudaMemPoolTrimTo(pool, 0));
	EXPECT_EQ(0, attribute(pool, cudaMemPoolAttrReservedMemCurrent));
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &none));
}

static void own_pool(cudaStream_t stream)
{
	struct cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 0},
					   cudaMemAccessFlagsProtReadWrite};
	struct cudaMemPoolProps props = {};
	enum cudaMemAccessFlags flags;
	cudaMemPool_t pool, current, common;
	int follow = -1;
	void *memory;

	props.allocType = cudaMemAllocationTypePinned;
	props.location = access.location;
	CUDA(cudaMemPoolCreate(&pool, &props));
	CUDA(cudaMemPoolSetAccess(pool, &access, 1));
	CUDA(cudaMemPoolGetAccess(&flags, pool, &access.location));
	EXPECT_EQ(cudaMemAccessFlagsProtReadWrite, flags);
	access.flags = cudaMemAccessFlagsProtNone;
	EXPECT_CODE(cudaErrorInvalidDevice, cudaMemPoolSetAccess(pool, &access, 1));
	access.location.type = cudaMemLocationTypeHost;
	CUDA(cudaMemPoolGetAccess(&flags, pool, &access.location));
	EXPECT_EQ(cudaMemAccessFlagsProtNone, flags);
	access.flags = cudaMemAccessFlagsProtReadWrite;
	EXPECT_CODE(cudaErrorNotSupported, cudaMemPoolSetAccess(pool, &access, 1));
	cudaGetLastError();
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &follow));
	EXPECT_EQ(1, follow);
	CUDA(cudaMallocFromPoolAsync(&memory, 1 * MIB, pool, stream));
	CUDA(cudaMemsetAsync(memory, 1, 1 * MIB, stream));
	EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= 1 * MIB);
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaDeviceSetMemPool(0, pool));
	CUDA(cudaDeviceGetMemPool(&current, 0));
	EXPECT(current == pool);
	in_order(stream);
	CUDA(cudaDeviceGetDefaultMemPool(&common, 0));
	CUDA(cudaMemPoolDestroy(pool));
	CUDA(cudaDeviceGetMemPool(&current, 0));
	EXPECT(current == common);
}

/* Either kind of memory may be freed either way. */
static void crosswise(cudaStream_t stream)
{
	struct cudaPointerAttributes got;
	void *memory;

	CUDA(cudaMalloc(&memory, 1000));
	CUDA(cudaMemsetAsync(memory, 1, 1000, stream));
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaMallocAsync(&memory, 1000, stream));
	CUDA(cudaPointerGetAttributes(&got, memory));
	EXPECT_EQ(cudaMemoryTypeDevice, got.type);
	CUDA(cudaMemsetAsync(memory, 1, 1000, stream));
	CUDA(cudaFree(memory));
	CUDA(cudaStreamSynchronize(stream));
}

static void wrong_uses(cudaStream_t stream)
{
	cudaMemPool_t pool;
	char own[16];
	void *memory;

	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMallocAsync((void **)NULL, 16, stream));
	EXPECT_CODE(cudaErrorMemoryAllocation, cudaMallocAsync(&memory, (size_t)1 << 50, stream));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeAsync(own, stream));
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, NULL));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)77, own));
	EXPECT_CODE(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&pool, 99));
	CUDA(cudaMallocAsync(&memory, 1000, stream));
	CUDA(cudaFreeAsync(memory, stream));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeAsync(memory, stream));
	CUDA(cudaStreamSynchronize(stream));
	cudaGetLastError();
}

/* The same pools, found by place. */
static void places(void)
{
	cudaMemPool_t by_device, by_place, pool;
	cudaMemPoolProps props = {};
	cudaMemLocation here = {};

	here.type = cudaMemLocationTypeDevice;
	CUDA(cudaDeviceGetDefaultMemPool(&by_device, 0));
	CUDA(cudaMemGetDefaultMemPool(&by_place, &here, cudaMemAllocationTypePinned));
	EXPECT(by_device == by_place);
	props.allocType = cudaMemAllocationTypePinned;
	props.location = here;
	CUDA(cudaMemPoolCreate(&pool, &props));
	CUDA(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, pool));
	CUDA(cudaDeviceGetMemPool(&by_device, 0));
	EXPECT(by_device == pool);
	CUDA(cudaMemGetMemPool(&by_place, &here, cudaMemAllocationTypePinned));
	EXPECT(by_place == pool);
	CUDA(cudaMemPoolDestroy(pool));
	props.location.id = 99;
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, &props));
	props.location.type = cudaMemLocationTypeNone;
	EXPECT_CODE(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, &props));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaMemGetMemPool(&by_place, &here, cudaMemAllocationTypeInvalid));
	cudaGetLastError();
}

int main(void)
{
	cudaStream_t stream;
	int supported;

	CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
	EXPECT(supported);
	CUDA(cudaStreamCreate(&stream));
	in_order(stream);
	in_order(NULL);
	apart();
	until_synchronized(stream);
	threshold(stream);
	own_pool(stream);
	places();
	crosswise(stream);
	wrong_uses(stream);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaDeviceSynchronize());
	return 0;
}
