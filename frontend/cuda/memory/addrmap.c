/*
 * The ranges, in a red-black tree by address, and each thread's copy of the one it
 * found last. A copy is good as long as no range has been removed since,
 * which the generation says; it is read and written with relaxed atomics, as whoever
 * uses memory while another thread frees it has lost already.
 */
#define _GNU_SOURCE
#include "frontend/cuda/memory/addrmap.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "api/wire.h"
#include "common/util.h"
#include "frontend/client/thread.h"
#include "frontend/cuda/context/ctx_stack.h"

struct range {
	RB_ENTRY(range) link;
	uint64_t start;
	uint64_t len;
	uint64_t id;
	CUcontext context;
	enum fgv_range_kind kind;
	uint32_t device;
};

RB_HEAD(ranges, range);

static struct {
	pthread_mutex_t mutex;
	struct ranges ranges;
	uint64_t ids;
	uint64_t generation;	/* atomic; goes up when a range is removed */
	uint64_t reserved_base; /* atomic, as is the length, which is written last */
	uint64_t reserved_len;
	struct ranges claimed;	/* beside that; they do not overlap */
	uint64_t claimed_start; /* atomic: none of these begins before it, ... */
	uint64_t claimed_end;	/* ... and none ends behind this */
} map = {.mutex = PTHREAD_MUTEX_INITIALIZER, .generation = 1, .claimed_start = UINT64_MAX};

/* The range found last; good while no other has been removed. */
static __thread struct {
	uint64_t generation; /* 0: none yet */
	struct fgv_range_view view;
} last;

static int compare(const struct range *a, const struct range *b)
{
	return a->start < b->start ? -1 : a->start > b->start;
}

/* RB_GENERATE_STATIC() needs an __unused of BSD's; not every function is used. */
#define LOCAL static __attribute__((unused))
RB_GENERATE_INTERNAL(ranges, range, link, compare, LOCAL)

static void remove_locked(struct range *range)
{
	__atomic_store_n(&map.generation, map.generation + 1, __ATOMIC_RELAXED);
	RB_REMOVE(ranges, &map.ranges, range);
	free(range);
}

/* The range that starts last at or before @address. */
static struct range *find_before_locked(struct ranges *ranges, uint64_t address)
{
	struct range key = {.start = address};
	struct range *after = RB_NFIND(ranges, ranges, &key);

	if (after && after->start == address)
		return after;
	return after ? RB_PREV(ranges, ranges, after) : RB_MAX(ranges, ranges);
}

static struct range *find_locked(uint64_t address)
{
	struct range *range = find_before_locked(&map.ranges, address);

	return range && address - range->start < range->len ? range : NULL;
}

/* What overlaps [start, start + len), which is not empty, goes. */
static void make_way_locked(uint64_t start, uint64_t len)
{
	struct range *range = find_locked(start);

	if (range)
		remove_locked(range);
	while ((range = find_before_locked(&map.ranges, start + len - 1)) && range->start >= start)
		remove_locked(range);
}

int fgv_addrmap_add_on(uint32_t device, uint64_t start, uint64_t len, enum fgv_range_kind kind)
{
	struct range *range;

	if (!len || start + len < start)
		return -EINVAL;
	range = malloc(sizeof(*range));
	if (!range)
		return -ENOMEM;
	*range = (struct range){
		.start = start,
		.len = len,
		.kind = kind,
		.context = fgv_ctx_top(),
		.device = device,
	};
	pthread_mutex_lock(&map.mutex);
	make_way_locked(start, len);
	range->id = ++map.ids;
	RB_INSERT(ranges, &map.ranges, range);
	pthread_mutex_unlock(&map.mutex);
	return 0;
}

int fgv_addrmap_add(uint64_t start, uint64_t len, enum fgv_range_kind kind)
{
	return fgv_addrmap_add_on(fgv_thread_self.device, start, len, kind);
}

int fgv_addrmap_remove(uint64_t start, enum fgv_range_kind kind)
{
	struct range *range;
	int err = -ENOENT;

	pthread_mutex_lock(&map.mutex);
	range = find_locked(start);
	if (range && range->start == start && range->kind == kind) {
		remove_locked(range);
		err = 0;
	}
	pthread_mutex_unlock(&map.mutex);
	return err;
}

static struct range *first_of_locked(uint32_t device, enum fgv_range_kind kind)
{
	struct range *range;

	RB_FOREACH(range, ranges, &map.ranges) {
		if (range->kind == kind && range->device == device)
			return range;
	}
	return NULL;
}

void fgv_addrmap_drain(uint32_t device, enum fgv_range_kind kind,
		       void (*each)(uint64_t start, void *arg), void *arg)
{
	struct range *range;

	pthread_mutex_lock(&map.mutex);
	while ((range = first_of_locked(device, kind))) {
		uint64_t start = range->start;

		remove_locked(range);
		if (each)
			each(start, arg);
	}
	pthread_mutex_unlock(&map.mutex);
}

/* Makes the range that holds @start this thread's last one; false: there is none. */
static bool find_again(uint64_t start)
{
	struct range *range;

	pthread_mutex_lock(&map.mutex);
	range = find_locked(start);
	if (range) {
		last.view = (struct fgv_range_view){range->start,   range->len,	 range->id,
						    range->context, range->kind, range->device};
		last.generation = map.generation;
	}
	pthread_mutex_unlock(&map.mutex);
	return range;
}

