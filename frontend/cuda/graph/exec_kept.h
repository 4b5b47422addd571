/*
 * Graphs of the host's that outlive their executable graphs. A program that captures and
 * instantiates the same work again and again gets the graph that the host has built already: then
 * instantiating asks the host for nothing. Where the work is the same but for arguments and grids,
 * it gets a graph that was built of work like it (exec_alike.h), and the host changes that.
 *
 * A graph is the same if its text is, byte for byte. Only graphs of kernels are kept: what a copy
 * or a fill does depends on the memory that was at its addresses when the graph was built. None is
 * kept before a text like its own has come a second time, so a program whose graphs are all of
 * different shapes has nothing kept. What is kept is bounded here, and the host charges for it as
 * for any graph.
 *
 * Threads: any; the lane is the caller's, and of the first device, where graphs are.
 */
#ifndef FGV_CUDA_EXEC_KEPT_H
#define FGV_CUDA_EXEC_KEPT_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frontend/cuda/graph/exec_alike.h"

struct fgv_lane;

/* At a time, of one device. */
#define FGV_EXEC_KEPT_MAX	16u
#define FGV_EXEC_KEPT_NODES_MAX 4096u

/* All of a text. */
struct fgv_exec_kept_text {
	const uint8_t *bytes;
	size_t len;
	uint32_t nodes;
};

/* What one of the host's graphs was built from; text NULL: it is not to be kept. */
struct fgv_exec_source {
	uint8_t *text;
	size_t len;
	uint32_t nodes;
	struct fgv_exec_numbers numbers; /* of the text, to find it by */
	uint32_t age;			 /* of the modules and limits that it was built with */
	bool was_launched;		 /* last in the stream that has this handle of the host's */
	uint32_t stream;
};

enum fgv_exec_kept {
	FGV_EXEC_KEPT_NONE,
	FGV_EXEC_KEPT_SAME,  /* a graph of the same text */
	FGV_EXEC_KEPT_ALIKE, /* one of a text that is alike */
};

/*
 * Looks for a graph that was kept, and takes it: *@graph is its handle, with *@source. With
 * FGV_EXEC_KEPT_ALIKE the caller has the host change it, and then says so by
 * fgv_exec_kept_become(). Unless @stream is NULL, it is one that was launched nowhere but there.
 * FGV_EXEC_KEPT_NONE: the caller has one built of @text, which *@source has if one like it has
 * come before.
 */
enum fgv_exec_kept fgv_exec_kept_take(uint32_t device, const struct fgv_exec_kept_text *text,
				      const uint32_t *stream, uint32_t *graph,
				      struct fgv_exec_source *source);

/* The graph of @source, taken for @text, does what that says now. */
void fgv_exec_kept_become(const struct fgv_exec_kept_text *text, struct fgv_exec_source *source);

/* Keeps @graph, or has the host destroy it. *@source is empty then. */
void fgv_exec_kept_put(struct fgv_lane *lane, uint32_t graph, struct fgv_exec_source *source);

/* @source is a graph's that is not to be kept. */
void fgv_exec_kept_forget(struct fgv_exec_source *source);

/*
 * Has the host destroy all that is kept: memory is wanted, or a module or limit that graphs were
 * built with goes, after which those built before are not kept, either. Whether there were any.
 */
bool fgv_exec_kept_drop(struct fgv_lane *lane);

#endif
