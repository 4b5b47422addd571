/*
 * The ranges, by address. A shared mapping is mapped a second time by mremap() from a length
 * of 0, which needs no descriptor: the process keeps none of a region with other windows in it.
 */
#define _GNU_SOURCE
#include "backend/vgpu/mapped.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

struct fgv_mapped_range {
	RB_ENTRY(fgv_mapped_range) node;
	uint64_t address;
	uint64_t len;
};

static int compare(const struct fgv_mapped_range *a, const struct fgv_mapped_range *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

RB_GENERATE_INTERNAL(fgv_mapped_tree, fgv_mapped_range, node, compare,
		     __attribute__((unused)) static)

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

void fgv_mapped_init(struct fgv_mapped *mapped)
{
	RB_INIT(&mapped->ranges);
	mapped->count = 0;
}

void fgv_mapped_fini(struct fgv_mapped *mapped, struct fgv_gpu *gpu)
{
	struct fgv_mapped_range *range, *next;

	RB_FOREACH_SAFE(range, fgv_mapped_tree, &mapped->ranges, next)
	{
		RB_REMOVE(fgv_mapped_tree, &mapped->ranges, range);
		fgv_mapped_drop(range, gpu);
	}
	mapped->count = 0;
}

/* The address is reserved first, which fails where something lies; then nothing is lost. */
static CUresult map_again(uint64_t address, void *pages, uint64_t len)
{
	void *wanted = pointer(address);
	void *got = mmap(wanted, len, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == MAP_FAILED)
		return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_ALREADY_MAPPED;
	/* Kernels before 4.17 take the address for a wish. */
	if (got != wanted) {
		munmap(got, len);
		return CUDA_ERROR_ALREADY_MAPPED;
	}
	if (mremap(pages, 0, len, MREMAP_MAYMOVE | MREMAP_FIXED, wanted) == MAP_FAILED) {
		munmap(wanted, len);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static bool is_paged(uint64_t v)
{
	return !(v % FGV_PAGE_BYTES);
}

CUresult fgv_mapped_add(struct fgv_mapped *mapped, struct fgv_gpu *gpu, uint64_t address,
			void *pages, uint64_t len)
{
	struct fgv_mapped_range *made;
	CUresult status;

	if (!address || !len || !is_paged(address) || !is_paged((uintptr_t)pages) || !is_paged(len))
		return CUDA_ERROR_INVALID_VALUE;
	if (mapped->count >= FGV_MAPPED_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = (struct fgv_mapped_range){.address = address, .len = len};
	status = map_again(address, pages, len);
	if (status != CUDA_SUCCESS) {
		free(made);
		return status;
	}
	status = gpu->ops->host_register(gpu, pointer(address), len);
	if (status != CUDA_SUCCESS) {
		munmap(pointer(address), len);
		free(made);
		return status;
	}
	RB_INSERT(fgv_mapped_tree, &mapped->ranges, made);
	mapped->count++;
	return CUDA_SUCCESS;
}

struct fgv_mapped_range *fgv_mapped_take(struct fgv_mapped *mapped, uint64_t address)
{
	struct fgv_mapped_range key = {.address = address};
	struct fgv_mapped_range *found = RB_FIND(fgv_mapped_tree, &mapped->ranges, &key);

	if (!found)
		return NULL;
	RB_REMOVE(fgv_mapped_tree, &mapped->ranges, found);
	mapped->count--;
	mapped->taken++;
	return found;
}

/* A GPU that has failed takes nothing back; the memory goes all the same. */
void fgv_mapped_drop(struct fgv_mapped_range *range, struct fgv_gpu *gpu)
{
	gpu->ops->host_unregister(gpu, pointer(range->address));
	munmap(pointer(range->address), range->len);
	free(range);
}

void *fgv_mapped_find(const struct fgv_mapped *mapped, uint64_t address, uint64_t len)
{
	struct fgv_mapped_range *at = RB_ROOT(&mapped->ranges);

	while (at && (address < at->address || address - at->address >= at->len))
		at = address < at->address ? RB_LEFT(at, node) : RB_RIGHT(at, node);
	if (!at || len > at->len - (address - at->address))
		return NULL;
	return pointer(address);
}
