/*
 * Devices: how many, which, and what they are. All of it is what libcudart says of them too,
 * as it comes from the same description (struct fgv_device_info).
 */
#include "frontend/libnvml/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_TEXT 41 /* "GPU-", 32 digits, four hyphens, a NUL */

FGV_EXPORT enum fgv_nvml nvmlDeviceGetCount_v2(unsigned *count)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = count ? fgv_nvml_look(&view) : FGV_NVML_INVALID_ARGUMENT;

	if (!ret)
		*count = view.device.devices;
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetCount(unsigned *count) FGV_ALIAS(nvmlDeviceGetCount_v2);

FGV_EXPORT enum fgv_nvml nvmlDeviceGetHandleByIndex_v2(unsigned index,
						       struct fgv_nvml_device **device)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = device ? fgv_nvml_look(&view) : FGV_NVML_INVALID_ARGUMENT;

	if (!ret && (index >= view.device.devices || !fgv_nvml_handle(index)))
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*device = fgv_nvml_handle(index);
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetHandleByIndex(unsigned index, struct fgv_nvml_device **device)
	FGV_ALIAS(nvmlDeviceGetHandleByIndex_v2);

FGV_EXPORT enum fgv_nvml nvmlDeviceGetIndex(const struct fgv_nvml_device *device, unsigned *index)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (!ret && !index)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*index = device->index;
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetName(const struct fgv_nvml_device *device, char *name,
					   unsigned len)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	return ret ? ret : fgv_nvml_write(name, len, view.device.name);
}

/* --- UUIDs ------------------------------------------------------------------- */

