/*
 * Launches that wait behind each other in one stream go to the driver together, as a graph. A
 * launch costs the driver some 3.5 us on the processor; as a node of a graph that is filled in anew
 * about half of that (batch_chain.h), as one of a sequence that came before, a third where its
 * arguments are others, and next to nothing where they are the same (batch_follow.h). See
 * docs/design/0020-batches.md.
 *
 * Nothing waits for launches to come while the GPU might run out of work. Everything else that is
 * done to the GPU flushes what was put off first, so that the order in which the GPU gets its work
 * is that of the requests.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_BATCH_H
#define FGV_VGPU_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/batch_cache.h"
#include "backend/vgpu/batch_chain.h"
#include "backend/vgpu/batch_cut.h"
#include "backend/vgpu/batch_row.h"

struct fgv_object;
struct fgv_session;

#define FGV_BATCH_MAX	  32 /* launches that wait before a chain is made of them */
#define FGV_BATCH_STREAMS 8  /* that have chains and sequences, of those that were used last */

/* Of a sequence all launches are kept, and before it may be some that wait. */
#define FGV_BATCH_KEPT (FGV_BATCH_LONGEST + FGV_BATCH_MAX)

/* What is kept for a stream. */
struct fgv_batch_stream {
	bool is_used;
	struct fgv_gpu_stream *stream;
	uint64_t stamp; /* of its last batch */
	uint32_t
		together; /* launches that came in batches, up to the number that pays for graphs */
	struct fgv_batch_entry *last; /* its last sequence, or NULL */
	struct fgv_batch_chains chains;
};

/* A launch as its handler has it, the arguments in one piece behind params[0]. */
struct fgv_batch_asked {
	struct fgv_batch_shape shape;
	uint32_t args_len, param_count;
	const void *args;
};

struct fgv_batch {
	bool is_on;
	bool is_begun;	   /* there were launches since the last break */
	bool is_waiting;   /* what was put off stays so for now */
	uint32_t target;   /* flushed when so many were put off */
	uint32_t failures; /* rows that the driver could not follow */
	uint64_t stamp;
	struct fgv_gpu_stream *stream; /* of those that were put off */
	/* On the forecast's line: where the work of that stream ends; and what was not put off. */
	const uint64_t *ends_ns;
	uint64_t sent_until_ns;
	struct fgv_batch_stream streams[FGV_BATCH_STREAMS];

	/* Launches in the order in which they came: those before @sent have gone to the driver. */
	uint32_t first; /* of the sequence that goes on, if all of it is here */
	uint32_t sent, count;
	struct fgv_batch_cut cut;

	/* A sequence that came before, and of which @at launches have come now; then none is kept.
	 */
	struct fgv_batch_entry *followed;
	uint32_t at;
	uint32_t changes; /* launches of these whose arguments are others */
	struct fgv_batch_cache cache;

	struct fgv_batch_launch launches[FGV_BATCH_KEPT];
};

/* @is_on: as configured. */
void fgv_batch_init(struct fgv_batch *batch, bool is_on);
/* Drops what was put off; its GPU is still there. */
void fgv_batch_fini(struct fgv_session *session);

/*
 * Launches @function, which has been checked and whose arguments session->params points at, in the
 * stream @of (NULL: the legacy one), now or with the next flush; what then goes wrong is deferred.
 */
CUresult fgv_batch_launch(struct fgv_session *session, const struct fgv_object *function,
			  const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			  const struct fgv_object *of);

/* Sends what was put off to the driver, because the program does something else. */
void fgv_batch_break(struct fgv_session *session);

/* Call before anything but fgv_batch_launch() is done to the GPU for the program. */
#define fgv_batch_flush(session)                                                                   \
	do {                                                                                       \
		if ((session)->batch.is_begun)                                                     \
			fgv_batch_break(session);                                                  \
	} while (0)

/* Sends what was put off, because it may not wait any longer; the program's next may continue it.
 */
void fgv_batch_send(struct fgv_session *session);

static inline bool fgv_batch_has_some(const struct fgv_batch *batch)
{
	return batch->at || batch->sent < batch->count;
}

/*
 * At the end of a turn: sends what was put off, unless more launches are at hand (@more), or the
 * stream, on a GPU that nobody else wants, has work for longer than they are waited for.
 */
void fgv_batch_settle(struct fgv_session *session, bool more);

/* The stream, or functions that rows may name, are about to go. Nothing is put off. */
void fgv_batch_forget_stream(struct fgv_session *session, struct fgv_gpu_stream *stream);
void fgv_batch_forget_functions(struct fgv_session *session);

/* --- For the files of this theme ------------------------------------------------ */

/* A row of the driver's could not be launched. */
void fgv_batch_failed(struct fgv_session *session, CUresult status);

/* Launches what is kept from @sent on. */
void fgv_batch_send_kept(struct fgv_session *session);

/* What is known of the stream of the launches at hand. */
struct fgv_batch_stream *fgv_batch_stream_of(struct fgv_session *session,
					     struct fgv_gpu_stream *stream);

#endif
