/*
 * Graphs, as a program makes and asks about them. Their nodes are in node.h, what is launched of
 * them in exec.h.
 *
 * CUDA_ERROR_INVALID_VALUE for what is no graph or node, and for a missing out-parameter;
 * CUDA_ERROR_OUT_OF_MEMORY.
 *
 * Threads: any; but a graph belongs to the threads of the program, which must not use it at once.
 */
#ifndef FGV_CUDA_GRAPH_H
#define FGV_CUDA_GRAPH_H

#include <cuda.h>

/* @flags: none are known. */
CUresult fgv_graph_create(CUgraph *graph, unsigned flags);
CUresult fgv_graph_destroy(CUgraph graph);
/* CUDA_ERROR_NOT_SUPPORTED for a graph that allocates or frees memory, or has conditions. */
CUresult fgv_graph_clone(CUgraph *clone, CUgraph original);

/* As text for Graphviz. @flags: of CUgraphDebugDot_flags. CUDA_ERROR_OPERATING_SYSTEM. */
CUresult fgv_graph_print_dot(CUgraph graph, const char *path, unsigned flags);

/*
 * Lists that the caller gives room for, *@count entries; what is not used becomes NULL. Without
 * room, *@count becomes how many there are. CUDA_ERROR_LOSSY_QUERY if edges have data and @edges
 * is NULL.
 */
CUresult fgv_graph_get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult fgv_graph_get_roots(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult fgv_graph_get_edges(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
			     CUgraphEdgeData *edges, size_t *count);

/* @edges NULL: ordinary ones. Those to be removed are found by their ends alone. */
CUresult fgv_graph_add_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
			     const CUgraphEdgeData *edges, size_t count);
CUresult fgv_graph_remove_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t count);

/* References to an object of the program's (user_object.h). @flags: CU_GRAPH_USER_OBJECT_MOVE. */
CUresult fgv_graph_retain_object(CUgraph graph, CUuserObject object, unsigned count,
				 unsigned flags);
CUresult fgv_graph_release_object(CUgraph graph, CUuserObject object, unsigned count);

#endif
