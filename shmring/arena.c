/*
 * Best fit over two red-black trees: every block by its offset (blocks tile the
 * arena without holes), and the free ones by (length, offset). Freeing joins a block
 * with free neighbours, so no two free blocks ever touch.
 *
 * Locking: one mutex around every call.
 */
#include "shmring/arena.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "api/wire.h"
#include "common/util.h"

struct block {
	RB_ENTRY(block) by_offset;
	RB_ENTRY(block) by_length;
	uint64_t off;
	uint64_t len;
	bool is_free;
};

RB_HEAD(offset_tree, block);
RB_HEAD(length_tree, block);

struct fgv_arena {
	pthread_mutex_t lock;
	struct offset_tree blocks;
	struct length_tree gaps;
	uint64_t off;
	uint64_t len;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_offset(const struct block *a, const struct block *b)
{
	return compare_u64(a->off, b->off);
}

static int compare_length(const struct block *a, const struct block *b)
{
	int order = compare_u64(a->len, b->len);

	return order ? order : compare_u64(a->off, b->off);
}

/* RB_GENERATE_STATIC() needs an __unused of BSD's; not every function is used. */
#define ARENA_LOCAL __attribute__((unused)) static
RB_GENERATE_INTERNAL(offset_tree, block, by_offset, compare_offset, ARENA_LOCAL)
RB_GENERATE_INTERNAL(length_tree, block, by_length, compare_length, ARENA_LOCAL)

static struct block *block_create(struct fgv_arena *arena, uint64_t off, uint64_t len)
{
	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	block->off = off;
	block->len = len;
	block->is_free = true;
	RB_INSERT(offset_tree, &arena->blocks, block);
	return block;
}

struct fgv_arena *fgv_arena_create(uint64_t off, uint64_t len)
{
	struct fgv_arena *arena = calloc(1, sizeof(*arena));
	struct block *block;

	if (!arena)
		return NULL;
	pthread_mutex_init(&arena->lock, NULL);
	RB_INIT(&arena->blocks);
	RB_INIT(&arena->gaps);
	arena->off = off;
	arena->len = len;
	if (!len)
		return arena;
	block = block_create(arena, off, len);
	if (!block) {
		fgv_arena_destroy(arena);
		return NULL;
	}
	RB_INSERT(length_tree, &arena->gaps, block);
	return arena;
}

void fgv_arena_destroy(struct fgv_arena *arena)
{
	struct block *block;

	if (!arena)
		return;
	while ((block = RB_ROOT(&arena->blocks))) {
		RB_REMOVE(offset_tree, &arena->blocks, block);
		free(block);
	}
	pthread_mutex_destroy(&arena->lock);
	free(arena);
}

/* The block that holds @off. */
static struct block *block_at(struct fgv_arena *arena, uint64_t off)
{
	struct block key = {.off = off};
	struct block *block;

	if (off < arena->off || off - arena->off >= arena->len)
		return NULL;
	block = RB_NFIND(offset_tree, &arena->blocks, &key);
	if (block && block->off == off)
		return block;
	return block ? RB_PREV(offset_tree, &arena->blocks, block)
		     : RB_MAX(offset_tree, &arena->blocks);
}

static int alloc_locked(struct fgv_arena *arena, uint64_t len, uint64_t *off)
{
	struct block key = {.len = len};
	struct block *block = RB_NFIND(length_tree, &arena->gaps, &key);
	struct block *rest;

	if (!block)
		return -ENOMEM;
	if (block->len > len) {
		rest = block_create(arena, block->off + len, block->len - len);
		if (!rest)
			return -ENOMEM;
		RB_REMOVE(length_tree, &arena->gaps, block);
		RB_INSERT(length_tree, &arena->gaps, rest);
		block->len = len;
	} else {
		RB_REMOVE(length_tree, &arena->gaps, block);
	}
	block->is_free = false;
	*off = block->off;
	return 0;
}

int fgv_arena_alloc(struct fgv_arena *arena, uint64_t bytes, uint64_t *off)
{
	int err;

	if (!bytes)
		return -EINVAL;
	if (bytes > arena->len)
		return -ENOMEM;
	pthread_mutex_lock(&arena->lock);
	err = alloc_locked(arena, fgv_align_up(bytes, FGV_PAGE_BYTES), off);
	pthread_mutex_unlock(&arena->lock);
	return err;
}

/* Joins free @block and its right neighbour @next, if that is free: @next is gone then. */
static void join(struct fgv_arena *arena, struct block *block, struct block *next)
{
	if (!next || !next->is_free)
		return;
	RB_REMOVE(length_tree, &arena->gaps, next);
	RB_REMOVE(offset_tree, &arena->blocks, next);
	block->len += next->len;
	free(next);
}

static int free_locked(struct fgv_arena *arena, uint64_t off)
{
	struct block *block = block_at(arena, off);
	struct block *left;

	if (!block || block->off != off || block->is_free)
		return -EINVAL;
	block->is_free = true;
	join(arena, block, RB_NEXT(offset_tree, &arena->blocks, block));
	RB_INSERT(length_tree, &arena->gaps, block);
	left = RB_PREV(offset_tree, &arena->blocks, block);
	if (left && left->is_free) {
		RB_REMOVE(length_tree, &arena->gaps, left);
		join(arena, left, block);
		RB_INSERT(length_tree, &arena->gaps, left);
	}
	return 0;
}

int fgv_arena_free(struct fgv_arena *arena, uint64_t off)
{
	int err;

	pthread_mutex_lock(&arena->lock);
	err = free_locked(arena, off);
	pthread_mutex_unlock(&arena->lock);
	return err;
}

int fgv_arena_find(struct fgv_arena *arena, uint64_t off, uint64_t *start, uint64_t *bytes)
{
	struct block *block;
	int err = -ENOENT;

	pthread_mutex_lock(&arena->lock);
	block = block_at(arena, off);
	if (block && !block->is_free) {
		*start = block->off;
		*bytes = block->len;
		err = 0;
	}
	pthread_mutex_unlock(&arena->lock);
	return err;
}
