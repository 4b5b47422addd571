/*
 * What works on one device works on each: pools, arrays, textures, boxes, functions of the program
 * in streams, values, limits, and giving back what one device has without touching the others.
 */
#include "../cuda/test.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#define COUNT 4096u
#define BYTES (COUNT * sizeof(unsigned))
#define WIDE  64u
#define HIGH  32u

__global__ void add(unsigned *data, unsigned count, unsigned more)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] += more;
}

__global__ void read_texture(cudaTextureObject_t texture, float *to)
{
	to[threadIdx.y * WIDE + threadIdx.x] =
		tex2D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}

__global__ void write_surface(cudaSurfaceObject_t surface, float more)
{
	surf2Dwrite((float)(threadIdx.y * WIDE + threadIdx.x) + more, surface,
		    threadIdx.x * sizeof(float), threadIdx.y);
}

__global__ void say(int device)
{
	printf("device %d says so\n", device);
}

static void expect_words(const unsigned *data, unsigned count, unsigned wanted)
{
	std::vector<unsigned> host(count);

	CUDA(cudaMemcpy(host.data(), data, count * sizeof(unsigned), cudaMemcpyDefault));
	for (unsigned i = 0; i < count; i++)
		EXPECT_EQ(wanted, host[i]);
}

/* --- Pools -------------------------------------------------------------------- */

/* The other device reaches what it is given access to, and no peer access is enabled by that. */
static void pool_of_both(cudaMemPool_t pool, int device, int other, cudaStream_t stream)
{
	struct cudaMemAccessDesc access = {};
	enum cudaMemAccessFlags flags;
	unsigned *data;

	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = other;
	CUDA(cudaMemPoolGetAccess(&flags, pool, &access.location));
	EXPECT_EQ(cudaMemAccessFlagsProtNone, flags);
	access.flags = cudaMemAccessFlagsProtReadWrite;
	CUDA(cudaMemPoolSetAccess(pool, &access, 1));
	CUDA(cudaMemPoolGetAccess(&flags, pool, &access.location));
	EXPECT_EQ(cudaMemAccessFlagsProtReadWrite, flags);
	CUDA(cudaMallocFromPoolAsync(&data, BYTES, pool, stream));
	CUDA(cudaMemsetAsync(data, 0, BYTES, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaSetDevice(other));
	LAUNCH(add<<<COUNT / 128, 128>>>(data, COUNT, 6));
	CUDA(cudaDeviceSynchronize());
	EXPECT_CODE(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(device));
	cudaGetLastError();
	CUDA(cudaDeviceEnablePeerAccess(device, 0));
	CUDA(cudaDeviceDisablePeerAccess(device));
	LAUNCH(add<<<COUNT / 128, 128>>>(data, COUNT, 6));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaSetDevice(device));
	expect_words(data, COUNT, 12);
	CUDA(cudaFreeAsync(data, stream));
	access.flags = cudaMemAccessFlagsProtNone;
	CUDA(cudaMemPoolSetAccess(pool, &access, 1));
	CUDA(cudaMemPoolGetAccess(&flags, pool, &access.location));
	EXPECT_EQ(cudaMemAccessFlagsProtNone, flags);
}

