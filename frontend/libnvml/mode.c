/*
 * What a vGPU is not: partitioned, linked to others, confidential, connected to a screen; and
 * events, of which it has none. All of it is known without the host.
 */
#include "frontend/libnvml/nvml.h"

#include <stdlib.h>
#include <time.h>

#include "common/util.h"

static enum fgv_nvml give(const struct fgv_nvml_device *device, unsigned *value, unsigned what)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (!ret && !value)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*value = what;
	return ret;
}

/* --- Modes ------------------------------------------------------------------- */

/* The default: several programs at once may use it. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetComputeMode(const struct fgv_nvml_device *device,
						  unsigned *mode)
{
	return give(device, mode, 0);
}

/* Not NVIDIA's virtualization, which has tools look for licences. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetVirtualizationMode(const struct fgv_nvml_device *device,
							 unsigned *mode)
{
	return give(device, mode, 0);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetDisplayActive(const struct fgv_nvml_device *device,
						    unsigned *active)
{
	return give(device, active, 0);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetDisplayMode(const struct fgv_nvml_device *device,
						  unsigned *mode)
	FGV_ALIAS(nvmlDeviceGetDisplayActive);

/* Which brand a GPU is sold under is not known. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetBrand(const struct fgv_nvml_device *device, unsigned *brand)
{
	return give(device, brand, 0);
}

/* As the files of the guest's devices would be numbered. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetMinorNumber(const struct fgv_nvml_device *device,
						  unsigned *number)
{
	return give(device, number, device ? device->index : 0);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMigMode(const struct fgv_nvml_device *device,
					      unsigned *current, unsigned *pending)
{
	enum fgv_nvml ret = give(device, current, 0);

	return ret ? ret : give(device, pending, 0);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMaxMigDeviceCount(const struct fgv_nvml_device *device,
							unsigned *count)
{
	return give(device, count, 0);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceIsMigDeviceHandle(const struct fgv_nvml_device *device,
						     unsigned *is_mig)
{
	return give(device, is_mig, 0);
}

/* --- Where it is --------------------------------------------------------------- */

/* Of two handles of one device. Where devices are in the host is the host's business. */
static enum fgv_nvml give_if_same(const struct fgv_nvml_device *one,
				  const struct fgv_nvml_device *other, unsigned *value,
				  unsigned what)
{
	enum fgv_nvml ret = fgv_nvml_check(one);

	if (!ret)
		ret = fgv_nvml_check(other);
	if (!ret && one != other)
		return FGV_NVML_NOT_SUPPORTED;
	return ret ? ret : give(other, value, what);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetTopologyCommonAncestor(const struct fgv_nvml_device *one,
							     const struct fgv_nvml_device *other,
							     unsigned *level)
{
	return give_if_same(one, other, level, 0);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceOnSameBoard(const struct fgv_nvml_device *one,
					       const struct fgv_nvml_device *other, int *same)
{
	return give_if_same(one, other, (unsigned *)same, 1);
}

/* No part of a fabric. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetGpuFabricInfo(const struct fgv_nvml_device *device,
						    struct fgv_nvml_fabric *fabric)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (!ret && !fabric)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*fabric = (struct fgv_nvml_fabric){0};
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetGpuFabricInfoV(const struct fgv_nvml_device *device,
						     struct fgv_nvml_fabric_v2 *info)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (ret)
		return ret;
	if (!info)
		return FGV_NVML_INVALID_ARGUMENT;
	if (info->version == FGV_NVML_VERSION(struct fgv_nvml_fabric_v3, 3))
		((struct fgv_nvml_fabric_v3 *)info)->health = 0;
	else if (info->version != FGV_NVML_VERSION(struct fgv_nvml_fabric_v2, 2))
		return FGV_NVML_ARGUMENT_VERSION;
	info->fabric = (struct fgv_nvml_fabric){0};
	info->health_mask = 0;
	return FGV_NVML_SUCCESS;
}

/* --- Events ------------------------------------------------------------------ */

struct fgv_nvml_events {
	unsigned unused;
};

FGV_EXPORT enum fgv_nvml nvmlDeviceGetSupportedEventTypes(const struct fgv_nvml_device *device,
							  unsigned long long *types)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (!ret && !types)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*types = 0;
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlEventSetCreate(struct fgv_nvml_events **set)
{
	enum fgv_nvml ret = fgv_nvml_ready();
	struct fgv_nvml_events *made;

	if (ret)
		return ret;
	if (!set)
		return FGV_NVML_INVALID_ARGUMENT;
	made = calloc(1, sizeof(*made));
	if (!made)
		return FGV_NVML_MEMORY;
	*set = made;
	return FGV_NVML_SUCCESS;
}

FGV_EXPORT enum fgv_nvml nvmlEventSetFree(struct fgv_nvml_events *set)
{
	enum fgv_nvml ret = fgv_nvml_ready();

	if (!ret && !set)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		free(set);
	return ret;
}

/* An empty set of types can be waited for, in vain. */
FGV_EXPORT enum fgv_nvml nvmlDeviceRegisterEvents(const struct fgv_nvml_device *device,
						  unsigned long long types,
						  struct fgv_nvml_events *set)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (!ret && !set)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret && types)
		ret = FGV_NVML_NOT_SUPPORTED;
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlEventSetWait_v2(struct fgv_nvml_events *set, void *event,
					     unsigned timeout_ms)
{
	struct timespec left = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = (long)(timeout_ms % 1000 * FGV_NS_PER_MS),
	};
	enum fgv_nvml ret = fgv_nvml_ready();

	if (ret)
		return ret;
	if (!set || !event)
		return FGV_NVML_INVALID_ARGUMENT;
	while (nanosleep(&left, &left))
		continue;
	return FGV_NVML_TIMEOUT;
}

FGV_EXPORT enum fgv_nvml nvmlEventSetWait(struct fgv_nvml_events *set, void *event,
					  unsigned timeout_ms) FGV_ALIAS(nvmlEventSetWait_v2);
