/*
 * Whether NVML is initialized, which is a count, and looks at the VM.
 */
#include "frontend/libnvml/nvml.h"

#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "frontend/client/look.h"
#include "frontend/libnvml/unsupported.h"

static struct {
	unsigned users; /* atomic: calls of nvmlInit() that nvmlShutdown() has not undone */
} state;

/* The handles of as many as a VM can have; how many it has only the host knows. */
static struct fgv_nvml_device devices[FGV_DEVICES_MAX] = {
	{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}};
_Static_assert(FGV_DEVICES_MAX == 16, "each handle has its index");

struct fgv_nvml_device *fgv_nvml_handle(unsigned index)
{
	return index < FGV_ARRAY_LEN(devices) ? &devices[index] : NULL;
}

enum fgv_nvml fgv_nvml_ready(void)
{
	return __atomic_load_n(&state.users, __ATOMIC_RELAXED) ? FGV_NVML_SUCCESS
							       : FGV_NVML_UNINITIALIZED;
}

enum fgv_nvml fgv_nvml_check(const struct fgv_nvml_device *device)
{
	enum fgv_nvml ret = fgv_nvml_ready();

	if (ret)
		return ret;
	for (size_t i = 0; i < FGV_ARRAY_LEN(devices); i++) {
		if (device == &devices[i])
			return FGV_NVML_SUCCESS;
	}
	return FGV_NVML_INVALID_ARGUMENT;
}

enum fgv_nvml fgv_nvml_from(CUresult status)
{
	switch (status) {
	case CUDA_SUCCESS:
		return FGV_NVML_SUCCESS;
	case CUDA_ERROR_NO_DEVICE:
		return FGV_NVML_DRIVER_NOT_LOADED;
	case CUDA_ERROR_INVALID_DEVICE:
		return FGV_NVML_GPU_IS_LOST;
	case CUDA_ERROR_NOT_PERMITTED:
	case CUDA_ERROR_NOT_FOUND: /* there is no such VM for this user */
		return FGV_NVML_NO_PERMISSION;
	case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
		return FGV_NVML_VERSION_MISMATCH;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return FGV_NVML_MEMORY;
	case CUDA_ERROR_TIMEOUT:
		return FGV_NVML_TIMEOUT;
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
		return FGV_NVML_IN_USE;
	case CUDA_ERROR_OPERATING_SYSTEM:
		return FGV_NVML_OPERATING_SYSTEM;
	default:
		return FGV_NVML_UNKNOWN;
	}
}

static enum fgv_nvml look(unsigned index, struct fgv_msg_view *view)
{
	enum fgv_nvml ret = fgv_nvml_ready();

	if (ret)
		return ret;
	ret = fgv_nvml_from(fgv_look_and_log(index, view, FGV_LOG_DEBUG, "NVML has no answer"));
	/* It was there when NVML was initialized. */
	return ret == FGV_NVML_DRIVER_NOT_LOADED ? FGV_NVML_GPU_IS_LOST : ret;
}

enum fgv_nvml fgv_nvml_look(struct fgv_msg_view *view)
{
	return look(0, view);
}

enum fgv_nvml fgv_nvml_look_at(const struct fgv_nvml_device *device, struct fgv_msg_view *view)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	return ret ? ret : look(device->index, view);
}

bool fgv_nvml_attribute(const struct fgv_msg_view *view, CUdevice_attribute attribute, int *value)
{
	const struct fgv_device_info *info = &view->device;

	if (!(info->attribute_known[attribute / 32] >> (attribute % 32) & 1))
		return false;
	*value = info->attributes[attribute];
	return true;
}

enum fgv_nvml fgv_nvml_write(char *to, unsigned len, const char *text)
{
	if (!to)
		return FGV_NVML_INVALID_ARGUMENT;
	if (strlen(text) >= len)
		return FGV_NVML_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return FGV_NVML_SUCCESS;
}

unsigned fgv_nvml_percent(uint64_t used_ns)
{
	return (unsigned)(fgv_min_u64(used_ns, FGV_VIEW_NS) * 100 / FGV_VIEW_NS);
}

int fgv_nvml_unsupported(struct fgv_unsupported *unsupported)
{
	enum fgv_nvml ret = fgv_nvml_ready();

	fgv_stats_unsupported(unsupported);
	return (int)(ret ? ret : FGV_NVML_NOT_SUPPORTED);
}

/* Whether there is a VM to be described, and if not, says why. */
static enum fgv_nvml start(void)
{
	struct fgv_msg_view view;

	return fgv_nvml_from(fgv_look_and_log(0, &view, FGV_LOG_INFO, "no GPU for NVML"));
}

/* Flags: to succeed without a GPU, and not to attach any. None is ever attached. */
FGV_EXPORT enum fgv_nvml nvmlInitWithFlags(unsigned flags)
{
	enum fgv_nvml ret = fgv_nvml_ready() ? start() : FGV_NVML_SUCCESS;

	(void)flags;
	if (!ret)
		__atomic_add_fetch(&state.users, 1, __ATOMIC_RELAXED);
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

FGV_EXPORT enum fgv_nvml nvmlInit(void) FGV_ALIAS(nvmlInit_v2);

FGV_EXPORT enum fgv_nvml nvmlShutdown(void)
{
	unsigned users = __atomic_load_n(&state.users, __ATOMIC_RELAXED);

	do {
		if (!users)
			return FGV_NVML_UNINITIALIZED;
	} while (!__atomic_compare_exchange_n(&state.users, &users, users - 1, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return FGV_NVML_SUCCESS;
}
