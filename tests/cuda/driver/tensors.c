/*
 * Tensor maps: what makes one, what makes none, and on a GPU that has them, what a kernel fetches
 * by one.
 */
#include <stdlib.h>

#include "driver.h"

#define WIDTH  64
#define HEIGHT 32
#define BOX    8
#define PLACE  0x7f0000000000ull /* nobody looks there */

/* The arguments of a tiled map that is right: floats, in boxes of 8 by 8. */
struct tiled {
	CUtensorMapDataType type;
	cuuint32_t rank;
	CUdeviceptr address;
	cuuint64_t size[5], stride[4];
	cuuint32_t box[5], step[5];
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

static const struct tiled right = {
	.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
	.rank = 2,
	.address = PLACE,
	.size = {WIDTH, HEIGHT, 1, 1, 1},
	.stride = {WIDTH * sizeof(float), WIDTH *HEIGHT * sizeof(float),
		   WIDTH *HEIGHT * sizeof(float), WIDTH *HEIGHT * sizeof(float)},
	.box = {BOX, BOX, 1, 1, 1},
	.step = {1, 1, 1, 1, 1},
};

static CUresult encode(CUtensorMap *map, const struct tiled *tiled)
{
	return cuTensorMapEncodeTiled(map, tiled->type, tiled->rank,
				      (void *)(uintptr_t)tiled->address, tiled->size, tiled->stride,
				      tiled->box, tiled->step, tiled->interleave, tiled->swizzle,
				      tiled->promotion, tiled->fill);
}

/* Equal arguments make equal maps, and others make others. */
static void encodes(void)
{
	CUtensorMap first, second, other;
	struct tiled moved = right;

	CUDA(encode(&first, &right));
	for (int i = 0; i < 3; i++) {
		memset(&second, i, sizeof(second));
		CUDA(encode(&second, &right));
		EXPECT(!memcmp(&first, &second, sizeof(first)));
	}
	moved.address += 4096;
	CUDA(encode(&other, &moved));
	EXPECT(memcmp(&first, &other, sizeof(first)));
	CUDA(cuTensorMapReplaceAddress(&second, (void *)(uintptr_t)moved.address));
	EXPECT(!memcmp(&other, &second, sizeof(other)));
	CUDA(encode(&second, &right));
	EXPECT(!memcmp(&first, &second, sizeof(first)));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuTensorMapReplaceAddress(&second, (void *)(PLACE + 8)));
}

#define WRONG(change)                                                                              \
	do {                                                                                       \
		struct tiled wrong = right;                                                        \
                                                                                                   \
		wrong.change;                                                                      \
		EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, encode(&map, &wrong));                       \
	} while (0)

static void refuses(void)
{
	CUtensorMap map;

	WRONG(address += 8);
	WRONG(rank = 0);
	WRONG(rank = 6);
	WRONG(size[1] = 0);
	WRONG(size[0] = (1ull << 32) + 1);
	WRONG(stride[0] += 8);
	WRONG(stride[0] = 1ull << 40);
	WRONG(box[1] = 0);
	WRONG(box[1] = 257);
	WRONG(box[0] = 7);
	WRONG(step[1] = 0);
	WRONG(step[1] = 9);
	WRONG(type = (CUtensorMapDataType)99);
	WRONG(swizzle = (CUtensorMapSwizzle)99);
	WRONG(interleave = (CUtensorMapInterleave)99);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, encode(NULL, &right));
}

