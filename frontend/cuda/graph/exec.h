/*
 * Graphs that are ready to be launched.
 *
 * CUDA_ERROR_INVALID_VALUE for what is none, and for a missing out-parameter;
 * CUDA_ERROR_OUT_OF_MEMORY.
 *
 * Threads: any; launches and changes of one are made one after another.
 */
#ifndef FGV_CUDA_EXEC_H
#define FGV_CUDA_EXEC_H

#include <cuda.h>

/*
 * @flags: of CUgraphInstantiate_flags. CUDA_ERROR_NOT_SUPPORTED for launches by the device, and for
 * a second one of a graph that allocates or frees memory or has conditions, and where a loop can't
 * be interrupted.
 */
CUresult fgv_exec_create(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult fgv_exec_destroy(CUgraphExec exec);
CUresult fgv_exec_get_flags(CUgraphExec exec, unsigned long long *flags);

/* Waits for nothing, but for copies between the device and the program's pageable memory. */
CUresult fgv_exec_launch(CUgraphExec exec, CUstream stream);
CUresult fgv_exec_upload(CUgraphExec exec, CUstream stream);

/* To what @graph does now. CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: *@info says why. */
CUresult fgv_exec_update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info);
/* Changes what was made of @node: its parameters, the child graph that it is, whether it is done.
 */
CUresult fgv_exec_set_params(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params);
CUresult fgv_exec_set_child(CUgraphExec exec, CUgraphNode node, CUgraph graph);
CUresult fgv_exec_set_enabled(CUgraphExec exec, CUgraphNode node, unsigned enabled);
CUresult fgv_exec_get_enabled(CUgraphExec exec, CUgraphNode node, unsigned *enabled);

#endif
