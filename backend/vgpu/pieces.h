/*
 * Memory of a session that may move (docs/design/0028-movable.md): addresses that stay, and pieces
 * of physical memory behind them that come and go. What a program allocates is made of them; a
 * piece that nothing can have touched yet takes no memory of the GPU.
 *
 * A block is one reservation of addresses. A large allocation has a block to itself; small ones
 * share blocks of one piece. A block that was freed leaves once the work is done that was queued
 * before. Its memory counts as late until then (quota.h).
 *
 * Memory that programs share is made in the same way, but of one piece for each block, which is
 * there from the beginning and stays: it has a key once it is shared (sharing.h).
 *
 * Where pieces are missing, fgv_pieces_touch() comes before whatever may use them. Work that does
 * not say what it uses, such as a kernel, may use all.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_PIECES_H
#define FGV_VGPU_PIECES_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <sys/queue.h>
#include "backend/gpu/gpu_ops.h"
#include "backend/shared.h"

#define FGV_PIECE_BYTES_MAX (64ull << 20) /* what is moved at once stands for little time */

/* What is larger has a block of its own. */
#define FGV_PIECES_SMALL_MAX (1ull << 20)

struct fgv_account;

/* Memory with @key is on the GPU no more, as far as this session is concerned. */
typedef void fgv_pieces_let_go(const struct fgv_key *key, void *of);

enum fgv_piece_state {
	FGV_PIECE_EMPTY, /* all zero, and nowhere */
	FGV_PIECE_IN,	 /* on the GPU */
	FGV_PIECE_OUT,	 /* the caller has its bytes */
};

struct fgv_memory_piece {
	struct fgv_gpu_memory *memory; /* while it is in */
	enum fgv_piece_state state;
	bool is_kept; /* the caller has its bytes, also while it is in */
};

struct fgv_piece_units;

struct fgv_block {
	RB_ENTRY(fgv_block) node;
	TAILQ_ENTRY(fgv_block) link; /* of those that small allocations share, or those leaving */
	uint64_t address, bytes;
	uint64_t charged;	       /* of one that is leaving: what it counts for until then */
	struct fgv_piece_units *units; /* NULL: it is one allocation */
	uint32_t count;
	bool is_shared; /* by @key */
	struct fgv_key key;
	struct fgv_memory_piece pieces[]; /* FGV_PIECE_BYTES_MAX each, but for the last; or one */
};

RB_HEAD(fgv_block_tree, fgv_block);
TAILQ_HEAD(fgv_block_list, fgv_block);

struct fgv_pieces {
	struct fgv_gpu *gpu;
	struct fgv_account *account; /* shows away_bytes; NULL: the session does not move */
	uint64_t granule;
	struct fgv_block_tree blocks;  /* but those leaving */
	struct fgv_block_list shared;  /* of them, those of small allocations */
	struct fgv_block_list leaving; /* freed, and not yet behind a fence */
	struct fgv_block_list closed;  /* freed before the fence */
	struct fgv_gpu_fence *fence;   /* NULL: none is needed */
	uint64_t late_bytes;	       /* charged for what was freed */
	bool has_units;		       /* freed in blocks that stay, and not yet behind a fence */
	uint64_t away_bytes;	       /* of pieces that are not on the GPU */
	uint32_t missing;	       /* how many these are */
	uint64_t shared_bytes;	       /* of blocks with a key, those leaving included */
	fgv_pieces_let_go *let_go;     /* NULL: memory is not shared */
	void *of;
};

/* A session that does not move: nothing here is called, but fgv_pieces_fini(). */
void fgv_pieces_init(struct fgv_pieces *pieces, struct fgv_gpu *gpu);
/* One that does, whose account is @account. CUDA_ERROR_NOT_SUPPORTED where the GPU can't. */
CUresult fgv_pieces_use(struct fgv_pieces *pieces, struct fgv_account *account);
/* One that may share memory. */
CUresult fgv_pieces_use_whole(struct fgv_pieces *pieces, struct fgv_account *account,
			      fgv_pieces_let_go *let_go, void *of);
/* Gives all back; the GPU uses none of it. */
void fgv_pieces_fini(struct fgv_pieces *pieces);

static inline bool fgv_pieces_are_used(const struct fgv_pieces *pieces)
{
	return pieces->account != NULL;
}

/* @bytes: not 0, and below 2^63. */
CUresult fgv_pieces_alloc(struct fgv_pieces *pieces, uint64_t bytes, uint64_t *address);
/*
 * What fgv_pieces_alloc() gave for @bytes goes, after the work that was queued before; @charged:
 * what it counts for until then.
 */
CUresult fgv_pieces_free(struct fgv_pieces *pieces, uint64_t address, uint64_t bytes,
			 uint64_t charged);
/* The block that an allocation at @address lies in, which may get a key; NULL. */
struct fgv_block *fgv_pieces_find(struct fgv_pieces *pieces, uint64_t address);
void fgv_pieces_share(struct fgv_pieces *pieces, struct fgv_block *block,
		      const struct fgv_key *key);

/* What was freed and is not used any more goes now. @waits: all of it, however long that takes. */
void fgv_pieces_collect(struct fgv_pieces *pieces, bool waits);
/* Whether there is anything yet that was freed and is used. */
static inline bool fgv_pieces_are_leaving(const struct fgv_pieces *pieces)
{
	return pieces->fence != NULL;
}

/*
 * Work is about to use [@address, @address + @bytes), as far as that was allocated. Pieces of it
 * that are empty come in. CUDA_ERROR_OUT_OF_MEMORY: the GPU has no room for them.
 */
CUresult fgv_pieces_touch(struct fgv_pieces *pieces, uint64_t address, uint64_t bytes);
static inline CUresult fgv_pieces_touch_all(struct fgv_pieces *pieces)
{
	return fgv_pieces_touch(pieces, 0, UINT64_MAX);
}

/* A place among the pieces of all blocks, in the order of addresses. */
struct fgv_pieces_cursor {
	struct fgv_block *block; /* NULL: behind the last one */
	uint32_t number;
};

struct fgv_pieces_cursor fgv_pieces_first(struct fgv_pieces *pieces);
void fgv_pieces_next(struct fgv_pieces_cursor *at);
static inline bool fgv_pieces_is_at(const struct fgv_pieces_cursor *at,
				    const struct fgv_pieces_cursor *other)
{
	return at->block == other->block && at->number == other->number;
}
struct fgv_memory_piece *fgv_pieces_at(const struct fgv_pieces_cursor *at, uint64_t *address,
				       uint64_t *bytes);
/* Bytes of the pieces in @state. */
uint64_t fgv_pieces_bytes(struct fgv_pieces *pieces, enum fgv_piece_state state);

/*
 * The piece comes in: with memory that is all zero. CUDA_ERROR_OUT_OF_MEMORY leaves it as it was.
 */
CUresult fgv_pieces_bind(struct fgv_pieces *pieces, const struct fgv_pieces_cursor *at);
/*
 * Those from @from up to @to that are in go out, in two steps: nothing on the GPU uses them. A
 * fence behind the first has passed before the second. The caller has their bytes.
 */
void fgv_pieces_retire(struct fgv_pieces *pieces, struct fgv_pieces_cursor from,
		       const struct fgv_pieces_cursor *to);
void fgv_pieces_unbind(struct fgv_pieces *pieces, struct fgv_pieces_cursor from,
		       const struct fgv_pieces_cursor *to);
/* The caller keeps no piece's bytes any more. */
void fgv_pieces_forget(struct fgv_pieces *pieces);

#endif
