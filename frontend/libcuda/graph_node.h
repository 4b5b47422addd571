/*
 * What a node does, in the forms that the driver's functions have: each older struct is the
 * beginning of the newest, which is a member of CUgraphNodeParams.
 */
#ifndef FGV_LIBCUDA_GRAPH_NODE_H
#define FGV_LIBCUDA_GRAPH_NODE_H

#include <cuda.h>
#include <stddef.h>

/* @params from the @bytes at @what. CUDA_ERROR_INVALID_VALUE: NULL. */
CUresult fgv_driver_node_read(CUgraphNodeParams *params, CUgraphNodeType type, const void *what,
			      size_t bytes);

/* Those of a copy, in a context; NULL: none is named. */
CUresult fgv_driver_node_read_copy(CUgraphNodeParams *params, const CUDA_MEMCPY3D *copy,
				   CUcontext context);

#endif
