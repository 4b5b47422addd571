/*
 * Sequences of launches that came before, as rows that are ready. A sequence has one row in whose
 * nodes arguments are set anew as they differ, a twin of it if they always do, so that one runs
 * while the other is changed, and a row of its own for each set of arguments that came again.
 *
 * Rows belong to a stream, as the driver runs one graph after another even in two streams. Their
 * number and that of their nodes are limited; the one that was used longest ago makes room. They
 * are charged to the session, and go before an allocation is refused.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_BATCH_CACHE_H
#define FGV_VGPU_BATCH_CACHE_H

#include "backend/vgpu/batch_cut.h"
#include "backend/vgpu/batch_row.h"

#define FGV_BATCH_ENTRIES 64   /* rows of one session */
#define FGV_BATCH_NODES	  2048 /* in all of them */
#define FGV_BATCH_SEEN                                                                             \
	512 /* sequences that are remembered by name only; a multiple of FGV_BATCH_WAYS */
#define FGV_BATCH_WAYS 4 /* places that one of them may take */

struct fgv_batch_entry {
	struct fgv_batch_row *row; /* NULL: there is none here */
	struct fgv_gpu_stream *stream;
	uint64_t hash; /* of the shapes */
	uint64_t stamp;
	bool is_fixed;		      /* no argument of it is ever changed */
	uint32_t changes;	      /* times in a row that arguments were set anew */
	struct fgv_batch_entry *next; /* what came after it last time, or NULL */
	uint64_t charged;
};

struct fgv_batch_seen {
	uint64_t hash;
	uint64_t at;	/* how many launches had gone by */
	uint32_t times; /* 0: nothing is remembered here */
};

struct fgv_batch_cache {
	uint32_t nodes;
	uint64_t stamp;
	bool is_adding; /* it does not make room for itself */
	struct fgv_batch_entry entries[FGV_BATCH_ENTRIES];
	uint64_t launches; /* that have gone by */
	struct fgv_batch_seen seen[FGV_BATCH_SEEN];
};

/*
 * Whether what has this hash has come so often (@worth times, a power of two) that it should have a
 * row, each time with no more launches in between than all rows together have nodes: else it would
 * be gone by the time that it is needed. Where it got none it is tried anew after twice as often.
 */
bool fgv_batch_cache_is_due(struct fgv_batch_cache *cache, uint64_t hash, uint32_t worth);

/* The entry of this stream and these shapes that was used last, or NULL. */
struct fgv_batch_entry *fgv_batch_cache_find(struct fgv_batch_cache *cache,
					     const struct fgv_gpu_stream *stream, uint64_t hash,
					     uint32_t count);
/* One that begins with @shape. */
struct fgv_batch_entry *fgv_batch_cache_begins(struct fgv_batch_cache *cache,
					       const struct fgv_gpu_stream *stream,
					       const struct fgv_batch_shape *shape);
/* Another than @entry, of the same sequence, that is like it up to @number, which has @args. */
struct fgv_batch_entry *fgv_batch_cache_like(struct fgv_batch_cache *cache,
					     const struct fgv_batch_entry *entry, uint32_t number,
					     const void *args);
/*
 * One of the same sequence whose arguments may be changed, the one that was used longest ago of
 * several; NULL.
 */
struct fgv_batch_entry *fgv_batch_cache_to_change(struct fgv_batch_cache *cache,
						  const struct fgv_batch_entry *entry);
/* How many there are of those. */
unsigned fgv_batch_cache_count_to_change(const struct fgv_batch_cache *cache,
					 const struct fgv_batch_entry *entry);

/* A new one, or NULL: no memory, no room in the quota, or the driver does not make it. */
struct fgv_batch_entry *fgv_batch_cache_add(struct fgv_session *session,
					    struct fgv_gpu_stream *stream, uint64_t hash,
					    const struct fgv_batch_launch *launches,
					    uint32_t count);
void fgv_batch_cache_use(struct fgv_batch_cache *cache, struct fgv_batch_entry *entry);
void fgv_batch_cache_drop(struct fgv_session *session, struct fgv_batch_entry *entry);
void fgv_batch_cache_forget_stream(struct fgv_session *session,
				   const struct fgv_gpu_stream *stream);
void fgv_batch_cache_forget_all(struct fgv_session *session);
/* The same, where the room is needed; @of: the session. Whether that makes some. */
bool fgv_batch_cache_give_up(void *of);

#endif
