/*
 * The handlers of the tests' host for graphs: a launch does what the nodes' requests would, one
 * after another, each as if it came by itself. What a text must be is not this host's business.
 */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/unit/frontend/client/test_client_host.h"

#define UNUSED (void)session, (void)request

struct kept_node {
	struct fgv_graph_node head;
	uint64_t *message;
};

/* By their objects' numbers. */
static struct kept_graph {
	uint32_t count;
	struct kept_node *nodes;
} graphs[HOST_OBJECTS];

/* What has come of texts, by lane. */
static uint8_t parts[FGV_LANES_MAX][256 << 10];

CUresult fgv_do_graph_part(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_graph_part_in *in)
{
	UNUSED;
	memcpy(parts[request->lane] + in->offset, in->text, in->text_len);
	return CUDA_SUCCESS;
}

/* One node of a text, to where it belongs; where the next one is. */
static const uint8_t *read_node(const uint8_t *at, struct kept_graph *graph)
{
	struct fgv_graph_node head;
	struct kept_node *node;

	memcpy(&head, at, sizeof(head));
	at += sizeof(head) + fgv_align_up(head.before_count * sizeof(uint32_t), 8);
	node = &graph->nodes[head.number];
	free(node->message);
	node->head = head;
	if (head.number < FGV_ARRAY_LEN(host.priorities))
		host.priorities[head.number] = head.priority;
	node->message = calloc(1, fgv_align_up(head.message_len, 8) + 8);
	memcpy(node->message, at, head.message_len);
	return at + fgv_align_up(head.message_len, 8);
}

/* How many there are. */
static uint64_t read_text(const uint8_t *at, uint64_t len, struct kept_graph *graph)
{
	const uint8_t *end = at + len;
	uint64_t count = 0;

	for (; at < end; count++)
		at = read_node(at, graph);
	return count;
}

CUresult fgv_do_graph_build(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_graph_build_in *in, struct fgv_graph_build_out *out)
{
	struct kept_graph *graph = &graphs[host.object_count];

	UNUSED;
	out->refused = HOST_GET(status[request->op]);
	if (out->refused)
		return CUDA_SUCCESS;
	graph->count = in->nodes;
	graph->nodes = calloc(in->nodes + 1, sizeof(*graph->nodes));
	memcpy(parts[request->lane] + in->offset, in->text, in->text_len);
	read_text(parts[request->lane], in->offset + in->text_len, graph);
	host.objects[host.object_count].kind = FGV_KIND_GRAPH + 1;
	out->graph = host.object_count++;
	return CUDA_SUCCESS;
}

CUresult fgv_do_graph_home(struct fgv_session *session, struct fgv_request *request,
			   struct fgv_graph_home_out *out)
{
	UNUSED;
	host.objects[host.object_count].kind = FGV_KIND_GRAPH + 1;
	out->home = host.object_count++;
	return CUDA_SUCCESS;
}

CUresult fgv_do_graph_condition(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_graph_condition_in *in,
				struct fgv_graph_condition_out *out)
{
	UNUSED;
	out->condition = in->value + 1000;
	return CUDA_SUCCESS;
}

static struct kept_graph *graph_of(const struct fgv_object *object)
{
	return &graphs[object - host.objects];
}

CUresult fgv_do_graph_update(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_graph_update_in *in)
{
	UNUSED;
	HOST_SET(changed_nodes,
		 host.changed_nodes + read_text(in->text, in->text_len, graph_of(in->graph)));
	return CUDA_SUCCESS;
}

static CUresult run(struct fgv_session *session, const struct kept_node *node, uint32_t stream)
{
	struct fgv_request request = {.op = (uint16_t)node->head.op};
	uint8_t reply[FGV_SLOT_FIRST];
	uint32_t reply_len;
	CUresult status;

	if (node->head.op == FGV_GRAPH_NO_OP || node->head.op == FGV_GRAPH_CHOICE ||
	    node->head.is_disabled)
		return CUDA_SUCCESS;
	memcpy((uint8_t *)node->message + fgv_op_infos[request.op].stream_off, &stream,
	       sizeof(stream));
	if (fgv_dispatch(session, &request, node->message, node->head.message_len, reply,
			 &reply_len, &status) < 0)
		abort();
	return status;
}

CUresult fgv_do_graph_launch(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_graph_launch_in *in)
{
	const struct kept_graph *graph = graph_of(in->graph);
	uint32_t stream = host_handle_of(in->stream);
	CUresult status = CUDA_SUCCESS;

	UNUSED;
	for (uint32_t i = 0; i < graph->count && !status; i++)
		status = run(session, &graph->nodes[i], stream);
	return status;
}

CUresult fgv_do_graph_destroy(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_graph_destroy_in *in)
{
	struct kept_graph *graph = graph_of(in->graph);

	UNUSED;
	for (uint32_t i = 0; i < graph->count; i++)
		free(graph->nodes[i].message);
	free(graph->nodes);
	*graph = (struct kept_graph){0};
	in->graph->kind = 0;
	return CUDA_SUCCESS;
}
