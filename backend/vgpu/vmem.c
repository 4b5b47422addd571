/*
 * Reservations and mappings, each in a tree by address, which all parts of a session share; and the
 * views that this part has, which are in a tree of its own.
 */
#include "backend/vgpu/vmem_priv.h"

#include <stdlib.h>

struct fgv_reservation {
	RB_ENTRY(fgv_reservation) node;
	uint64_t address;
	uint64_t bytes;
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

void fgv_addresses_init(struct fgv_addresses *addresses)
{
	*addresses = (struct fgv_addresses){.mutex = PTHREAD_MUTEX_INITIALIZER};
	RB_INIT(&addresses->reservations);
	RB_INIT(&addresses->mappings);
}

void fgv_addresses_fini(struct fgv_addresses *addresses, struct fgv_gpu *gpu)
{
	struct fgv_reservation *reservation;

	while ((reservation = RB_MIN(fgv_reservation_tree, &addresses->reservations))) {
		gpu->ops->address_free(gpu, reservation->address, reservation->bytes);
		RB_REMOVE(fgv_reservation_tree, &addresses->reservations, reservation);
		free(reservation);
	}
	pthread_mutex_destroy(&addresses->mutex);
}

void fgv_vmem_init(struct fgv_vmem *vmem, struct fgv_gpu *gpu, struct fgv_addresses *addresses,
		   fgv_vmem_put *put, void *arg)
{
	*vmem = (struct fgv_vmem){.gpu = gpu, .addresses = addresses, .put = put, .arg = arg};
	RB_INIT(&vmem->views);
}

/* --- Taking things away ------------------------------------------------------ */

static CUresult retire_one(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	struct fgv_gpu *gpu = vmem->gpu;

	if (!gpu->ops->memory_retire)
		return CUDA_SUCCESS;
	return gpu->ops->memory_retire(gpu, mapping->address, mapping->bytes);
}

static CUresult drop_view(struct fgv_vmem *vmem, struct fgv_mapping *view)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = gpu->ops->memory_unview(gpu, view->address, view->bytes);

	RB_REMOVE(fgv_mapping_tree, &vmem->views, view);
	vmem->mappings_count--;
	free(view);
	return status;
}

/* What it is of stays until the view does not. */
static CUresult unview_one(struct fgv_vmem *vmem, struct fgv_mapping *view)
{
	struct fgv_mapping *viewed = view->viewed;
	CUresult status = drop_view(vmem, view);

	fgv_vmem_lock(vmem);
	viewed->views--;
	fgv_vmem_unlock(vmem);
	return status;
}

static CUresult unmap_one(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = gpu->ops->memory_unmap(gpu, mapping->address, mapping->bytes);

	fgv_vmem_lock(vmem);
	RB_REMOVE(fgv_mapping_tree, &vmem->addresses->mappings, mapping);
	fgv_vmem_unlock(vmem);
	vmem->mappings_count--;
	vmem->put(mapping->memory, vmem->arg);
	free(mapping);
	return status;
}

/* Those that are leaving are retired already. What is viewed may have gone with another part. */
static void finish(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	if (!mapping->is_closed)
		retire_one(vmem, mapping);
	if (mapping->viewed)
		drop_view(vmem, mapping);
	else
		unmap_one(vmem, mapping);
}

void fgv_vmem_fini(struct fgv_vmem *vmem)
{
	struct fgv_mapping *mapping, *next;

	while ((mapping = RB_MIN(fgv_mapping_tree, &vmem->views)))
		finish(vmem, mapping);
	for (mapping = RB_MIN(fgv_mapping_tree, &vmem->addresses->mappings); mapping;
	     mapping = next) {
		next = RB_NEXT(fgv_mapping_tree, &vmem->addresses->mappings, mapping);
		if (mapping->owner == vmem)
			finish(vmem, mapping);
	}
}

/* --- Sizes and addresses ----------------------------------------------------- */

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

CUresult fgv_vmem_check_span(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
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
	struct fgv_addresses *addresses = vmem->addresses;
	struct fgv_reservation *made = malloc(sizeof(*made));

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = (struct fgv_reservation){.address = address, .bytes = bytes};
	fgv_vmem_lock(vmem);
	RB_INSERT(fgv_reservation_tree, &addresses->reservations, made);
	addresses->reservations_count++;
	addresses->reserved_bytes += bytes;
	fgv_vmem_unlock(vmem);
	return CUDA_SUCCESS;
}

