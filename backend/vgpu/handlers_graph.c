/*
 * The handlers of the operations on graphs; see handlers.c.
 */
#include "backend/vgpu/session.h"

CUresult fgv_do_graph_part(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_graph_part_in *in)
{
	/* The build finds that it is not there: no call but that has to do with it. */
	fgv_graphs_add_part(&session->graphs, request->lane, in->offset, in->text, in->text_len);
	return CUDA_SUCCESS;
}

/* What a graph of so many nodes is charged, with @bytes of messages. */
static uint64_t price(const struct fgv_session *session, uint32_t nodes, uint64_t bytes)
{
	return session->costs.graph + nodes * session->costs.graph_node + bytes;
}

/* For what it has, where it was charged for more: that does not fail. */
static void charge(struct fgv_session *session, struct fgv_object *object)
{
	fgv_quota_charge(&session->quota, &object->charge,
			 price(session, object->graph->count, object->graph->bytes));
}

/* Charged before it is made, for all that its text might be. */
static CUresult build(struct fgv_session *session, const void *text, uint64_t len,
		      const struct fgv_graph_build_in *in, uint32_t *handle)
{
	struct fgv_object *home = NULL, *object;
	uint32_t nodes = in->nodes;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (in->home) {
		home = fgv_session_lookup(session, FGV_KIND_GRAPH, in->home);
		if (!home)
			return CUDA_ERROR_INVALID_HANDLE;
	}
	if (nodes <= FGV_GRAPH_NODES_MAX && len <= FGV_GRAPH_TEXT_MAX)
		status = fgv_session_add(session, FGV_KIND_GRAPH, price(session, nodes, len),
					 &object);
	if (status != CUDA_SUCCESS)
		return status;
	status = fgv_graph_make(session, home, text, len, nodes, &object->graph);
	if (status != CUDA_SUCCESS) {
		fgv_session_abandon(session, object);
		return status;
	}
	charge(session, object);
	*handle = object->handle;
	return CUDA_SUCCESS;
}

/* Where there are parts, this one is the last of them. */
static CUresult build_of_parts(struct fgv_session *session, uint32_t lane,
			       const struct fgv_graph_build_in *in, uint32_t *handle)
{
	const struct fgv_graph_parts *parts = &session->graphs.parts[lane];
	CUresult status;

	if (!in->offset)
		return build(session, in->text, in->text_len, in, handle);
	status = fgv_graphs_add_part(&session->graphs, lane, in->offset, in->text, in->text_len);
	if (status == CUDA_SUCCESS)
		status = build(session, parts->bytes, parts->len, in, handle);
	fgv_graphs_drop_parts(&session->graphs, lane);
	return status;
}

/* The guest has another way where it can't be made: that is no failure of the call. */
CUresult fgv_do_graph_build(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_graph_build_in *in, struct fgv_graph_build_out *out)
{
	CUresult status = fgv_session_take_deferred(session);

	if (status == CUDA_SUCCESS)
		out->refused = build_of_parts(session, request->lane, in, &out->graph);
	return status;
}

CUresult fgv_do_graph_home(struct fgv_session *session, struct fgv_request *request,
			   struct fgv_graph_home_out *out)
{
	struct fgv_object *object;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status == CUDA_SUCCESS)
		status = fgv_session_add(session, FGV_KIND_GRAPH, price(session, 0, 0), &object);
	if (status != CUDA_SUCCESS)
		return status;
	status = fgv_graph_make_home(session, &object->graph);
	if (status != CUDA_SUCCESS)
		fgv_session_abandon(session, object);
	else
		out->home = object->handle;
	return status;
}

/* Charged as a node of a graph that does nothing. */
CUresult fgv_do_graph_condition(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_graph_condition_in *in,
				struct fgv_graph_condition_out *out)
{
	struct fgv_graph *home = in->home->graph;
	CUresult status = fgv_session_take_deferred(session);

	(void)request;
	if (status != CUDA_SUCCESS)
		return status;
	if (!home->conditions)
		return CUDA_ERROR_INVALID_VALUE;
	if (fgv_quota_charge(&session->quota, &in->home->charge,
			     price(session, home->conditions_count + 1, 0)) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = fgv_graph_add_condition(session, home, in->value, in->flags, &out->condition);
	if (status != CUDA_SUCCESS)
		fgv_quota_charge(&session->quota, &in->home->charge,
				 price(session, home->conditions_count, 0));
	return status;
}

/* Charged for all that it might take: where there is no room for that, for what it has. */
CUresult fgv_do_graph_update(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_graph_update_in *in)
{
	struct fgv_graph *graph = in->graph->graph;
	uint64_t most = price(session, graph->count, graph->bytes + in->text_len);
	bool may_grow = !fgv_quota_charge(&session->quota, &in->graph->charge, most);
	CUresult status = fgv_graph_update(session, graph, in->text, in->text_len, may_grow);

	(void)request;
	charge(session, in->graph);
	return status;
}

/* As requests would that record them or wait for them, in the forecast. */
static void meet_events(struct fgv_overlap *overlap, const struct fgv_graph *graph,
			struct fgv_object *stream)
{
	struct fgv_object *event;
	uint16_t op;

	for (uint32_t i = 0; graph->events && i < graph->count; i++) {
		event = fgv_graph_event(graph, i, &op);
		if (event && op == FGV_OP_EVENT_RECORD)
			fgv_overlap_record(overlap, stream, event);
		else if (event)
			fgv_overlap_wait(overlap, stream, event);
	}
}

/* What it takes is known by its earlier launches, and for the first by its nodes. */
CUresult fgv_do_graph_launch(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_graph_launch_in *in)
{
	struct fgv_forecast *forecast = &session->gate.forecast;
	struct fgv_graph *graph = in->graph->graph;
	uint16_t place;

	fgv_graph_tell(in->graph, request);
	place = fgv_cost_place(request->subject, request->amount);
	if (!forecast->costs.ns[place])
		forecast->costs.ns[place] = fgv_cost_within(fgv_graph_predict_ns(graph, forecast));
	fgv_account_add(&session->account->launches, graph->kernels);
	fgv_account_add(&session->account->graphs, 1);
	meet_events(&forecast->overlap, graph, in->stream);
	return fgv_graph_launch(session, graph, in->stream ? in->stream->stream : NULL);
}

CUresult fgv_do_graph_destroy(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_graph_destroy_in *in)
{
	(void)request;
	return fgv_session_remove(session, in->graph);
}
