/*
 * Registering memory that the program has: the pages of the arena come into its place,
 * with what was in them.
 */
#define _GNU_SOURCE
#include "frontend/cuda/memory/hostmem_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/util.h"

/* How much of [*@at, @end) a line of /proc/self/maps is about: moves *@at on. */
static CUresult judge_line(const char *line, uint64_t *at, uint64_t end)
{
	uint64_t first, last;
	char mode[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &first, &last, mode) != 3)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (last <= *at)
		return CUDA_SUCCESS;
	if (first > *at || mode[0] != 'r' || mode[1] != 'w')
		return CUDA_ERROR_INVALID_VALUE;
	if (mode[3] != 'p' || strstr(line, "[stack]"))
		return CUDA_ERROR_NOT_SUPPORTED;
	*at = fgv_min_u64(last, end);
	return CUDA_SUCCESS;
}

/* Whether all of [@at, @end) may be changed for other pages. */
static CUresult judge(uint64_t at, uint64_t end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	CUresult res = CUDA_SUCCESS;
	char *line = NULL;
	size_t room = 0;

	if (!maps)
		return CUDA_ERROR_OPERATING_SYSTEM;
	while (!res && at < end && getline(&line, &room, maps) > 0)
		res = judge_line(line, &at, end);
	free(line);
	fclose(maps);
	return !res && at < end ? CUDA_ERROR_INVALID_VALUE : res;
}

/*
 * By the kernel, which does without a fault where memory is not what it was a moment ago;
 * and a sanitizer does not mind what lies between the program's objects.
 */
static CUresult copy_out(void *to, uint64_t from, uint64_t len)
{
	while (len) {
		struct iovec here = {to, len}, there = {fgv_hostmem_pointer(from), len};
		ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

		if (got <= 0)
			return CUDA_ERROR_INVALID_VALUE;
		to = (uint8_t *)to + got;
		from += (uint64_t)got;
		len -= (uint64_t)got;
	}
	return CUDA_SUCCESS;
}

static CUresult change_pages(struct fgv_lane *lane, struct fgv_hostmem *memory)
{
	struct fgv_client *client = lane->client;
	CUresult res = fgv_call_host_map(lane, memory->base, memory->off, memory->len);

	if (res)
		return res == CUDA_ERROR_ALREADY_MAPPED ? CUDA_ERROR_NOT_SUPPORTED : res;
	res = copy_out(client->window.base + memory->off, memory->base, memory->len);
	if (!res && fgv_hostmem_put_in_place(memory, client->window_fd))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	if (res)
		fgv_call_host_unmap(lane, memory->base);
	return res;
}

/* @memory is in the table: nobody else registers a page of it. */
static CUresult register_memory(struct fgv_lane *lane, struct fgv_hostmem *memory)
{
	struct fgv_arena *arena = lane->client->arena;
	CUresult res = judge(memory->base, memory->base + memory->len);

	if (res)
		return res;
	if (fgv_arena_alloc(arena, memory->len, &memory->off))
		return fgv_hostmem_short(lane->client, memory->len);
	res = change_pages(lane, memory);
	if (res)
		fgv_arena_free(arena, memory->off);
	return res;
}

/* Whether the pages hold a part of the caller's own stack, which it needs meanwhile. */
static bool has_frame(const struct fgv_hostmem *memory)
{
	return (uint64_t)(uintptr_t)__builtin_frame_address(0) - memory->base < memory->len;
}

CUresult fgv_hostmem_register(struct fgv_lane *lane, uint64_t address, uint64_t bytes,
			      unsigned flags)
{
	struct fgv_hostmem *memory;
	CUresult res;

	if (!address || !bytes || bytes > INT64_MAX || address > INT64_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	memory = malloc(sizeof(*memory));
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*memory = (struct fgv_hostmem){
		.address = address,
		.bytes = bytes,
		.base = address - address % FGV_PAGE_BYTES,
		.kind = FGV_RANGE_REGISTERED,
		.flags = flags,
		.device = fgv_thread_self.device,
	};
	memory->len = fgv_align_up(address + bytes, FGV_PAGE_BYTES) - memory->base;
	res = has_frame(memory) ? CUDA_ERROR_NOT_SUPPORTED : fgv_hostmem_insert(memory);
	if (res) {
		free(memory);
		return res;
	}
	res = register_memory(lane, memory);
	if (res) {
		fgv_hostmem_remove(memory);
		free(memory);
	}
	return res;
}
