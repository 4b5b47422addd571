/*
 * The one copy of each device's description.
 */
#include "frontend/cuda/context/device.h"

#include "common/log.h"
#include "frontend/client/lane.h"
#include "frontend/cuda/memory/addrmap.h"

struct device {
	pthread_mutex_t mutex;
	uint32_t known; /* atomic */
	struct fgv_device_info info;
};

static struct device devices[FGV_DEVICES_MAX] = {
	[0 ... FGV_DEVICES_MAX - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER},
};

/* The first one's are found without a lock. */
static void reserve_addresses(const struct fgv_device_info *info, bool is_first)
{
	int err;

	if (!info->va_base)
		return;
	err = is_first ? fgv_addrmap_reserve(info->va_base, info->va_len)
		       : fgv_addrmap_claim(info->va_base, info->va_len);
	if (err)
		fgv_info("the GPU's addresses are not reserved here: %s", strerror(-err));
}

static CUresult ask_locked(struct fgv_lane *lane)
{
	struct fgv_client *client = lane->client;
	struct device *device = &devices[client->device];
	uint64_t off;
	CUresult res;

	if (fgv_arena_alloc(client->arena, sizeof(device->info), &off))
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = fgv_call_device_info(lane, 0, off, sizeof(device->info));
	if (!res) {
		memcpy(&device->info, client->window.base + off, sizeof(device->info));
		device->info.name[sizeof(device->info.name) - 1] = '\0';
		device->info.pci_bus_id[sizeof(device->info.pci_bus_id) - 1] = '\0';
		device->info.devices = fgv_session_count();
		reserve_addresses(&device->info, !client->device);
		/* Pairs with the acquire in fgv_device_info(). */
		__atomic_store_n(&device->known, 1, __ATOMIC_RELEASE);
	}
	fgv_arena_free(client->arena, off);
	return res;
}

static CUresult ask(struct fgv_lane *lane)
{
	struct device *device = &devices[lane->client->device];
	CUresult res = CUDA_SUCCESS;

	if (fgv_device_info_of(lane->client->device))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&device->mutex);
	if (!device->known)
		res = ask_locked(lane);
	pthread_mutex_unlock(&device->mutex);
	return res;
}

/* The device's addresses are reserved before the program gets one. */
CUresult fgv_device_learn(void)
{
	struct fgv_lane *lane;
	CUresult res = fgv_lane_enter(&lane);

	if (res)
		return res;
	res = ask(lane);
	fgv_lane_leave(lane);
	if (res)
		fgv_lane_return();
	return res;
}

CUresult fgv_device_know(const struct fgv_device_info **info)
{
	CUresult res = CUDA_SUCCESS;

	*info = fgv_device_info();
	if (*info)
		return CUDA_SUCCESS;
	res = fgv_device_learn();
	if (!res)
		*info = fgv_device_info();
	return res;
}

const struct fgv_device_info *fgv_device_info_of(uint32_t ordinal)
{
	struct device *device = &devices[ordinal];

	return __atomic_load_n(&device->known, __ATOMIC_ACQUIRE) ? &device->info : NULL;
}

const struct fgv_device_info *fgv_device_info(void)
{
	return fgv_device_info_of(fgv_thread_self.device);
}

CUresult fgv_device_know_of(uint32_t ordinal, const struct fgv_device_info **info)
{
	uint32_t before = fgv_thread_self.device;
	CUresult res;

	fgv_lane_select(ordinal);
	res = fgv_device_know(info);
	fgv_lane_select(before);
	return res;
}

void fgv_device_select(uint32_t ordinal)
{
	fgv_lane_select(ordinal);
	fgv_thread_self.is_ready = false;
}

unsigned fgv_device_sm(const struct fgv_device_info *info)
{
	int major = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	int minor = fgv_device_attribute(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

	return (unsigned)(10 * major + minor);
}

int fgv_device_has_attribute(const struct fgv_device_info *info, int attribute)
{
	if (attribute <= 0 || attribute >= FGV_DEVICE_ATTRIBUTES)
		return 0;
	return info->attribute_known[attribute / 32] >> (attribute % 32) & 1;
}

int fgv_device_attribute(const struct fgv_device_info *info, CUdevice_attribute attribute)
{
	return fgv_device_has_attribute(info, (int)attribute) ? info->attributes[attribute] : 0;
}
