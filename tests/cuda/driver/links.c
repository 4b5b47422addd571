/*
 * Linking at run time: functions and variables of one part that another uses, options and logs,
 * and mistakes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

static const char part_one[] = ".version 7.0\n"
			       ".target sm_70\n"
			       ".address_size 64\n"
			       ".extern .func (.param .b32 out) twice(.param .b32 in);\n"
			       ".extern .global .align 4 .u32 base;\n"
			       ".visible .entry run(.param .u64 to)\n"
			       "{\n"
			       "	.reg .b32 %r<5>;\n"
			       "	.reg .b64 %rd<3>;\n"
			       "	ld.param.u64 %rd1, [to];\n"
			       "	cvta.to.global.u64 %rd2, %rd1;\n"
			       "	mov.u32 %r1, 21;\n"
			       "	{\n"
			       "	.param .b32 in;\n"
			       "	st.param.b32 [in], %r1;\n"
			       "	.param .b32 out;\n"
			       "	call.uni (out), twice, (in);\n"
			       "	ld.param.b32 %r2, [out];\n"
			       "	}\n"
			       "	ld.global.u32 %r3, [base];\n"
			       "	add.u32 %r4, %r2, %r3;\n"
			       "	st.global.u32 [%rd2], %r4;\n"
			       "	ret;\n"
			       "}\n";

static const char part_two[] = ".version 7.0\n"
			       ".target sm_70\n"
			       ".address_size 64\n"
			       ".visible .global .align 4 .u32 base = 1000;\n"
			       ".visible .func (.param .b32 out) twice(.param .b32 in)\n"
			       "{\n"
			       "	.reg .b32 %r<3>;\n"
			       "	ld.param.b32 %r1, [in];\n"
			       "	add.u32 %r2, %r1, %r1;\n"
			       "	st.param.b32 [out], %r2;\n"
			       "	ret;\n"
			       "}\n";

static void add(CUlinkState link, const char *text, const char *name)
{
	CUDA(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1, name,
			   0, NULL, NULL));
}

static void run(const void *image)
{
	CUfunction function;
	CUdeviceptr to;
	CUmodule module;
	int got = 0;
	void *args[] = {&to};

	CUDA(cuModuleLoadData(&module, image));
	CUDA(cuModuleGetFunction(&function, module, "run"));
	CUDA(cuMemAlloc(&to, sizeof(got)));
	CUDA(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	CUDA(cuMemcpyDtoH(&got, to, sizeof(got)));
	EXPECT_EQ(1042, got);
	CUDA(cuMemFree(to));
	CUDA(cuModuleUnload(module));
}

static void links(void)
{
	char info[1024] = "", errors[1024] = "";
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER,    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
				  CU_JIT_ERROR_LOG_BUFFER,   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
				  CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_LOG_VERBOSE};
	void *values[] = {info,	    (void *)sizeof(info), errors, (void *)sizeof(errors), (void *)3,
			  (void *)1};
	CUlinkState link;
	size_t len = 0;
	void *image, *copy;

	CUDA(cuLinkCreate(6, options, values, &link));
	add(link, part_one, "one");
	add(link, part_two, "two");
	CUDA(cuLinkComplete(link, &image, &len));
	EXPECT(image && len > 0);
	run(image);
	/* It is bytes, which can be kept. */
	copy = malloc(len);
	memcpy(copy, image, len);
	CUDA(cuLinkDestroy(link));
	run(copy);
	free(copy);
	EXPECT(memchr(info, 0, sizeof(info)) && memchr(errors, 0, sizeof(errors)));
}

static void adds_files(void)
{
	char path[] = "/tmp/links-XXXXXX";
	int fd = mkstemp(path);
	CUlinkState link;
	size_t len;
	void *image;

	EXPECT(fd >= 0 && write(fd, part_two, sizeof(part_two)) == (ssize_t)sizeof(part_two));
	CUDA(cuLinkCreate(0, NULL, NULL, &link));
	CUDA(cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
	add(link, part_one, NULL);
	EXPECT_CODE(CUDA_ERROR_FILE_NOT_FOUND,
		    cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/nonexistent/file", 0, NULL, NULL));
	CUDA(cuLinkComplete(link, &image, &len));
	run(image);
	CUDA(cuLinkDestroy(link));
	close(fd);
	unlink(path);
}

/* Where nothing has what a part uses, or a part is none, at the latest at the end. */
static void fails(const char *text, const char *why)
{
	char errors[1024] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {errors, (void *)sizeof(errors)};
	CUlinkState link;
	CUresult res;
	size_t len;
	void *image;

	CUDA(cuLinkCreate(2, options, values, &link));
	res = cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1,
			    "part", 0, NULL, NULL);
	if (!res)
		res = cuLinkComplete(link, &image, &len);
	EXPECT(res == CUDA_ERROR_INVALID_PTX || res == CUDA_ERROR_INVALID_IMAGE ||
	       res == CUDA_ERROR_INVALID_SOURCE || res == CUDA_ERROR_NO_BINARY_FOR_GPU ||
	       res == CUDA_ERROR_UNKNOWN);
	EXPECT(strstr(errors, why));
	CUDA(cuLinkDestroy(link));
}

int main(void)
{
	CUlinkState link;
	size_t len;
	void *image;

	test_begin();
	links();
	adds_files();
	fails(".version 7.0\n.target sm_70\n.address_size 64\n"
	      ".extern .global .align 4 .u32 elsewhere;\n"
	      ".visible .entry run(.param .u64 to)\n{\n"
	      "	.reg .b32 %r<2>;\n	.reg .b64 %rd<2>;\n"
	      "	ld.param.u64 %rd1, [to];\n	ld.global.u32 %r1, [elsewhere];\n"
	      "	st.global.u32 [%rd1], %r1;\n	ret;\n}\n",
	      "elsewhere");
	fails(".version 7.0\n.target sm_70\n.address_size 64\n"
	      ".visible .entry bad() { nonsense; }\n",
	      "nonsense");
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(1, NULL, NULL, &link));
	CUDA(cuLinkCreate(0, NULL, NULL, &link));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuLinkAddData(link, CU_JIT_NUM_INPUT_TYPES, (void *)part_two, sizeof(part_two),
				  "two", 0, NULL, NULL));
	add(link, part_two, "two");
	CUDA(cuLinkComplete(link, &image, &len));
	CUDA(cuLinkDestroy(link));
	CUDA(cuDevicePrimaryCtxRelease(0));
	return 0;
}
