/*
 * Launches, streams and events: what reaches the host, in which order, and the codes of
 * what must not, which are those that the runtime gave on an H200.
 */
#include "tests/unit/frontend/libcudart/test_frontend.h"

#include <pthread.h>
#include <stdio.h>

static const struct {
	unsigned grid[3], block[3];
	size_t shared;
	cudaError_t code;
} configurations[] = {
	{{1, 1, 1}, {1, 1, 1}, 0, cudaSuccess},
	{{0, 1, 1}, {1, 1, 1}, 0, cudaErrorInvalidValue},
	{{1, 0, 1}, {1, 1, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 0}, {1, 1, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 1}, {0, 1, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 1}, {1, 1, 0}, 0, cudaErrorInvalidValue},
	{{1, 65535, 65535}, {1, 1, 1}, 0, cudaSuccess},
	{{1, 65536, 1}, {1, 1, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 65536}, {1, 1, 1}, 0, cudaErrorInvalidValue},
	{{0x7fffffff, 1, 1}, {1, 1, 1}, 0, cudaSuccess},
	{{0x80000000, 1, 1}, {1, 1, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 1}, {1024, 1, 1}, 0, cudaSuccess},
	{{1, 1, 1}, {1025, 1, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 1}, {64, 32, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 1}, {0x10000, 0x10000, 1}, 0, cudaErrorInvalidValue},
	{{1, 1, 1}, {1, 1, 64}, 0, cudaSuccess},
	{{1, 1, 1}, {1, 1, 65}, 0, cudaErrorInvalidValue},
	{{1, 1, 1}, {1, 1, 1}, 49152, cudaSuccess},
	{{1, 1, 1}, {1, 1, 1}, 49153, cudaErrorInvalidValue},
	{{1, 1, 1}, {1, 1, 1}, 300000, cudaErrorInvalidValue},
};

START_TEST(configuration)
{
	const unsigned *g = configurations[_i].grid, *b = configurations[_i].block;

	EXPECT(launch(kernel_empty, of(g[0], g[1], g[2]), of(b[0], b[1], b[2]),
		      configurations[_i].shared),
	       configurations[_i].code);
	cudaDeviceSynchronize();
	ck_assert_uint_eq(HOST_GET(launch_count), configurations[_i].code == cudaSuccess);
}
END_TEST

START_TEST(limits_of_the_kernel)
{
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 128;
	host.function_attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 10;
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(128, 1, 1), 0), cudaSuccess);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(256, 1, 1), 0), cudaErrorInvalidValue);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(2048, 1, 1), 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 256;
	host.function_attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 255;
	EXPECT(launch(kernel_add, of(1, 1, 1), of(256, 1, 1), 0), cudaSuccess);
	EXPECT(launch(kernel_add, of(1, 1, 1), of(1024, 1, 1), 0), cudaErrorLaunchOutOfResources);
	EXPECT(launch(kernel_add, of(1, 1, 1), of(2048, 1, 1), 0), cudaErrorInvalidValue);
}
END_TEST

START_TEST(what_is_no_kernel)
{
	cudaKernel_t handle = NULL;

	EXPECT(launch(NULL, of(1, 1, 1), of(1, 1, 1), 0), cudaErrorInvalidDeviceFunction);
	EXPECT(launch(NULL, of(1, 1, 1), of(0, 1, 1), 0), cudaErrorInvalidDeviceFunction);
	EXPECT(launch(not_a_kernel, of(1, 1, 1), of(1, 1, 1), 0), cudaErrorInvalidResourceHandle);
	EXPECT(launch(kernel_absent, of(1, 1, 1), of(1, 1, 1), 0), cudaErrorInvalidDeviceFunction);
	EXPECT(__cudaGetKernel(&handle, not_a_kernel), cudaErrorInvalidResourceHandle);
	ck_assert_ptr_eq(handle, NULL);
	EXPECT(__cudaLaunchKernel(NULL, of(1, 1, 1), of(1, 1, 1), NULL, 0, NULL),
	       cudaErrorInvalidDeviceFunction);
	EXPECT(cudaLaunchKernel(kernel_add, of(1, 1, 1), of(1, 1, 1), NULL, 0, NULL),
	       cudaErrorInvalidValue);
	EXPECT(cudaLaunchKernel(kernel_empty, of(1, 1, 1), of(1, 1, 1), NULL, 0, NULL),
	       cudaSuccess);
}
END_TEST

