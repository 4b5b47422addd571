/*
 * Libraries: code that the program has as text, and loads, uses and unloads while it runs.
 */
#include "test.h"

#include <unistd.h>

static const char code[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 offset[2] = {1000, 30};
.visible .entry add(.param .u64 to, .param .u32 much)
{
	.reg .b64 %rd<3>;
	.reg .b32 %r<4>;
	ld.param.u64 %rd1, [to];
	ld.param.u32 %r1, [much];
	ld.global.u32 %r2, [offset+4];
	add.u32 %r1, %r1, %r2;
	cvta.to.global.u64 %rd1, %rd1;
	st.global.u32 [%rd1], %r1;
	ret;
}
.visible .entry nothing()
{
	ret;
}
)";

static const char managed_code[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 both[3] = {7, 8};
.visible .global .align 4 .u32 own = 5;
.visible .entry bump()
{
	.reg .b32 %r<2>;
	ld.global.u32 %r1, [both+4];
	add.u32 %r1, %r1, 1;
	st.global.u32 [both+4], %r1;
	ret;
}
)";

static void launch(cudaKernel_t kernel, int *to, int much)
{
	void *args[] = {&to, &much};

	CUDA(cudaLaunchKernel((const void *)kernel, 1, 1, args, 0, 0));
}

/* Of two kernels, whichever comes first. */
static void list(cudaLibrary_t library)
{
	cudaKernel_t kernels[3] = {}, one[1] = {}, add, nothing;
	const char *name;
	unsigned count = 0;
	void *function;

	CUDA(cudaLibraryGetKernelCount(&count, library));
	EXPECT_EQ(2, count);
	CUDA(cudaLibraryEnumerateKernels(kernels, 3, library));
	CUDA(cudaLibraryEnumerateKernels(one, 1, library));
	EXPECT(one[0] == kernels[0] || one[0] == kernels[1]);
	EXPECT(kernels[0] && kernels[1] && kernels[0] != kernels[1] && !kernels[2]);
	CUDA(cudaLibraryGetKernel(&add, library, "add"));
	EXPECT(kernels[0] == add || kernels[1] == add);
	CUDA(cudaLibraryGetKernel(&nothing, library, "nothing"));
	EXPECT(kernels[0] == nothing || kernels[1] == nothing);
	CUDA(cudaFuncGetName(&name, (const void *)kernels[0]));
	EXPECT(!strcmp(name, kernels[0] == add ? "add" : "nothing"));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLibraryGetKernelCount(NULL, library));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLibraryEnumerateKernels(NULL, 1, library));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaLibraryGetUnifiedFunction(&function, library, "add"));
	cudaGetLastError();
}

static void use(cudaLibrary_t library)
{
	int result = 0, *place, value = 500;
	cudaFuncAttributes attributes;
	cudaKernel_t kernel, again;
	size_t bytes = 0;
	void *address;

	CUDA(cudaMalloc(&place, sizeof(*place)));
	CUDA(cudaLibraryGetKernel(&kernel, library, "add"));
	CUDA(cudaLibraryGetKernel(&again, library, "add"));
	EXPECT(kernel == again);
	CUDA(cudaFuncGetAttributes(&attributes, (const void *)kernel));
	EXPECT(attributes.maxThreadsPerBlock > 0);
	launch(kernel, place, 12);
	CUDA(cudaMemcpy(&result, place, sizeof(result), cudaMemcpyDeviceToHost));
	EXPECT_EQ(42, result);
	CUDA(cudaLibraryGetGlobal(&address, &bytes, library, "offset"));
	EXPECT_EQ(8, bytes);
	CUDA(cudaMemcpy((char *)address + 4, &value, sizeof(value), cudaMemcpyHostToDevice));
	launch(kernel, place, 12);
	CUDA(cudaMemcpy(&result, place, sizeof(result), cudaMemcpyDeviceToHost));
	EXPECT_EQ(512, result);
	CUDA(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					     1024, 0));
	EXPECT_CODE(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "sub"));
	EXPECT_CODE(cudaErrorSymbolNotFound,
		    cudaLibraryGetGlobal(&address, &bytes, library, "scale"));
	cudaGetLastError();
	CUDA(cudaFree(place));
}

static void test_data(void)
{
	cudaLibrary_t library;
	char *copy = strdup(code);

	CUDA(cudaLibraryLoadData(&library, copy, NULL, NULL, 0, NULL, NULL, 0));
	memset(copy, 'x', sizeof(code) - 1);
	free(copy);
	list(library);
	use(library);
	CUDA(cudaLibraryUnload(library));
	/* A second time it begins anew. */
	CUDA(cudaLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
	use(library);
	CUDA(cudaLibraryUnload(library));
}

static void test_file(void)
{
	char name[] = "/tmp/fairgv-library-XXXXXX";
	int fd = mkstemp(name);
	cudaLibrary_t library;

	EXPECT(fd >= 0);
	EXPECT(write(fd, code, sizeof(code) - 1) == (ssize_t)sizeof(code) - 1);
	close(fd);
	CUDA(cudaLibraryLoadFromFile(&library, name, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(!unlink(name));
	use(library);
	CUDA(cudaLibraryUnload(library));
}

/* Of one library: another has variables of its own. */
static void use_managed(cudaLibrary_t library)
{
	struct cudaPointerAttributes attributes;
	size_t bytes = 0;
	cudaKernel_t kernel;
	void *address;
	int *both;

	CUDA(cudaLibraryGetManaged(&address, &bytes, library, "both"));
	EXPECT_EQ(12, bytes);
	both = (int *)address;
	EXPECT(both[0] == 7 && both[1] == 8 && both[2] == 0);
	CUDA(cudaPointerGetAttributes(&attributes, &both[1]));
	EXPECT_EQ(cudaMemoryTypeManaged, attributes.type);
	both[1] = 41;
	CUDA(cudaLibraryGetKernel(&kernel, library, "bump"));
	CUDA(cudaLaunchKernel((const void *)kernel, 1, 1, NULL, 0, 0));
	CUDA(cudaDeviceSynchronize());
	EXPECT_EQ(42, both[1]);
	CUDA(cudaLibraryGetManaged(&address, NULL, library, "both"));
	EXPECT(address == both);
	EXPECT_CODE(cudaErrorSymbolNotFound,
		    cudaLibraryGetManaged(&address, &bytes, library, "neither"));
	EXPECT_CODE(cudaErrorSymbolNotFound,
		    cudaLibraryGetManaged(&address, &bytes, library, "own"));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLibraryGetManaged(NULL, NULL, library, "both"));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLibraryGetManaged(&address, &bytes, library, NULL));
	cudaGetLastError();
}

static void test_managed(void)
{
	cudaLibrary_t libraries[2];

	for (int i = 0; i < 2; i++)
		CUDA(cudaLibraryLoadData(&libraries[i], managed_code, NULL, NULL, 0, NULL, NULL,
					 0));
	for (int i = 0; i < 2; i++)
		use_managed(libraries[i]);
	for (int i = 0; i < 2; i++)
		CUDA(cudaLibraryUnload(libraries[i]));
}

static void test_wrong(void)
{
	cudaLibrary_t library;

	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaLibraryLoadData(NULL, code, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(cudaLibraryLoadFromFile(&library, "/nowhere/at/all", NULL, NULL, 0, NULL, NULL, 0) !=
	       cudaSuccess);
	cudaGetLastError();
}

int main(void)
{
	test_data();
	test_file();
	test_managed();
	test_wrong();
	return 0;
}
