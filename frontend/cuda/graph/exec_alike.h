/*
 * Texts of graphs (api/wire.h) that are alike: the same nodes in the same order, each waiting for
 * the same others, with the same functions. Only the grids, blocks, shared memory and arguments of
 * ordinary launches may differ. So the host can change a graph of one of them into one of the other
 * by changing those nodes in place.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_EXEC_ALIKE_H
#define FGV_CUDA_EXEC_ALIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/wire.h"

/* What finds texts: equal ones have equal numbers, and texts that are alike the same @shape. */
struct fgv_exec_numbers {
	uint64_t whole, shape;
};

/* False: @text is not one of kernels alone. */
bool fgv_exec_alike_number(const uint8_t *text, size_t len, struct fgv_exec_numbers *numbers);

/* Whether two texts of @len bytes, each of kernels alone, are alike. */
bool fgv_exec_alike_are(const uint8_t *text, const uint8_t *other, size_t len);

/* Where in two texts that are alike the reader is: all zero but for what the caller sets. */
struct fgv_exec_difference {
	const uint8_t *from, *to; /* both texts; set by the caller, as is their length */
	size_t len, at;
};

/*
 * The next node that differs, as it is in @to: for an update, without what it waits for. False:
 * there are no more.
 */
bool fgv_exec_alike_next(struct fgv_exec_difference *difference, struct fgv_graph_node *head,
			 const uint8_t **message);

#endif