/* Whether mappings go on from the end of the one that @view is of until all of a span is covered.
 */
static bool are_joined(const struct fgv_range_view *view, uint64_t start, uint64_t len)
{
	uint64_t at = view->start + view->len, rest = len - (at - start);
	struct range *range = NULL;

	if (view->kind != FGV_RANGE_MAPPED)
		return false;
	pthread_mutex_lock(&map.mutex);
	do {
		range = find_locked(at);
		if (!range || range->kind != FGV_RANGE_MAPPED)
			break;
		at += range->len;
		rest -= fgv_min_u64(rest, range->len);
	} while (rest);
	pthread_mutex_unlock(&map.mutex);
	return !rest;
}

enum fgv_range_fit fgv_addrmap_look(uint64_t start, uint64_t len, struct fgv_range_view *view)
{
	if (last.generation != __atomic_load_n(&map.generation, __ATOMIC_RELAXED) ||
	    start - last.view.start >= last.view.len) {
		if (!find_again(start))
			return FGV_FIT_UNKNOWN;
	}
	*view = last.view;
	if (len <= view->len - (start - view->start) || are_joined(view, start, len))
		return FGV_FIT_INSIDE;
	return FGV_FIT_BEYOND;
}

uint32_t fgv_addrmap_device(uint64_t address)
{
	struct fgv_range_view view;

	if (fgv_addrmap_look(address, 1, &view) == FGV_FIT_UNKNOWN)
		return fgv_thread_self.device;
	return fgv_range_is_host(view.kind) ? 0 : view.device;
}

static int keep_free(uint64_t base, uint64_t len)
{
	void *wanted = (void *)(uintptr_t)base;
	void *got;

	got = mmap(wanted, len, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == MAP_FAILED)
		return -errno;
	/* Kernels before 4.17 take the address for a wish. */
	if (got != wanted) {
		munmap(got, len);
		return -EEXIST;
	}
	return 0;
}

int fgv_addrmap_reserve(uint64_t base, uint64_t len)
{
	int err = len ? keep_free(base, len) : 0;

	if (!len || err)
		return err;
	__atomic_store_n(&map.reserved_base, base, __ATOMIC_RELAXED);
	/* Pairs with the acquire in is_in_reserved(). */
	__atomic_store_n(&map.reserved_len, len, __ATOMIC_RELEASE);
	return 0;
}

static bool is_in_reserved(uint64_t address)
{
	/* Pairs with the release in fgv_addrmap_reserve(). */
	uint64_t len = __atomic_load_n(&map.reserved_len, __ATOMIC_ACQUIRE);

	return address - __atomic_load_n(&map.reserved_base, __ATOMIC_RELAXED) < len;
}

/* Most pointers of a program are far from the device's memory: no mutex for these. */
static bool is_in_claimed(uint64_t address)
{
	struct range *before;
	bool found;

	if (address < __atomic_load_n(&map.claimed_start, __ATOMIC_RELAXED) ||
	    address >= __atomic_load_n(&map.claimed_end, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&map.mutex);
	before = find_before_locked(&map.claimed, address);
	found = before && address - before->start < before->len;
	pthread_mutex_unlock(&map.mutex);
	return found;
}

bool fgv_addrmap_is_reserved(uint64_t address)
{
	return is_in_reserved(address) || is_in_claimed(address);
}

static void note_claimed_locked(const struct range *range)
{
	uint64_t end = range->start + range->len;

	if (range->start < map.claimed_start)
		__atomic_store_n(&map.claimed_start, range->start, __ATOMIC_RELAXED);
	if (end > map.claimed_end)
		__atomic_store_n(&map.claimed_end, end, __ATOMIC_RELAXED);
}

/* Claims [start, end) but for what is claimed already. */
static int claim_locked(uint64_t start, uint64_t end)
{
	while (start < end) {
		struct range *before = find_before_locked(&map.claimed, start), *gap;
		struct range key = {.start = start}, *after = RB_NFIND(ranges, &map.claimed, &key);
		int err;

		if (before && start - before->start < before->len) {
			start = before->start + before->len;
			continue;
		}
		gap = malloc(sizeof(*gap));
		if (!gap)
			return -ENOMEM;
		*gap = (struct range){.start = start};
		gap->len = fgv_min_u64(after ? after->start : end, end) - start;
		err = keep_free(start, gap->len);
		if (err) {
			free(gap);
			return err;
		}
		RB_INSERT(ranges, &map.claimed, gap);
		note_claimed_locked(gap);
		start += gap->len;
	}
	return 0;
}

/*
 * First whole blocks of the device's memory, so that small allocations cost a system call for
 * each block only; then, where the program has memory beside it, the pages alone.
 */
int fgv_addrmap_claim(uint64_t start, uint64_t len)
{
	static const uint64_t grains[] = {2u << 20, FGV_PAGE_BYTES};
	int err = 0;

	if (is_in_reserved(start))
		return 0;
	pthread_mutex_lock(&map.mutex);
	for (unsigned i = 0; i < FGV_ARRAY_LEN(grains); i++) {
		err = claim_locked(start - start % grains[i], fgv_align_up(start + len, grains[i]));
		if (!err)
			break;
	}
	pthread_mutex_unlock(&map.mutex);
	return err;
}
