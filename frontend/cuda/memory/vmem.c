/*
 * Reservations and mappings, in trees by address. The host judges what may be mapped where; what
 * it has done is entered here, and mappings in the address map as well, which copies ask.
 *
 * Addresses are the session's, and its first device reserves them. A mapping is its memory's
 * device's; another device that may use it has been given access on a lane of its own, and gives
 * that up before the mapping goes.
 */
#include "frontend/cuda/memory/vmem_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/vmem_range.h"
#include "frontend/cuda/stream/capturing.h"

/* Each further one has to miss the program's memory at another place. */
#define ATTEMPTS 16

static struct {
	pthread_mutex_t mutex;
	struct fgv_vmem_ranges reservations;
	struct fgv_vmem_ranges mappings;
} vmem = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* False where there is something already: then the host's word is not to be relied on. */
static bool insert(struct fgv_vmem_ranges *ranges, struct fgv_vmem_range *range)
{
	bool is_free;

	pthread_mutex_lock(&vmem.mutex);
	is_free = fgv_vmem_range_is_free(ranges, range);
	if (is_free)
		RB_INSERT(fgv_vmem_ranges, ranges, range);
	pthread_mutex_unlock(&vmem.mutex);
	return is_free;
}

/* --- Reservations --- */

/* As for memory of the device's own choice (devmem.c): where the program has nothing. */
static CUresult reserve_apart(struct fgv_lane *lane, const struct fgv_vmem_range *wanted,
			      uint64_t alignment, uint64_t *address)
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
	struct fgv_vmem_range *made;
	CUresult res;

	if (!address || !bytes || flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_on(0, &lane);
	if (res)
		return res;
	made = fgv_vmem_range_create(hint, bytes);
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
	found = fgv_vmem_range_find(&vmem.reservations, address);
	pthread_mutex_unlock(&vmem.mutex);
	return found;
}

/* Takes the range of exactly this start and length out; or NULL. */
static struct fgv_vmem_range *take(struct fgv_vmem_ranges *ranges, uint64_t start, uint64_t len)
{
	struct fgv_vmem_range *found;

	pthread_mutex_lock(&vmem.mutex);
	found = fgv_vmem_range_find(ranges, start);
	if (found && (found->start != start || found->len != len))
		found = NULL;
	if (found)
		RB_REMOVE(fgv_vmem_ranges, ranges, found);
	pthread_mutex_unlock(&vmem.mutex);
	return found;
}

