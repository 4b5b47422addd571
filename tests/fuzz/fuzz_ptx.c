/*
 * PTX of a guest's: it is parsed, placed and lowered for the soft GPU, and is a module or an error.
 */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "softgpu/softgpu.h"
#include "tests/fuzz/target.h"

#define DEVICE_BYTES (16ull << 20)
#define DEVICE_AT    0x200000000000ull

static struct softgpu *gpu;

static struct softgpu *device(void)
{
	const struct softgpu_config config = {
		.va_base = DEVICE_AT, .memory_bytes = DEVICE_BYTES, .workers = 1};

	if (!gpu && softgpu_create(&config, &gpu) != CUDA_SUCCESS)
		abort();
	return gpu;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), log[256];
	struct softgpu_module *module;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	if (softgpu_module_load(device(), (const char *const *)&text, 1, log, sizeof(log),
				&module) == CUDA_SUCCESS)
		softgpu_module_unload(gpu, module);
	free(text);
	return 0;
}
