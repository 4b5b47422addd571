/*
 * Managed memory. The program and the GPU use the same pages at any time, so nothing ever
 * moves between them: advice and prefetching are checked, remembered and told when asked for.
 */
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/stream/stream.h"
#include "frontend/libcudart/cudart.h"

#define ACCESSED_BY_HOST   1u
#define ACCESSED_BY_DEVICE 2u

/* A type of location that no page has. */
#define MIXED (-1)

static uint64_t address_of(const void *ptr)
{
	return (uint64_t)(uintptr_t)ptr;
}

/* A node of the program's machine means nothing to the host: it is taken for the processor. */
static cudaError_t check_location(struct cudaMemLocation *location)
{
	switch (location->type) {
	case cudaMemLocationTypeDevice:
		return fgv_device_check(location->id);
	case cudaMemLocationTypeHostNuma:
	case cudaMemLocationTypeHostNumaCurrent:
	case cudaMemLocationTypeHost:
		location->type = cudaMemLocationTypeHost;
		location->id = 0;
		return cudaSuccess;
	default:
		return cudaErrorInvalidValue;
	}
}

struct advice {
	enum cudaMemoryAdvise what;
	struct cudaMemLocation location;
};

static void apply_advice(struct fgv_page_hints *hints, void *arg)
{
	const struct advice *advice = arg;
	uint8_t who = advice->location.type == cudaMemLocationTypeDevice ? ACCESSED_BY_DEVICE
									 : ACCESSED_BY_HOST;

	switch (advice->what) {
	case cudaMemAdviseSetReadMostly:
		hints->is_read_mostly = 1;
		break;
	case cudaMemAdviseUnsetReadMostly:
		hints->is_read_mostly = 0;
		break;
	case cudaMemAdviseSetPreferredLocation:
		hints->preferred_type = (int32_t)advice->location.type;
		hints->preferred_id = advice->location.id;
		break;
	case cudaMemAdviseUnsetPreferredLocation:
		hints->preferred_type = 0;
		break;
	case cudaMemAdviseSetAccessedBy:
		hints->accessed_by |= who;
		break;
	case cudaMemAdviseUnsetAccessedBy:
		hints->accessed_by &= (uint8_t)~who;
		break;
	}
}

/* What is said of no place needs none. */
static bool has_location(enum cudaMemoryAdvise what)
{
	return what == cudaMemAdviseSetPreferredLocation || what == cudaMemAdviseSetAccessedBy ||
	       what == cudaMemAdviseUnsetAccessedBy;
}

static cudaError_t advise(const void *ptr, size_t count, struct advice *advice)
{
	if (advice->what < cudaMemAdviseSetReadMostly ||
	    advice->what > cudaMemAdviseUnsetAccessedBy)
		return cudaErrorInvalidValue;
	/* Advice has another word than prefetching for a device that is not there. */
	if (has_location(advice->what) && check_location(&advice->location))
		return cudaErrorInvalidValue;
	return fgv_error_from(fgv_hostmem_hints(address_of(ptr), count, apply_advice, advice));
}

FGV_EXPORT cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
				     struct cudaMemLocation location)
{
	struct advice wanted = {advice, location};

	return fgv_error_set(advise(devPtr, count, &wanted));
}

static void note_prefetch(struct fgv_page_hints *hints, void *arg)
{
	const struct cudaMemLocation *location = arg;

	hints->prefetched_type = (int32_t)location->type;
	hints->prefetched_id = location->id;
}

/* @stream has to be one; what would be done in it is done. */
static cudaError_t check_stream(cudaStream_t stream)
{
	struct fgv_lane *lane;
	uint32_t handle;
	bool blocking;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_stream_find(lane, stream, &handle, &blocking));
	fgv_lane_leave(lane);
	return error;
}

static cudaError_t prefetch(const void *ptr, size_t count, struct cudaMemLocation *location,
			    unsigned flags, cudaStream_t stream)
{
	cudaError_t error = flags ? cudaErrorInvalidValue : check_location(location);

	if (!error)
		error = check_stream(stream);
	if (error)
		return error;
	return fgv_error_from(fgv_hostmem_hints(address_of(ptr), count, note_prefetch, location));
}

FGV_EXPORT cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count,
					    struct cudaMemLocation location, unsigned int flags,
					    cudaStream_t stream)
{
	return fgv_error_set(prefetch(devPtr, count, &location, flags, stream));
}

static cudaError_t attach(cudaStream_t stream, void *ptr, size_t length, unsigned flags)
{
	struct fgv_range_view view;
	cudaError_t error = check_stream(stream);

	if (error)
		return error;
	if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost &&
	    flags != cudaMemAttachSingle)
		return cudaErrorInvalidValue;
	if (fgv_addrmap_look(address_of(ptr), 1, &view) == FGV_FIT_UNKNOWN ||
	    !fgv_range_is_managed(view.kind) || view.start != address_of(ptr) ||
	    (length && length != view.len))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *devPtr, size_t length,
						unsigned int flags)
{
	return fgv_error_set(attach(stream, devPtr, length, flags));
}

