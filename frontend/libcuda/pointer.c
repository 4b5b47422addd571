/*
 * Attributes of pointers.
 */
#include "frontend/cuda/memory/pointer.h"

#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/pool.h"
#include "frontend/cuda/memory/vmem.h"
#include "frontend/libcuda/driver.h"

/* The value of an attribute, and how many bytes of it the program gets. */
struct value {
	union {
		uint64_t number;
		int32_t word;
		uint8_t truth;
		void *pointer;
	};
	size_t bytes;
};

static void set_number(struct value *value, uint64_t number)
{
	*value = (struct value){.number = number, .bytes = sizeof(number)};
}

static void set_word(struct value *value, int32_t word)
{
	*value = (struct value){.word = word, .bytes = sizeof(word)};
}

static void set_truth(struct value *value, bool truth)
{
	*value = (struct value){.truth = truth, .bytes = 1};
}

static void set_pointer(struct value *value, void *pointer)
{
	*value = (struct value){.pointer = pointer, .bytes = sizeof(pointer)};
}

/* Managed memory counts as the device's. */
static int memory_type(const struct fgv_pointer *found)
{
	return found->type == CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static CUcontext context_of(const struct fgv_pointer *found)
{
	struct fgv_ctx *primary;

	if (found->range.context)
		return found->range.context;
	return fgv_ctx_primary(found->ordinal, &primary) ? NULL : primary->handle;
}

/* Programs that may share events may share memory. */
static bool can_be_shared(const struct fgv_pointer *found)
{
	const struct fgv_device_info *info;

	return found->range.kind == FGV_RANGE_MEMORY &&
	       !fgv_context_find_device(found->ordinal, &info) &&
	       info->attributes[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED];
}

/* What is known of every pointer that is known. */
static CUresult describe(const struct fgv_pointer *found, CUpointer_attribute attribute,
			 CUdeviceptr pointer, struct value *value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		set_pointer(value, context_of(found));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		set_word(value, memory_type(found));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		set_number(value, pointer);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		set_pointer(value, (void *)(uintptr_t)pointer);
		return found->is_host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		set_number(value, found->range.id);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		set_word(value, fgv_range_is_managed(found->range.kind));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		set_word(value, found->ordinal);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		set_number(value, found->range.start);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		set_number(value, found->range.len);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		set_truth(value, true);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		set_truth(value, can_be_shared(found));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		set_number(value, found->range.id);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_FOUND;
	}
}

/* What no memory here is or can do, and what is said of it by whoever may write it everywhere. */
static CUresult describe_rest(CUpointer_attribute attribute, struct value *value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		set_truth(value, false);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		set_number(value, CU_MEM_HANDLE_TYPE_NONE);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		set_word(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		set_pointer(value, NULL);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* What is otherwise where memory is mapped at reserved addresses. */
static CUresult describe_mapped(CUpointer_attribute attribute, CUdeviceptr pointer,
				struct value *value)
{
	struct fgv_vmem_view view;

	if (!fgv_vmem_look(pointer, fgv_context_get_device(), &view))
		return CUDA_ERROR_NOT_FOUND;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		set_number(value, view.start);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		set_number(value, view.len);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		set_number(value, view.handle_types);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		set_word(value, (int32_t)view.access);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_FOUND;
	}
}

static CUresult find_value(const struct fgv_pointer *found, CUpointer_attribute attribute,
			   CUdeviceptr pointer, struct value *value)
{
	CUresult res = CUDA_ERROR_NOT_FOUND;

	if (found->range.kind == FGV_RANGE_MAPPED)
		res = describe_mapped(attribute, pointer, value);
	if (res == CUDA_ERROR_NOT_FOUND)
		res = describe(found, attribute, pointer, value);

	return res == CUDA_ERROR_NOT_FOUND ? describe_rest(attribute, value) : res;
}

static CUresult get_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct value value = {0};
	struct fgv_pointer found;
	CUresult res;

	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_pointer_describe(pointer, &found);
	if (!res && !found.is_known)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		res = find_value(&found, attribute, pointer, &value);
	if (!res)
		memcpy(data, &value.number, value.bytes);
	return res;
}

FGV_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
					  CUdeviceptr ptr)
{
	return FGV_CALL_ANYWHERE(get_attribute(data, attribute, ptr));
}

/* A pointer that is none of CUDA's is no mistake here: it has no such attributes, but a device. */
static CUresult get_unknown(CUpointer_attribute attribute, struct value *value)
{
	static const struct fgv_pointer nothing;
	CUresult res = find_value(&nothing, attribute, 0, value);

	if (res == CUDA_ERROR_INVALID_VALUE && attribute != CU_POINTER_ATTRIBUTE_HOST_POINTER)
		return res;
	value->number = 0;
	if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
		value->word = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

static CUresult get_attributes(unsigned count, const CUpointer_attribute *attributes, void **data,
			       CUdeviceptr pointer)
{
	struct fgv_pointer found;
	struct value value;
	CUresult res;

	if (!count || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_pointer_describe(pointer, &found);
	for (unsigned i = 0; i < count && !res; i++) {
		res = CUDA_ERROR_INVALID_VALUE;
		if (found.is_known)
			res = find_value(&found, attributes[i], pointer, &value);
		if (res)
			res = get_unknown(attributes[i], &value);
		if (!res && data[i])
			memcpy(data[i], &value.number, value.bytes);
	}
	return res;
}

FGV_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes,
					   CUpointer_attribute *attributes, void **data,
					   CUdeviceptr ptr)
{
	return FGV_CALL_ANYWHERE(get_attributes(numAttributes, attributes, data, ptr));
}

/* Synchronous operations always are, whatever is asked for. */
static CUresult set_attribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct fgv_pointer found;
	CUresult res;

	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_pointer_describe(pointer, &found);
	return !res && !found.is_known ? CUDA_ERROR_INVALID_VALUE : res;
}

FGV_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
					  CUdeviceptr ptr)
{
	return FGV_CALL_ANYWHERE(set_attribute(value, attribute, ptr));
}
