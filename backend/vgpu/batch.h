/*
 * Launches that wait behind each other in one stream go to the driver together, as a graph: a
 * chain of kernel nodes that is made once and filled in anew for each batch. A launch costs the
 * driver some 3.5 us on the processor, a node of a chain about half of that, and next to nothing
 * where it is the same as last time (docs/design/0020-batches.md).
 *
 * Nothing waits for launches to come. A launch is put off only while the dispatcher has more
 * requests at hand, and everything else that is done to the GPU flushes what was put off first, so
 * that the order in which the GPU gets its work is that of the requests.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_BATCH_H
#define FGV_VGPU_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/gpu/gpu_ops.h"

struct fgv_object;
struct fgv_session;

#define FGV_BATCH_MAX	  32  /* launches */
#define FGV_BATCH_ARGS	  512 /* bytes of a launch's arguments; one with more goes alone */
#define FGV_BATCH_PARAMS  64
#define FGV_BATCH_STREAMS 8 /* that have chains, of those that were used last */
#define FGV_BATCH_SIZES	  4 /* of chains: 4, 8, 16 and 32 launches */
#define FGV_BATCH_TURNS	  2 /* chains of each size, in turns: one runs while one is filled in */

/* One kernel launch as it was asked for, with its arguments. */
struct fgv_batch_launch {
	struct fgv_gpu_function *function;
	uint32_t grid[3], block[3], shared_bytes;
	uint32_t args_len, param_count;
	uint16_t offsets[FGV_BATCH_PARAMS]; /* of the parameters in the arguments */
	uint8_t args[FGV_BATCH_ARGS] __attribute__((aligned(16)));
};

struct fgv_batch_chain;

/* What is kept for a stream. */
struct fgv_batch_stream {
	bool is_used;
	struct fgv_gpu_stream *stream;
	uint64_t stamp; /* of its last batch */
	uint32_t
		together; /* launches that came in batches, up to the number that pays for chains */
	uint8_t turn[FGV_BATCH_SIZES];
	struct fgv_batch_chain *chains[FGV_BATCH_SIZES][FGV_BATCH_TURNS];
};

struct fgv_batch {
	bool is_on;
	uint32_t count, target; /* flushed when it has so many */
	uint32_t failures;	/* chains that the driver could not follow */
	uint64_t stamp;
	struct fgv_gpu_stream *stream; /* of those that were put off */
	struct fgv_batch_stream streams[FGV_BATCH_STREAMS];
	struct fgv_batch_launch launches[FGV_BATCH_MAX];
};

/* @is_on: as configured. */
void fgv_batch_init(struct fgv_batch *batch, bool is_on);
/* Drops what was put off; its GPU is still there. */
void fgv_batch_fini(struct fgv_session *session);

/*
 * Launches @launch, whose function has been checked and whose arguments session->params points at,
 * now or with the next flush; what then goes wrong is deferred.
 */
CUresult fgv_batch_launch(struct fgv_session *session, const struct fgv_object *function,
			  const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			  struct fgv_gpu_stream *stream);

/* fgv_batch_flush() where there is something. */
void fgv_batch_flush_some(struct fgv_session *session);

/* Call before anything but fgv_batch_launch() is done to the GPU, and before it is left alone. */
#define fgv_batch_flush(session)                                                                   \
	do {                                                                                       \
		if ((session)->batch.count)                                                        \
			fgv_batch_flush_some(session);                                             \
	} while (0)

/* The stream, or functions that chains may name, are about to go. Nothing is put off. */
void fgv_batch_forget_stream(struct fgv_session *session, struct fgv_gpu_stream *stream);
void fgv_batch_forget_functions(struct fgv_session *session);

#endif
