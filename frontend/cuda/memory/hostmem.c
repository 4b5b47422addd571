/*
 * The table of such memory, by address, and allocating it.
 *
 * A new allocation is mapped where this process has room, and the host asked whether it
 * has room there too. To make that likely, HINT is where neither Linux nor a CUDA driver
 * puts anything by itself; the kernel takes it as a wish.
 */
#define _GNU_SOURCE
#include "frontend/cuda/memory/hostmem_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/log.h"
#include "common/util.h"

/* Behind the soft GPU's addresses, before those of programs. */
#define HINT 0x400000000000ull

/* Each further one has to miss what both processes have at another place. */
#define ATTEMPTS 16

RB_HEAD(memories, fgv_hostmem);

static struct {
	pthread_mutex_t mutex;
	struct memories memories; /* their pages do not overlap */
	uint64_t next_hint;	  /* atomic */
	uint32_t short_said;	  /* atomic: that the window is full */
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER, .next_hint = HINT};

static int compare(const struct fgv_hostmem *a, const struct fgv_hostmem *b)
{
	return a->base < b->base ? -1 : a->base > b->base;
}

/* RB_GENERATE_STATIC() needs an __unused of BSD's; not every function is used. */
#define LOCAL static __attribute__((unused))
RB_GENERATE_INTERNAL(memories, fgv_hostmem, link, compare, LOCAL)

/* The memory whose pages start last at or before @address. */
static struct fgv_hostmem *find_before_locked(uint64_t address)
{
	struct fgv_hostmem key = {.base = address};
	struct fgv_hostmem *after = RB_NFIND(memories, &table.memories, &key);

	if (after && after->base == address)
		return after;
	return after ? RB_PREV(memories, &table.memories, after)
		     : RB_MAX(memories, &table.memories);
}

static struct fgv_hostmem *find_locked(uint64_t address)
{
	struct fgv_hostmem *memory = find_before_locked(address);

	if (!memory || address < memory->address || address - memory->address >= memory->bytes)
		return NULL;
	return memory;
}

CUresult fgv_hostmem_insert(struct fgv_hostmem *memory)
{
	CUresult res = CUDA_SUCCESS;
	struct fgv_hostmem *before;

	pthread_mutex_lock(&table.mutex);
	before = find_before_locked(memory->base + memory->len - 1);
	if (before && before->base + before->len > memory->base)
		res = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (fgv_addrmap_add(memory->address, memory->bytes, memory->kind))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	else
		RB_INSERT(memories, &table.memories, memory);
	pthread_mutex_unlock(&table.mutex);
	return res;
}

void fgv_hostmem_remove(struct fgv_hostmem *memory)
{
	pthread_mutex_lock(&table.mutex);
	RB_REMOVE(memories, &table.memories, memory);
	fgv_addrmap_remove(memory->address, memory->kind);
	pthread_mutex_unlock(&table.mutex);
}

int fgv_hostmem_put_in_place(struct fgv_hostmem *memory, int window_fd)
{
	int err = 0;

	pthread_mutex_lock(&table.mutex);
	if (mmap(fgv_hostmem_pointer(memory->base), memory->len, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, window_fd, (off_t)memory->off) == MAP_FAILED)
		err = -errno;
	else
		memory->is_in_place = true;
	pthread_mutex_unlock(&table.mutex);
	return err;
}

/* Of several threads that free it, one gets it. */
static struct fgv_hostmem *take(uint64_t address, enum fgv_range_kind kind)
{
	struct fgv_hostmem *memory;

	pthread_mutex_lock(&table.mutex);
	memory = find_locked(address);
	if (memory && (memory->address != address || memory->kind != kind))
		memory = NULL;
	if (memory) {
		RB_REMOVE(memories, &table.memories, memory);
		fgv_addrmap_remove(memory->address, memory->kind);
	}
	pthread_mutex_unlock(&table.mutex);
	return memory;
}

static void *next_hint(uint64_t len)
{
	uint64_t hint = __atomic_fetch_add(&table.next_hint, len, __ATOMIC_RELAXED);

	return fgv_hostmem_pointer(hint);
}

/* Finds an address for @memory's pages that is free in both processes. */
static CUresult place(struct fgv_lane *lane, struct fgv_hostmem *memory)
{
	void *misfits[ATTEMPTS];
	unsigned count = 0;
	CUresult res;

	do {
		void *at = mmap(next_hint(memory->len), memory->len, PROT_READ | PROT_WRITE,
				MAP_SHARED, lane->client->window_fd, (off_t)memory->off);

		res = CUDA_ERROR_OUT_OF_MEMORY;
		if (at == MAP_FAILED)
			break;
		memory->base = memory->address = (uint64_t)(uintptr_t)at;
		res = fgv_call_host_map(lane, memory->base, memory->off, memory->len);
		if (res)
			misfits[count++] = at;
	} while (res == CUDA_ERROR_ALREADY_MAPPED && count < ATTEMPTS);
	while (count)
		munmap(misfits[--count], memory->len);
	return res == CUDA_ERROR_ALREADY_MAPPED ? CUDA_ERROR_OUT_OF_MEMORY : res;
}

