/*
 * Chunks are parts of one file without a name, made with the device: what a process may have of
 * files and descriptors later does not matter then. Of a chunk that goes the pages go too. One that
 * other processes may get has a file to itself.
 * Addresses are reserved by a mapping that nobody may touch, and that takes the place of what is
 * unmapped.
 */
#define _GNU_SOURCE
#include "softgpu/space.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "softgpu/memory.h"

/* A process may have 65530 mappings altogether. */
#define MAPPINGS_MAX HOST_RANGES

#define FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int compare(const struct space_range *a, const struct space_range *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

RB_GENERATE_INTERNAL(space_tree, space_range, node, compare, static __attribute__((unused)))

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static struct space_range *find(struct space_tree *tree, uint64_t address)
{
	struct space_range key = {.address = address};

	return RB_FIND(space_tree, tree, &key);
}

/* NULL: no memory. */
static struct space_range *add(struct space_tree *tree, uint64_t address, uint64_t bytes)
{
	struct space_range *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->address = address;
	made->bytes = bytes;
	made->fd = -1;
	RB_INSERT(space_tree, tree, made);
	return made;
}

static void forget(struct space_tree *tree, struct space_range *range)
{
	RB_REMOVE(space_tree, tree, range);
	free(range);
}

static int make_file(uint64_t bytes)
{
	int fd = memfd_create("softgpu", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void fgv_softgpu_space_init(struct space *space, uint64_t base, uint64_t end)
{
	*space = (struct space){.base = fgv_align_up(base, SPACE_GRANULE), .end = end};
	RB_INIT(&space->reservations);
	RB_INIT(&space->mappings);
	RB_INIT(&space->chunks);
	space->fd = space->base < end ? make_file(end - space->base) : -1;
}

static void forget_all(struct space_tree *tree)
{
	struct space_range *range;

	while ((range = RB_MIN(space_tree, tree)))
		forget(tree, range);
}

void fgv_softgpu_space_fini(struct space *space)
{
	struct space_range *range;

	RB_FOREACH(range, space_tree, &space->reservations) {
		munmap(pointer(range->address), range->bytes);
	}
	forget_all(&space->reservations);
	forget_all(&space->mappings);
	forget_all(&space->chunks);
	if (space->fd > 0)
		close(space->fd);
}

/* Whether [@address, @address + @bytes) is nobody's of @tree; *after: where to go on if not. */
static bool is_free(struct space_tree *tree, uint64_t address, uint64_t bytes, uint64_t *after)
{
	struct space_range key = {.address = address}, *next, *before;

	next = RB_NFIND(space_tree, tree, &key);
	before = next ? RB_PREV(space_tree, tree, next) : RB_MAX(space_tree, tree);
	if (before && before->address + before->bytes > address) {
		*after = before->address + before->bytes;
		return false;
	}
	if (next && next->address - address < bytes) {
		*after = next->address + next->bytes;
		return false;
	}
	return true;
}

/* The first place from @at on, before @end. */
static bool find_room(struct space_tree *tree, uint64_t bytes, uint64_t alignment, uint64_t end,
		      uint64_t *at)
{
	while (*at < end) {
		*at = fgv_align_up(*at, alignment);
		if (*at >= end || bytes > end - *at)
			return false;
		if (is_free(tree, *at, bytes, at))
			return true;
	}
	return false;
}

static bool find_addresses(struct space *space, uint64_t bytes, uint64_t alignment, uint64_t hint,
			   uint64_t *at)
{
	*at = hint;
	if (hint >= space->base && hint < space->end && !(hint % alignment) &&
	    bytes <= space->end - hint && is_free(&space->reservations, hint, bytes, at))
		return true;
	*at = space->base;
	return find_room(&space->reservations, bytes, alignment, space->end, at);
}

static bool take_addresses(uint64_t address, uint64_t bytes, int fixed)
{
	void *got = mmap(pointer(address), bytes, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);

	if (got != MAP_FAILED && got != pointer(address))
		munmap(got, bytes);
	return got == pointer(address);
}

bool fgv_softgpu_space_reserve(struct space *space, uint64_t bytes, uint64_t alignment,
			       uint64_t hint, uint64_t *address)
{
	uint64_t at;

	alignment = fgv_max_u64(alignment, SPACE_GRANULE);
	if (alignment > ADDRESS_LIMIT || !find_addresses(space, bytes, alignment, hint, &at) ||
	    !take_addresses(at, bytes, MAP_FIXED_NOREPLACE))
		return false;
	if (!add(&space->reservations, at, bytes)) {
		munmap(pointer(at), bytes);
		return false;
	}
	*address = at;
	return true;
}

void fgv_softgpu_space_unreserve(struct space *space, uint64_t address)
{
	struct space_range *range = find(&space->reservations, address);

	munmap(pointer(address), range->bytes);
	forget(&space->reservations, range);
}

struct space_range *fgv_softgpu_space_take(struct space *space, uint64_t bytes)
{
	uint64_t at = 0;

	if (space->fd < 0 ||
	    !find_room(&space->chunks, bytes, SPACE_GRANULE, space->end - space->base, &at))
		return NULL;
	return add(&space->chunks, at, bytes);
}

/* Takes over @fd. */
static struct space_range *new_file_chunk(int fd, uint64_t bytes)
{
	struct space_range *made = fd >= 0 ? calloc(1, sizeof(*made)) : NULL;

	if (made)
		*made = (struct space_range){.bytes = bytes, .fd = fd};
	else if (fd >= 0)
		close(fd);
	return made;
}

struct space_range *fgv_softgpu_space_take_file(uint64_t bytes)
{
	int fd = memfd_create("softgpu-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 &&
	    (ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, FILE_SEALS) < 0)) {
		close(fd);
		fd = -1;
	}
	return new_file_chunk(fd, bytes);
}

/* Whoever made it can't take the pages from under a mapping: touching those would be the end. */
struct space_range *fgv_softgpu_space_take_given(int fd, uint64_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;

	if (seals < 0 || (seals & FILE_SEALS) != FILE_SEALS || fstat(fd, &status) < 0 ||
	    status.st_size < 0 || (uint64_t)status.st_size != bytes)
		return NULL;
	return new_file_chunk(fcntl(fd, F_DUPFD_CLOEXEC, 0), bytes);
}

/* Where the pages can't be given back, nobody gets them again. */
void fgv_softgpu_space_give(struct space *space, struct space_range *chunk)
{
	if (chunk->fd >= 0) {
		close(chunk->fd);
		free(chunk);
		return;
	}
	if (fallocate(space->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)chunk->address,
		      (off_t)chunk->bytes) == 0)
		forget(&space->chunks, chunk);
}