static void columns(void)
{
	const cuuint64_t size[4] = {64, 16, 16, 2}, stride[3] = {128, 2048, 32768};
	const cuuint32_t step[4] = {1, 1, 1, 1};
	const int lower[2] = {-1, -1}, upper[2] = {-1, -1}, far[2] = {-129, 0};
	CUtensorMap map;

	CUDA(cuTensorMapEncodeIm2col(
		&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)PLACE, size, stride, lower, upper,
		64, 32, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuTensorMapEncodeIm2col(
			    &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)PLACE, size, stride,
			    far, upper, 64, 32, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
			    CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
			    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuTensorMapEncodeIm2col(
			    &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)PLACE, size, stride,
			    lower, upper, 64, 32, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
			    CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
			    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

/* fetch(map, to): a box at column 16 and row 4, by 64 threads. */
static const char code[] = ".version 8.0\n"
			   ".target sm_90\n"
			   ".address_size 64\n"
			   ".visible .entry fetch(.param .align 64 .b8 map[128], .param .u64 to)\n"
			   "{\n"
			   "	.reg .pred %p<3>;\n"
			   "	.reg .b32 %r<8>;\n"
			   "	.reg .b64 %rd<6>;\n"
			   "	.shared .align 128 .b8 box[256];\n"
			   "	.shared .align 8 .b64 bar;\n"
			   "	mov.u32 %r1, bar;\n"
			   "	mov.u32 %r2, box;\n"
			   "	mov.u32 %r3, %tid.x;\n"
			   "	setp.ne.u32 %p1, %r3, 0;\n"
			   "	@%p1 bra READY;\n"
			   "	mbarrier.init.shared::cta.b64 [%r1], 1;\n"
			   "	fence.mbarrier_init.release.cluster;\n"
			   "READY:\n"
			   "	bar.sync 0;\n"
			   "	@%p1 bra WAIT;\n"
			   "	mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], 256;\n"
			   "	mov.b64 %rd2, map;\n"
			   "	cvta.param.u64 %rd3, %rd2;\n"
			   "	mov.u32 %r4, 16;\n"
			   "	mov.u32 %r5, 4;\n"
			   "	cp.async.bulk.tensor.2d.shared::cluster.global.tile"
			   ".mbarrier::complete_tx::bytes [%r2], [%rd3, {%r4, %r5}], [%r1];\n"
			   "WAIT:\n"
			   "	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n"
			   "	@!%p2 bra WAIT;\n"
			   "	ld.param.u64 %rd4, [to];\n"
			   "	mul.wide.u32 %rd5, %r3, 4;\n"
			   "	add.u64 %rd4, %rd4, %rd5;\n"
			   "	shl.b32 %r6, %r3, 2;\n"
			   "	add.u32 %r6, %r2, %r6;\n"
			   "	ld.shared.u32 %r7, [%r6];\n"
			   "	st.global.u32 [%rd4], %r7;\n"
			   "	ret;\n"
			   "}\n";

static void fetches(void)
{
	static float data[HEIGHT][WIDTH];
	float got[BOX * BOX];
	struct tiled tiled = right;
	CUdeviceptr memory, to;
	CUfunction fetch;
	CUmodule module;
	CUtensorMap map;
	void *args[] = {&map, &to};

	for (int i = 0; i < WIDTH * HEIGHT; i++)
		data[i / WIDTH][i % WIDTH] = (float)i;
	CUDA(cuModuleLoadData(&module, code));
	CUDA(cuModuleGetFunction(&fetch, module, "fetch"));
	CUDA(cuMemAlloc(&memory, sizeof(data)));
	CUDA(cuMemAlloc(&to, sizeof(got)));
	CUDA(cuMemcpyHtoD(memory, data, sizeof(data)));
	tiled.address = memory;
	CUDA(encode(&map, &tiled));
	CUDA(cuLaunchKernel(fetch, 1, 1, 1, BOX * BOX, 1, 1, 0, NULL, args, NULL));
	CUDA(cuMemcpyDtoH(got, to, sizeof(got)));
	for (int i = 0; i < BOX * BOX; i++)
		EXPECT(got[i] == data[4 + i / BOX][16 + i % BOX]);
	CUDA(cuMemFree(memory));
	CUDA(cuMemFree(to));
	CUDA(cuModuleUnload(module));
}

int main(void)
{
	int has_maps;

	test_begin();
	encodes();
	refuses();
	columns();
	CUDA(cuDeviceGetAttribute(&has_maps, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0));
	if (has_maps)
		fetches();
	CUDA(cuDevicePrimaryCtxRelease(0));
	return 0;
}