START_TEST(arguments_arrive_padded)
{
	uint64_t p = 0x1122334455667788;
	int32_t n = -2;
	uint8_t c = 0xee;
	void *args[] = {&p, &n, &c};
	const struct host_launch *got = &host.launches[0];
	uint64_t words[3];
	cudaKernel_t handle;

	ck_assert_int_eq(__cudaGetKernel(&handle, kernel_add), 0);
	ck_assert_int_eq(__cudaLaunchKernel(handle, of(2, 3, 4), of(5, 6, 7), args, 8, NULL), 0);
	n = 0;
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	host_seen();
	ck_assert_str_eq(got->kernel, "add");
	ck_assert_uint_eq(got->grid[0] * 100 + got->grid[1] * 10 + got->grid[2], 234);
	ck_assert_uint_eq(got->block[0] * 100 + got->block[1] * 10 + got->block[2], 567);
	ck_assert_uint_eq(got->shared_bytes, 8);
	ck_assert_uint_eq(got->param_count, 3);
	ck_assert_uint_eq(got->args_len, 24);
	memcpy(words, got->args, sizeof(words));
	ck_assert_uint_eq(words[0], p);
	ck_assert_uint_eq(words[1], 0xfffffffe);
	ck_assert_uint_eq(words[2], 0xee);
}
END_TEST

START_TEST(large_arguments)
{
	uint8_t block[100];
	uint64_t last = 77;
	void *args[] = {block, &last};
	const struct host_launch *got = &host.launches[0];

	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)i;
	ck_assert_int_eq(cudaLaunchKernel(kernel_big, of(1, 1, 1), of(1, 1, 1), args, 0, NULL), 0);
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	host_seen();
	ck_assert_uint_eq(got->args_len, 112);
	ck_assert_mem_eq(got->args, block, 100);
	ck_assert_mem_eq(got->args + 100, "\0\0\0\0", 4);
	ck_assert_mem_eq(got->args + 104, &last, 8);
}
END_TEST

START_TEST(launches_are_posted)
{
	cudaDeviceSynchronize();
	for (int i = 0; i < 20000; i++)
		ck_assert_int_eq(launch(kernel_add, of(1, 1, 1), of(32, 1, 1), 0), 0);
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	ck_assert_uint_eq(HOST_GET(launch_count), 20000);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_FUNCTION_GET]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_DEVICE_SYNC]), 2);
}
END_TEST

/* Twice in a row is once; but not where a capture has it refused, nor after any other request. */
START_TEST(an_idle_device_is_not_asked)
{
	cudaStream_t stream;
	cudaGraph_t graph;

	ck_assert_int_eq(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_DEVICE_SYNC]), 1);
	ck_assert_int_eq(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), 0);
	HOST_SET(status[FGV_OP_DEVICE_SYNC], CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(cudaDeviceSynchronize(), cudaErrorInvalidValue);
	HOST_SET(status[FGV_OP_DEVICE_SYNC], CUDA_SUCCESS);
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_DEVICE_SYNC]), 3);
	ck_assert_int_eq(cudaStreamCreate(&stream), 0);
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
	ck_assert_int_eq(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
	ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_DEVICE_SYNC]), 4);
}
END_TEST

START_TEST(configurations_nest)
{
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;

	EXPECT(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
	       cudaErrorMissingConfiguration);
	for (unsigned i = 1; i <= 100; i++)
		ck_assert_uint_eq(
			__cudaPushCallConfiguration(of(i, 1, 1), of(1, i, 1), i, cudaStreamLegacy),
			0);
	for (unsigned i = 100; i >= 1; i--) {
		ck_assert_int_eq(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
		ck_assert_uint_eq(grid.x, i);
		ck_assert_uint_eq(block.y, i);
		ck_assert_uint_eq(shared, i);
		ck_assert_ptr_eq(stream, cudaStreamLegacy);
	}
}
END_TEST

START_TEST(extended_launch)
{
	cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeCooperative};
	cudaLaunchConfig_t config = {.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}};

	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaSuccess);
	EXPECT(cudaLaunchKernelExC(NULL, kernel_empty, NULL), cudaErrorInvalidValue);
	config.attrs = &attribute;
	config.numAttrs = 1;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaSuccess);
	attribute.val.cooperative = 1;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaSuccess);
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaSuccess);
}
END_TEST

