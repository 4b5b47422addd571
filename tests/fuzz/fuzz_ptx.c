/*
 * PTX of a guest's: it is parsed, placed and lowered for the soft GPU, and is a module or an error.
 * So it is with its kernels, sliced; what is printed of them can be read.
 */
#include <cuda.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/ptx.h"
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

static void check_printed(const struct ptx_module *sliced)
{
	struct ptx_module *again;
	struct ptx_error error;
	char *text;
	size_t len;
	int err;

	if (fgv_ptx_print(sliced, &text, &len) < 0)
		return;
	err = fgv_ptx_parse(text, len, &again, &error);
	if (err == -EINVAL)
		abort();
	if (!err)
		fgv_ptx_destroy(again);
	free(text);
}

/* The first kernel that can be. */
static void slice(const char *text)
{
	const struct ptx_item *item = NULL;
	struct ptx_module *module, *whole;
	struct ptx_error error;

	if (fgv_ptx_parse(text, strlen(text), &whole, &error) < 0)
		return;
	for (item = whole->items; item; item = item->next) {
		if (item->kind != PTX_ITEM_FUNCTION || !item->function->entry ||
		    fgv_ptx_parse(text, strlen(text), &module, &error) < 0)
			continue;
		if (fgv_ptx_slice(module, item->function->name, &error) == 0) {
			check_printed(module);
			fgv_ptx_destroy(module);
			break;
		}
		fgv_ptx_destroy(module);
	}
	fgv_ptx_destroy(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), log[256];
	struct softgpu_module *module;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	slice(text);
	if (softgpu_module_load(device(), (const char *const *)&text, 1, log, sizeof(log),
				&module) == CUDA_SUCCESS)
		softgpu_module_unload(gpu, module);
	free(text);
	return 0;
}
