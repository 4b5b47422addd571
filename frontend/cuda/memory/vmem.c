/*
 * Reservations and mappings, in trees by address. The host judges what may be mapped where; what
 * it has done is entered here, and mappings in the address map as well, which copies ask.
 */
#include "frontend/cuda/memory/vmem_priv.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/stream/capturing.h"

/* Each further one has to miss the program's memory at another place. */
#define ATTEMPTS 16

struct range {
	RB_ENTRY(range) link;
	uint64_t start;
	uint64_t len;
	/* Of mappings: */
	struct fgv_vmem_memory *memory;
	CUmemAccess_flags access;
};

RB_HEAD(ranges, range);

static struct {
	pthread_mutex_t mutex;
	struct ranges reservations;
	struct ranges mappings;
} vmem = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int compare(const struct range *a, const struct range *b)
{
	return a->start < b->start ? -1 : a->start > b->start;
}

/* RB_GENERATE_STATIC() needs an __unused of BSD's; not every function is used. */
#define LOCAL static __attribute__((unused))
RB_GENERATE_INTERNAL(ranges, range, link, compare, LOCAL)

static struct range *find_locked(struct ranges *ranges, uint64_t address)
{
	struct range *at = RB_ROOT(ranges);

	while (at && (address < at->start || address - at->start >= at->len))
		at = address < at->start ? RB_LEFT(at, link) : RB_RIGHT(at, link);
	return at;
}

static struct range *new_range(uint64_t start, uint64_t len)
{
	struct range *made = calloc(1, sizeof(*made));

	if (made) {
		made->start = start;
		made->len = len;
	}
	return made;
}

static bool is_free_locked(struct ranges *ranges, const struct range *range)
{
	struct range probe = {.start = range->start}, *next = RB_NFIND(ranges, ranges, &probe);

	return range->start + range->len > range->start && !find_locked(ranges, range->start) &&
	       (!next || next->start - range->start >= range->len);
}

/* False where there is something already: then the host's word is not to be relied on. */
static bool insert(struct ranges *ranges, struct range *range)
{
	bool is_free;

	pthread_mutex_lock(&vmem.mutex);
	is_free = is_free_locked(ranges, range);
	if (is_free)
		RB_INSERT(ranges, ranges, range);
	pthread_mutex_unlock(&vmem.mutex);
	return is_free;
}

/* --- Reservations --- */

/* As for memory of the device's own choice (devmem.c): where the program has nothing. */
static CUresult reserve_apart(struct fgv_lane *lane, const struct range *wanted, uint64_t alignment,
			      uint64_t *address)
{
	uint64_t misfits[ATTEMPTS];
	unsigned count = 0;
	CUresult res;

	do {
		res = fgv_call_address_reserve(lane, wanted->len, alignment,
					       count ? 0 : wanted->start, address);
		if (res || fgv_addrmap_claim(*address, wanted->len) != -EEXIST)
			break;
		misfits[count++] = *address;
		res = CUDA_ERROR_OUT_OF_MEMORY;
	} while (count < ATTEMPTS);
	while (count)
		fgv_call_address_free(lane, misfits[--count]);
	return res;
}