/* The host is asked once for each shape, and then what is launched is posted. */
START_TEST(clusters)
{
	cudaLaunchAttribute attributes[2] = {
		{.id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {2, 2, 1}},
		{.id = cudaLaunchAttributeCooperative},
	};
	cudaLaunchConfig_t config = {
		.gridDim = {4, 4, 1}, .blockDim = {32, 1, 1}, .attrs = attributes, .numAttrs = 2};
	int value = 0;

	for (int i = 0; i < 3; i++)
		EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_LAUNCH_CLUSTERS]), 3);
	host_seen();
	ck_assert_uint_eq(host.cluster[0] * 100 + host.cluster[1] * 10 + host.cluster[2], 221);
	ck_assert_uint_eq(host.cluster_cooperative + host.cluster_any_size + host.cluster_policy,
			  0);
	host_seen();

	attributes[1].val.cooperative = 1;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaSuccess);
	config.gridDim.x = 8;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL),
	       cudaErrorCooperativeLaunchTooLarge);
	attributes[1].val.cooperative = 0;
	config.gridDim.x = 9;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaErrorInvalidValue);
	attributes[0].val.clusterDim.x = 9;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaErrorInvalidClusterSize);
	for (int i = 0; i < 2; i++) {
		EXPECT(cudaOccupancyMaxPotentialClusterSize(&value, kernel_empty, &config),
		       cudaSuccess);
		ck_assert_int_eq(value, 8);
	}
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_LARGEST]), 1);
	EXPECT(cudaFuncSetAttribute(kernel_empty, cudaFuncAttributeNonPortableClusterSizeAllowed,
				    1),
	       cudaSuccess);
	attributes[0].val.clusterDim.y = 1;
	EXPECT(cudaLaunchKernelExC(&config, kernel_empty, NULL), cudaSuccess);
	EXPECT(cudaOccupancyMaxActiveClusters(&value, kernel_empty, &config), cudaSuccess);
	ck_assert_int_eq(value, 1);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.cluster_any_size, 1);
}
END_TEST

static int count_clusters_of(const void *kernel, unsigned grid, unsigned cluster)
{
	cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension,
					 .val.clusterDim = {cluster, 1, 1}};
	cudaLaunchConfig_t config = {.gridDim = {grid, 1, 1},
				     .blockDim = {32, 1, 1},
				     .attrs = &attribute,
				     .numAttrs = 1};
	int count = 0;

	EXPECT(cudaOccupancyMaxActiveClusters(&count, kernel, &config), cudaSuccess);
	return count;
}

static int count_clusters(unsigned grid, unsigned cluster)
{
	return count_clusters_of(kernel_empty, grid, cluster);
}

/* However often and in whatever turns shapes are asked for, whatever their grids. */
START_TEST(counts_clusters_once)
{
	for (unsigned i = 1; i <= 9; i++) {
		ck_assert_int_eq(count_clusters(16, 2), 8);
		ck_assert_int_eq(count_clusters(4 * i, 4), 4);
		EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	}
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), 2);
	/* What the host might refuse is for it to say, until it has not. */
	count_clusters(5, 4);
	count_clusters(7, 4);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), 3);
	for (int grid = 1; grid <= 3; grid++) {
		for (unsigned cluster = 1; cluster <= 8; cluster++)
			count_clusters(cluster, cluster);
	}
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), 3 + 6);
}
END_TEST

/* What is said of a kernel holds for those of which as many blocks fit, and for no others. */
START_TEST(counts_clusters_for_all_kernels)
{
	for (unsigned cluster = 1; cluster <= 8; cluster++) {
		ck_assert_int_eq(count_clusters_of(kernel_empty, 8 * cluster, cluster),
				 (int)(16 / cluster));
		ck_assert_int_eq(count_clusters_of(kernel_add, 8 * cluster, cluster),
				 (int)(16 / cluster));
	}
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), 8);
	host_seen();
	host.function_attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 255;
	host_seen();
	count_clusters_of(kernel_big, 8, 2);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), 9);
}
END_TEST