static void pools(int device, int other)
{
	struct cudaMemPoolProps props = {};
	struct cudaPointerAttributes of;
	cudaMemPool_t own, usual, theirs;
	uint64_t threshold = UINT64_MAX, used;
	unsigned *data, *again;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaDeviceGetDefaultMemPool(&usual, device));
	CUDA(cudaDeviceGetDefaultMemPool(&theirs, other));
	EXPECT(usual != theirs);
	CUDA(cudaMemPoolSetAttribute(usual, cudaMemPoolAttrReleaseThreshold, &threshold));
	CUDA(cudaMallocAsync(&data, BYTES, stream));
	CUDA(cudaMemsetAsync(data, 0, BYTES, stream));
	LAUNCH(add<<<COUNT / 128, 128, 0, stream>>>(data, COUNT, 7));
	CUDA(cudaStreamSynchronize(stream));
	expect_words(data, COUNT, 7);
	CUDA(cudaPointerGetAttributes(&of, data));
	EXPECT_EQ(device, of.device);
	CUDA(cudaMemPoolGetAttribute(usual, cudaMemPoolAttrUsedMemCurrent, &used));
	EXPECT_EQ(BYTES, used);
	CUDA(cudaMemPoolGetAttribute(theirs, cudaMemPoolAttrUsedMemCurrent, &used));
	EXPECT_EQ(0, used);
	CUDA(cudaFreeAsync(data, stream));
	/* From another device's thread, the stream says where. */
	CUDA(cudaSetDevice(other));
	CUDA(cudaMallocAsync(&again, BYTES, stream));
	EXPECT(again == data);
	CUDA(cudaPointerGetAttributes(&of, again));
	EXPECT_EQ(device, of.device);
	/* And it may be freed in a stream of the other one. */
	CUDA(cudaFreeAsync(again, NULL));
	CUDA(cudaSetDevice(device));
	CUDA(cudaMemPoolGetAttribute(usual, cudaMemPoolAttrUsedMemCurrent, &used));
	EXPECT_EQ(0, used);

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = device;
	CUDA(cudaMemPoolCreate(&own, &props));
	pool_of_both(own, device, other, stream);
	EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceSetMemPool(other, own));
	CUDA(cudaDeviceSetMemPool(device, own));
	CUDA(cudaMallocAsync(&data, BYTES, stream));
	CUDA(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
	EXPECT_EQ(BYTES, used);
	CUDA(cudaFree(data));
	CUDA(cudaMemPoolDestroy(own));
	threshold = 0;
	CUDA(cudaMemPoolSetAttribute(usual, cudaMemPoolAttrReleaseThreshold, &threshold));
	CUDA(cudaMemPoolTrimTo(usual, 0));
	CUDA(cudaStreamDestroy(stream));
	cudaGetLastError();
}

/* --- Arrays, textures, boxes ---------------------------------------------------- */

static void arrays(int device, int other)
{
	const size_t row = WIDE * sizeof(float);
	struct cudaResourceDesc resource = {};
	struct cudaTextureDesc how = {};
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	std::vector<float> host(WIDE * HIGH), back(WIDE * HIGH);
	cudaTextureObject_t texture;
	cudaSurfaceObject_t surface;
	cudaArray_t array;
	size_t pitch;
	float *seen, *rows;

	for (unsigned i = 0; i < WIDE * HIGH; i++)
		host[i] = (float)i + 1000 * device;
	CUDA(cudaMallocArray(&array, &format, WIDE, HIGH, cudaArraySurfaceLoadStore));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, host.data(), row, row, HIGH, cudaMemcpyDefault));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	how.filterMode = cudaFilterModePoint;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	CUDA(cudaMalloc(&seen, row * HIGH));
	LAUNCH(read_texture<<<1, dim3(WIDE, HIGH / 2)>>>(texture, seen));
	CUDA(cudaMemcpy(back.data(), seen, row * HIGH / 2, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < WIDE * HIGH / 2; i++)
		EXPECT_EQ(host[i], back[i]);
	CUDA(cudaCreateSurfaceObject(&surface, &resource));
	LAUNCH(write_surface<<<1, dim3(WIDE, HIGH / 2)>>>(surface, 5));
	CUDA(cudaMallocPitch(&rows, &pitch, row, HIGH));
	CUDA(cudaMemcpy2DFromArray(rows, pitch, array, 0, 0, row, HIGH, cudaMemcpyDeviceToDevice));
	/* Whichever device the thread works on. */
	CUDA(cudaSetDevice(other));
	CUDA(cudaMemcpy2D(back.data(), row, rows, pitch, row, HIGH, cudaMemcpyDefault));
	for (unsigned i = 0; i < WIDE * HIGH; i++)
		EXPECT_EQ(i < WIDE * HIGH / 2 ? (float)i + 5 : host[i], back[i]);
	CUDA(cudaMemset2D(rows, pitch, 0, row, HIGH));
	CUDA(cudaMemcpy2DFromArray(back.data(), row, array, 0, 0, row, HIGH, cudaMemcpyDefault));
	EXPECT_EQ(5, back[0]);
	EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaCreateSurfaceObject(&surface, &resource));
	cudaGetLastError();
	CUDA(cudaSetDevice(device));
	CUDA(cudaDestroySurfaceObject(surface));
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(rows));
	CUDA(cudaFree(seen));
}

