/*
 * Code and launches: modules and libraries from PTX, their kernels and variables, arguments one by
 * one and packed, what can be asked of a kernel, and mistakes.
 */
#include "driver.h"

static const char code[] = ".version 7.0\n"
			   ".target sm_70\n"
			   ".address_size 64\n"
			   ".visible .global .align 4 .u32 base[2] = {5, 1000};\n"
			   ".visible .entry add(.param .u64 to, .param .u32 much)\n"
			   "{\n"
			   "	.reg .b64 %rd<4>;\n"
			   "	.reg .b32 %r<4>;\n"
			   "	ld.param.u64 %rd1, [to];\n"
			   "	ld.param.u32 %r1, [much];\n"
			   "	ld.global.u32 %r2, [base+4];\n"
			   "	mov.u32 %r3, %tid.x;\n"
			   "	cvta.to.global.u64 %rd1, %rd1;\n"
			   "	mul.wide.u32 %rd2, %r3, 4;\n"
			   "	add.u64 %rd1, %rd1, %rd2;\n"
			   "	add.u32 %r1, %r1, %r2;\n"
			   "	add.u32 %r1, %r1, %r3;\n"
			   "	st.global.u32 [%rd1], %r1;\n"
			   "	ret;\n"
			   "}\n"
			   ".visible .entry nothing()\n"
			   "{\n"
			   "	ret;\n"
			   "}\n";

#define THREADS 32

static CUdeviceptr results;

static void check(int much)
{
	int got[THREADS];

	CUDA(cuMemcpyDtoH(got, results, sizeof(got)));
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(1000 + much + i, got[i]);
	CUDA(cuMemsetD32(results, 0, THREADS));
}

static void launch(CUfunction add)
{
	struct {
		CUdeviceptr to;
		int much;
	} packed = {results, 3};
	size_t packed_bytes = sizeof(packed.to) + sizeof(packed.much);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &packed_bytes, CU_LAUNCH_PARAM_END};
	int much = 2;
	void *args[] = {&results, &much};
	CUlaunchConfig config = {.gridDimX = 1,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = THREADS,
				 .blockDimY = 1,
				 .blockDimZ = 1};

	CUDA(cuLaunchKernel(add, 1, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL));
	check(2);
	CUDA(cuLaunchKernel(add, 1, 1, 1, THREADS, 1, 1, 0, NULL, NULL, extra));
	check(3);
	much = 4;
	CUDA(cuLaunchKernelEx(&config, add, args, NULL));
	check(4);
	packed.much = 5;
	CUDA(cuLaunchKernelEx(&config, add, NULL, extra));
	check(5);
	CUDA(cuLaunchCooperativeKernel(add, 1, 1, 1, THREADS, 1, 1, 0, CU_STREAM_PER_THREAD, args));
	CUDA(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	check(4);

	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuLaunchKernel(add, 0, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuLaunchKernel(add, 1, 1, 1, THREADS, 1, 1, 0, NULL, args, extra));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuLaunchKernel(add, 1, 1, 1, 100000, 1, 1, 0, NULL, args, NULL));
	EXPECT_CODE(CUDA_ERROR_INVALID_HANDLE,
		    cuLaunchKernel(NULL, 1, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL));
}

static const char large_code[] = ".version 7.0\n"
				 ".target sm_70\n"
				 ".address_size 64\n"
				 ".visible .entry take(.param .align 8 .b8 args[512])\n"
				 "{\n"
				 "	.reg .b64 %rd<3>;\n"
				 "	ld.param.u64 %rd1, [args];\n"
				 "	ld.param.u64 %rd2, [args+8];\n"
				 "	cvta.to.global.u64 %rd1, %rd1;\n"
				 "	st.global.u64 [%rd1], %rd2;\n"
				 "	ret;\n"
				 "}\n";