bool fgv_softgpu_space_map(struct space *space, uint64_t address, uint64_t bytes, uint64_t offset,
			   const struct space_range *chunk)
{
	int fd = chunk->fd >= 0 ? chunk->fd : space->fd;

	if (space->mappings_count >= MAPPINGS_MAX || !add(&space->mappings, address, bytes))
		return false;
	space->mappings_count++;
	if (mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)(chunk->address + offset)) != MAP_FAILED)
		return true;
	fgv_softgpu_space_forget(space, fgv_softgpu_space_find(space, address));
	return false;
}

bool fgv_softgpu_space_view(struct space *space, uint64_t address, uint64_t bytes)
{
	struct space_range *made = NULL;

	if (space->mappings_count < MAPPINGS_MAX)
		made = add(&space->mappings, address, bytes);
	if (!made)
		return false;
	made->is_view = true;
	space->mappings_count++;
	return true;
}

struct space_range *fgv_softgpu_space_find(struct space *space, uint64_t address)
{
	return find(&space->mappings, address);
}

void fgv_softgpu_space_forget(struct space *space, struct space_range *mapping)
{
	forget(&space->mappings, mapping);
	space->mappings_count--;
}

CUresult fgv_softgpu_space_show(struct space *space, struct memory *memory, uint64_t address,
				uint64_t bytes)
{
	struct space_range *range = find(&space->mappings, address);
	CUresult result = CUDA_SUCCESS;

	for (; result == CUDA_SUCCESS && range && range->address - address < bytes;
	     range = RB_NEXT(space_tree, &space->mappings, range)) {
		if (range->is_shown)
			continue;
		result = fgv_softgpu_host_add(memory, range->address, range->bytes, true);
		range->is_shown = result == CUDA_SUCCESS;
	}
	return result;
}

/* Where that fails, what lies there stays, out of everybody's sight. */
void fgv_softgpu_space_hide(struct memory *memory, uint64_t address, uint64_t bytes, bool is_view)
{
	fgv_softgpu_host_remove(memory, address);
	if (!is_view)
		take_addresses(address, bytes, MAP_FIXED);
}
