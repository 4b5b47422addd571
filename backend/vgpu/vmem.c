/*
 * Reservations and mappings, each in a tree by address.
 */
#include "backend/vgpu/vmem.h"

#include <stdlib.h>

struct fgv_reservation {
	RB_ENTRY(fgv_reservation) node;
	uint64_t address;
	uint64_t bytes;
};

struct fgv_mapping {
	RB_ENTRY(fgv_mapping) node;
	uint64_t address;
	uint64_t bytes;
	struct fgv_object *memory; /* with a reference */
	bool is_leaving;
};

static int compare_reservations(const struct fgv_reservation *a, const struct fgv_reservation *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

static int compare_mappings(const struct fgv_mapping *a, const struct fgv_mapping *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

RB_GENERATE_INTERNAL(fgv_reservation_tree, fgv_reservation, node, compare_reservations,
		     __attribute__((unused)) static)
RB_GENERATE_INTERNAL(fgv_mapping_tree, fgv_mapping, node, compare_mappings,
		     __attribute__((unused)) static)

void fgv_vmem_init(struct fgv_vmem *vmem, struct fgv_gpu *gpu, fgv_vmem_put *put, void *arg)
{
	*vmem = (struct fgv_vmem){.gpu = gpu, .put = put, .arg = arg};
	RB_INIT(&vmem->reservations);
	RB_INIT(&vmem->mappings);
}

static void forget_mapping(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	RB_REMOVE(fgv_mapping_tree, &vmem->mappings, mapping);
	vmem->mappings_count--;
	vmem->put(mapping->memory, vmem->arg);
	free(mapping);
}

static CUresult unmap_one(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = gpu->ops->memory_unmap(gpu, mapping->address, mapping->bytes);

	forget_mapping(vmem, mapping);
	return status;
}

static CUresult free_one(struct fgv_vmem *vmem, struct fgv_reservation *reservation)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = gpu->ops->address_free(gpu, reservation->address, reservation->bytes);

	RB_REMOVE(fgv_reservation_tree, &vmem->reservations, reservation);
	vmem->reservations_count--;
	vmem->reserved_bytes -= reservation->bytes;
	free(reservation);
	return status;
}

static CUresult retire_one(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	struct fgv_gpu *gpu = vmem->gpu;

	mapping->is_leaving = true;
	if (!gpu->ops->memory_retire)
		return CUDA_SUCCESS;
	return gpu->ops->memory_retire(gpu, mapping->address, mapping->bytes);
}

void fgv_vmem_fini(struct fgv_vmem *vmem)
{
	struct fgv_mapping *mapping, *next;
	struct fgv_reservation *reservation;

	RB_FOREACH_SAFE(mapping, fgv_mapping_tree, &vmem->mappings, next)
	{
		if (!mapping->is_leaving)
			retire_one(vmem, mapping);
		unmap_one(vmem, mapping);
	}
	while ((reservation = RB_MIN(fgv_reservation_tree, &vmem->reservations)))
		free_one(vmem, reservation);
}

CUresult fgv_vmem_granule(struct fgv_vmem *vmem, uint64_t *bytes)
{
	struct fgv_gpu *gpu = vmem->gpu;
	size_t found = 0;
	CUresult status;

	if (!vmem->granule) {
		status =
			gpu->ops->memory_granularity(gpu, CU_MEM_ALLOC_GRANULARITY_MINIMUM, &found);
		if (status != CUDA_SUCCESS)
			return status;
		vmem->granule = found;
	}
	*bytes = vmem->granule;
	return *bytes ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* Whether [@address, @address + @bytes) is something, does not wrap, and is whole granules. */
static CUresult check_span(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	uint64_t granule;
	CUresult status = fgv_vmem_granule(vmem, &granule);

	if (status != CUDA_SUCCESS)
		return status;
	return bytes && address <= UINT64_MAX - bytes && !(address % granule) && !(bytes % granule)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult keep(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	struct fgv_reservation *made = malloc(sizeof(*made));

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = (struct fgv_reservation){.address = address, .bytes = bytes};
	RB_INSERT(fgv_reservation_tree, &vmem->reservations, made);
	vmem->reservations_count++;
	vmem->reserved_bytes += bytes;
	return CUDA_SUCCESS;
}

CUresult fgv_vmem_reserve(struct fgv_vmem *vmem, uint64_t bytes, uint64_t alignment, uint64_t hint,
			  uint64_t *address)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status;

	if (!bytes || bytes % FGV_PAGE_BYTES || hint % FGV_PAGE_BYTES ||
	    (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > FGV_RESERVED_BYTES_MAX - vmem->reserved_bytes ||
	    alignment > FGV_RESERVED_BYTES_MAX || vmem->reservations_count >= FGV_RESERVATIONS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = gpu->ops->address_reserve(gpu, bytes, alignment, hint, address);
	if (status != CUDA_SUCCESS)
		return status;
	status = keep(vmem, *address, bytes);
	if (status != CUDA_SUCCESS)
		gpu->ops->address_free(gpu, *address, bytes);
	return status;
}

/* The mapping that ends last of those that begin before @end, if it reaches beyond @start. */
static struct fgv_mapping *find_overlap(struct fgv_vmem *vmem, uint64_t start, uint64_t end)
{
	struct fgv_mapping key = {.address = end};
	struct fgv_mapping_tree *tree = &vmem->mappings;
	struct fgv_mapping *after = RB_NFIND(fgv_mapping_tree, tree, &key), *last;

	last = after ? RB_PREV(fgv_mapping_tree, tree, after) : RB_MAX(fgv_mapping_tree, tree);
	return last && last->address + last->bytes > start ? last : NULL;
}

CUresult fgv_vmem_free(struct fgv_vmem *vmem, uint64_t address)
{
	struct fgv_reservation key = {.address = address};
	struct fgv_reservation *found = RB_FIND(fgv_reservation_tree, &vmem->reservations, &key);

	if (!found || find_overlap(vmem, address, address + found->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return free_one(vmem, found);
}

static bool is_reserved(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	const struct fgv_reservation *at = RB_ROOT(&vmem->reservations);

	while (at && (address < at->address || address - at->address >= at->bytes))
		at = address < at->address ? RB_LEFT(at, node) : RB_RIGHT(at, node);
	return at && bytes <= at->bytes - (address - at->address);
}

static CUresult check_map(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint64_t offset,
			  const struct fgv_object *memory)
{
	CUresult status = check_span(vmem, address, bytes);

	if (status != CUDA_SUCCESS)
		return status;
	if (offset % vmem->granule || !is_reserved(vmem, address, bytes) ||
	    find_overlap(vmem, address, address + bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* More than the memory has: the driver's own code for that. */
	if (bytes > memory->memory.bytes || offset > memory->memory.bytes - bytes)
		return CUDA_ERROR_NOT_SUPPORTED;
	return vmem->mappings_count < FGV_MAPPINGS_MAX ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_vmem_map(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint64_t offset,
		      struct fgv_object *memory)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = check_map(vmem, address, bytes, offset, memory);
	struct fgv_mapping *made;

	if (status != CUDA_SUCCESS)
		return status;
	made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = gpu->ops->memory_map(gpu, address, bytes, offset, memory->memory.gpu);
	if (status != CUDA_SUCCESS) {
		free(made);
		return status;
	}
	*made = (struct fgv_mapping){.address = address, .bytes = bytes, .memory = memory};
	fgv_object_get(memory);
	RB_INSERT(fgv_mapping_tree, &vmem->mappings, made);
	vmem->mappings_count++;
	return CUDA_SUCCESS;
}

/* The first of whole mappings that follow each other and fill the span, none leaving; or NULL. */
static struct fgv_mapping *find_whole(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	struct fgv_mapping key = {.address = address}, *first, *at;

	first = at = RB_FIND(fgv_mapping_tree, &vmem->mappings, &key);
	while (at && at->address == address && !at->is_leaving && at->bytes <= bytes) {
		address += at->bytes;
		bytes -= at->bytes;
		if (!bytes)
			return first;
		at = RB_NEXT(fgv_mapping_tree, &vmem->mappings, at);
	}
	return NULL;
}

/* Runs @each over the mappings of a span; the first failure, after all. */
static CUresult for_each(struct fgv_vmem *vmem, struct fgv_mapping *first, uint64_t end,
			 CUresult (*each)(struct fgv_vmem *, struct fgv_mapping *))
{
	CUresult first_status = CUDA_SUCCESS;
	struct fgv_mapping *next;

	for (; first && first->address < end; first = next) {
		CUresult status;

		next = RB_NEXT(fgv_mapping_tree, &vmem->mappings, first);
		status = each(vmem, first);
		if (first_status == CUDA_SUCCESS)
			first_status = status;
	}
	return first_status;
}

CUresult fgv_vmem_access(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint32_t flags)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = check_span(vmem, address, bytes);

	if (status != CUDA_SUCCESS)
		return status;
	if ((flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	     flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ||
	    !find_whole(vmem, address, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return gpu->ops->memory_access(gpu, address, bytes, (CUmemAccess_flags)flags);
}

CUresult fgv_vmem_retire(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	CUresult status = check_span(vmem, address, bytes);
	struct fgv_mapping *first;

	if (status != CUDA_SUCCESS)
		return status;
	first = find_whole(vmem, address, bytes);
	if (!first)
		return CUDA_ERROR_INVALID_VALUE;
	return for_each(vmem, first, address + bytes, retire_one);
}

CUresult fgv_vmem_unmap(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	struct fgv_mapping key = {.address = address};

	return for_each(vmem, RB_FIND(fgv_mapping_tree, &vmem->mappings, &key), address + bytes,
			unmap_one);
}