/* The buffer has the beginning of a large parameter alone. */
static void launch_short(void)
{
	struct {
		CUdeviceptr to;
		uint64_t value;
	} packed = {results, 0x123456789abcdefull};
	size_t bytes = sizeof(packed);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
			 CU_LAUNCH_PARAM_END};
	uint64_t got;
	CUmodule module;
	CUfunction take;

	CUDA(cuModuleLoadData(&module, large_code));
	CUDA(cuModuleGetFunction(&take, module, "take"));
	CUDA(cuLaunchKernel(take, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	CUDA(cuMemcpyDtoH(&got, results, sizeof(got)));
	EXPECT_EQ(packed.value, got);
	CUDA(cuModuleUnload(module));
}

static void ask(CUfunction add)
{
	size_t offset, size;
	const char *name;
	int value, blocks;

	CUDA(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add));
	EXPECT(value >= THREADS);
	CUDA(cuFuncGetName(&name, add));
	EXPECT(!strcmp(name, "add"));
	CUDA(cuFuncGetParamInfo(add, 1, &offset, &size));
	EXPECT_EQ(8, offset);
	EXPECT_EQ(4, size);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(add, 2, &offset, &size));
	CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, THREADS, 0));
	EXPECT(blocks > 0);
	CUDA(cuOccupancyMaxPotentialBlockSize(&blocks, &value, add, NULL, 0, 0));
	EXPECT(blocks > 0 && value > 0);
}

static void module(void)
{
	char log[100] = "unwritten";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUfunction add, functions[4];
	CUmodule module, other;
	CUdeviceptr base;
	unsigned count;
	size_t bytes;

	CUDA(cuModuleLoadDataEx(&module, code, 2, options, values));
	CUDA(cuModuleGetFunction(&add, module, "add"));
	launch(add);
	launch_short();
	ask(add);
	CUDA(cuModuleGetGlobal(&base, &bytes, module, "base"));
	EXPECT_EQ(8, bytes);
	CUDA(cuFuncGetModule(&other, add));
	EXPECT(other == module);
	CUDA(cuModuleGetFunctionCount(&count, module));
	EXPECT_EQ(2, count);
	CUDA(cuModuleEnumerateFunctions(functions, 2, module));
	EXPECT(functions[0] == add || functions[1] == add);
	EXPECT_CODE(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&add, module, "absent"));
	EXPECT_CODE(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&base, &bytes, module, "absent"));
	CUDA(cuModuleUnload(module));
}

static void library(void)
{
	CUlibrary library, other;
	CUfunction function;
	CUdeviceptr base;
	CUkernel add;
	int value;

	CUDA(cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
	CUDA(cuLibraryGetKernel(&add, library, "add"));
	CUDA(cuKernelGetFunction(&function, add));
	launch(function);
	launch((CUfunction)add);
	CUDA(cuKernelGetLibrary(&other, add));
	EXPECT(other == library);
	CUDA(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, add, 0));
	EXPECT(value > 0);
	CUDA(cuLibraryGetGlobal(&base, NULL, library, "base"));
	EXPECT_CODE(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&add, library, "absent"));
	CUDA(cuLibraryUnload(library));
}

/* cuBLASLt loads its code like this: an option without a value, and no array of values. */
static void library_options(void)
{
	CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
	CUlibrary library;
	CUkernel add;

	CUDA(cuLibraryLoadData(&library, code, NULL, NULL, 0, &preserved, NULL, 1));
	CUDA(cuLibraryGetKernel(&add, library, "add"));
	CUDA(cuLibraryUnload(library));
	EXPECT_CODE(CUDA_ERROR_INVALID_IMAGE, cuLibraryLoadFromFile(&library, "/dev/null", NULL,
								    NULL, 0, &preserved, NULL, 1));
}

int main(void)
{
	test_begin();
	CUDA(cuMemAlloc(&results, THREADS * sizeof(int)));
	module();
	library();
	library_options();
	CUDA(cuMemFree(results));
	CUDA(cuDevicePrimaryCtxRelease(0));
	return 0;
}
