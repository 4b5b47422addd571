/*
 * Memory that may move; see pieces.h. At any time there is one fence at most for what was freed:
 * what is freed meanwhile gets the next one, together.
 */
#include "backend/vgpu/pieces.h"

#include <sched.h>
#include <stdlib.h>
#include "backend/shared.h"
#include "backend/vgpu/pieces_units.h"
#include "common/util.h"

static int compare(const struct fgv_block *a, const struct fgv_block *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

RB_GENERATE_INTERNAL(fgv_block_tree, fgv_block, node, compare, __attribute__((unused)) static)

void fgv_pieces_init(struct fgv_pieces *pieces, struct fgv_gpu *gpu)
{
	*pieces = (struct fgv_pieces){.gpu = gpu};
	RB_INIT(&pieces->blocks);
	TAILQ_INIT(&pieces->shared);
	TAILQ_INIT(&pieces->leaving);
	TAILQ_INIT(&pieces->closed);
}

CUresult fgv_pieces_use(struct fgv_pieces *pieces, struct fgv_account *account)
{
	struct fgv_gpu *gpu = pieces->gpu;
	size_t granule = 0;
	CUresult status =
		gpu->ops->memory_granularity(gpu, CU_MEM_ALLOC_GRANULARITY_MINIMUM, &granule);

	if (status != CUDA_SUCCESS)
		return status;
	if (!granule || granule < FGV_PIECES_SMALL_MAX || FGV_PIECE_BYTES_MAX % granule)
		return CUDA_ERROR_NOT_SUPPORTED;
	pieces->granule = granule;
	pieces->account = account;
	return CUDA_SUCCESS;
}

CUresult fgv_pieces_use_whole(struct fgv_pieces *pieces, struct fgv_account *account,
			      fgv_pieces_let_go *let_go, void *of)
{
	CUresult status = fgv_pieces_use(pieces, account);

	pieces->let_go = let_go;
	pieces->of = of;
	return status;
}

/* --- What is where --------------------------------------------------------------- */

static uint64_t size_of(const struct fgv_block *block, uint32_t number)
{
	if (block->count == 1)
		return block->bytes;
	return fgv_min_u64(FGV_PIECE_BYTES_MAX, block->bytes - number * FGV_PIECE_BYTES_MAX);
}

/* @by pieces of @bytes have gone, or come. */
static void note_away(struct fgv_pieces *pieces, int by, uint64_t bytes)
{
	pieces->missing += (uint32_t)by;
	pieces->away_bytes += by < 0 ? -bytes : bytes;
	__atomic_store_n(&pieces->account->away_bytes, pieces->away_bytes, __ATOMIC_RELAXED);
}

struct fgv_pieces_cursor fgv_pieces_first(struct fgv_pieces *pieces)
{
	return (struct fgv_pieces_cursor){RB_MIN(fgv_block_tree, &pieces->blocks), 0};
}

void fgv_pieces_next(struct fgv_pieces_cursor *at)
{
	if (++at->number < at->block->count)
		return;
	*at = (struct fgv_pieces_cursor){RB_NEXT(fgv_block_tree, NULL, at->block), 0};
}

struct fgv_memory_piece *fgv_pieces_at(const struct fgv_pieces_cursor *at, uint64_t *address,
				       uint64_t *bytes)
{
	*address = at->block->address + at->number * FGV_PIECE_BYTES_MAX;
	*bytes = size_of(at->block, at->number);
	return &at->block->pieces[at->number];
}

uint64_t fgv_pieces_bytes(struct fgv_pieces *pieces, enum fgv_piece_state state)
{
	struct fgv_pieces_cursor at = fgv_pieces_first(pieces);
	uint64_t address, bytes, sum = 0;

	for (; at.block; fgv_pieces_next(&at)) {
		if (fgv_pieces_at(&at, &address, &bytes)->state == state)
			sum += bytes;
	}
	return sum;
}

/* --- In and out ------------------------------------------------------------------ */

CUresult fgv_pieces_bind(struct fgv_pieces *pieces, const struct fgv_pieces_cursor *at)
{
	struct fgv_gpu *gpu = pieces->gpu;
	uint64_t address, bytes;
	struct fgv_memory_piece *piece = fgv_pieces_at(at, &address, &bytes);
	CUresult status = gpu->ops->memory_create(gpu, bytes, &piece->memory);

	if (status != CUDA_SUCCESS)
		goto none;
	status = gpu->ops->memory_map(gpu, address, bytes, 0, piece->memory);
	if (status != CUDA_SUCCESS)
		goto release;
	status = gpu->ops->memory_access(gpu, address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (status != CUDA_SUCCESS)
		goto unmap;
	piece->state = FGV_PIECE_IN;
	note_away(pieces, -1, bytes);
	return CUDA_SUCCESS;
unmap:
	gpu->ops->memory_unmap(gpu, address, bytes);
release:
	gpu->ops->memory_release(gpu, piece->memory);
none:
	piece->memory = NULL;
	return status;
}

static void retire_piece(struct fgv_pieces *pieces, struct fgv_block *block, uint32_t i)
{
	struct fgv_gpu *gpu = pieces->gpu;

	if (gpu->ops->memory_retire && block->pieces[i].state == FGV_PIECE_IN)
		gpu->ops->memory_retire(gpu, block->address + i * FGV_PIECE_BYTES_MAX,
					size_of(block, i));
}

static void retire_block(struct fgv_pieces *pieces, struct fgv_block *block)
{
	for (uint32_t i = 0; i < block->count; i++)
		retire_piece(pieces, block, i);
}

/* What number @i of @block has of the GPU, if anything. False: nothing. */
static bool release_piece(struct fgv_pieces *pieces, struct fgv_block *block, uint32_t i)
{
	struct fgv_gpu *gpu = pieces->gpu;
	struct fgv_memory_piece *piece = &block->pieces[i];

	if (piece->state != FGV_PIECE_IN)
		return false;
	gpu->ops->memory_unmap(gpu, block->address + i * FGV_PIECE_BYTES_MAX, size_of(block, i));
	gpu->ops->memory_release(gpu, piece->memory);
	piece->memory = NULL;
	piece->state = FGV_PIECE_OUT;
	return true;
}

void fgv_pieces_retire(struct fgv_pieces *pieces, struct fgv_pieces_cursor from,
		       const struct fgv_pieces_cursor *to)
{
	for (; from.block && !fgv_pieces_is_at(&from, to); fgv_pieces_next(&from))
		retire_piece(pieces, from.block, from.number);
}

void fgv_pieces_unbind(struct fgv_pieces *pieces, struct fgv_pieces_cursor from,
		       const struct fgv_pieces_cursor *to)
{
	for (; from.block && !fgv_pieces_is_at(&from, to); fgv_pieces_next(&from)) {
		if (release_piece(pieces, from.block, from.number))
			note_away(pieces, 1, size_of(from.block, from.number));
	}
}

void fgv_pieces_forget(struct fgv_pieces *pieces)
{
	struct fgv_pieces_cursor at = fgv_pieces_first(pieces);

	for (; at.block; fgv_pieces_next(&at))
		at.block->pieces[at.number].is_kept = false;
}

/* The block that @address lies in, or the first one behind it. */
static struct fgv_block *find_from(struct fgv_pieces *pieces, uint64_t address)
{
	struct fgv_block *at = RB_ROOT(&pieces->blocks), *found = NULL;

	while (at) {
		bool ends_before = at->address + at->bytes <= address;

		if (!ends_before)
			found = at;
		at = ends_before ? RB_RIGHT(at, node) : RB_LEFT(at, node);
	}
	return found;
}

CUresult fgv_pieces_touch(struct fgv_pieces *pieces, uint64_t address, uint64_t bytes)
{
	uint64_t end = bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;
	struct fgv_pieces_cursor at = {find_from(pieces, address), 0};
	CUresult status = CUDA_SUCCESS;

	if (at.block && address > at.block->address)
		at.number = (uint32_t)((address - at.block->address) / FGV_PIECE_BYTES_MAX);
	while (status == CUDA_SUCCESS && pieces->missing && at.block) {
		uint64_t start, len;
		const struct fgv_memory_piece *piece = fgv_pieces_at(&at, &start, &len);

		if (start >= end)
			break;
		if (piece->state == FGV_PIECE_EMPTY)
			status = fgv_pieces_bind(pieces, &at);
		fgv_pieces_next(&at);
	}
	return status;
}

/* --- Blocks ---------------------------------------------------------------------- */

static CUresult make_block(struct fgv_pieces *pieces, uint64_t bytes, struct fgv_block **made)
{
	struct fgv_gpu *gpu = pieces->gpu;
	uint64_t count =
		pieces->let_go ? 1 : (bytes + FGV_PIECE_BYTES_MAX - 1) / FGV_PIECE_BYTES_MAX;
	struct fgv_block *block;
	CUresult status;

	if (count > UINT32_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block = calloc(1, sizeof(*block) + count * sizeof(*block->pieces));
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = gpu->ops->address_reserve(gpu, bytes, 0, 0, &block->address);
	if (status != CUDA_SUCCESS) {
		free(block);
		return status;
	}
	block->bytes = bytes;
	block->count = (uint32_t)count;
	RB_INSERT(fgv_block_tree, &pieces->blocks, block);
	for (uint32_t i = 0; i < block->count; i++)
		note_away(pieces, 1, size_of(block, i));
	*made = block;
	return CUDA_SUCCESS;
}

/* Its memory is there from the beginning, even if what was freed must go for that. */
static CUresult fill_block(struct fgv_pieces *pieces, struct fgv_block *block)
{
	const struct fgv_pieces_cursor at = {block, 0};
	CUresult status = fgv_pieces_bind(pieces, &at);

	if (status != CUDA_ERROR_OUT_OF_MEMORY || !pieces->late_bytes)
		return status;
	fgv_pieces_collect(pieces, true);
	return fgv_pieces_bind(pieces, &at);
}

/* It is nobody's any more: off the lists, with what it has of the GPU still there. */
static void take_off(struct fgv_pieces *pieces, struct fgv_block *block)
{
	RB_REMOVE(fgv_block_tree, &pieces->blocks, block);
	if (block->units)
		TAILQ_REMOVE(&pieces->shared, block, link);
	for (uint32_t i = 0; i < block->count; i++) {
		if (block->pieces[i].state != FGV_PIECE_IN)
			note_away(pieces, -1, size_of(block, i));
	}
}

/* Nothing uses it, and it is on no list. */
static CUresult drop_block(struct fgv_pieces *pieces, struct fgv_block *block)
{
	struct fgv_gpu *gpu = pieces->gpu;
	CUresult status;

	for (uint32_t i = 0; i < block->count; i++)
		release_piece(pieces, block, i);
	status = gpu->ops->address_free(gpu, block->address, block->bytes);
	if (block->is_shared) {
		pieces->shared_bytes -= block->bytes;
		pieces->let_go(&block->key, pieces->of);
	}
	fgv_piece_units_destroy(block->units);
	free(block);
	return status;
}

/* As make_block(), with its memory where that is shared. */
static CUresult open_block(struct fgv_pieces *pieces, uint64_t bytes, struct fgv_block **made)
{
	CUresult status = make_block(pieces, bytes, made);

	if (status != CUDA_SUCCESS || !pieces->let_go)
		return status;
	status = fill_block(pieces, *made);
	if (status != CUDA_SUCCESS) {
		take_off(pieces, *made);
		drop_block(pieces, *made);
	}
	return status;
}

static CUresult share_block(struct fgv_pieces *pieces, struct fgv_block **made)
{
	struct fgv_piece_units *units = fgv_piece_units_create(pieces->granule);
	CUresult status;

	if (!units)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = open_block(pieces, pieces->granule, made);
	if (status != CUDA_SUCCESS) {
		fgv_piece_units_destroy(units);
		return status;
	}
	(*made)->units = units;
	/* Where there was room last there mostly is room. */
	TAILQ_INSERT_HEAD(&pieces->shared, *made, link);
	return CUDA_SUCCESS;
}

static CUresult alloc_small(struct fgv_pieces *pieces, uint64_t bytes, uint64_t *address)
{
	struct fgv_block *block;
	uint64_t offset = 0;
	CUresult status;

	TAILQ_FOREACH(block, &pieces->shared, link) {
		if (fgv_piece_units_take(block->units, bytes, &offset) == 0)
			break;
	}
	if (!block) {
		status = share_block(pieces, &block);
		if (status != CUDA_SUCCESS)
			return status;
		fgv_piece_units_take(block->units, bytes, &offset);
	}
	*address = block->address + offset;
	return CUDA_SUCCESS;
}

CUresult fgv_pieces_alloc(struct fgv_pieces *pieces, uint64_t bytes, uint64_t *address)
{
	struct fgv_block *block;
	CUresult status;

	fgv_pieces_collect(pieces, false);
	if (bytes <= FGV_PIECES_SMALL_MAX)
		return alloc_small(pieces, bytes, address);
	status = open_block(pieces, fgv_align_up(bytes, pieces->granule), &block);
	if (status == CUDA_SUCCESS)
		*address = block->address;
	return status;
}

struct fgv_block *fgv_pieces_find(struct fgv_pieces *pieces, uint64_t address)
{
	struct fgv_block *block = find_from(pieces, address);

	return block && address >= block->address ? block : NULL;
}

void fgv_pieces_share(struct fgv_pieces *pieces, struct fgv_block *block, const struct fgv_key *key)
{
	block->key = *key;
	block->is_shared = true;
	pieces->shared_bytes += block->bytes;
}

/* --- Frees ----------------------------------------------------------------------- */

static bool was_touched(const struct fgv_block *block)
{
	for (uint32_t i = 0; i < block->count; i++) {
		if (block->pieces[i].state == FGV_PIECE_IN)
			return true;
	}
	return false;
}

CUresult fgv_pieces_free(struct fgv_pieces *pieces, uint64_t address, uint64_t bytes,
			 uint64_t charged)
{
	struct fgv_block *block = fgv_pieces_find(pieces, address);

	if (!block)
		return CUDA_ERROR_INVALID_VALUE;
	if (block->units) {
		fgv_piece_units_free(block->units, address - block->address, bytes);
		pieces->has_units = true;
		if (block->units->live)
			return CUDA_SUCCESS;
	}
	retire_block(pieces, block);
	if (!was_touched(block)) {
		take_off(pieces, block);
		return drop_block(pieces, block);
	}
	take_off(pieces, block);
	block->charged = charged;
	pieces->late_bytes += charged;
	TAILQ_INSERT_TAIL(&pieces->leaving, block, link);
	fgv_pieces_collect(pieces, false);
	return CUDA_SUCCESS;
}

static void drop_closed(struct fgv_pieces *pieces)
{
	struct fgv_block *block;

	while ((block = TAILQ_FIRST(&pieces->closed))) {
		TAILQ_REMOVE(&pieces->closed, block, link);
		pieces->late_bytes -= block->charged;
		drop_block(pieces, block);
	}
	TAILQ_FOREACH(block, &pieces->shared, link) {
		if (block->units->has_freed)
			fgv_piece_units_collect(block->units);
	}
}

/* What was freed up to now is before the fence that comes next. */
static void close_freed(struct fgv_pieces *pieces)
{
	struct fgv_block *block;

	TAILQ_CONCAT(&pieces->closed, &pieces->leaving, link);
	TAILQ_FOREACH(block, &pieces->shared, link) {
		if (block->units->has_freed)
			fgv_piece_units_close(block->units);
	}
	pieces->has_units = false;
}

/* Whether what is before the fence is not used any more. A GPU that has failed uses nothing. */
static bool has_passed(struct fgv_pieces *pieces, bool waits)
{
	struct fgv_gpu *gpu = pieces->gpu;

	while (gpu->ops->fence_query(gpu, pieces->fence) == CUDA_ERROR_NOT_READY) {
		if (!waits)
			return false;
		sched_yield();
	}
	gpu->ops->fence_put(gpu, pieces->fence);
	pieces->fence = NULL;
	return true;
}

static bool has_freed(const struct fgv_pieces *pieces)
{
	return pieces->has_units || !TAILQ_EMPTY(&pieces->leaving);
}

void fgv_pieces_collect(struct fgv_pieces *pieces, bool waits)
{
	struct fgv_gpu *gpu = pieces->gpu;

	while (pieces->fence || has_freed(pieces)) {
		CUresult status = CUDA_SUCCESS;

		if (!pieces->fence) {
			status = gpu->ops->fence_all(gpu, &pieces->fence);
			if (status == CUDA_ERROR_OUT_OF_MEMORY)
				return;
			close_freed(pieces);
		}
		if (status == CUDA_SUCCESS && !has_passed(pieces, waits))
			return;
		drop_closed(pieces);
	}
}

static void retire_all(struct fgv_pieces *pieces)
{
	const struct fgv_pieces_cursor end = {NULL, 0};

	fgv_pieces_retire(pieces, fgv_pieces_first(pieces), &end);
}

void fgv_pieces_fini(struct fgv_pieces *pieces)
{
	struct fgv_block *block;

	if (!fgv_pieces_are_used(pieces))
		return;
	fgv_pieces_collect(pieces, true);
	retire_all(pieces);
	while ((block = RB_MIN(fgv_block_tree, &pieces->blocks))) {
		take_off(pieces, block);
		drop_block(pieces, block);
	}
}
