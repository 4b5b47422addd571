/*
 * The exact codes of calls that fail, and what the last error is afterwards. Only
 * cases for which CUDA defines the outcome; nothing here may harm the context.
 */
#include "test.h"

static __device__ int launches;
static int no_symbol;
static int mismatches;

/* Here a wrong code is noted and the others are still looked at. */
static void note(int line, const char *call, cudaError_t got, cudaError_t wanted)
{
	if (got == wanted)
		return;
	mismatches++;
	printf("%s:%d: %s: %s (%d), not %s (%d)\n", __FILE__, line, call, cudaGetErrorName(got),
	       got, cudaGetErrorName(wanted), wanted);
}

#define CODE(wanted, call) note(__LINE__, #call, (call), (wanted))

static __global__ void count(void)
{
	launches++;
}

static __global__ void __launch_bounds__(64) bounded(void)
{
	launches++;
}

/* The runtime of CUDA 13 has one code for all of them, as was seen on a real GPU. */
static void configurations(void)
{
	struct {
		const char *name;
		dim3 grid, block;
		size_t shared;
	} cases[] = {
		{"grid x 0", dim3(0), dim3(1), 0},
		{"grid y 0", dim3(1, 0), dim3(1), 0},
		{"grid z 0", dim3(1, 1, 0), dim3(1), 0},
		{"block x 0", dim3(1), dim3(0), 0},
		{"block y 0", dim3(1), dim3(1, 0), 0},
		{"1025 threads", dim3(1), dim3(1025), 0},
		{"block z 65", dim3(1), dim3(1, 1, 65), 0},
		{"64 x 17 threads", dim3(1), dim3(64, 17), 0},
		{"grid y 65536", dim3(1, 65536), dim3(1), 0},
		{"grid z 65536", dim3(1, 1, 65536), dim3(1), 0},
		{"too much shared memory", dim3(1), dim3(1), 48 * 1024 + 1},
		{"1 GiB of shared memory", dim3(1), dim3(1), (size_t)1 << 30},
	};
	int done = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		count<<<cases[i].grid, cases[i].block, cases[i].shared>>>();
		cudaError_t code = cudaGetLastError();

		note(__LINE__, cases[i].name, code, cudaErrorInvalidValue);
	}
	bounded<<<1, 65>>>();
	CODE(cudaErrorInvalidValue, cudaGetLastError());
	CUDA(cudaMemcpyFromSymbol(&done, launches, sizeof(done)));
	EXPECT_EQ(0, done);
	LAUNCH(bounded<<<1, 64>>>());
	LAUNCH(count<<<1, dim3(1024), 48 * 1024>>>());
	CUDA(cudaDeviceSynchronize());
}

/* An error stays until it is asked for; peeking and later successes leave it. */
static void last_error(void)
{
	void *memory;

	CODE(cudaSuccess, cudaGetLastError());
	CODE(cudaErrorInvalidDevice, cudaSetDevice(-1));
	CODE(cudaErrorInvalidDevice, cudaPeekAtLastError());
	CUDA(cudaMalloc(&memory, 16));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(memory));
	CODE(cudaErrorInvalidDevice, cudaPeekAtLastError());
	CODE(cudaErrorInvalidDevice, cudaGetLastError());
	CODE(cudaSuccess, cudaGetLastError());
	CODE(cudaSuccess, cudaPeekAtLastError());
}

/* Not ready is an answer, not an error: it is never the last error. */
static void not_ready(void)
{
	unsigned *value, work = 1u << 12;
	cudaStream_t stream;
	cudaError_t code;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&value, sizeof(*value)));
	do {
		LAUNCH(test_work<<<1, 1, 0, stream>>>(value, work));
		code = cudaStreamQuery(stream);
		CODE(cudaSuccess, cudaPeekAtLastError());
		CUDA(cudaStreamSynchronize(stream));
		work *= 4;
	} while (code == cudaSuccess && work < 1u << 28);
	CODE(cudaErrorNotReady, code);
	CUDA(cudaStreamQuery(stream));
	CUDA(cudaFree(value));
	CUDA(cudaStreamDestroy(stream));
}