/* A kernel that was compiled for clusters of one size may be asked about others. */
START_TEST(a_kernel_with_a_size_of_its_own)
{
	count_clusters_of(kernel_empty, 8, 2);
	host_seen();
	host.function_attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = 4;
	host_seen();
	count_clusters_of(kernel_add, 8, 2);
	count_clusters_of(kernel_add, 8, 2);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), 2);
}
END_TEST

/* What was refused for one kernel is asked for again. */
START_TEST(a_refusal_is_not_kept)
{
	cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension,
					 .val.clusterDim = {2, 1, 1}};
	cudaLaunchConfig_t config = {
		.gridDim = {8, 1, 1}, .blockDim = {32, 1, 1}, .attrs = &attribute, .numAttrs = 1};
	int count = 0;

	HOST_SET(status[FGV_OP_CLUSTERS_ACTIVE], CUDA_ERROR_INVALID_CLUSTER_SIZE);
	for (int i = 1; i <= 2; i++) {
		EXPECT(cudaOccupancyMaxActiveClusters(&count, kernel_empty, &config),
		       cudaErrorInvalidClusterSize);
		ck_assert_uint_eq(HOST_GET(requests[FGV_OP_CLUSTERS_ACTIVE]), (unsigned)i);
	}
}
END_TEST

static uint32_t last_stream(void)
{
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	return host.launches[HOST_GET(launch_count) - 1].stream;
}

START_TEST(streams)
{
	cudaStream_t a, b, bad = (cudaStream_t)5;
	uint32_t handle;

	EXPECT(cudaStreamCreate(&a), cudaSuccess);
	EXPECT(cudaStreamCreate(NULL), cudaErrorInvalidValue);
	EXPECT(cudaStreamCreateWithFlags(&b, 2), cudaErrorInvalidValue);
	EXPECT(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), cudaSuccess);
	EXPECT(cudaLaunchKernel(kernel_empty, of(1, 1, 1), of(1, 1, 1), NULL, 0, a), cudaSuccess);
	handle = last_stream();
	ck_assert_uint_ne(handle, 0);
	EXPECT(cudaLaunchKernel(kernel_empty, of(1, 1, 1), of(1, 1, 1), NULL, 0, b), cudaSuccess);
	ck_assert_uint_ne(last_stream(), handle);
	EXPECT(cudaLaunchKernel(kernel_empty, of(1, 1, 1), of(1, 1, 1), NULL, 0, cudaStreamLegacy),
	       cudaSuccess);
	ck_assert_uint_eq(last_stream(), 0);
	EXPECT(cudaLaunchKernel(kernel_empty, of(1, 1, 1), of(1, 1, 1), NULL, 0, bad),
	       cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamSynchronize(bad), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamQuery(bad), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamQuery(a), cudaSuccess);
	HOST_SET(status[FGV_OP_STREAM_QUERY], CUDA_ERROR_NOT_READY);
	ck_assert_int_eq(cudaStreamQuery(a), cudaErrorNotReady);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
	EXPECT(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamDestroy(a), cudaSuccess);
	EXPECT(cudaStreamDestroy(a), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamSynchronize(a), cudaErrorInvalidResourceHandle);
}
END_TEST

START_TEST(stream_properties)
{
	cudaStream_t s;
	unsigned flags = 9;
	int priority = 9, least, greatest;

	EXPECT(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
	ck_assert_int_eq(least, 0);
	ck_assert_int_eq(greatest, -5);
	EXPECT(cudaDeviceGetStreamPriorityRange(NULL, NULL), cudaSuccess);
	EXPECT(cudaStreamCreateWithPriority(&s, 4, 0), cudaErrorInvalidValue);
	EXPECT(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -100), cudaSuccess);
	EXPECT(cudaStreamGetPriority(s, &priority), cudaSuccess);
	ck_assert_int_eq(priority, -5);
	EXPECT(cudaStreamGetFlags(s, &flags), cudaSuccess);
	ck_assert_uint_eq(flags, cudaStreamNonBlocking);
	EXPECT(cudaStreamCreateWithPriority(&s, 0, 100), cudaSuccess);
	EXPECT(cudaStreamGetPriority(s, &priority), cudaSuccess);
	ck_assert_int_eq(priority, 0);
	EXPECT(cudaStreamGetFlags(NULL, &flags), cudaSuccess);
	ck_assert_uint_eq(flags, 0);
	EXPECT(cudaStreamGetFlags(s, NULL), cudaErrorInvalidValue);
	EXPECT(cudaStreamGetFlags((cudaStream_t)5, &flags), cudaErrorInvalidResourceHandle);
}
END_TEST

