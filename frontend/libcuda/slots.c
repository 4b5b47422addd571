/*
 * What the entries of the export tables do. All of it is answered here, without the GPU.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/module/library.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcuda/integrity.h"
#include "frontend/libcuda/tables.h"

/* Words that the runtime is told its buffers have. */
#define HOOKS	    1024
#define HOOKS_SHORT 14

CUresult fgv_slot_primary(CUcontext *context, CUdevice device)
{
	struct fgv_ctx *primary;
	CUresult res = fgv_ctx_primary(device, &primary);

	if (!res && !context)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*context = primary->handle;
	return res;
}

CUresult fgv_slot_hooks(void **buffer, size_t *len)
{
	static uint32_t words[HOOKS];

	*buffer = words;
	*len = HOOKS;
	return CUDA_SUCCESS;
}

CUresult fgv_slot_hooks_short(void **buffer, size_t *len)
{
	static uint32_t words[HOOKS_SHORT];

	*buffer = words;
	*len = HOOKS_SHORT;
	return CUDA_SUCCESS;
}

CUresult fgv_slot_current(CUcontext *context)
{
	CUresult res = fgv_ctx_status();

	if (!res && !context)
		res = CUDA_ERROR_INVALID_VALUE;
	if (res)
		return res;
	*context = fgv_ctx_top();
	return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* The context itself may be inactive: a runtime looks for its state before it retains it. */
static CUresult find(CUcontext handle, struct fgv_ctx **context)
{
	CUresult res = fgv_ctx_status();

	if (handle == (CUcontext)-1)
		handle = NULL;
	return res ? res : fgv_ctx_find(handle, context);
}

CUresult fgv_slot_put(CUcontext handle, void *key, void *value, fgv_ctx_storage_end end)
{
	struct fgv_ctx *context;
	CUresult res = find(handle, &context);

	return res ? res : fgv_ctx_storage_put(&context->storage, key, value, end);
}

CUresult fgv_slot_remove(CUcontext handle, void *key)
{
	struct fgv_ctx *context;
	CUresult res = find(handle, &context);

	return res ? res : fgv_ctx_storage_remove(&context->storage, key);
}

CUresult fgv_slot_get(void **value, CUcontext handle, void *key)
{
	struct fgv_ctx *context;
	CUresult res = find(handle, &context);

	if (!res && !value)
		res = CUDA_ERROR_INVALID_VALUE;
	return res ? res : fgv_ctx_storage_get(&context->storage, key, value);
}

/* No context here is made of others. */
CUresult fgv_slot_check(CUcontext handle, uint32_t *is_other, const void **other)
{
	(void)handle;
	if (is_other)
		*is_other = 0;
	if (other)
		*other = NULL;
	return CUDA_SUCCESS;
}

uint32_t fgv_slot_is_checked(void)
{
	return 0;
}

static uint32_t describe_devices(struct fgv_integrity_device *devices)
{
	const struct fgv_device_info *info;
	uint32_t count = 0;

	while (count < FGV_INTEGRITY_DEVICES && !fgv_driver_device((CUdevice)count, &info)) {
		struct fgv_integrity_device *each = &devices[count++];

		memcpy(each->uuid, info->uuid, sizeof(each->uuid));
		each->pci_domain = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
		each->pci_bus = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
		each->pci_device = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
	}
	return count;
}

CUresult fgv_slot_integrity(uint32_t version, uint64_t seconds, void *answer)
{
	struct fgv_integrity_device devices[FGV_INTEGRITY_DEVICES];
	struct fgv_integrity asked = {
		.driver_version = FGV_DRIVER_VERSION,
		.version = version,
		.process = (uint32_t)getpid(),
		.thread = (uint32_t)pthread_self(),
		.runtime_table = (uint64_t)(uintptr_t)fgv_table_runtime,
		.table = (uint64_t)(uintptr_t)fgv_table_integrity,
		.function = (uint64_t)(uintptr_t)fgv_slot_integrity,
		.seconds = seconds,
	};

	fgv_integrity_answer(&asked, devices, describe_devices(devices), answer);
	return CUDA_SUCCESS;
}

CUresult fgv_slot_integrity_on(int on)
{
	(void)on;
	return CUDA_SUCCESS;
}

CUresult fgv_slot_device(CUcontext handle, CUdevice *device)
{
	struct fgv_ctx *context;
	CUresult res = find(handle, &context);

	if (!res && !device)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*device = context->device;
	return res;
}

CUresult fgv_slot_context_id(CUcontext handle, uint64_t *id)
{
	struct fgv_ctx *context;
	CUresult res = find(handle, &context);

	if (!res && !id)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*id = context->id;
	return res;
}

CUresult fgv_slot_stream(CUcontext handle, CUstream stream, CUstream *own, int per_thread)
{
	struct fgv_ctx *context;
	CUresult res = find(handle, &context);

	if (res)
		return res;
	if (!stream)
		stream = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	res = fgv_stream_check(stream);
	if (!res)
		*own = stream;
	return res;
}

CUresult fgv_slot_stream_id(CUcontext handle, CUstream own, uint64_t *id)
{
	struct fgv_ctx *context;
	unsigned long long got;
	CUresult res = find(handle, &context);

	if (!res)
		res = fgv_stream_get_id(own, &got);
	if (!res)
		*id = got;
	return res;
}

uint32_t fgv_slot_functions(CUcontext handle, CUmodule module, fgv_slot_visit each, void *data)
{
	CUlibrary library = (CUlibrary)module;
	struct fgv_ctx *context;
	CUkernel *kernels = NULL;
	unsigned count = 0;

	if (find(handle, &context) || fgv_library_count_kernels(&count, library))
		return 0;
	kernels = calloc(count, sizeof(*kernels));
	if (!kernels || fgv_library_list_kernels(kernels, count, library))
		count = 0;
	for (unsigned i = 0; i < count; i++)
		each(data, (CUfunction)kernels[i], module);
	free(kernels);
	return count;
}