CUresult fgv_vmem_free(CUdeviceptr address, size_t bytes)
{
	struct fgv_vmem_range *range;
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(0, &lane);

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

static CUresult map_on(struct fgv_lane *lane, struct fgv_vmem_range *wanted, uint64_t offset)
{
	CUresult res = fgv_call_memory_map(lane, wanted->start, wanted->len, offset,
					   fgv_vmem_host_handle(wanted->memory));

	if (res)
		return res;
	if (!insert(&vmem.mappings, wanted))
		return CUDA_ERROR_UNKNOWN;
	if (!fgv_addrmap_add_on(lane->client->device, wanted->start, wanted->len, FGV_RANGE_MAPPED))
		return CUDA_SUCCESS;
	take(&vmem.mappings, wanted->start, wanted->len);
	fgv_call_memory_unmap(lane, wanted->start, wanted->len);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult map_memory(struct fgv_vmem_range *wanted, uint64_t offset)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(wanted->device, &lane);

	if (res)
		return res;
	res = map_on(lane, wanted, offset);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_vmem_map(CUdeviceptr address, size_t bytes, size_t offset,
		      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct fgv_vmem_memory *memory;
	struct fgv_vmem_range *made;
	CUresult res;

	if (!bytes || flags)
		return CUDA_ERROR_INVALID_VALUE;
	memory = fgv_vmem_get(handle);
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	made = fgv_vmem_range_create(address, bytes);
	res = CUDA_ERROR_OUT_OF_MEMORY;
	if (made) {
		made->memory = memory;
		made->device = fgv_vmem_device(memory);
		res = map_memory(made, offset);
	}
	if (res) {
		fgv_vmem_put(memory);
		free(made);
	}
	return res;
}

/* The mappings of a span go, which the host has unmapped. */
static void forget(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes;

	while (address < end) {
		struct fgv_vmem_range *found;

		pthread_mutex_lock(&vmem.mutex);
		found = fgv_vmem_range_find(&vmem.mappings, address);
		if (found)
			RB_REMOVE(fgv_vmem_ranges, &vmem.mappings, found);
		pthread_mutex_unlock(&vmem.mutex);
		if (!found)
			return;
		address = found->start + found->len;
		fgv_vmem_put(found->memory);
		free(found);
	}
}

/* Mappings side by side of one device, to which the same others have access. */
struct run {
	uint64_t start;
	uint64_t len;
	uint32_t device;
	uint32_t others; /* bits */
};

/* The first run of what is left of a span, from @address on; false: there is nothing. */
static bool find_run(uint64_t address, uint64_t bytes, struct run *run)
{
	struct fgv_vmem_range *at;

	*run = (struct run){.start = address};
	pthread_mutex_lock(&vmem.mutex);
	for (at = fgv_vmem_range_find(&vmem.mappings, address); at && run->len < bytes;
	     at = RB_NEXT(fgv_vmem_ranges, &vmem.mappings, at)) {
		uint32_t device = at->device, others = fgv_vmem_range_others(at);

		if (at->start != address + run->len ||
		    (run->len && (device != run->device || others != run->others)))
			break;
		run->device = device;
		run->others = others;
		run->len += at->len;
	}
	pthread_mutex_unlock(&vmem.mutex);
	return run->len;
}

/* Copies find them no more. */
static bool hide(uint64_t address, uint64_t bytes)
{
	struct fgv_vmem_range *at;

	pthread_mutex_lock(&vmem.mutex);
	at = fgv_vmem_range_find_whole(&vmem.mappings, address, bytes);
	for (struct fgv_vmem_range *range = at; range && range->start - address < bytes;
	     range = RB_NEXT(fgv_vmem_ranges, &vmem.mappings, range))
		fgv_addrmap_remove(range->start, FGV_RANGE_MAPPED);
	pthread_mutex_unlock(&vmem.mutex);
	return at;
}

/* Reserved, and nothing is mapped there: the driver has nothing against unmapping that. */
static bool is_bare(uint64_t address, uint64_t bytes)
{
	struct fgv_vmem_range probe = {.start = address}, *reservation, *next;
	bool bare;

	pthread_mutex_lock(&vmem.mutex);
	reservation = fgv_vmem_range_find(&vmem.reservations, address);
	next = RB_NFIND(fgv_vmem_ranges, &vmem.mappings, &probe);
	bare = reservation && bytes <= reservation->start + reservation->len - address &&
	       !fgv_vmem_range_find(&vmem.mappings, address) &&
	       (!next || next->start - address >= bytes);
	pthread_mutex_unlock(&vmem.mutex);
	return bare;
}

/* Of the mappings' own device, or of another one the access. Waits for what that has to do. */
static CUresult unmap_on(uint32_t device, const struct run *run)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(device, &lane);

	if (res)
		return res;
	res = fgv_call_memory_unmap(lane, run->start, run->len);
	fgv_lane_leave(lane);
	return res;
}

/* Also where the work of a device that had access has failed, which the caller is told. */
static CUresult unmap_run(const struct run *run)
{
	CUresult others = CUDA_SUCCESS, res;

	for (uint32_t i = 0; i < FGV_DEVICES_MAX; i++) {
		res = run->others >> i & 1 ? unmap_on(i, run) : CUDA_SUCCESS;
		if (!others)
			others = res;
	}
	res = unmap_on(run->device, run);
	if (res)
		return res;
	forget(run->start, run->len);
	return others;
}

static CUresult unmap_all(uint64_t address, uint64_t bytes)
{
	CUresult res = CUDA_SUCCESS;
	struct run run;

	for (; !res && bytes && find_run(address, bytes, &run); address += run.len) {
		bytes -= run.len;
		res = unmap_run(&run);
	}
	return res;
}

CUresult fgv_vmem_unmap(CUdeviceptr address, size_t bytes)
{
	CUresult res = bytes ? fgv_capturing_check_unsafe() : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	if (hide(address, bytes))
		return unmap_all(address, bytes);
	return is_bare(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- Access --- */

#define NO_WORD UINT8_MAX

/* The last word on each device of those in @list, or NO_WORD. */
static CUresult read_access(const CUmemAccessDesc *list, size_t count,
			    uint8_t flags[FGV_DEVICES_MAX])
{
	memset(flags, NO_WORD, FGV_DEVICES_MAX);
	for (size_t i = 0; i < count; i++) {
		CUresult res = fgv_vmem_check_location(&list[i].location);

		if (res)
			return res;
		if (list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		    list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		flags[list[i].location.id] = (uint8_t)list[i].flags;
	}
	return CUDA_SUCCESS;
}

/* *@is_less: @device could use some of it in ways that @access does not allow. */
static bool look_at_span(uint64_t address, uint64_t bytes, uint32_t device, uint8_t access,
			 bool *is_less)
{
	struct fgv_vmem_range *first;

	*is_less = false;
	pthread_mutex_lock(&vmem.mutex);
	first = fgv_vmem_range_find_whole(&vmem.mappings, address, bytes);
	for (struct fgv_vmem_range *range = first; range && range->start - address < bytes;
	     range = RB_NEXT(fgv_vmem_ranges, &vmem.mappings, range))
		*is_less |= range->access[device] > access;
	pthread_mutex_unlock(&vmem.mutex);
	return first;
}

static void note_access(uint64_t address, uint64_t bytes, uint32_t device, uint8_t access)
{
	pthread_mutex_lock(&vmem.mutex);
	for (struct fgv_vmem_range *range =
		     fgv_vmem_range_find_whole(&vmem.mappings, address, bytes);
	     range && range->start - address < bytes;
	     range = RB_NEXT(fgv_vmem_ranges, &vmem.mappings, range))
		range->access[device] = access;
	pthread_mutex_unlock(&vmem.mutex);
}

/* The device may do nothing with it any more; access to what is another one's is given up. */
static CUresult set_none(struct fgv_lane *lane, uint64_t address, uint64_t bytes)
{
	uint32_t device = lane->client->device;
	CUresult res = CUDA_SUCCESS;
	struct run run;

	for (; !res && bytes && find_run(address, bytes, &run); address += run.len) {
		bytes -= run.len;
		if (run.device == device)
			res = fgv_call_memory_access(lane, run.start, run.len,
						     CU_MEM_ACCESS_FLAGS_PROT_NONE);
		else if (run.others >> device & 1)
			res = fgv_call_memory_unmap(lane, run.start, run.len);
	}
	return res;
}

/* What may be done less with it than before waits for the work that may do more. */
static CUresult set_on(struct fgv_lane *lane, uint64_t address, uint64_t bytes, uint8_t access)
{
	uint32_t device = lane->client->device;
	CUresult res = CUDA_SUCCESS;
	bool is_less;

	if (!look_at_span(address, bytes, device, access, &is_less))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_less)
		res = fgv_sync_device(lane);
	if (!res && access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
		res = set_none(lane, address, bytes);
	else if (!res)
		res = fgv_call_memory_access(lane, address, bytes, access);
	if (!res)
		note_access(address, bytes, device, access);
	return res;
}

CUresult fgv_vmem_set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *list,
			     size_t count)
{
	uint8_t flags[FGV_DEVICES_MAX];
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (bytes && list && count)
		res = read_access(list, count, flags);
	for (uint32_t device = 0; device < FGV_DEVICES_MAX && !res; device++) {
		struct fgv_lane *lane;

		if (flags[device] == NO_WORD)
			continue;
		res = fgv_context_enter_on(device, &lane);
		if (res)
			break;
		res = set_on(lane, address, bytes, flags[device]);
		fgv_lane_leave(lane);
	}
	return res;
}

bool fgv_vmem_look(CUdeviceptr address, int device, struct fgv_vmem_view *view)
{
	const struct fgv_vmem_range *mapping, *reservation;

	pthread_mutex_lock(&vmem.mutex);
	mapping = fgv_vmem_range_find(&vmem.mappings, address);
	reservation = mapping ? fgv_vmem_range_find(&vmem.reservations, address) : NULL;
	if (reservation)
		*view = (struct fgv_vmem_view){
			.start = reservation->start,
			.len = reservation->len,
			.handle_types = fgv_vmem_handle_types(mapping->memory),
			.access = (CUmemAccess_flags)mapping->access[device],
		};
	pthread_mutex_unlock(&vmem.mutex);
	return reservation;
}

uint32_t fgv_vmem_user(CUdeviceptr address, uint32_t device)
{
	const struct fgv_vmem_range *mapping;
	/* Of what another program shares (ipc.c) no mapping is known here. */
	uint32_t owner = fgv_addrmap_device(address);

	if (fgv_session_count() == 1)
		return 0;
	pthread_mutex_lock(&vmem.mutex);
	mapping = fgv_vmem_range_find(&vmem.mappings, address);
	if (mapping) {
		owner = mapping->device;
		if (!mapping->access[device] && !mapping->access[owner] &&
		    fgv_vmem_range_others(mapping))
			owner = (uint32_t)__builtin_ctz(fgv_vmem_range_others(mapping));
		if (mapping->access[device])
			owner = device;
	}
	pthread_mutex_unlock(&vmem.mutex);
	return owner;
}

CUresult fgv_vmem_get_access(unsigned long long *flags, const CUmemLocation *location,
			     CUdeviceptr address)
{
	struct fgv_vmem_view view;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (flags && location)
		res = fgv_vmem_check_location(location);
	if (!res && !fgv_vmem_look(address, location->id, &view))
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		*flags = view.access;
	return res;
}

CUresult fgv_vmem_retain(CUmemGenericAllocationHandle *handle, CUdeviceptr address)
{
	const struct fgv_vmem_range *mapping;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmem.mutex);
	mapping = fgv_vmem_range_find(&vmem.mappings, address);
	if (mapping)
		*handle = fgv_vmem_add_handle(mapping->memory);
	pthread_mutex_unlock(&vmem.mutex);
	return mapping ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
