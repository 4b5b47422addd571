/*
 * The text of graphs (api/wire.h), and what the host keeps of a node. A node's request is decoded
 * and checked as if it came by itself: its handler runs on a GPU that does nothing but note what
 * it was asked for.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_GRAPH_TEXT_H
#define FGV_VGPU_GRAPH_TEXT_H

#include <stdbool.h>
#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/handles.h"

struct fgv_session;

/* Of a node, besides what the GPU gets; all zero: of a node that does nothing. */
struct fgv_graph_kept {
	/* The message, and room for pointers to its arguments: in the graph's text, or in storage.
	 */
	uint8_t *message;
	void **pointers;
	uint32_t message_len, pointer_count;
	/* Of a node that was changed to another message than its text has room for; NULL: none. */
	void *storage;
	uint64_t bytes; /* of the message in it */
	/* With references: a kernel's module, a copy's arrays, or the event. */
	struct fgv_object *needs[2];
	uint32_t kind; /* as cost.h has it */
	uint64_t amount;
	uint64_t begins_ns, ends_ns; /* as predicted */
	uint32_t depth;		     /* of bodies that it is in */
};

/* Where in a text the reader is. */
struct fgv_graph_text {
	const uint8_t *at;
	uint64_t left;
	/*
	 * Room for so many more arguments. The text is the caller's own then, and stays for as long
	 * as its nodes do, which use what is in it. NULL: the guest may write to the text, and
	 * nodes get copies of what they need; they wait for no others.
	 */
	void **pointers;
	uint64_t pointers_left;
	/*
	 * What nodes have that are changed, by their numbers. One whose message is as long as
	 * before is written over; others take memory, if they may.
	 */
	struct fgv_graph_kept *old;
	bool may_grow;
};

/*
 * Reads the next node, which has a number below @limit and waits for nodes with smaller numbers,
 * into @node and @kept, which are all zero. CUDA_ERROR_INVALID_VALUE for what is no such node, or
 * the code of the request; @kept is all zero then, too. What is kept of a node that is changed may
 * have lost its message to @kept, also after a failure: then it is only good for being dropped.
 */
CUresult fgv_graph_text_next(struct fgv_session *session, struct fgv_graph_text *text,
			     uint32_t limit, uint32_t *number, struct fgv_gpu_node *node,
			     struct fgv_graph_kept *kept);

/* Gives back what it holds. */
void fgv_graph_text_drop(struct fgv_session *session, struct fgv_graph_kept *kept);

/* Whether the host memory that @node copies from or to is still the session's. */
bool fgv_graph_text_is_mapped(const struct fgv_session *session, const struct fgv_gpu_node *node);

#endif
