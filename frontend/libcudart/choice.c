/*
 * Ways to name a device and to choose one, all answered from the descriptions.
 */
#include <stdio.h>
#include <string.h>

#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/properties.h"

struct place {
	unsigned domain, bus, device, function;
};

/* DOMAIN:BUS:DEVICE.FUNCTION, without the function, or without the domain; hexadecimal. */
static bool read_place(const char *text, struct place *place)
{
	int len = 0;

	*place = (struct place){0};
	if (sscanf(text, "%x:%x:%x.%x%n", &place->domain, &place->bus, &place->device,
		   &place->function, &len) == 4 &&
	    !text[len])
		return true;
	*place = (struct place){0};
	if (sscanf(text, "%x:%x:%x%n", &place->domain, &place->bus, &place->device, &len) == 3 &&
	    !text[len])
		return true;
	*place = (struct place){0};
	return sscanf(text, "%x:%x.%x%n", &place->bus, &place->device, &place->function, &len) ==
		       3 &&
	       !text[len];
}

static cudaError_t find_by_place(int *device, const char *text)
{
	const struct fgv_device_info *info;
	struct place wanted, place;
	cudaError_t error;

	if (!device || !text || !read_place(text, &wanted))
		return cudaErrorInvalidValue;
	for (int i = 0; !(error = fgv_properties_device(i, &info)); i++) {
		if (!read_place(info->pci_bus_id, &place) ||
		    memcmp(&place, &wanted, sizeof(place)) != 0)
			continue;
		*device = i;
		return cudaSuccess;
	}
	return error;
}

FGV_EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
	return fgv_error_set(find_by_place(device, pciBusId));
}

/* All that a session has are alike, so the first is as good as any. */
static cudaError_t choose(int *device, const struct cudaDeviceProp *prop)
{
	const struct fgv_device_info *info;
	cudaError_t error;

	if (!device || !prop)
		return cudaErrorInvalidValue;
	error = fgv_properties_device(0, &info);
	if (!error)
		*device = 0;
	return error;
}

FGV_EXPORT cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
	return fgv_error_set(choose(device, prop));
}

/* The list is checked; a program that sets no device gets the first in any case. */
static cudaError_t set_valid(const int *devices, int count)
{
	const struct fgv_device_info *info;
	cudaError_t error = cudaSuccess;

	if (count < 0 || (count > 0 && !devices))
		return cudaErrorInvalidValue;
	for (int i = 0; !error && i < count; i++)
		error = fgv_properties_device(devices[i], &info);
	return error;
}

FGV_EXPORT cudaError_t cudaSetValidDevices(int *device_arr, int len)
{
	return fgv_error_set(set_valid(device_arr, len));
}
