/*
 * A row of kernel launches as a graph of the driver's: each node waits for the one in front of it.
 * What the nodes are is changed here at any time; the driver is told before the row is launched,
 * of those that have changed since.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_BATCH_ROW_H
#define FGV_VGPU_BATCH_ROW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "backend/gpu/gpu_ops.h"

struct fgv_session;

#define FGV_BATCH_ARGS	 512 /* bytes of a launch's arguments; one with more goes alone */
#define FGV_BATCH_PARAMS 64

/* All that tells launches apart but for their arguments. */
struct fgv_batch_shape {
	struct fgv_gpu_function *function;
	uint32_t grid[3], block[3], shared_bytes, reserved;
};
_Static_assert(sizeof(struct fgv_batch_shape) == 5 * sizeof(uint64_t), "compared as a whole");

/* One kernel launch as it was asked for, with its arguments. */
struct fgv_batch_launch {
	struct fgv_batch_shape shape;
	uint32_t args_len, param_count;
	uint8_t args[FGV_BATCH_ARGS] __attribute__((aligned(16)));
	uint16_t offsets[FGV_BATCH_PARAMS]; /* of the parameters in the arguments */
};

/* What a node of a row is to be. */
struct fgv_batch_kept {
	struct fgv_batch_shape shape;
	bool is_stale;	 /* the driver has not been told */
	uint32_t before; /* the node in front of it */
	uint32_t args_len, param_count;
	uint8_t args[FGV_BATCH_ARGS] __attribute__((aligned(16)));
	void *params[FGV_BATCH_PARAMS];
};

struct fgv_batch_row {
	struct fgv_gpu_graph *graph;
	uint32_t count;
	struct fgv_batch_kept *kept; /* of each node */
	struct fgv_gpu_node nodes[];
};

/* A row of these launches, or NULL. */
struct fgv_batch_row *fgv_batch_row_create(struct fgv_session *session,
					   const struct fgv_batch_launch *launches, uint32_t count);
void fgv_batch_row_destroy(struct fgv_session *session, struct fgv_batch_row *row);

static inline bool fgv_batch_same_shape(const struct fgv_batch_shape *one,
					const struct fgv_batch_shape *other)
{
	return !memcmp(one, other, sizeof(*one));
}

/* Makes node @number a launch of other arguments, or any other launch. */
static inline void fgv_batch_row_set_args(struct fgv_batch_row *row, uint32_t number,
					  const void *args)
{
	struct fgv_batch_kept *kept = &row->kept[number];

	memcpy(kept->args, args, kept->args_len);
	kept->is_stale = true;
}
void fgv_batch_row_put(struct fgv_batch_row *row, uint32_t number,
		       const struct fgv_batch_launch *launch);

/* The other way round. */
void fgv_batch_row_get(const struct fgv_batch_row *row, uint32_t number,
		       struct fgv_batch_launch *launch);

/* Copies what there is of @from, rather than room for the longest arguments. */
void fgv_batch_copy(struct fgv_batch_launch *to, const struct fgv_batch_launch *from);

/* Where this fails nothing was launched, and the row is to be destroyed. */
CUresult fgv_batch_row_launch(struct fgv_session *session, struct fgv_batch_row *row,
			      struct fgv_gpu_stream *stream);

#endif
