#include "tests/unit/softgpu/softgpu_kernel.h"

#include <stdlib.h>
#include <time.h>

struct softgpu *gpu;
struct softgpu_module *module;

void kernel_setup(void)
{
	struct softgpu_config config = {.va_base = BASE, .memory_bytes = 64 << 20, .workers = 2};

	ck_assert_int_eq(softgpu_create(&config, &gpu), CUDA_SUCCESS);
	module = NULL;
}

void kernel_teardown(void)
{
	if (module)
		softgpu_module_unload(gpu, module);
	softgpu_destroy(gpu);
}

CUresult kernel_drain(void)
{
	static const struct timespec pause = {.tv_nsec = 50000};
	CUresult result;

	while ((result = softgpu_query(gpu)) == CUDA_ERROR_NOT_READY)
		nanosleep(&pause, NULL);
	return result;
}

struct softgpu_function *kernel_load(const char *text)
{
	struct softgpu_function *function = NULL;
	char log[256] = "";

	ck_assert_msg(softgpu_module_load(gpu, &text, 1, log, sizeof(log), &module) ==
			      CUDA_SUCCESS,
		      "%s", log);
	ck_assert_int_eq(softgpu_module_function(module, "k", &function), CUDA_SUCCESS);
	return function;
}

uint64_t kernel_alloc(size_t bytes)
{
	uint64_t address = 0;

	ck_assert_int_eq(softgpu_mem_alloc(gpu, bytes, &address), CUDA_SUCCESS);
	return address;
}

CUresult kernel_launch(struct softgpu_function *f, uint32_t blocks, uint32_t threads,
		       uint32_t shared, void **args)
{
	uint32_t grid[3] = {blocks, 1, 1};
	uint32_t block[3] = {threads, 1, 1};
	CUresult result = softgpu_launch(gpu, f, grid, block, shared, NULL, args);

	return result == CUDA_SUCCESS ? kernel_drain() : result;
}

CUresult kernel_run(const char *text, uint32_t blocks, uint32_t threads, const uint64_t *in,
		    uint64_t *out)
{
	struct softgpu_function *f = kernel_load(text);
	size_t bytes = (size_t)blocks * threads * 8;
	uint64_t d_out = kernel_alloc(bytes);
	uint64_t d_in = kernel_alloc(bytes);
	void *args[] = {&d_out, &d_in};
	CUresult result;

	if (in)
		softgpu_copy_htod(gpu, d_in, in, bytes, NULL);
	softgpu_fill(gpu, d_out, 0, 0, 4, bytes / 4, 1, NULL);
	result = kernel_launch(f, blocks, threads, 0, args);
	if (result == CUDA_SUCCESS) {
		softgpu_copy_dtoh(gpu, out, d_out, bytes, NULL);
		result = kernel_drain();
	}
	return result;
}

int kernel_run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
