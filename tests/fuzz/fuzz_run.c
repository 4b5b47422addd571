/*
 * Kernels of a guest's: what the soft GPU takes is run, and ends in order, in a fault, or when the
 * watchdog has had enough. The machine survives it.
 *
 * The first byte says how: FLAG_*. What follows is PTX as it is, with a kernel of any form, or
 * becomes PTX by run_text.h.
 */
#include <cuda.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"
#include "softgpu/softgpu.h"
#include "tests/fuzz/run_text.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/watchdog.h"

#define DEVICE_BYTES (16ull << 20)
#define DEVICE_AT    0x200000000000ull
#define BUFFER_BYTES 4096u
#define PARAMS_MAX   16
#define PARAM_MAX    32768 /* bytes; more than all of a kernel may have */
#define KERNELS_MAX  4
#define KERNEL_NS    (5 * FGV_NS_PER_MS)
#define INPUTS_MAX   64 /* of one device; then there is a new one, as after a fault */

#define FLAG_TEXT	 1u
#define FLAG_COOPERATIVE 2u
#define FLAG_BLOCKS	 4u  /* several */
#define FLAG_WARPS	 8u  /* several, one of them not full */
#define FLAG_SHARED	 16u /* dynamic */

struct run {
	struct softgpu *gpu;
	struct softgpu_module *module;
	uint64_t buffers[2];
	unsigned flags, kernels, inputs;
};

static void open_device(struct run *run)
{
	const struct softgpu_config config = {
		.va_base = DEVICE_AT, .memory_bytes = DEVICE_BYTES, .workers = 2};

	if (softgpu_create(&config, &run->gpu) != CUDA_SUCCESS)
		abort();
	for (int i = 0; i < 2; i++) {
		if (softgpu_mem_alloc(run->gpu, BUFFER_BYTES, &run->buffers[i]) != CUDA_SUCCESS)
			abort();
	}
	run->inputs = 0;
}

/* Each input finds the same in memory. */
static void begin(struct run *run)
{
	if (!run->gpu)
		open_device(run);
	for (int i = 0; i < 2; i++) {
		if (softgpu_fill(run->gpu, run->buffers[i], BUFFER_BYTES, 0x01020304, 4,
				 BUFFER_BYTES / 4, 1, NULL) != CUDA_SUCCESS)
			abort();
	}
	run->kernels = 0;
	run->inputs++;
}

static void end(struct run *run)
{
	fuzz_watch(0, NULL, 0);
	if (softgpu_fault(run->gpu) == CUDA_SUCCESS && run->inputs < INPUTS_MAX)
		return;
	softgpu_destroy(run->gpu);
	run->gpu = NULL;
}

static void await(const struct run *run)
{
	while (softgpu_query(run->gpu) == CUDA_ERROR_NOT_READY)
		sched_yield();
}

/* The first two parameters are addresses, whatever the kernel takes them for. */
static void launch(struct run *run, struct softgpu_function *function)
{
	static uint8_t values[PARAMS_MAX][PARAM_MAX];
	const struct softgpu_function_info *info = softgpu_function_info(function);
	const uint32_t grid[3] = {run->flags & FLAG_BLOCKS ? 3 : 1, 1, 1};
	const uint32_t block[3] = {run->flags & FLAG_WARPS ? 40 : 32, 1, 1};
	uint32_t shared_bytes = run->flags & FLAG_SHARED ? 512 : 0;
	void *args[PARAMS_MAX];

	if (info->param_count > PARAMS_MAX)
		return;
	for (unsigned i = 0; i < info->param_count; i++) {
		args[i] = values[i];
		memcpy(values[i], &run->buffers[i % 2], sizeof(*run->buffers));
	}
	fuzz_watch(0, run->gpu, KERNEL_NS);
	if (run->flags & FLAG_COOPERATIVE)
		softgpu_launch_cooperative(run->gpu, function, grid, block, shared_bytes, NULL,
					   args);
	else
		softgpu_launch(run->gpu, function, grid, block, shared_bytes, NULL, args);
	await(run);
}

static void run_kernel(const char *name, void *arg)
{
	struct softgpu_function *function;
	struct run *run = arg;

	if (run->kernels++ < KERNELS_MAX &&
	    softgpu_module_function(run->module, name, &function) == CUDA_SUCCESS)
		launch(run, function);
}

static char *take_text(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	if (!text)
		return NULL;
	memcpy(text, data, len);
	text[len] = '\0';
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct run run;
	char *text, log[256];

	if (!len)
		return 0;
	run.flags = data[0];
	text = run.flags & FLAG_TEXT ? take_text(data + 1, len - 1)
				     : run_text_make(data + 1, len - 1);
	if (!text)
		return 0;
	begin(&run);
	if (softgpu_module_load(run.gpu, (const char *const *)&text, 1, log, sizeof(log),
				&run.module) == CUDA_SUCCESS) {
		softgpu_module_kernels(run.module, run_kernel, &run);
		softgpu_module_unload(run.gpu, run.module);
	}
	end(&run);
	free(text);
	return 0;
}
