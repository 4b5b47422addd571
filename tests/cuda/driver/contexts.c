/*
 * Contexts: what is asked before there are any, the primary one, those that are created, each
 * thread's stack, and what is left of one that is destroyed.
 */
#include "driver.h"

#include <pthread.h>

static void before_init(void)
{
	CUcontext context;
	CUdevice device;
	CUstream stream;
	int value;

	EXPECT_CODE(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&value));
	EXPECT_CODE(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&device, 0));
	EXPECT_CODE(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
	EXPECT_CODE(CUDA_ERROR_NOT_INITIALIZED, cuDevicePrimaryCtxRetain(&context, 0));
	EXPECT_CODE(CUDA_ERROR_NOT_INITIALIZED, cuStreamCreate(&stream, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuInit(1));
	CUDA(cuDriverGetVersion(&value));
	EXPECT(value >= 13000);
}

static void check_state(unsigned flags, int active)
{
	unsigned got_flags = 99;
	int got_active = 99;

	CUDA(cuDevicePrimaryCtxGetState(0, &got_flags, &got_active));
	EXPECT_EQ(flags, got_flags);
	EXPECT_EQ(active, got_active);
}

static CUcontext current(void)
{
	CUcontext context;

	CUDA(cuCtxGetCurrent(&context));
	return context;
}

/* The first retain makes it, the last release ends it, and in between it stays the same. */
static void primary(void)
{
	CUcontext first, second, third;
	CUstream stream;

	check_state(0, 0);
	EXPECT_CODE(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
	CUDA(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
	check_state(CU_CTX_SCHED_BLOCKING_SYNC, 0);
	CUDA(cuDevicePrimaryCtxSetFlags(0, 0));
	CUDA(cuDevicePrimaryCtxRetain(&first, 0));
	CUDA(cuDevicePrimaryCtxRetain(&second, 0));
	EXPECT(first == second);
	EXPECT(!current());
	EXPECT_CODE(CUDA_ERROR_INVALID_CONTEXT, cuStreamCreate(&stream, 0));
	CUDA(cuDevicePrimaryCtxRelease(0));
	check_state(0, 1);
	CUDA(cuDevicePrimaryCtxRelease(0));
	check_state(0, 0);
	CUDA(cuDevicePrimaryCtxRetain(&third, 0));
	EXPECT(third == first);
	CUDA(cuDevicePrimaryCtxRelease(0));
	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&third, 1000));
}

static void stack(void)
{
	CUcontext one, other, got;
	CUdevice device = -1;

	EXPECT_CODE(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&got));
	EXPECT_CODE(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
	CUDA(cuCtxCreate(&one, NULL, 0, 0));
	EXPECT(current() == one);
	CUDA(cuCtxCreate(&other, NULL, CU_CTX_SCHED_YIELD, 0));
	EXPECT(one != other && current() == other);
	CUDA(cuCtxGetDevice(&device));
	EXPECT_EQ(0, device);
	CUDA(cuCtxPopCurrent(&got));
	EXPECT(got == other && current() == one);
	CUDA(cuCtxSetCurrent(other));
	CUDA(cuCtxPushCurrent(one));
	CUDA(cuCtxPopCurrent(&got));
	EXPECT(got == one && current() == other);
	CUDA(cuCtxSetCurrent(NULL));
	EXPECT(!current());
	for (int i = 0; i < 100; i++)
		CUDA(cuCtxPushCurrent(i % 2 ? one : other));
	for (int i = 100; i-- > 0;) {
		CUDA(cuCtxPopCurrent(&got));
		EXPECT(got == (i % 2 ? one : other));
	}
	CUDA(cuCtxDestroy(one));
	CUDA(cuCtxDestroy(other));
}

static void describe(void)
{
	unsigned long long first, second;
	unsigned version, flags;
	CUcontext one, other;

	CUDA(cuCtxCreate(&one, NULL, CU_CTX_SCHED_SPIN, 0));
	CUDA(cuCtxCreate(&other, NULL, 0, 0));
	CUDA(cuCtxGetId(one, &first));
	CUDA(cuCtxGetId(NULL, &second));
	EXPECT(first != second);
	CUDA(cuCtxGetApiVersion(one, &version));
	EXPECT_EQ(3020, version);
	CUDA(cuCtxSetCurrent(one));
	CUDA(cuCtxGetFlags(&flags));
	EXPECT_EQ(CU_CTX_SCHED_SPIN, flags & CU_CTX_SCHED_MASK);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&one, NULL, 1 << 20, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&one, NULL, 0, 1000));
	CUDA(cuCtxDestroy(one));
	CUDA(cuCtxDestroy(other));
	/* The other one was below on the stack, and stays there. */
	while (current())
		CUDA(cuCtxPopCurrent(NULL));
}

static CUcontext shared;
static pthread_barrier_t barrier;

/* A thread whose context another one destroys. */
static void *bereaved(void *unused)
{
	CUstream stream;

	CUDA(cuCtxSetCurrent(shared));
	CUDA(cuStreamCreate(&stream, 0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	EXPECT(current() == shared);
	EXPECT_CODE(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamCreate(&stream, 0));
	CUDA(cuCtxSetCurrent(NULL));
	EXPECT_CODE(CUDA_ERROR_INVALID_CONTEXT, cuStreamCreate(&stream, 0));
	return unused;
}

static void destroyed(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	CUDA(cuCtxCreate(&shared, NULL, 0, 0));
	EXPECT(!pthread_create(&thread, NULL, bereaved, NULL));
	pthread_barrier_wait(&barrier);
	CUDA(cuCtxDestroy(shared));
	EXPECT(!current());
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

int main(void)
{
	before_init();
	CUDA(cuInit(0));
	CUDA(cuInit(0));
	primary();
	stack();
	describe();
	destroyed();
	return 0;
}