CUresult fgv_vmem_reserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
			  unsigned long long flags)
{
	struct fgv_lane *lane;
	struct range *made;
	CUresult res;

	if (!address || !bytes || flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_first(&lane, "virtual memory");
	if (res)
		return res;
	made = new_range(hint, bytes);
	res = made ? reserve_apart(lane, made, alignment, &made->start) : CUDA_ERROR_OUT_OF_MEMORY;
	fgv_lane_leave(lane);
	if (!res && !insert(&vmem.reservations, made))
		res = CUDA_ERROR_UNKNOWN;
	if (res)
		free(made);
	else
		*address = made->start;
	return res;
}

bool fgv_vmem_is_reserved(CUdeviceptr address)
{
	bool found;

	pthread_mutex_lock(&vmem.mutex);
	found = find_locked(&vmem.reservations, address);
	pthread_mutex_unlock(&vmem.mutex);
	return found;
}

/* Takes the range of exactly this start and length out; or NULL. */
static struct range *take(struct ranges *ranges, uint64_t start, uint64_t len)
{
	struct range *found;

	pthread_mutex_lock(&vmem.mutex);
	found = find_locked(ranges, start);
	if (found && (found->start != start || found->len != len))
		found = NULL;
	if (found)
		RB_REMOVE(ranges, ranges, found);
	pthread_mutex_unlock(&vmem.mutex);
	return found;
}

CUresult fgv_vmem_free(CUdeviceptr address, size_t bytes)
{
	struct range *range;
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_first(&lane, "virtual memory");

	if (res)
		return res;
	range = take(&vmem.reservations, address, bytes);
	res = range ? fgv_call_address_free(lane, address) : CUDA_ERROR_INVALID_VALUE;
	fgv_lane_leave(lane);
	if (!res || !range || !insert(&vmem.reservations, range))
		free(range);
	return res;
}

/* --- Mappings --- */

static CUresult map_on(struct fgv_lane *lane, struct range *wanted, uint64_t offset)
{
	CUresult res = fgv_call_memory_map(lane, wanted->start, wanted->len, offset,
					   fgv_vmem_host_handle(wanted->memory));

	if (res)
		return res;
	if (!insert(&vmem.mappings, wanted))
		return CUDA_ERROR_UNKNOWN;
	if (!fgv_addrmap_add(wanted->start, wanted->len, FGV_RANGE_MAPPED))
		return CUDA_SUCCESS;
	take(&vmem.mappings, wanted->start, wanted->len);
	fgv_call_memory_unmap(lane, wanted->start, wanted->len);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_vmem_map(CUdeviceptr address, size_t bytes, size_t offset,
		      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct range *made;
	struct fgv_lane *lane;
	CUresult res;

	if (!bytes || flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_first(&lane, "virtual memory");
	if (res)
		return res;
	made = new_range(address, bytes);
	res = CUDA_ERROR_OUT_OF_MEMORY;
	if (made) {
		made->memory = fgv_vmem_get(handle);
		res = made->memory ? map_on(lane, made, offset) : CUDA_ERROR_INVALID_VALUE;
	}
	if (res && made && made->memory)
		fgv_vmem_put(lane, made->memory);
	fgv_lane_leave(lane);
	if (res)
		free(made);
	return res;
}

/* The mappings of a span go, which the host has unmapped. */
static void forget(struct fgv_lane *lane, uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes;

	while (address < end) {
		struct range *found;

		pthread_mutex_lock(&vmem.mutex);
		found = find_locked(&vmem.mappings, address);
		if (found)
			RB_REMOVE(ranges, &vmem.mappings, found);
		pthread_mutex_unlock(&vmem.mutex);
		if (!found)
			return;
		address = found->start + found->len;
		fgv_vmem_put(lane, found->memory);
		free(found);
	}
}

/* The first of whole mappings that fill the span side by side; or NULL. */
static struct range *find_whole_locked(uint64_t address, uint64_t bytes)
{
	struct range *first = find_locked(&vmem.mappings, address), *at = first;

	while (at && at->start == address && at->len <= bytes) {
		address += at->len;
		bytes -= at->len;
		if (!bytes)
			return first;
		at = RB_NEXT(ranges, &vmem.mappings, at);
	}
	return NULL;
}

/* Copies find them no more. */
static bool hide(uint64_t address, uint64_t bytes)
{
	struct range *at;

	pthread_mutex_lock(&vmem.mutex);
	at = find_whole_locked(address, bytes);
	for (struct range *range = at; range && range->start - address < bytes;
	     range = RB_NEXT(ranges, &vmem.mappings, range))
		fgv_addrmap_remove(range->start, FGV_RANGE_MAPPED);
	pthread_mutex_unlock(&vmem.mutex);
	return at;
}

/* Reserved, and nothing is mapped there: the driver has nothing against unmapping that. */
static bool is_bare(uint64_t address, uint64_t bytes)
{
	struct range probe = {.start = address}, *reservation, *next;
	bool bare;

	pthread_mutex_lock(&vmem.mutex);
	reservation = find_locked(&vmem.reservations, address);
	next = RB_NFIND(ranges, &vmem.mappings, &probe);
	bare = reservation && bytes <= reservation->start + reservation->len - address &&
	       !find_locked(&vmem.mappings, address) && (!next || next->start - address >= bytes);
	pthread_mutex_unlock(&vmem.mutex);
	return bare;
}

CUresult fgv_vmem_unmap(CUdeviceptr address, size_t bytes)
{
	struct fgv_lane *lane;
	CUresult res = bytes ? fgv_capturing_check_unsafe() : CUDA_ERROR_INVALID_VALUE;

	if (!res)
		res = fgv_context_enter_first(&lane, "virtual memory");
	if (res)
		return res;
	if (hide(address, bytes)) {
		res = fgv_call_memory_unmap(lane, address, bytes);
		if (!res)
			forget(lane, address, bytes);
	} else if (!is_bare(address, bytes)) {
		res = CUDA_ERROR_INVALID_VALUE;
	}
	fgv_lane_leave(lane);
	return res;
}

/* --- Access --- */

/* The last word on the device of those in @list; -1: none. */
static CUresult read_access(const CUmemAccessDesc *list, size_t count, int *flags)
{
	*flags = -1;
	for (size_t i = 0; i < count; i++) {
		CUresult res = fgv_vmem_check_location(&list[i].location);

		if (res)
			return res;
		if (list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		    list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		*flags = (int)list[i].flags;
	}
	return CUDA_SUCCESS;
}

/* *@is_less: some of it could be used in ways that @access does not allow. */
static bool look_at_span(uint64_t address, uint64_t bytes, CUmemAccess_flags access, bool *is_less)
{
	struct range *first;

	*is_less = false;
	pthread_mutex_lock(&vmem.mutex);
	first = find_whole_locked(address, bytes);
	for (struct range *range = first; range && range->start - address < bytes;
	     range = RB_NEXT(ranges, &vmem.mappings, range))
		*is_less |= range->access > access;
	pthread_mutex_unlock(&vmem.mutex);
	return first;
}

static void note_access(uint64_t address, uint64_t bytes, CUmemAccess_flags access)
{
	pthread_mutex_lock(&vmem.mutex);
	for (struct range *range = find_whole_locked(address, bytes);
	     range && range->start - address < bytes;
	     range = RB_NEXT(ranges, &vmem.mappings, range))
		range->access = access;
	pthread_mutex_unlock(&vmem.mutex);
}

/* What may be done less with it than before waits for the work that may do more. */
static CUresult set_on(struct fgv_lane *lane, uint64_t address, uint64_t bytes,
		       CUmemAccess_flags access)
{
	CUresult res = CUDA_SUCCESS;
	bool is_less;

	if (!look_at_span(address, bytes, access, &is_less))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_less)
		res = fgv_sync_device(lane);
	if (!res)
		res = fgv_call_memory_access(lane, address, bytes, (uint32_t)access);
	if (!res)
		note_access(address, bytes, access);
	return res;
}

CUresult fgv_vmem_set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *list,
			     size_t count)
{
	struct fgv_lane *lane;
	CUresult res = CUDA_ERROR_INVALID_VALUE;
	int flags;

	if (bytes && list && count)
		res = read_access(list, count, &flags);
	if (!res)
		res = fgv_context_enter_first(&lane, "virtual memory");
	if (res)
		return res;
	res = set_on(lane, address, bytes, (CUmemAccess_flags)flags);
	fgv_lane_leave(lane);
	return res;
}

bool fgv_vmem_look(CUdeviceptr address, struct fgv_vmem_view *view)
{
	const struct range *mapping, *reservation;

	pthread_mutex_lock(&vmem.mutex);
	mapping = find_locked(&vmem.mappings, address);
	reservation = mapping ? find_locked(&vmem.reservations, address) : NULL;
	if (reservation)
		*view = (struct fgv_vmem_view){
			.start = reservation->start,
			.len = reservation->len,
			.handle_types = fgv_vmem_handle_types(mapping->memory),
			.access = mapping->access,
		};
	pthread_mutex_unlock(&vmem.mutex);
	return reservation;
}

CUresult fgv_vmem_get_access(unsigned long long *flags, const CUmemLocation *location,
			     CUdeviceptr address)
{
	struct fgv_vmem_view view;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (flags && location)
		res = fgv_vmem_check_location(location);
	if (!res && !fgv_vmem_look(address, &view))
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*flags = view.access;
	return res;
}

CUresult fgv_vmem_retain(CUmemGenericAllocationHandle *handle, CUdeviceptr address)
{
	const struct range *mapping;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmem.mutex);
	mapping = find_locked(&vmem.mappings, address);
	if (mapping)
		*handle = fgv_vmem_add_handle(mapping->memory);
	pthread_mutex_unlock(&vmem.mutex);
	return mapping ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
