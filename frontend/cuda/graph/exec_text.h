/*
 * The texts of a graph (api/wire.h), which the host builds its graphs from.
 *
 * A graph is cut into parts that are launched one after another. Some are for the host, and each of
 * these has a text; between them are those of the program, whose nodes' requests are posted one by
 * one. A graph with nothing in it that is the program's is one part.
 *
 * Threads: the graph is the caller's.
 */
#ifndef FGV_CUDA_EXEC_TEXT_H
#define FGV_CUDA_EXEC_TEXT_H

#include "api/wire.h"
#include "frontend/client/stats.h"
#include "frontend/cuda/graph/graph_priv.h"

/* All zero: an empty one. */
struct fgv_exec_part {
	uint8_t *bytes;
	size_t len, room;
	uint32_t count; /* of nodes in the text */
	uint32_t work;	/* of them, those that do something */
	uint64_t moved; /* bytes, by copies and fills */
	/* Where what is written is: as struct fgv_graph_node has it. */
	uint32_t inside;
	uint16_t body;
	bool has_priorities; /* its kernels run with their own */
};

/* All zero, but for what the caller sets: an empty one. */
struct fgv_exec_text {
	struct fgv_exec_part *parts;
	uint32_t count;
	bool is_cut;
	bool is_dry;		  /* nothing is written */
	bool has_priorities;	  /* kernels run with their own; set by the caller */
	bool starts_with_program; /* the first part is the program's */
	bool has_choices;
	uint32_t choices_part; /* in which all of them are */
};

static inline bool fgv_exec_text_is_program(const struct fgv_exec_text *text, uint32_t part)
{
	return (part & 1) != text->starts_with_program;
}

/*
 * All of @graph, which has no circle; child graphs as nodes between two that do nothing. Its nodes
 * learn their parts, and their numbers there. *@way: whether it is all for the host, or why not.
 */
CUresult fgv_exec_text_write(struct fgv_exec_text *text, struct fgv_graph *graph,
			     enum fgv_stats_graph *way);
void fgv_exec_text_free(struct fgv_exec_text *text);

/*
 * What @node of a host's part does now, for an update of that part, which moves *@moved bytes.
 * CUDA_ERROR_NOT_SUPPORTED where that is not for the host, takes another number of nodes there, or
 * moves too much.
 */
CUresult fgv_exec_text_change(struct fgv_exec_part *text, struct fgv_node *node, uint64_t *moved);
/* A node as @head says, with @message, which waits for those with the numbers @before. */
CUresult fgv_exec_part_put(struct fgv_exec_part *part, struct fgv_graph_node head,
			   const uint32_t *before, const void *message);
void fgv_exec_part_free(struct fgv_exec_part *part);

#endif