static void *launch_on_own_stream(void *arg)
{
	(void)arg;
	ck_assert_int_eq(cudaLaunchKernel(kernel_empty, of(1, 1, 1), of(1, 1, 1), NULL, 0,
					  cudaStreamPerThread),
			 0);
	ck_assert_int_eq(cudaStreamSynchronize(cudaStreamPerThread), 0);
	return NULL;
}

START_TEST(each_thread_has_a_default_stream)
{
	pthread_t thread;
	uint32_t mine;

	launch_on_own_stream(NULL);
	launch_on_own_stream(NULL);
	mine = last_stream();
	ck_assert_uint_ne(mine, 0);
	ck_assert_uint_eq(host.launches[0].stream, mine);
	pthread_create(&thread, NULL, launch_on_own_stream, NULL);
	pthread_join(thread, NULL);
	ck_assert_uint_ne(last_stream(), mine);
	ck_assert_uint_ne(last_stream(), 0);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_MAKE]), 2);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_STREAM_DESTROY]), 1);
}
END_TEST

START_TEST(events)
{
	cudaEvent_t a, b, untimed;
	float ms = -1;

	EXPECT(cudaEventCreate(&a), cudaSuccess);
	EXPECT(cudaEventCreate(&b), cudaSuccess);
	EXPECT(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
	EXPECT(cudaEventCreateWithFlags(&untimed, 8), cudaErrorInvalidValue);
	EXPECT(cudaEventCreateWithFlags(&untimed, cudaEventInterprocess), cudaErrorInvalidValue);
	EXPECT(cudaEventCreate(NULL), cudaErrorInvalidValue);
	EXPECT(cudaEventRecord(a, NULL), cudaSuccess);
	EXPECT(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventRecord(b, NULL), cudaSuccess);
	EXPECT(cudaEventElapsedTime(&ms, a, b), cudaSuccess);
	ck_assert(ms > 1.4f && ms < 1.6f);
	EXPECT(cudaEventElapsedTime(&ms, untimed, a), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventElapsedTime(NULL, a, a), cudaErrorInvalidValue);
	EXPECT(cudaEventElapsedTime(&ms, NULL, a), cudaErrorInvalidResourceHandle);
	HOST_SET(status[FGV_OP_EVENT_ELAPSED], CUDA_ERROR_NOT_READY);
	ck_assert_int_eq(cudaEventElapsedTime(&ms, a, a), cudaErrorNotReady);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
	EXPECT(cudaEventRecord(a, (cudaStream_t)5), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventRecord(NULL, NULL), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventRecordWithFlags(a, NULL, 1), cudaErrorIllegalState);
	EXPECT(cudaEventRecordWithFlags(a, NULL, 2), cudaErrorInvalidValue);
	EXPECT(cudaStreamWaitEvent(NULL, a, 0), cudaSuccess);
	EXPECT(cudaStreamWaitEvent(NULL, NULL, 0), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamWaitEvent(NULL, a, 2), cudaErrorInvalidValue);
	EXPECT(cudaStreamWaitEvent(NULL, a, 1), cudaErrorIllegalState);
	EXPECT(cudaEventQuery(NULL), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventSynchronize(a), cudaSuccess);
	EXPECT(cudaEventDestroy(NULL), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventDestroy((cudaEvent_t)1), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventDestroy(a), cudaSuccess);
	EXPECT(cudaEventQuery(a), cudaErrorInvalidResourceHandle);
	EXPECT(cudaStreamSynchronize((cudaStream_t)b), cudaErrorInvalidResourceHandle);
}
END_TEST

/* Creating and destroying waits for room alone, and room is kept for what comes. */
START_TEST(made_without_waiting)
{
	cudaEvent_t made[1000];
	cudaStream_t queues[40];

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 1000; i++)
			EXPECT(cudaEventCreate(&made[i]), cudaSuccess);
		for (int i = 0; i < 40; i++)
			EXPECT(cudaStreamCreate(&queues[i]), cudaSuccess);
		for (int i = 0; i < 1000; i++) {
			EXPECT(cudaEventRecord(made[i], queues[i % 40]), cudaSuccess);
			EXPECT(cudaEventDestroy(made[i]), cudaSuccess);
		}
		for (int i = 0; i < 40; i++)
			EXPECT(cudaStreamDestroy(queues[i]), cudaSuccess);
		if (!round)
			ck_assert_uint_le(HOST_GET(requests[FGV_OP_OWN_RESERVE]), 18);
	}
	for (int i = 0; i < 10000; i++) {
		EXPECT(cudaEventCreate(&made[0]), cudaSuccess);
		EXPECT(cudaEventDestroy(made[0]), cudaSuccess);
	}
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(violations), 0);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_EVENT_MAKE]), 20 * 1000 + 10000);
	ck_assert_uint_le(HOST_GET(requests[FGV_OP_OWN_RESERVE]), 20 * 18);
	EXPECT(cudaDeviceReset(), cudaSuccess);
	host_seen();
	ck_assert_int_eq(host.room[FGV_OWN_EVENT] + host.room[FGV_OWN_STREAM], 0);
}
END_TEST

