/*
 * Multiprocessors of a session's own: a green context, which is the process's primary context
 * with a part of the multiprocessors. All of its streams, graphs and modules are made while it is
 * current, so all of its kernels are in it, those of libraries too.
 *
 * A GPU is split into equal groups, and always in the same way, so that group 3 is the same
 * multiprocessors in each process. Those that are left over when groups are made (4 of an H200's
 * 132) belong to none.
 */
#include "backend/gpu/cuda_internal.h"

#include <stdio.h>
#include "backend/shared.h"

#define UNITS_MAX 64 /* bits of a set */

/* What the driver's documentation has for each architecture, where the driver does not say. */
static unsigned least_of(unsigned major)
{
	static const unsigned least[] = {[6] = 1, [7] = 2, [8] = 4};

	return major < sizeof(least) / sizeof(*least) ? least[major] : 8;
}

static CUresult find_groups(const struct fgv_cuda_driver *driver, CUdevice device,
			    CUdevResource *all, unsigned *each)
{
	int major = 0;
	CUresult status = driver->device_resource(device, all, CU_DEV_RESOURCE_TYPE_SM);

	if (status != CUDA_SUCCESS)
		return status;
	*each = all->sm.minSmPartitionSize;
	if (*each && *each <= all->sm.smCount)
		return CUDA_SUCCESS;
	status = driver->device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
					  device);
	*each = least_of((unsigned)major);
	return status;
}

void fgv_cuda_divide(int ordinal, struct fgv_units *units)
{
	const struct fgv_cuda_driver *driver;
	unsigned count = 0, each = 0;
	CUdevResource all;
	CUdevice device;
	CUresult status;

	*units = (struct fgv_units){0};
	driver = fgv_cuda_driver_get(units->why, sizeof(units->why));
	if (!driver)
		return;
	if (!driver->device_resource || !driver->split_sms || !driver->describe_resource ||
	    !driver->green_create || !driver->green_destroy || !driver->green_context) {
		snprintf(units->why, sizeof(units->why),
			 "the driver can't divide the GPU: it has no green contexts, which came "
			 "with CUDA 12.4");
		return;
	}
	status = driver->device_get(&device, ordinal);
	if (status == CUDA_SUCCESS)
		status = find_groups(driver, device, &all, &each);
	if (status == CUDA_SUCCESS)
		status = driver->split_sms(NULL, &count, &all, NULL, 0, each);
	if (status != CUDA_SUCCESS || !count || !each) {
		snprintf(units->why, sizeof(units->why),
			 "the driver does not divide GPU %d: CUDA error %d", ordinal, (int)status);
		return;
	}
	units->units = count < UNITS_MAX ? count : UNITS_MAX;
	units->each = each;
}

/* The groups of @set, in *@count of @groups. */
static CUresult choose(struct cuda *cuda, uint64_t set, CUdevResource groups[UNITS_MAX],
		       unsigned *count)
{
	unsigned found = UNITS_MAX, each = 0;
	CUdevResource all;
	CUresult status = find_groups(cuda->driver, cuda->device, &all, &each);

	if (status == CUDA_SUCCESS)
		status = cuda->driver->split_sms(groups, &found, &all, NULL, 0, each);
	*count = 0;
	for (unsigned i = 0; status == CUDA_SUCCESS && i < found; i++) {
		if (set >> i & 1)
			groups[(*count)++] = groups[i];
	}
	if (status == CUDA_SUCCESS && *count != (unsigned)__builtin_popcountll(set))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	return status;
}

CUresult fgv_cuda_set_units(struct fgv_gpu *gpu, uint64_t set)
{
	struct cuda *cuda = cuda_of(gpu);
	const struct fgv_cuda_driver *driver = cuda->driver;
	CUdevResource groups[UNITS_MAX];
	CUdevResourceDesc description;
	CUgreenCtx green = NULL;
	CUcontext context;
	unsigned count;
	CUresult status;

	/* Streams are where their context was. */
	if (cuda->green || cuda->legacy.next != &cuda->legacy)
		return CUDA_ERROR_NOT_PERMITTED;
	status = choose(cuda, set, groups, &count);
	if (status == CUDA_SUCCESS)
		status = driver->describe_resource(&description, groups, count);
	if (status == CUDA_SUCCESS)
		status = driver->green_create(&green, description, cuda->device,
					      CU_GREEN_CTX_DEFAULT_STREAM);
	if (status != CUDA_SUCCESS)
		return status;
	status = driver->green_context(&context, green);
	if (status == CUDA_SUCCESS)
		status = driver->context_set(context);
	if (status != CUDA_SUCCESS) {
		driver->green_destroy(green);
		return status;
	}
	cuda->green = green;
	cuda->context = context;
	return CUDA_SUCCESS;
}
