/*
 * How many clusters of blocks run at once depends on the clusters and on how many blocks a
 * multiprocessor has room for, whatever it is that takes the room: FairGV asks the driver about one
 * kernel, and answers for others. A device without clusters says so.
 */
#include <stdio.h>

#include "driver.h"

static const char code[] = ".version 7.0\n"
			   ".target sm_70\n"
			   ".address_size 64\n"
			   ".visible .entry one()\n"
			   "{\n"
			   "	ret;\n"
			   "}\n"
			   ".visible .entry two(.param .u64 to)\n"
			   "{\n"
			   "	.reg .b64 %rd<2>;\n"
			   "	.reg .b32 %r<2>;\n"
			   "	ld.param.u64 %rd1, [to];\n"
			   "	mov.u32 %r1, %tid.x;\n"
			   "	st.global.u32 [%rd1], %r1;\n"
			   "	ret;\n"
			   "}\n";

#define ROOM_MAX 32

static const unsigned shapes[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {4, 1, 1},
				     {2, 2, 1}, {8, 1, 1}, {4, 2, 1}, {16, 1, 1}};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

/* By how many blocks there is room for; 0: not known yet. */
static int known[ROOM_MAX + 1][SHAPES];
static unsigned compared;

static int count(CUfunction function, const unsigned shape[3], unsigned threads, unsigned shared)
{
	CUlaunchAttribute size = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
				  .value.clusterDim = {shape[0], shape[1], shape[2]}};
	CUlaunchConfig config = {
		.gridDimX = 16 * shape[0],
		.gridDimY = 16 * shape[1],
		.gridDimZ = shape[2],
		.blockDimX = threads,
		.blockDimY = 1,
		.blockDimZ = 1,
		.sharedMemBytes = shared,
		.attrs = &size,
		.numAttrs = 1,
	};
	int clusters = 0;

	CUDA(cuOccupancyMaxActiveClusters(&clusters, function, &config));
	return clusters;
}

static void compare(CUfunction function, unsigned threads, unsigned shared)
{
	int room = 0;

	CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&room, function, (int)threads, shared));
	if (room <= 0 || room > ROOM_MAX)
		return;
	for (size_t i = 0; i < SHAPES; i++) {
		int clusters = count(function, shapes[i], threads, shared);

		if (known[room][i] && known[room][i] != clusters)
			printf("%u threads, %u bytes, clusters of %u*%u: %d, not %d\n", threads,
			       shared, shapes[i][0], shapes[i][1], clusters, known[room][i]);
		if (known[room][i]) {
			EXPECT_EQ(known[room][i], clusters);
			compared++;
		}
		known[room][i] = clusters;
	}
}

static void compare_all(CUfunction function, unsigned shared_max)
{
	CUDA(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				(int)shared_max));
	CUDA(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	for (unsigned threads = 32; threads <= 1024; threads += 32) {
		for (unsigned shared = 0; shared <= shared_max; shared += 8192)
			compare(function, threads, shared);
		compare(function, threads, shared_max);
	}
}

static void is_refused(CUfunction function)
{
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
	int clusters;

	EXPECT_CODE(CUDA_ERROR_NOT_SUPPORTED,
		    cuOccupancyMaxActiveClusters(&clusters, function, &config));
}

int main(void)
{
	int has_clusters, shared_max;
	CUfunction one, two;
	CUmodule module;

	test_begin();
	CUDA(cuDeviceGetAttribute(&has_clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
	CUDA(cuDeviceGetAttribute(&shared_max,
				  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
	CUDA(cuModuleLoadData(&module, code));
	CUDA(cuModuleGetFunction(&one, module, "one"));
	CUDA(cuModuleGetFunction(&two, module, "two"));
	if (has_clusters) {
		compare_all(one, (unsigned)shared_max);
		compare_all(two, (unsigned)shared_max);
		EXPECT(compared > 1000);
	} else {
		is_refused(one);
	}
	CUDA(cuDevicePrimaryCtxRelease(0));
	return 0;
}