/* What there is no room for is not made, and said at once. */
START_TEST(made_where_there_is_room)
{
	cudaEvent_t made[20];

	host.most_reserved = 19;
	for (int i = 0; i < 19; i++)
		EXPECT(cudaEventCreate(&made[i]), cudaSuccess);
	EXPECT(cudaEventCreate(&made[19]), cudaErrorMemoryAllocation);
	EXPECT(cudaEventDestroy(made[7]), cudaSuccess);
	EXPECT(cudaEventCreate(&made[19]), cudaSuccess);
	EXPECT(cudaEventRecord(made[19], NULL), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(violations), 0);
}
END_TEST

/* Threads that hand a turn around, each launching after the one before has returned. */
#define HANDS  8
#define ROUNDS 4000

static uint32_t turn;

static void *take_turns(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = me; i < HANDS * ROUNDS; i += HANDS) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i)
			sched_yield();
		if (launch(kernel_empty, of(i + 1, 1, 1), of(1, 1, 1), 0))
			return (void *)1;
		__atomic_store_n(&turn, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

START_TEST(order_between_threads)
{
	pthread_t threads[HANDS];
	void *failed;

	for (uintptr_t i = 0; i < HANDS; i++)
		pthread_create(&threads[i], NULL, take_turns, (void *)i);
	for (int i = 0; i < HANDS; i++) {
		pthread_join(threads[i], &failed);
		ck_assert_ptr_eq(failed, NULL);
	}
	ck_assert_int_eq(cudaDeviceSynchronize(), 0);
	ck_assert_uint_eq(HOST_GET(launch_count), HANDS * ROUNDS);
	for (uint32_t i = 0; i < HANDS * ROUNDS; i++)
		ck_assert_uint_eq(host.launches[i].grid[0], i + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: launches");
	TCase *tests = tcase_create("launches");

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, configuration, 0,
			    (int)(sizeof(configurations) / sizeof(configurations[0])));
	tcase_add_test(tests, limits_of_the_kernel);
	tcase_add_test(tests, what_is_no_kernel);
	tcase_add_test(tests, arguments_arrive_padded);
	tcase_add_test(tests, large_arguments);
	tcase_add_test(tests, launches_are_posted);
	tcase_add_test(tests, an_idle_device_is_not_asked);
	tcase_add_test(tests, configurations_nest);
	tcase_add_test(tests, extended_launch);
	tcase_add_test(tests, clusters);
	tcase_add_test(tests, counts_clusters_once);
	tcase_add_test(tests, counts_clusters_for_all_kernels);
	tcase_add_test(tests, a_kernel_with_a_size_of_its_own);
	tcase_add_test(tests, a_refusal_is_not_kept);
	tcase_add_test(tests, streams);
	tcase_add_test(tests, stream_properties);
	tcase_add_test(tests, each_thread_has_a_default_stream);
	tcase_add_test(tests, events);
	tcase_add_test(tests, made_without_waiting);
	tcase_add_test(tests, made_where_there_is_room);
	tcase_add_test(tests, order_between_threads);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