static void write_uuid(char text[UUID_TEXT], const uint8_t uuid[16])
{
	char *at = text + sprintf(text, "GPU");

	for (unsigned i = 0; i < 16; i++) {
		if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		at += sprintf(at, "%02x", uuid[i]);
	}
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetUUID(const struct fgv_nvml_device *device, char *uuid,
					   unsigned len)
{
	struct fgv_msg_view view;
	char text[UUID_TEXT];
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (ret)
		return ret;
	write_uuid(text, view.device.uuid);
	return fgv_nvml_write(uuid, len, text);
}

/* The first device that @matches; each is asked for by itself. */
static enum fgv_nvml find(bool (*matches)(const struct fgv_msg_view *view, const void *wanted),
			  const void *wanted, struct fgv_nvml_device **device)
{
	struct fgv_nvml_device *handle;
	struct fgv_msg_view view = {.device.devices = 1};

	for (unsigned i = 0; i < view.device.devices && (handle = fgv_nvml_handle(i)); i++) {
		enum fgv_nvml ret = fgv_nvml_look_at(handle, &view);

		if (ret)
			return ret;
		if (!matches(&view, wanted))
			continue;
		*device = handle;
		return FGV_NVML_SUCCESS;
	}
	return FGV_NVML_NOT_FOUND;
}

static bool has_uuid_text(const struct fgv_msg_view *view, const void *wanted)
{
	char text[UUID_TEXT];

	write_uuid(text, view->device.uuid);
	return !strcasecmp(text, wanted);
}

static bool has_uuid(const struct fgv_msg_view *view, const void *wanted)
{
	return !memcmp(wanted, view->device.uuid, sizeof(view->device.uuid));
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetHandleByUUID(const char *uuid,
						   struct fgv_nvml_device **device)
{
	return uuid && device ? find(has_uuid_text, uuid, device) : FGV_NVML_INVALID_ARGUMENT;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetHandleByUUIDV(const struct fgv_nvml_uuid *uuid,
						    struct fgv_nvml_device **device)
{
	if (!uuid || !device)
		return FGV_NVML_INVALID_ARGUMENT;
	if (uuid->version != FGV_NVML_VERSION(*uuid, 1))
		return FGV_NVML_ARGUMENT_VERSION;
	if (uuid->type == FGV_NVML_UUID_TEXT && memchr(uuid->value, '\0', UUID_TEXT))
		return nvmlDeviceGetHandleByUUID(uuid->value, device);
	if (uuid->type != FGV_NVML_UUID_BYTES)
		return FGV_NVML_INVALID_ARGUMENT;
	return find(has_uuid, uuid->value, device);
}

/* --- PCI --------------------------------------------------------------------- */

struct address {
	unsigned domain, bus, device;
};

/* Of "domain:bus:device.function" or "bus:device.function", hexadecimal. */
static bool parse_address(const char *text, struct address *address)
{
	unsigned function;
	int end = 0;

	*address = (struct address){0};
	if (sscanf(text, "%x:%x:%x.%x%n", &address->domain, &address->bus, &address->device,
		   &function, &end) != 4 &&
	    sscanf(text, "%x:%x.%x%n", &address->bus, &address->device, &function, &end) != 3)
		return false;
	return text[end] == '\0';
}

static bool has_address(const struct fgv_msg_view *view, const void *wanted)
{
	const struct address *address = wanted;
	struct address own;

	return parse_address(view->device.pci_bus_id, &own) && address->domain == own.domain &&
	       address->bus == own.bus && address->device == own.device;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetHandleByPciBusId_v2(const char *text,
							  struct fgv_nvml_device **device)
{
	struct address wanted;

	if (!text || !device || !parse_address(text, &wanted))
		return FGV_NVML_INVALID_ARGUMENT;
	return find(has_address, &wanted, device);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetHandleByPciBusId(const char *text,
						       struct fgv_nvml_device **device)
	FGV_ALIAS(nvmlDeviceGetHandleByPciBusId_v2);

static enum fgv_nvml look_at_address(const struct fgv_nvml_device *device, struct address *address)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (!ret && !parse_address(view.device.pci_bus_id, address))
		ret = FGV_NVML_NOT_SUPPORTED;
	return ret;
}

static void write_address(char *to, size_t len, int digits, const struct address *address)
{
	snprintf(to, len, "%0*X:%02X:%02X.0", digits, address->domain, address->bus & 0xff,
		 address->device & 0xff);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPciInfo_v3(const struct fgv_nvml_device *device,
						 struct fgv_nvml_pci *pci)
{
	struct address address;
	enum fgv_nvml ret = pci ? look_at_address(device, &address) : FGV_NVML_INVALID_ARGUMENT;

	if (ret)
		return ret;
	*pci = (struct fgv_nvml_pci){
		.domain = address.domain,
		.bus = address.bus,
		.device = address.device,
	};
	write_address(pci->bus_id_short, sizeof(pci->bus_id_short), 4, &address);
	write_address(pci->bus_id, sizeof(pci->bus_id), 8, &address);
	return FGV_NVML_SUCCESS;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPciInfo_v2(const struct fgv_nvml_device *device,
						 struct fgv_nvml_pci_v2 *pci)
{
	struct address address;
	enum fgv_nvml ret = pci ? look_at_address(device, &address) : FGV_NVML_INVALID_ARGUMENT;

	if (ret)
		return ret;
	*pci = (struct fgv_nvml_pci_v2){
		.domain = address.domain,
		.bus = address.bus,
		.device = address.device,
	};
	write_address(pci->bus_id, sizeof(pci->bus_id), 4, &address);
	return FGV_NVML_SUCCESS;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPciInfo(const struct fgv_nvml_device *device,
					      struct fgv_nvml_pci_v2 *pci)
	FGV_ALIAS(nvmlDeviceGetPciInfo_v2);

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPciInfoExt(const struct fgv_nvml_device *device,
						 struct fgv_nvml_pci_ext *pci)
{
	struct address address;
	enum fgv_nvml ret;

	if (!pci)
		return FGV_NVML_INVALID_ARGUMENT;
	if (pci->version != FGV_NVML_VERSION(*pci, 1))
		return FGV_NVML_ARGUMENT_VERSION;
	ret = look_at_address(device, &address);
	if (ret)
		return ret;
	*pci = (struct fgv_nvml_pci_ext){
		.version = pci->version,
		.domain = address.domain,
		.bus = address.bus,
		.device = address.device,
		.base_class = 3, /* a display controller, */
		.sub_class = 2,	 /* for 3D */
	};
	write_address(pci->bus_id, sizeof(pci->bus_id), 8, &address);
	return FGV_NVML_SUCCESS;
}

/* --- Attributes -------------------------------------------------------------- */

FGV_EXPORT enum fgv_nvml nvmlDeviceGetCudaComputeCapability(const struct fgv_nvml_device *device,
							    int *major, int *minor)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (ret)
		return ret;
	if (!major || !minor)
		return FGV_NVML_INVALID_ARGUMENT;
	if (!fgv_nvml_attribute(&view, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major) ||
	    !fgv_nvml_attribute(&view, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor))
		return FGV_NVML_NOT_SUPPORTED;
	return FGV_NVML_SUCCESS;
}

/* NVML's number of the generation with this compute capability. */
static unsigned architecture(int major, int minor)
{
	switch (major) {
	case 7:
		return minor < 5 ? 5 : 6; /* Volta, Turing */
	case 8:
		return minor < 9 ? 7 : 8; /* Ampere, Ada */
	case 9:
		return 9; /* Hopper */
	case 10:
	case 11:
	case 12:
		return 10; /* Blackwell */
	default:
		return UINT32_MAX; /* unknown */
	}
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetArchitecture(const struct fgv_nvml_device *device,
						   unsigned *number)
{
	int major, minor;
	enum fgv_nvml ret = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);

	if (!ret && !number)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*number = architecture(major, minor);
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMemoryBusWidth(const struct fgv_nvml_device *device,
						     unsigned *bits)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);
	int value;

	if (ret)
		return ret;
	if (!bits)
		return FGV_NVML_INVALID_ARGUMENT;
	if (!fgv_nvml_attribute(&view, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &value))
		return FGV_NVML_NOT_SUPPORTED;
	*bits = (unsigned)value;
	return FGV_NVML_SUCCESS;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetEccMode(const struct fgv_nvml_device *device,
					      unsigned *current, unsigned *pending)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);
	int value;

	if (ret)
		return ret;
	if (!current || !pending)
		return FGV_NVML_INVALID_ARGUMENT;
	if (!fgv_nvml_attribute(&view, CU_DEVICE_ATTRIBUTE_ECC_ENABLED, &value))
		return FGV_NVML_NOT_SUPPORTED;
	*current = (unsigned)value;
	*pending = (unsigned)value; /* no guest can change it */
	return FGV_NVML_SUCCESS;
}