/* What all pages have in common. */
struct common {
	bool is_started;
	struct fgv_page_hints hints;
};

static void merge(int32_t *type, int32_t *id, int32_t other_type, int32_t other_id)
{
	if (*type != other_type || *id != other_id)
		*type = MIXED;
}

static void add_page(struct fgv_page_hints *page, void *arg)
{
	struct common *common = arg;
	struct fgv_page_hints *all = &common->hints;

	if (!common->is_started) {
		common->is_started = true;
		*all = *page;
		return;
	}
	all->is_read_mostly &= page->is_read_mostly;
	all->accessed_by &= page->accessed_by;
	merge(&all->preferred_type, &all->preferred_id, page->preferred_type, page->preferred_id);
	merge(&all->prefetched_type, &all->prefetched_id, page->prefetched_type,
	      page->prefetched_id);
}

/* A location as a device's number, as it was told before there were types. */
static int32_t as_device(int32_t type, int32_t id)
{
	switch (type) {
	case cudaMemLocationTypeDevice:
		return id;
	case cudaMemLocationTypeHost:
		return cudaCpuDeviceId;
	default:
		return cudaInvalidDeviceId;
	}
}

static int32_t as_type(int32_t type)
{
	return type == MIXED ? cudaMemLocationTypeInvalid : type;
}

static void list_devices(int32_t *list, size_t count, uint8_t accessed_by)
{
	size_t used = 0;

	if (used < count && (accessed_by & ACCESSED_BY_HOST))
		list[used++] = cudaCpuDeviceId;
	if (used < count && (accessed_by & ACCESSED_BY_DEVICE))
		list[used++] = 0;
	while (used < count)
		list[used++] = cudaInvalidDeviceId;
}

static cudaError_t tell(int32_t *data, size_t size, enum cudaMemRangeAttribute attribute,
			const struct fgv_page_hints *all)
{
	bool is_list = attribute == cudaMemRangeAttributeAccessedBy;

	if (!data || !size || size % sizeof(*data) || (!is_list && size != sizeof(*data)))
		return cudaErrorInvalidValue;
	switch (attribute) {
	case cudaMemRangeAttributeReadMostly:
		*data = all->is_read_mostly;
		return cudaSuccess;
	case cudaMemRangeAttributePreferredLocation:
		*data = as_device(all->preferred_type, all->preferred_id);
		return cudaSuccess;
	case cudaMemRangeAttributeAccessedBy:
		list_devices(data, size / sizeof(*data), all->accessed_by);
		return cudaSuccess;
	case cudaMemRangeAttributeLastPrefetchLocation:
		*data = as_device(all->prefetched_type, all->prefetched_id);
		return cudaSuccess;
	case cudaMemRangeAttributePreferredLocationType:
		*data = as_type(all->preferred_type);
		return cudaSuccess;
	case cudaMemRangeAttributePreferredLocationId:
		*data = all->preferred_id;
		return cudaSuccess;
	case cudaMemRangeAttributeLastPrefetchLocationType:
		*data = as_type(all->prefetched_type);
		return cudaSuccess;
	case cudaMemRangeAttributeLastPrefetchLocationId:
		*data = all->prefetched_id;
		return cudaSuccess;
	}
	return cudaErrorInvalidValue;
}

static cudaError_t get_attributes(void **data, const size_t *sizes,
				  const enum cudaMemRangeAttribute *attributes, size_t count,
				  const void *ptr, size_t bytes)
{
	struct common common = {0};
	cudaError_t error;

	if (!data || !sizes || !attributes || !count)
		return cudaErrorInvalidValue;
	error = fgv_error_from(fgv_hostmem_hints(address_of(ptr), bytes, add_page, &common));
	for (size_t i = 0; !error && i < count; i++)
		error = tell(data[i], sizes[i], attributes[i], &common.hints);
	return error;
}

FGV_EXPORT cudaError_t cudaMemRangeGetAttribute(void *data, size_t dataSize,
						enum cudaMemRangeAttribute attribute,
						const void *devPtr, size_t count)
{
	return fgv_error_set(get_attributes(&data, &dataSize, &attribute, 1, devPtr, count));
}

FGV_EXPORT cudaError_t cudaMemRangeGetAttributes(void **data, size_t *dataSizes,
						 enum cudaMemRangeAttribute *attributes,
						 size_t numAttributes, const void *devPtr,
						 size_t count)
{
	return fgv_error_set(
		get_attributes(data, dataSizes, attributes, numAttributes, devPtr, count));
}
