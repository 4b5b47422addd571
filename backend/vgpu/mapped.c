/*
 * The ranges, by address. A shared mapping is mapped a second time by mremap() from a length
 * of 0, which needs no descriptor: the process keeps none of a region with other windows in it.
 */
#define _GNU_SOURCE
#include "backend/vgpu/mapped.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A mapping, which goes with the last part's range. */
struct pages {
	uint32_t users; /* atomic */
};

struct fgv_mapped_range {
	RB_ENTRY(fgv_mapped_range) node;
	uint64_t address;
	uint64_t len;
	struct pages *pages;
	bool is_registered; /* by the GPU that it is shown to, and not by another one for all */
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
	pthread_mutex_init(&mapped->lock, NULL);
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
	pthread_mutex_destroy(&mapped->lock);
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

/* A range that is not in any tree yet, with @pages' reference; NULL: no memory. */
static struct fgv_mapped_range *make_range(uint64_t address, uint64_t len, struct pages *pages)
{
	struct fgv_mapped_range *made = malloc(sizeof(*made));

	if (made)
		*made = (struct fgv_mapped_range){
			.address = address, .len = len, .pages = pages, .is_registered = true};
	return made;
}

static void put_pages(struct pages *pages, uint64_t address, uint64_t len)
{
	/* Pairs with the other parts' releases here: none of them uses the memory any more. */
	if (__atomic_sub_fetch(&pages->users, 1, __ATOMIC_ACQ_REL))
		return;
	munmap(pointer(address), len);
	free(pages);
}

static void insert(struct fgv_mapped *mapped, struct fgv_mapped_range *made)
{
	pthread_mutex_lock(&mapped->lock);
	RB_INSERT(fgv_mapped_tree, &mapped->ranges, made);
	pthread_mutex_unlock(&mapped->lock);
	mapped->count++;
}

/* Takes over @pages' reference, also where it fails. */
static CUresult add(struct fgv_mapped *mapped, struct fgv_gpu *gpu, uint64_t address, uint64_t len,
		    struct pages *pages, bool is_known)
{
	struct fgv_mapped_range *made = make_range(address, len, pages);
	CUresult status = made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	if (made && is_known)
		made->is_registered = false;
	else if (made)
		status = gpu->ops->host_register(gpu, pointer(address), len);
	if (status != CUDA_SUCCESS) {
		put_pages(pages, address, len);
		free(made);
		return status;
	}
	insert(mapped, made);
	return CUDA_SUCCESS;
}

CUresult fgv_mapped_add(struct fgv_mapped *mapped, struct fgv_gpu *gpu, uint64_t address,
			void *pages, uint64_t len)
{
	struct pages *made;
	CUresult status;

	if (!address || !len || !is_paged(address) || !is_paged((uintptr_t)pages) || !is_paged(len))
		return CUDA_ERROR_INVALID_VALUE;
	if (mapped->count >= FGV_MAPPED_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->users = 1;
	status = map_again(address, pages, len);
	if (status != CUDA_SUCCESS) {
		free(made);
		return status;
	}
	return add(mapped, gpu, address, len, made, false);
}

CUresult fgv_mapped_adopt(struct fgv_mapped *mapped, struct fgv_gpu *gpu, void *base)
{
	struct pages *made = mapped->count < FGV_MAPPED_MAX ? malloc(sizeof(*made)) : NULL;

	if (!made) {
		munmap(base, FGV_PAGE_BYTES);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	made->users = 1;
	return add(mapped, gpu, (uintptr_t)base, FGV_PAGE_BYTES, made, false);
}

/* A reference to what @of has mapped at @address; NULL: nothing begins there. */
static struct pages *get_pages(struct fgv_mapped *of, uint64_t address, uint64_t *len)
{
	struct fgv_mapped_range key = {.address = address}, *found;
	struct pages *pages = NULL;

	pthread_mutex_lock(&of->lock);
	found = RB_FIND(fgv_mapped_tree, &of->ranges, &key);
	if (found) {
		pages = found->pages;
		*len = found->len;
		__atomic_add_fetch(&pages->users, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&of->lock);
	return pages;
}

CUresult fgv_mapped_share(struct fgv_mapped *mapped, struct fgv_gpu *gpu, struct fgv_mapped *of,
			  uint64_t address)
{
	struct fgv_mapped_range key = {.address = address};
	struct pages *pages;
	uint64_t len = 0;

	if (mapped == of)
		return CUDA_ERROR_INVALID_VALUE;
	if (RB_FIND(fgv_mapped_tree, &mapped->ranges, &key))
		return CUDA_ERROR_ALREADY_MAPPED;
	if (mapped->count >= FGV_MAPPED_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pages = get_pages(of, address, &len);
	if (!pages)
		return CUDA_ERROR_INVALID_VALUE;
	return add(mapped, gpu, address, len, pages, gpu->ops->registers_for_all);
}

struct fgv_mapped_range *fgv_mapped_take(struct fgv_mapped *mapped, uint64_t address)
{
	struct fgv_mapped_range key = {.address = address};
	struct fgv_mapped_range *found = RB_FIND(fgv_mapped_tree, &mapped->ranges, &key);

	if (!found)
		return NULL;
	pthread_mutex_lock(&mapped->lock);
	RB_REMOVE(fgv_mapped_tree, &mapped->ranges, found);
	pthread_mutex_unlock(&mapped->lock);
	mapped->count--;
	mapped->taken++;
	return found;
}

void fgv_mapped_retire(const struct fgv_mapped_range *range, struct fgv_gpu *gpu)
{
	if (range->is_registered && gpu->ops->host_retire)
		gpu->ops->host_retire(gpu, pointer(range->address));
}

/* A GPU that has failed takes nothing back; the memory goes all the same. */
void fgv_mapped_drop(struct fgv_mapped_range *range, struct fgv_gpu *gpu)
{
	if (range->is_registered)
		gpu->ops->host_unregister(gpu, pointer(range->address));
	put_pages(range->pages, range->address, range->len);
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
