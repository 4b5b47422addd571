/*
 * Graphs that are ready to be launched, as graphs of the host's: built there once, launched by one
 * request. Where some node is not for the host, the graph is cut there (exec_text.h); which graphs
 * are, and why, is counted for FAIRGV_STATS (client/stats.h).
 *
 * Threads: the executable graph is the caller's; the lane as well.
 */
#ifndef FGV_CUDA_EXEC_HOST_H
#define FGV_CUDA_EXEC_HOST_H

#include "frontend/cuda/graph/exec_priv.h"

/*
 * Has the host build what of it can be, and puts the order of nodes right. A failure is the
 * session's, or CUDA_ERROR_OUT_OF_MEMORY; that the host does not want it is none.
 */
CUresult fgv_exec_host_build(struct fgv_lane *lane, struct fgv_exec *exec);

/* Sends what nodes do now that are marked as changed. Called before a launch. */
CUresult fgv_exec_host_refresh(struct fgv_lane *lane, struct fgv_exec *exec);

/*
 * Before the first launch with a graph that was another's, in the stream that has this handle: one
 * that was launched in another stream is built anew, as both launches may run at once.
 */
CUresult fgv_exec_host_settle(struct fgv_lane *lane, struct fgv_exec *exec, uint32_t stream);

/* What @node does has changed, or whether it does it. */
static inline void fgv_exec_host_note(struct fgv_exec *exec, struct fgv_node *node)
{
	if (node->is_changed)
		return;
	node->is_changed = true;
	node->next_changed = exec->host.changed;
	exec->host.changed = node;
}

/* The host's graphs go, or are kept (exec_kept.h); @lane NULL: they have gone with the session. */
void fgv_exec_host_drop(struct fgv_lane *lane, struct fgv_exec *exec);
/* The memory that the launches take here. */
void fgv_exec_host_free(struct fgv_exec *exec);

/* The same for all of the lane's device, when that is reset. */
void fgv_exec_host_drain(struct fgv_lane *lane);

#endif
