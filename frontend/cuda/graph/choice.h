/*
 * Nodes with bodies, of which a launch does those that a condition (home.h) says. A graph with them
 * has one executable graph at a time, and no copy.
 *
 * Threads: as graph_priv.h has it.
 */
#ifndef FGV_CUDA_CHOICE_H
#define FGV_CUDA_CHOICE_H

#include "frontend/cuda/graph/graph_priv.h"

/* A choice of @graph; its bodies are for the program to fill. */
CUresult fgv_choice_make(struct fgv_graph *graph, const CUgraphNodeParams *params,
			 struct fgv_work *work);
/* The same for what is ready to be launched. */
CUresult fgv_bodies_copy(const struct fgv_bodies *bodies, struct fgv_bodies **copy);
/* NULL: none. The condition may be chosen by again. */
void fgv_bodies_free(struct fgv_bodies *bodies);

/*
 * Whether @graph can be instantiated. CUDA_ERROR_INVALID_VALUE for conditions that nothing chooses
 * by, and for what may not be in a body; CUDA_ERROR_NOT_SUPPORTED for what FairGV does not do
 * there.
 */
CUresult fgv_choice_check(struct fgv_graph *graph);

#endif
