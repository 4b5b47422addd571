/*
 * What the files of graphs share. A graph lives in this process: its nodes hold the requests that a
 * launch posts (client/record.h), recorded when the node was made. docs/design/0006-graphs.md says
 * why.
 *
 * Threads: a graph belongs to the threads of the program, which must not use it at once
 * (CUDA says so too). A launch locks what it launches.
 */
#ifndef FGV_CUDA_GRAPH_PRIV_H
#define FGV_CUDA_GRAPH_PRIV_H

#include <cuda.h>
#include <stdbool.h>

#include "frontend/client/recorder.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/graph/user_object.h"
#include "frontend/cuda/stream/attributes.h"

struct fgv_graph;
struct fgv_graph_memory;
struct fgv_home;

/* What a choice chooses from (choice.h). */
struct fgv_bodies {
	uint32_t count;
	struct fgv_graph **graphs;
	CUgraph *names; /* as the program was told them */
	/* Of what the program made, with a reference; NULL: it is a copy. */
	struct fgv_home *home;
	uint64_t condition;
};

/*
 * What a node does, and the parameters that the program gave for it. A task never changes: a node
 * that is changed gets another one. So all copies of a node share the task.
 */
struct fgv_task {
	CUgraphNodeParams params; /* of a kernel, without its arguments */
	struct fgv_record *records;
	struct fgv_attributes attributes; /* of a kernel */
	uint32_t device;		  /* whose handles the records have, if there are any */
	uint32_t owners;		  /* atomic */
};

/* The task, with a reference, and what a copy of the node has of its own. */
struct fgv_work {
	struct fgv_task *task;
	struct fgv_graph *child;
	struct fgv_bodies *bodies;
	struct fgv_graph_memory *memory; /* that it allocates or frees, with a reference */
};

struct fgv_node {
	struct fgv_node *next; /* in the order of their making */
	struct fgv_graph *graph;
	CUgraphNode name;	  /* what the program holds; NULL in what is instantiated */
	CUgraphNode origin;	  /* what it was copied from; NULL: nothing */
	struct fgv_node *twin;	  /* while its graph is copied: the copy */
	struct fgv_node **before; /* what it waits for */
	CUgraphEdgeData *edges;	  /* of each, for what of it: as the program said */
	uint32_t before_count;
	uint32_t part;	      /* of what is instantiated: that it is launched with (exec_text.h) */
	uint32_t first, last; /* its numbers in the host's graph of that part */
	uint64_t moved;	      /* bytes that it moves there */
	struct fgv_node *next_changed; /* since the host was told what they do */
	bool is_changed;	       /* it is among those */
	bool disabled;
	bool marked;	/* by who walks through the graph */
	bool is_pooled; /* its memory is the graph's pool's */
	bool has_pooled_lists;
	struct fgv_work work;
	void **args; /* of a kernel, as the program was told them: a copy, behind the pointers */
};

struct fgv_graph {
	CUgraph name;
	struct fgv_node *first;
	struct fgv_node **end;
	void *pool; /* with the nodes that were copied, and what they wait for; NULL: none were */
	struct fgv_held *held; /* objects of the program's that it keeps */
	uint32_t count;
	uint32_t executables; /* made of it and not destroyed */
	struct fgv_graph
		*within;       /* the graph of the choice that it is a body of; NULL: it is none */
	struct fgv_home *home; /* of its conditions, with a reference; NULL: it has none */
	bool is_child;	       /* a node's own: not for the program to destroy */
	bool is_moved;	       /* given to that node by the program */
};

/* @named: the program gets handles for it and for its nodes. NULL: no memory. */
struct fgv_graph *fgv_graph_make(bool named);
void fgv_graph_free(struct fgv_graph *graph);
CUresult fgv_graph_copy(struct fgv_graph *graph, bool named, struct fgv_graph **copy);

static inline struct fgv_graph *fgv_graph_of(CUgraph name)
{
	return fgv_object_address(FGV_OBJECT_GRAPH, name);
}

static inline struct fgv_node *fgv_node_of(CUgraphNode name)
{
	return fgv_object_address(FGV_OBJECT_NODE, name);
}

static inline CUgraphNodeType fgv_node_type(const struct fgv_node *node)
{
	return node->work.task->params.type;
}

/*
 * A new node of @graph that does @work, which is its from then on, and waits for @before,
 * nodes of the same graph, as @edges say; NULL: ordinarily.
 */
