/*
 * What a node of a graph does, by the handler of the request that does the same: it runs on a GPU
 * that does nothing but note what it was asked for. So the request is checked as if it came by
 * itself.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_GRAPH_NOTING_H
#define FGV_VGPU_GRAPH_NOTING_H

#include "api/host.h"
#include "backend/gpu/gpu_ops.h"

struct fgv_session;

/*
 * Notes in @node what @message asks for, which the guest can't change meanwhile; its arguments are
 * left in session->params. Nothing is counted as launched or copied. The code of the handler, or
 * CUDA_ERROR_INVALID_VALUE for no such message.
 */
CUresult fgv_graph_note(struct fgv_session *session, struct fgv_request *request,
			const uint8_t *message, uint32_t len, struct fgv_gpu_node *node);

#endif
