/*
 * Nodes of graphs, as a program makes and asks about them. All kinds go one way, as
 * CUgraphNodeParams; what a node does is checked as the call is that does the same in a stream,
 * and fails with its code. A kernel is a CUfunction or, without one, a CUkernel.
 *
 * CUDA_ERROR_INVALID_VALUE for what is no graph or node, and for a missing out-parameter;
 * CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_NOT_SUPPORTED, counted, for kinds that FairGV does not have.
 *
 * Threads: as graph.h has it.
 */
#ifndef FGV_CUDA_NODE_H
#define FGV_CUDA_NODE_H

#include <cuda.h>

/*
 * A new node of @graph that waits for the @count nodes @before as @edges say; NULL: ordinarily.
 * The address of an allocation is written to @params, and so are the bodies of a choice.
 */
CUresult fgv_node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
		      const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params);
/* CUDA_ERROR_NOT_SUPPORTED if its graph allocates or frees memory. */
CUresult fgv_node_destroy(CUgraphNode node);
/* The node of @clone that was copied from @original. */
CUresult fgv_node_find_in_clone(CUgraphNode *node, CUgraphNode original, CUgraph clone);

CUresult fgv_node_get_type(CUgraphNode node, CUgraphNodeType *type);
/* What it waits for, and what waits for it; lists as graph.h has them. */
CUresult fgv_node_get_before(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
			     size_t *count);
CUresult fgv_node_get_after(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
			    size_t *count);

/*
 * What a node of @type does. Of a kernel, the arguments are the node's own, good until it is
 * changed, and its name is a CUfunction; of a child graph, that graph.
 */
CUresult fgv_node_get_params(CUgraphNode node, CUgraphNodeType type, CUgraphNodeParams *params);
/* Its kind stays. */
CUresult fgv_node_set_params(CUgraphNode node, const CUgraphNodeParams *params);

/* Attributes of a kernel node. */
CUresult fgv_node_get_attribute(CUgraphNode node, CUkernelNodeAttrID id,
				CUkernelNodeAttrValue *value);
CUresult fgv_node_set_attribute(CUgraphNode node, CUkernelNodeAttrID id,
				const CUkernelNodeAttrValue *value);
CUresult fgv_node_copy_attributes(CUgraphNode to, CUgraphNode from);

#endif