CUresult fgv_vmem_reserve(struct fgv_vmem *vmem, uint64_t bytes, uint64_t alignment, uint64_t hint,
			  uint64_t *address)
{
	const struct fgv_addresses *addresses = vmem->addresses;
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status;

	if (!bytes || bytes % FGV_PAGE_BYTES || hint % FGV_PAGE_BYTES ||
	    (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > FGV_RESERVED_BYTES_MAX - addresses->reserved_bytes ||
	    alignment > FGV_RESERVED_BYTES_MAX ||
	    addresses->reservations_count >= FGV_RESERVATIONS_MAX)
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
static struct fgv_mapping *find_overlap_locked(struct fgv_vmem *vmem, uint64_t start, uint64_t end)
{
	struct fgv_mapping key = {.address = end};
	struct fgv_mapping_tree *tree = &vmem->addresses->mappings;
	struct fgv_mapping *after = RB_NFIND(fgv_mapping_tree, tree, &key), *last;

	last = after ? RB_PREV(fgv_mapping_tree, tree, after) : RB_MAX(fgv_mapping_tree, tree);
	return last && last->address + last->bytes > start ? last : NULL;
}

/* Takes the reservation that begins at @address out, where nothing is mapped; or NULL. */
static struct fgv_reservation *take_locked(struct fgv_vmem *vmem, uint64_t address)
{
	struct fgv_addresses *addresses = vmem->addresses;
	struct fgv_reservation key = {.address = address};
	struct fgv_reservation *found =
		RB_FIND(fgv_reservation_tree, &addresses->reservations, &key);

	if (!found || find_overlap_locked(vmem, address, address + found->bytes))
		return NULL;
	RB_REMOVE(fgv_reservation_tree, &addresses->reservations, found);
	addresses->reservations_count--;
	addresses->reserved_bytes -= found->bytes;
	return found;
}

CUresult fgv_vmem_free(struct fgv_vmem *vmem, uint64_t address)
{
	struct fgv_gpu *gpu = vmem->gpu;
	struct fgv_reservation *taken;
	CUresult status;

	fgv_vmem_lock(vmem);
	taken = take_locked(vmem, address);
	fgv_vmem_unlock(vmem);
	if (!taken)
		return CUDA_ERROR_INVALID_VALUE;
	status = gpu->ops->address_free(gpu, taken->address, taken->bytes);
	free(taken);
	return status;
}

/* --- Mapping ----------------------------------------------------------------- */

static bool is_reserved_locked(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	const struct fgv_reservation *at = RB_ROOT(&vmem->addresses->reservations);

	while (at && (address < at->address || address - at->address >= at->bytes))
		at = address < at->address ? RB_LEFT(at, node) : RB_RIGHT(at, node);
	return at && bytes <= at->bytes - (address - at->address);
}

static CUresult check_map(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint64_t offset,
			  const struct fgv_object *memory)
{
	CUresult status = fgv_vmem_check_span(vmem, address, bytes);
	bool is_room;

	if (status != CUDA_SUCCESS)
		return status;
	fgv_vmem_lock(vmem);
	is_room = is_reserved_locked(vmem, address, bytes) &&
		  !find_overlap_locked(vmem, address, address + bytes);
	fgv_vmem_unlock(vmem);
	if (offset % vmem->granule || !is_room)
		return CUDA_ERROR_INVALID_VALUE;
	/* More than the memory has: the driver's own code for that. */
	if (bytes > memory->memory.bytes || offset > memory->memory.bytes - bytes)
		return CUDA_ERROR_NOT_SUPPORTED;
	return vmem->mappings_count < FGV_MAPPINGS_MAX ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A mapping that is closed; NULL: no memory, or, *is_taken, the place is not free any more. */
static struct fgv_mapping *add(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes,
			       bool *is_taken)
{
	struct fgv_mapping *made = malloc(sizeof(*made));

	*is_taken = false;
	if (!made)
		return NULL;
	*made = (struct fgv_mapping){
		.address = address, .bytes = bytes, .owner = vmem, .is_closed = true};
	fgv_vmem_lock(vmem);
	*is_taken = !is_reserved_locked(vmem, address, bytes) ||
		    find_overlap_locked(vmem, address, address + bytes);
	if (!*is_taken)
		RB_INSERT(fgv_mapping_tree, &vmem->addresses->mappings, made);
	fgv_vmem_unlock(vmem);
	if (!*is_taken)
		return made;
	free(made);
	return NULL;
}

/* It is there now, or, with a failure, never was. */
static CUresult settle(struct fgv_vmem *vmem, struct fgv_mapping *made, CUresult status)
{
	fgv_vmem_lock(vmem);
	if (status == CUDA_SUCCESS)
		made->is_closed = false;
	else
		RB_REMOVE(fgv_mapping_tree, &vmem->addresses->mappings, made);
	fgv_vmem_unlock(vmem);
	if (status == CUDA_SUCCESS)
		vmem->mappings_count++;
	else
		free(made);
	return status;
}

CUresult fgv_vmem_map(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes, uint64_t offset,
		      struct fgv_object *memory)
{
	struct fgv_gpu *gpu = vmem->gpu;
	CUresult status = check_map(vmem, address, bytes, offset, memory);
	struct fgv_mapping *made;
	bool is_taken;

	if (status != CUDA_SUCCESS)
		return status;
	made = add(vmem, address, bytes, &is_taken);
	if (!made)
		return is_taken ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	made->memory = memory;
	status = settle(vmem, made,
			gpu->ops->memory_map(gpu, address, bytes, offset, memory->memory.gpu));
	if (status == CUDA_SUCCESS)
		fgv_object_get(memory);
	return status;
}

struct fgv_mapping *fgv_vmem_find_whole_locked(const struct fgv_vmem *vmem,
					       struct fgv_mapping_tree *tree, uint64_t address,
					       uint64_t bytes, bool *is_own)
{
	struct fgv_mapping key = {.address = address}, *first, *at;

	*is_own = true;
	first = at = RB_FIND(fgv_mapping_tree, tree, &key);
	while (at && at->address == address && !at->is_closed && at->bytes <= bytes) {
		*is_own &= at->owner == vmem;
		address += at->bytes;
		bytes -= at->bytes;
		if (!bytes)
			return first;
		at = RB_NEXT(fgv_mapping_tree, tree, at);
	}
	return NULL;
}

struct fgv_mapping *fgv_vmem_find_view(struct fgv_vmem *vmem, uint64_t address)
{
	struct fgv_mapping key = {.address = address};

	return RB_FIND(fgv_mapping_tree, &vmem->views, &key);
}

struct fgv_mapping *fgv_vmem_find_locked(struct fgv_vmem *vmem, uint64_t address)
{
	struct fgv_mapping key = {.address = address};

	return RB_FIND(fgv_mapping_tree, &vmem->addresses->mappings, &key);
}

void fgv_vmem_add_view(struct fgv_vmem *vmem, struct fgv_mapping *view)
{
	RB_INSERT(fgv_mapping_tree, &vmem->views, view);
	vmem->mappings_count++;
}

/* --- Unmapping --------------------------------------------------------------- */

static struct fgv_mapping_tree *tree_of(struct fgv_vmem *vmem, uint64_t address)
{
	return fgv_vmem_find_view(vmem, address) ? &vmem->views : &vmem->addresses->mappings;
}

/* What of @tree begins at @address, if it is this part's. */
static struct fgv_mapping *find_own(struct fgv_vmem *vmem, struct fgv_mapping_tree *tree,
				    uint64_t address)
{
	struct fgv_mapping key = {.address = address}, *found;

	fgv_vmem_lock(vmem);
	found = RB_FIND(fgv_mapping_tree, tree, &key);
	fgv_vmem_unlock(vmem);
	return found && found->owner == vmem ? found : NULL;
}

/* Runs @each over what this part has in a span; the first failure, after all. */
static CUresult for_each(struct fgv_vmem *vmem, uint64_t address, uint64_t end,
			 CUresult (*each)(struct fgv_vmem *, struct fgv_mapping *))
{
	struct fgv_mapping_tree *tree = tree_of(vmem, address);
	CUresult first_status = CUDA_SUCCESS;
	struct fgv_mapping *at;

	while (address < end && (at = find_own(vmem, tree, address))) {
		CUresult status;

		address += at->bytes;
		status = each(vmem, at);
		if (first_status == CUDA_SUCCESS)
			first_status = status;
	}
	return first_status;
}

/* Closes all of a span, where it is this part's and nobody views it. */
static bool close_span(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	struct fgv_mapping_tree *tree = tree_of(vmem, address);
	struct fgv_mapping *first, *at;
	bool is_own, is_viewed = false;

	fgv_vmem_lock(vmem);
	first = fgv_vmem_find_whole_locked(vmem, tree, address, bytes, &is_own);
	for (at = first; at && at->address - address < bytes;
	     at = RB_NEXT(fgv_mapping_tree, tree, at))
		is_viewed |= at->views > 0;
	if (!is_own || is_viewed)
		first = NULL;
	for (at = first; at && at->address - address < bytes;
	     at = RB_NEXT(fgv_mapping_tree, tree, at))
		at->is_closed = true;
	fgv_vmem_unlock(vmem);
	return first;
}

CUresult fgv_vmem_retire(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	CUresult status = fgv_vmem_check_span(vmem, address, bytes);

	if (status != CUDA_SUCCESS)
		return status;
	if (!close_span(vmem, address, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return for_each(vmem, address, address + bytes, retire_one);
}

static CUresult take_away(struct fgv_vmem *vmem, struct fgv_mapping *mapping)
{
	return mapping->viewed ? unview_one(vmem, mapping) : unmap_one(vmem, mapping);
}

CUresult fgv_vmem_unmap(struct fgv_vmem *vmem, uint64_t address, uint64_t bytes)
{
	return for_each(vmem, address, address + bytes, take_away);
}