CUresult fgv_graph_add(struct fgv_graph *graph, struct fgv_node *const *before,
		       const CUgraphEdgeData *edges, size_t before_count,
		       const struct fgv_work *work, struct fgv_node **node);
void fgv_node_free(struct fgv_node *node);

/* @edge NULL: an ordinary one. CUDA_ERROR_INVALID_VALUE if there is an edge, or can't be one. */
CUresult fgv_node_add_before(struct fgv_node *node, struct fgv_node *before,
			     const CUgraphEdgeData *edge);
void fgv_node_remove_before(struct fgv_node *node, const struct fgv_node *before);
/* How it waits for @before; NULL: not at all. */
const CUgraphEdgeData *fgv_node_edge(const struct fgv_node *node, const struct fgv_node *before);

/*
 * Whether it or its child graphs allocate or free memory. Of such a graph there can't be a second
 * one, in any form, and nothing can be taken out of it.
 */
bool fgv_graph_has_memory(const struct fgv_graph *graph);

/* Whether there are conditions, or nodes that choose by them. There is no copy of such a graph. */
bool fgv_graph_has_choices(const struct fgv_graph *graph);

/*
 * The device of all nodes that do something on one; *device stays as it is where there are none.
 * CUDA_ERROR_NOT_SUPPORTED, counted: there are several.
 */
CUresult fgv_graph_find_device(const struct fgv_graph *graph, uint32_t *device);

/* How many nodes it has, with those of its child graphs and bodies. */
uint32_t fgv_graph_count_all(const struct fgv_graph *graph);

/* Such a graph is gone: memory that only it needed goes now, or at the next opportunity. */
void fgv_graph_sweep(void);

/* Marks, of the nodes of @graph, @last and what has to be done before them. */
CUresult fgv_graph_mark_before(struct fgv_graph *graph, struct fgv_node *const *last, size_t count);

/* The nodes of @graph in an order in which they can be done, for free(). NULL: a circle. */
CUresult fgv_graph_sort(struct fgv_graph *graph, struct fgv_node ***nodes);

/* Notes what a new @node, of a graph that the program or a capture makes, does to memory. */
void fgv_node_note_memory(const struct fgv_node *node);

/* Gives @node other parameters, of its kind, and other attributes. */
CUresult fgv_node_remake(struct fgv_node *node, const CUgraphNodeParams *params,
			 const struct fgv_attributes *attributes);
/* The same with the attributes that it has. CUDA_ERROR_INVALID_VALUE for NULL or another kind. */
CUresult fgv_node_change(struct fgv_node *node, const CUgraphNodeParams *params);

/* The node @name if it is one of @type, else NULL. */
struct fgv_node *fgv_node_of_type(CUgraphNode name, CUgraphNodeType type);

/* Gives @node->args the arguments of its kernel, as the launch that was recorded has them. */
CUresult fgv_node_list_args(struct fgv_node *node);

/*
 * What a node with @params does. It is recorded, as the call that does it in a stream would do
 * it, so wrong parameters give that call's error.
 */
CUresult fgv_work_make(const CUgraphNodeParams *params, const struct fgv_attributes *attributes,
		       struct fgv_work *work);
/* What a capture has recorded in a stream of @device; it stays the recorder's after a failure. */
CUresult fgv_work_take(struct fgv_recorder *recorder, uint32_t device, struct fgv_work *work);
CUresult fgv_work_copy(const struct fgv_work *work, struct fgv_work *copy);
/* Work with a new task of the thread's device, which owns @records from then on, and no more. */
CUresult fgv_work_start(const CUgraphNodeParams *params, const struct fgv_attributes *attributes,
			struct fgv_record *records, struct fgv_work *work);
/* The same of a node that is a graph. */
CUresult fgv_work_copy_child(struct fgv_graph *graph, struct fgv_graph **child);
void fgv_work_free(struct fgv_work *work);

/* Whether there can be such an edge between nodes of these types. */
bool fgv_edge_is_good(const CUgraphEdgeData *edge, CUgraphNodeType from, CUgraphNodeType to);
/* NULL is an ordinary one. */
bool fgv_edges_are_alike(const CUgraphEdgeData *a, const CUgraphEdgeData *b);
/* Whether @edges, NULL for none, say nothing that an ordinary edge does not. */
bool fgv_edges_are_plain(const CUgraphEdgeData *edges, size_t count);

#endif