static void memory(void)
{
	char *device, host[64] = {}, *freed;

	CUDA(cudaMalloc(&device, 4096));
	CODE(cudaErrorInvalidValue, cudaMalloc((void **)NULL, 16));
	CODE(cudaErrorMemoryAllocation, cudaMalloc(&freed, (size_t)1 << 50));
	CODE(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, host, 16, (enum cudaMemcpyKind)7));
	CODE(cudaErrorInvalidMemcpyDirection,
	     cudaMemcpyAsync(device, host, 16, (enum cudaMemcpyKind) - 1));
	CODE(cudaErrorInvalidValue, cudaMemcpy(NULL, host, 16, cudaMemcpyHostToDevice));
	CODE(cudaErrorInvalidValue, cudaMemcpy(host, NULL, 16, cudaMemcpyDeviceToHost));
	CODE(cudaErrorInvalidValue, cudaMemset(NULL, 1, 16));
	CUDA(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
	CUDA(cudaMemset(device, 1, 0));
	CUDA(cudaFree(NULL));
	CODE(cudaErrorInvalidValue, cudaFree(device + 256));
	CODE(cudaErrorInvalidValue, cudaFree(host));
	CUDA(cudaFree(device));
	CODE(cudaErrorInvalidValue, cudaFree(device));
	cudaGetLastError();
}

static void devices(void)
{
	struct cudaDeviceProp properties;
	int count, value;

	CUDA(cudaGetDeviceCount(&count));
	CODE(cudaErrorInvalidDevice, cudaSetDevice(count));
	CODE(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, count));
	CODE(cudaErrorInvalidDevice,
	     cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, count));
	CODE(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)100000, 0));
	CODE(cudaErrorInvalidValue, cudaGetDeviceCount(NULL));
	cudaGetLastError();
}

static void handles(void)
{
	cudaEvent_t never, untimed;
	float ms;

	CODE(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
	CODE(cudaErrorInvalidResourceHandle, cudaEventDestroy(NULL));
	CODE(cudaErrorInvalidResourceHandle, cudaEventRecord(NULL, NULL));
	CODE(cudaErrorInvalidResourceHandle, cudaEventQuery(NULL));
	CODE(cudaErrorInvalidResourceHandle, cudaEventSynchronize(NULL));
	CODE(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(NULL, NULL));
	CUDA(cudaEventCreate(&never));
	CUDA(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	CUDA(cudaEventQuery(never));
	CUDA(cudaEventSynchronize(never));
	CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, never, never));
	CUDA(cudaEventRecord(untimed));
	CUDA(cudaEventSynchronize(untimed));
	CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, untimed, untimed));
	CUDA(cudaEventDestroy(never));
	CUDA(cudaEventDestroy(untimed));
	cudaGetLastError();
}

static void symbols_and_functions(void)
{
	struct cudaFuncAttributes attributes;
	int values[2] = {};

	CODE(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&no_symbol, values, 4));
	CODE(cudaErrorInvalidValue, cudaMemcpyToSymbol(launches, values, 8));
	CODE(cudaErrorInvalidValue, cudaMemcpyFromSymbol(values, launches, 4, 1));
	CODE(cudaErrorInvalidResourceHandle, cudaFuncGetAttributes(&attributes, &no_symbol));
	CODE(cudaErrorInvalidResourceHandle,
	     cudaLaunchKernel((const void *)&no_symbol, dim3(1), dim3(1), NULL, 0, NULL));
	cudaGetLastError();
}

/* A system may lack these, but its driver is not too old for them. */
static void interop(void)
{
	struct cudaExternalMemoryHandleDesc desc = {};
	cudaExternalMemory_t external;
	cudaIpcMemHandle_t handle;
	cudaError_t err;
	void *memory;

	CUDA(cudaMalloc(&memory, 4096));
	err = cudaIpcGetMemHandle(&handle, memory);
	EXPECT(err == cudaSuccess || err == cudaErrorNotSupported);
	err = cudaGraphicsUnregisterResource(NULL);
	EXPECT(err && err != cudaErrorCallRequiresNewerDriver);
	err = cudaImportExternalMemory(&external, &desc);
	EXPECT(err && err != cudaErrorCallRequiresNewerDriver);
	CUDA(cudaFree(memory));
	cudaGetLastError();
}

static void names(void)
{
	EXPECT(!strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess"));
	EXPECT(!strcmp(cudaGetErrorString(cudaSuccess), "no error"));
	EXPECT(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
	EXPECT(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
	EXPECT(!strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
	EXPECT(!strcmp(cudaGetErrorString(cudaErrorInvalidConfiguration),
		       "invalid configuration argument"));
	EXPECT(!strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code"));
	EXPECT(!strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code"));
}

int main(void)
{
	configurations();
	last_error();
	not_ready();
	memory();
	devices();
	handles();
	symbols_and_functions();
	interop();
	names();
	CUDA(cudaDeviceSynchronize());
	return mismatches ? 1 : 0;
}