/* --- Functions, values, limits, text ----------------------------------------------- */

static void *in_order[16];
static unsigned calls;

static void note(void *arg)
{
	in_order[__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED)] = arg;
}

static void functions(int device)
{
	cudaStream_t stream;
	unsigned *data;

	calls = 0;
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&data, BYTES));
	CUDA(cudaMemsetAsync(data, 0, BYTES, stream));
	for (uintptr_t i = 1; i <= 3; i++) {
		LAUNCH(add<<<COUNT / 128, 128, 0, stream>>>(data, COUNT, 1));
		CUDA(cudaLaunchHostFunc(stream, note, (void *)(i + 10 * device)));
	}
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(3, calls);
	for (uintptr_t i = 1; i <= 3; i++)
		EXPECT(in_order[i - 1] == (void *)(i + 10 * device));
	expect_words(data, COUNT, 3);
	CUDA(cudaFree(data));
	CUDA(cudaStreamDestroy(stream));
}

typedef CUresult (*value_call)(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);

static value_call find_call(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *call = driver ? dlsym(driver, name) : NULL;

	EXPECT(call != NULL);
	return (value_call)call;
}

static void values(void)
{
	value_call wait = find_call("cuStreamWaitValue32_v2");
	value_call write = find_call("cuStreamWriteValue32_v2");
	volatile unsigned *word;
	cudaStream_t stream;

	CUDA(cudaMallocHost((void **)&word, 4096));
	word[0] = word[1] = 0;
	CUDA(cudaStreamCreate(&stream));
	EXPECT_EQ(CUDA_SUCCESS, wait(stream, (CUdeviceptr)&word[0], 3, CU_STREAM_WAIT_VALUE_EQ));
	EXPECT_EQ(CUDA_SUCCESS, write(stream, (CUdeviceptr)&word[1], 4, 0));
	EXPECT_CODE(cudaErrorNotReady, cudaStreamQuery(stream));
	EXPECT_EQ(0, word[1]);
	word[0] = 3;
	CUDA(cudaStreamSynchronize(stream));
	EXPECT_EQ(4, word[1]);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFreeHost((void *)word));
	cudaGetLastError();
}

static void limits(int device, int other)
{
	size_t before, now, theirs;

	CUDA(cudaDeviceGetLimit(&before, cudaLimitMallocHeapSize));
	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16u << 20));
	CUDA(cudaDeviceGetLimit(&now, cudaLimitMallocHeapSize));
	EXPECT_EQ(16u << 20, now);
	CUDA(cudaSetDevice(other));
	CUDA(cudaDeviceGetLimit(&theirs, cudaLimitMallocHeapSize));
	EXPECT(theirs == before);
	CUDA(cudaSetDevice(device));
	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, before));
}

static void text(int device)
{
	LAUNCH(say<<<1, 1>>>(device));
	CUDA(cudaDeviceSynchronize());
}

/* --- Reset ------------------------------------------------------------------------ */

static size_t free_bytes(void)
{
	size_t left, all;

	CUDA(cudaMemGetInfo(&left, &all));
	return left;
}