/* Takes its pages from the host, where the transport allows that; 0, or they are as they were. */
static int remove_pages(const struct fgv_lane *lane, const struct fgv_hostmem *memory)
{
	return madvise(lane->client->window.base + memory->off, memory->len, MADV_REMOVE);
}

/*
 * What has been in the arena before would be seen. CUDA does not promise zeros, but programs
 * count from them, as new memory of NVIDIA's runtime has nothing else.
 */
static void clear(const struct fgv_lane *lane, const struct fgv_hostmem *memory)
{
	if (remove_pages(lane, memory))
		memset(lane->client->window.base + memory->off, 0, memory->len);
}

/* What the program had of it is gone; the rest of it goes. */
static void release(struct fgv_lane *lane, struct fgv_hostmem *memory)
{
	remove_pages(lane, memory);
	free(memory->hints);
	fgv_arena_free(lane->client->arena, memory->off);
	free(memory);
}

CUresult fgv_hostmem_short(const struct fgv_client *client, uint64_t bytes)
{
	const struct fgv_window *window = &client->window;

	if (!__atomic_exchange_n(&table.short_said, 1, __ATOMIC_RELAXED))
		fgv_warning("no room for %" PRIu64
			    " bytes of pinned or mapped memory: a session of "
			    "VM %s has %" PRIu64 " for all of it (key \"window\" of the host's "
			    "configuration)",
			    bytes, client->vm, window->arena_len - window->staging_len);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fgv_hostmem_alloc(struct fgv_lane *lane, uint64_t bytes, enum fgv_range_kind kind,
			   unsigned flags, uint64_t *address)
{
	struct fgv_hostmem *memory = malloc(sizeof(*memory));
	CUresult res;

	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*memory = (struct fgv_hostmem){
		.bytes = bytes,
		.kind = kind,
		.flags = flags,
		.device = fgv_thread_self.device,
	};
	if (fgv_arena_alloc(lane->client->arena, bytes, &memory->off)) {
		free(memory);
		return fgv_hostmem_short(lane->client, bytes);
	}
	memory->len = fgv_align_up(bytes, FGV_PAGE_BYTES);
	clear(lane, memory);
	res = place(lane, memory);
	if (!res) {
		/* As with the window: a forked child gets none of it. */
		madvise(fgv_hostmem_pointer(memory->base), memory->len, MADV_DONTFORK);
		*address = memory->address;
		res = fgv_hostmem_insert(memory);
		if (!res)
			return CUDA_SUCCESS;
		fgv_call_host_unmap(lane, memory->base);
		munmap(fgv_hostmem_pointer(memory->base), memory->len);
	}
	release(lane, memory);
	return res;
}

CUresult fgv_hostmem_make_private(const struct fgv_hostmem *memory, const void *from)
{
	void *copy =
		mmap(NULL, memory->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, from, memory->len);
	if (mremap(copy, memory->len, memory->len, MREMAP_MAYMOVE | MREMAP_FIXED,
		   fgv_hostmem_pointer(memory->base)) == MAP_FAILED) {
		munmap(copy, memory->len);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/*
 * The host may answer with the failure of earlier work, but has done it all the same. A
 * session that has ended uses its arena no more. Only where a capture forbids to wait the
 * host was not asked, and all stays as it was.
 */
static CUresult give_back(struct fgv_lane *lane, struct fgv_hostmem *memory)
{
	CUresult res = fgv_call_host_unmap(lane, memory->base), kept = CUDA_SUCCESS;

	if (res == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
		fgv_hostmem_insert(memory);
		return res;
	}
	if (memory->kind == FGV_RANGE_REGISTERED)
		kept = fgv_hostmem_make_private(memory, lane->client->window.base + memory->off);
	else
		munmap(fgv_hostmem_pointer(memory->base), memory->len);
	/* Without memory for a copy the program goes on with the arena's pages. */
	if (kept)
		free(memory);
	else
		release(lane, memory);
	return res ? res : kept;
}

/* --- Other devices than the first ---------------------------------------------- */

static CUresult ask_other(uint32_t device, uint64_t base,
			  CUresult (*call)(struct fgv_lane *, uint64_t))
{
	struct fgv_lane *lane;
	CUresult res = fgv_lane_enter_on(device, &lane);

	if (res)
		return res;
	res = call(lane, base);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_hostmem_show(uint64_t address)
{
	CUresult res = CUDA_SUCCESS;
	struct fgv_hostmem *memory;
	uint64_t base = 0;
	uint32_t device = 1;

	pthread_mutex_lock(&table.mutex);
	memory = find_locked(address);
	if (memory)
		base = memory->base;
	pthread_mutex_unlock(&table.mutex);
	for (; device < fgv_session_count() && !res; device++)
		res = ask_other(device, base, fgv_call_host_show);
	for (; res && device > 1; device--)
		ask_other(device - 1, base, fgv_call_host_unmap);
	return res;
}

/* Where a capture forbids to wait it does so on the first device that is asked. */
CUresult fgv_hostmem_hide(uint64_t address, enum fgv_range_kind kind)
{
	CUresult res = CUDA_SUCCESS, one = CUDA_SUCCESS;
	struct fgv_hostmem *memory;
	uint64_t base = 0;

	pthread_mutex_lock(&table.mutex);
	memory = find_locked(address);
	if (memory && memory->address == address && memory->kind == kind)
		base = memory->base;
	pthread_mutex_unlock(&table.mutex);
	for (uint32_t i = 1; base && i < fgv_session_count(); i++) {
		one = ask_other(i, base, fgv_call_host_unmap);
		if (one == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			return one;
		res = res ? res : one;
	}
	return res;
}

CUresult fgv_hostmem_free(struct fgv_lane *lane, uint64_t address, enum fgv_range_kind kind)
{
	struct fgv_hostmem *memory = take(address, kind);

	if (memory)
		return give_back(lane, memory);
	return kind == FGV_RANGE_REGISTERED ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
					    : CUDA_ERROR_INVALID_VALUE;
}

bool fgv_hostmem_flags(uint64_t address, enum fgv_range_kind kind, unsigned *flags)
{
	struct fgv_hostmem *memory;

	pthread_mutex_lock(&table.mutex);
	memory = find_locked(address);
	if (memory && memory->kind == kind)
		*flags = memory->flags;
	else
		memory = NULL;
	pthread_mutex_unlock(&table.mutex);
	return memory;
}

/* The first of the pages' hints, all made if there are none; NULL: no memory. */
static struct fgv_page_hints *need_hints(struct fgv_hostmem *memory)
{
	if (!memory->hints)
		memory->hints = calloc(memory->len / FGV_PAGE_BYTES, sizeof(*memory->hints));
	return memory->hints;
}

CUresult fgv_hostmem_hints(uint64_t address, uint64_t bytes,
			   void (*each)(struct fgv_page_hints *hints, void *arg), void *arg)
{
	CUresult res = CUDA_ERROR_INVALID_VALUE;
	struct fgv_hostmem *memory;

	pthread_mutex_lock(&table.mutex);
	memory = find_locked(address);
	if (memory && fgv_range_is_managed(memory->kind) && bytes &&
	    bytes <= memory->bytes - (address - memory->address)) {
		uint64_t from = (address - memory->base) / FGV_PAGE_BYTES;
		uint64_t last = (address + bytes - 1 - memory->base) / FGV_PAGE_BYTES;

		res = need_hints(memory) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		for (uint64_t page = from; !res && page <= last; page++)
			each(&memory->hints[page], arg);
	}
	pthread_mutex_unlock(&table.mutex);
	return res;
}

bool fgv_hostmem_first(uint32_t device, uint64_t *address, enum fgv_range_kind *kind)
{
	struct fgv_hostmem *memory;

	pthread_mutex_lock(&table.mutex);
	RB_FOREACH(memory, memories, &table.memories) {
		/* A variable goes with its module. */
		if (memory->device == device && memory->kind != FGV_RANGE_MANAGED_VARIABLE)
			break;
	}
	if (memory) {
		*address = memory->address;
		*kind = memory->kind;
	}
	pthread_mutex_unlock(&table.mutex);
	return memory;
}

void fgv_hostmem_keep(uint64_t address)
{
	struct fgv_hostmem *memory;

	pthread_mutex_lock(&table.mutex);
	memory = find_locked(address);
	if (memory)
		memory->device = FGV_DEVICES_MAX;
	pthread_mutex_unlock(&table.mutex);
}

void fgv_hostmem_fork_begin(void)
{
	pthread_mutex_lock(&table.mutex);
}

/* What is mapped of a device is not there in the child, so it is mapped anew. */
static void keep_in_child(const struct fgv_hostmem *memory, int window_fd)
{
	void *pages = mmap(NULL, memory->len, PROT_READ, MAP_SHARED, window_fd, (off_t)memory->off);

	if (pages == MAP_FAILED)
		return;
	fgv_hostmem_make_private(memory, pages);
	munmap(pages, memory->len);
}

void fgv_hostmem_fork_end(bool is_child)
{
	struct fgv_client *client = fgv_session_existing();
	struct fgv_hostmem *memory;

	if (is_child && client) {
		RB_FOREACH(memory, memories, &table.memories) {
			if (memory->kind == FGV_RANGE_REGISTERED && memory->is_in_place)
				keep_in_child(memory, client->window_fd);
		}
	}
	pthread_mutex_unlock(&table.mutex);
}
