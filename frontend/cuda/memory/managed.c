/*
 * Managed memory's hints, page by page.
 */
#include "frontend/cuda/memory/managed.h"

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/stream/stream.h"

#define ACCESSED_BY_HOST   1u
#define ACCESSED_BY_DEVICE 2u

/* A type of location that no page has. */
#define MIXED (-1)

/* A node of the program's machine means nothing to the host: it is taken for the processor. */
static CUresult check_location(CUmemLocation *location)
{
	const struct fgv_device_info *info;

	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return fgv_context_find_device(location->id, &info);
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
	case CU_MEM_LOCATION_TYPE_HOST:
		location->type = CU_MEM_LOCATION_TYPE_HOST;
		location->id = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

struct advice {
	CUmem_advise what;
	CUmemLocation location;
};

static void apply_advice(struct fgv_page_hints *hints, void *arg)
{
	const struct advice *advice = arg;
	uint8_t who = advice->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? ACCESSED_BY_DEVICE
									   : ACCESSED_BY_HOST;

	switch (advice->what) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
		hints->is_read_mostly = 1;
		break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		hints->is_read_mostly = 0;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		hints->preferred_type = (int32_t)advice->location.type;
		hints->preferred_id = advice->location.id;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		hints->preferred_type = 0;
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		hints->accessed_by |= who;
		break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		hints->accessed_by &= (uint8_t)~who;
		break;
	}
}

/* What is said of no place needs none. */
static bool has_location(CUmem_advise what)
{
	return what == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
	       what == CU_MEM_ADVISE_SET_ACCESSED_BY || what == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

CUresult fgv_managed_advise(CUdeviceptr address, size_t bytes, CUmem_advise what,
			    CUmemLocation location)
{
	struct advice advice = {what, location};

	if (what < CU_MEM_ADVISE_SET_READ_MOSTLY || what > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	/* Advice has another word than prefetching for a device that is not there. */
	if (has_location(what) && check_location(&advice.location))
		return CUDA_ERROR_INVALID_VALUE;
	return fgv_hostmem_hints(address, bytes, apply_advice, &advice);
}

static void note_prefetch(struct fgv_page_hints *hints, void *arg)
{
	const CUmemLocation *location = arg;

	hints->prefetched_type = (int32_t)location->type;
	hints->prefetched_id = location->id;
}

/* @stream has to be one; what would be done in it is done. */
CUresult fgv_managed_prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location,
			      unsigned flags, CUstream stream)
{
	CUresult res = flags ? CUDA_ERROR_INVALID_VALUE : check_location(&location);

	if (!res)
		res = fgv_stream_check(stream);
	return res ? res : fgv_hostmem_hints(address, bytes, note_prefetch, &location);
}

static void forget_nothing(struct fgv_page_hints *hints, void *arg)
{
	(void)hints, (void)arg;
}

CUresult fgv_managed_discard(CUdeviceptr address, size_t bytes)
{
	return fgv_hostmem_hints(address, bytes, forget_nothing, NULL);
}

CUresult fgv_managed_attach(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags)
{
	struct fgv_range_view view;
	CUresult res = fgv_stream_check(stream);

	if (res)
		return res;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	    flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (fgv_addrmap_look(address, 1, &view) == FGV_FIT_UNKNOWN ||
	    !fgv_range_is_managed(view.kind) || view.start != address ||
	    (bytes && bytes != view.len))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
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
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return id;
	case CU_MEM_LOCATION_TYPE_HOST:
		return CU_DEVICE_CPU;
	default:
		return CU_DEVICE_INVALID;
	}
}

static int32_t as_type(int32_t type)
{
	return type == MIXED ? CU_MEM_LOCATION_TYPE_INVALID : type;
}

static void list_devices(int32_t *list, size_t count, uint8_t accessed_by)
{
	size_t used = 0;

	if (used < count && (accessed_by & ACCESSED_BY_HOST))
		list[used++] = CU_DEVICE_CPU;
	if (used < count && (accessed_by & ACCESSED_BY_DEVICE))
		list[used++] = 0;
	while (used < count)
		list[used++] = CU_DEVICE_INVALID;
}

static CUresult tell(int32_t *data, size_t size, CUmem_range_attribute attribute,
		     const struct fgv_page_hints *all)
{
	bool is_list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;

	if (!data || !size || size % sizeof(*data) || (!is_list && size != sizeof(*data)))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*data = all->is_read_mostly;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*data = as_device(all->preferred_type, all->preferred_id);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		list_devices(data, size / sizeof(*data), all->accessed_by);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*data = as_device(all->prefetched_type, all->prefetched_id);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*data = as_type(all->preferred_type);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*data = all->preferred_id;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*data = as_type(all->prefetched_type);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*data = all->prefetched_id;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_managed_get_attributes(void **data, const size_t *sizes,
				    const CUmem_range_attribute *attributes, size_t count,
				    CUdeviceptr address, size_t bytes)
{
	struct common common = {0};
	CUresult res;

	if (!data || !sizes || !attributes || !count)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_hostmem_hints(address, bytes, add_page, &common);
	for (size_t i = 0; !res && i < count; i++)
		res = tell(data[i], sizes[i], attributes[i], &common.hints);
	return res;
}