/* What a device has goes, and works again; what the other one has stays. */
static void reset(int device, int other)
{
	unsigned *mine, *theirs, *pinned, *their_pinned;
	cudaStream_t stream, their_stream;
	size_t before;

	CUDA(cudaSetDevice(other));
	CUDA(cudaMalloc(&theirs, BYTES));
	CUDA(cudaMemset(theirs, 1, BYTES));
	CUDA(cudaStreamCreate(&their_stream));
	CUDA(cudaMallocHost(&their_pinned, BYTES));
	CUDA(cudaSetDevice(device));
	CUDA(cudaDeviceReset());
	before = free_bytes();
	CUDA(cudaMalloc(&mine, 8u << 20));
	CUDA(cudaMallocAsync(&mine, 8u << 20, NULL));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocHost(&pinned, BYTES));
	EXPECT(free_bytes() + (16u << 20) <= before);
	CUDA(cudaDeviceReset());
	EXPECT_EQ(before, free_bytes());
	EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
	EXPECT_CODE(cudaErrorInvalidValue, cudaFreeHost(pinned));
	cudaGetLastError();
	LAUNCH(add<<<COUNT / 128, 128>>>(their_pinned, COUNT, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaSetDevice(other));
	expect_words(theirs, COUNT, 0x01010101);
	LAUNCH(add<<<COUNT / 128, 128, 0, their_stream>>>(theirs, COUNT, 1));
	CUDA(cudaStreamSynchronize(their_stream));
	expect_words(theirs, COUNT, 0x01010102);
	CUDA(cudaStreamDestroy(their_stream));
	CUDA(cudaFreeHost(their_pinned));
	CUDA(cudaFree(theirs));
	CUDA(cudaSetDevice(device));
}

/* Rows of one device's memory to another's, and on from there to an array of the first. */
static void boxes(int device, int other)
{
	const size_t row = 2900, rows = 2000, slices = 3; /* more than goes between at once */
	const struct cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
	const struct cudaExtent extent = make_cudaExtent(row, rows / 4, slices);
	std::vector<unsigned char> host(row * rows), back(row * rows / 4 * slices);
	struct cudaMemcpy3DPeerParms box = {};
	struct cudaMemcpy3DParms out = {};
	unsigned char *here, *there;
	size_t here_pitch, there_pitch;
	cudaArray_t array;

	test_fill(host.data(), host.size(), 8);
	CUDA(cudaMallocPitch(&here, &here_pitch, row, rows));
	CUDA(cudaMalloc3DArray(&array, &format, extent));
	CUDA(cudaMemcpy2D(here, here_pitch, host.data(), row, row, rows, cudaMemcpyHostToDevice));
	CUDA(cudaSetDevice(other));
	CUDA(cudaMallocPitch(&there, &there_pitch, row + 600, rows));
	CUDA(cudaMemset(there, 0, there_pitch * rows));
	CUDA(cudaMemcpy2D(there, there_pitch, here, here_pitch, row, rows, cudaMemcpyDefault));
	CUDA(cudaMemset2D(here, here_pitch, 0, row, rows));

	/* Slices lie a quarter of the rows apart. */
	box.srcDevice = other;
	box.srcPtr = make_cudaPitchedPtr(there, there_pitch, row, rows / 4);
	box.dstDevice = device;
	box.dstArray = array;
	box.extent = extent;
	CUDA(cudaMemcpy3DPeer(&box));
	out.srcArray = array;
	out.dstPtr = make_cudaPitchedPtr(back.data(), row, row, rows / 4);
	out.extent = extent;
	out.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&out));
	EXPECT_EQ(0, memcmp(back.data(), host.data(), back.size()));
	CUDA(cudaFree(there));
	CUDA(cudaSetDevice(device));
	CUDA(cudaFree(here));
	CUDA(cudaFreeArray(array));
}

int main(void)
{
	int count = 0;

	CUDA(cudaGetDeviceCount(&count));
	EXPECT(count > 1);
	for (int i = count - 1; i >= 0; i--) {
		int other = (i + 1) % count;

		CUDA(cudaSetDevice(i));
		pools(i, other);
		arrays(i, other);
		boxes(i, other);
		functions(i);
		values();
		limits(i, other);
		text(i);
		reset(i, other);
	}
	printf("verified=yes\n");
	return 0;
}
