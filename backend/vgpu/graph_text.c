/*
 * Reading nodes of graphs.
 */
#include "backend/vgpu/graph_text.h"

#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/graph_noting.h"
#include "backend/vgpu/session.h"
#include "common/util.h"

/* --- One node ------------------------------------------------------------------ */

static bool is_launch(uint32_t op)
{
	return op == FGV_OP_LAUNCH || op == FGV_OP_LAUNCH_COOPERATIVE ||
	       op == FGV_OP_LAUNCH_CLUSTERS;
}

static bool can_be_node(uint32_t op)
{
	return is_launch(op) || op == FGV_OP_COPY_DEVICE || op == FGV_OP_COPY_BOX ||
	       op == FGV_OP_FILL || op == FGV_OP_FILL_ROWS || op == FGV_OP_EVENT_RECORD ||
	       op == FGV_OP_STREAM_WAIT_EVENT;
}

_Static_assert(offsetof(struct fgv_launch_request, function) ==
			       offsetof(struct fgv_launch_cooperative_request, function) &&
		       offsetof(struct fgv_launch_request, function) ==
			       offsetof(struct fgv_launch_clusters_request, function),
	       "all launches name it alike");

/* The function that a message names; NULL: none. */
static struct fgv_object *function_in(struct fgv_session *session, const uint8_t *message,
				      uint32_t len)
{
	uint32_t handle =
		fgv_held_handle_at(message, len, offsetof(struct fgv_launch_request, function));

	return fgv_session_lookup(session, FGV_KIND_FUNCTION, handle);
}

/* In storage of the node's own. */
static bool place_anew(struct fgv_graph_kept *kept, uint32_t len, uint32_t param_count)
{
	uint64_t pointers = param_count * sizeof(void *);

	kept->storage = malloc(pointers + len + 1);
	if (!kept->storage)
		return false;
	kept->bytes = len;
	kept->pointers = kept->storage;
	kept->message = (uint8_t *)kept->storage + pointers;
	return true;
}

/* Where the message of the same node was before. */
static void place_over(struct fgv_graph_kept *kept, struct fgv_graph_kept *old)
{
	kept->message = old->message;
	kept->pointers = old->pointers;
	kept->storage = old->storage;
	kept->bytes = old->bytes;
	old->storage = NULL;
}

static bool fits_in(const struct fgv_graph_kept *old, uint32_t len, uint32_t param_count)
{
	return old->message && old->message_len == len && old->pointer_count >= param_count;
}

/* A change's, whose @message goes with its request. */
static bool copy_message(struct fgv_graph_text *text, uint32_t number, struct fgv_graph_kept *kept,
			 const uint8_t *message, uint32_t len, uint32_t param_count)
{
	struct fgv_graph_kept *old = &text->old[number];

	kept->pointer_count = param_count;
	if (fits_in(old, len, param_count)) {
		kept->pointer_count = old->pointer_count;
		place_over(kept, old);
	} else if (!text->may_grow || !place_anew(kept, len, param_count)) {
		return false;
	}
	memcpy(kept->message, message, len);
	return true;
}

/* Where pointers to arguments go, and the message, which the guest can't write to. */
static bool place_message(struct fgv_graph_text *text, const struct fgv_graph_node *head,
			  struct fgv_graph_kept *kept, const uint8_t *message, uint32_t param_count)
{
	uint32_t off = fgv_op_infos[head->op].stream_off, len = head->message_len;

	if (text->pointers && param_count > text->pointers_left)
		return false;
	kept->message_len = len;
	if (text->pointers) {
		kept->message = (uint8_t *)message;
		kept->pointers = text->pointers;
		kept->pointer_count = param_count;
	} else if (!copy_message(text, head->number, kept, message, len, param_count)) {
		return false;
	}
	if (off + sizeof(uint32_t) <= len)
		memset(kept->message + off, 0, sizeof(uint32_t));
	return true;
}

static CUresult need(struct fgv_session *session, enum fgv_kind kind, const uint8_t *message,
		     uint32_t len, size_t off, struct fgv_object **needed)
{
	uint32_t handle = fgv_held_handle_at(message, len, off);
	struct fgv_object *object = handle ? fgv_session_lookup(session, kind, handle) : NULL;

	/* A level goes with its array, whoever needs it. */
	if (object && kind == FGV_KIND_ARRAY && object->array.is_part)
		return CUDA_ERROR_NOT_SUPPORTED;
	*needed = object;
	if (object)
		fgv_object_get(object);
	return CUDA_SUCCESS;
}

/* What a message names, which its handler has found, stays as long as the node does. */
static CUresult need_all(struct fgv_session *session, uint16_t op, struct fgv_graph_kept *kept)
{
	const uint8_t *message = kept->message;
	uint32_t len = kept->message_len;
	CUresult status;

	switch (op) {
	case FGV_OP_COPY_BOX:
		status = need(session, FGV_KIND_ARRAY, message, len,
			      offsetof(struct fgv_copy_box_request, to_array), &kept->needs[0]);
		if (status != CUDA_SUCCESS)
			return status;
		return need(session, FGV_KIND_ARRAY, message, len,
			    offsetof(struct fgv_copy_box_request, from_array), &kept->needs[1]);
	case FGV_OP_EVENT_RECORD:
		return need(session, FGV_KIND_EVENT, message, len,
			    offsetof(struct fgv_event_record_request, event), &kept->needs[0]);
	case FGV_OP_STREAM_WAIT_EVENT:
		return need(session, FGV_KIND_EVENT, message, len,
			    offsetof(struct fgv_stream_wait_event_request, event), &kept->needs[0]);
	default:
		return CUDA_SUCCESS;
	}
}

static void keep_params(const struct fgv_session *session, struct fgv_graph_text *text,
			uint32_t param_count, struct fgv_graph_kept *kept)
{
	memcpy(kept->pointers, session->params, param_count * sizeof(void *));
	if (!text->pointers)
		return;
	text->pointers += param_count;
	text->pointers_left -= param_count;
}

static CUresult read_work(struct fgv_session *session, struct fgv_graph_text *text,
			  const struct fgv_graph_node *head, const uint8_t *message,
			  struct fgv_gpu_node *node, struct fgv_graph_kept *kept)
{
	struct fgv_request request = {.op = (uint16_t)head->op};
	struct fgv_object *function =
		is_launch(head->op) ? function_in(session, message, head->message_len) : NULL;
	uint32_t param_count = function ? function->function.param_count : 0;
	CUresult status;

	if (!place_message(text, head, kept, message, param_count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = fgv_graph_note(session, &request, kept->message, head->message_len, node);
	if (status != CUDA_SUCCESS)
		return status;
	kept->kind = request.subject ? request.subject : request.op;
	kept->amount = request.amount;
	if (node->kind != FGV_GPU_NODE_KERNEL)
		return need_all(session, request.op, kept);
	keep_params(session, text, param_count, kept);
	node->kernel.params = kept->pointers;
	kept->needs[0] = function->function.module;
	fgv_object_get(kept->needs[0]);
	return CUDA_SUCCESS;
}

/* --- The text ------------------------------------------------------------------ */

/* The next @len bytes and what pads them; NULL: there are not so many. */
static const uint8_t *take(struct fgv_graph_text *text, uint64_t len)
{
	uint64_t padded = fgv_align_up(len, 8);
	const uint8_t *at = text->at;

	if (len > text->left || padded > text->left)
		return NULL;
	text->at += padded;
	text->left -= padded;
	return at;
}

/* Each smaller than @number. */
static CUresult read_before(const struct fgv_graph_text *text, const uint8_t *from, uint32_t number,
			    struct fgv_gpu_node *node)
{
	if (!node->before_count)
		return CUDA_SUCCESS;
	if (!text->pointers)
		return CUDA_ERROR_INVALID_VALUE;
	node->before = (const uint32_t *)from;
	for (uint32_t i = 0; i < node->before_count; i++) {
		if (node->before[i] >= number)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static bool is_good(const struct fgv_graph_node *head, uint32_t limit)
{
	if (head->number >= limit || head->is_disabled > 1 ||
	    head->priority > (is_launch(head->op) ? FGV_GRAPH_PRIORITY_MAX : 0) ||
	    head->inside > head->number || (head->body && !head->inside) ||
	    head->message_len > FGV_MESSAGE_MAX || head->before_count > head->number)
		return false;
	switch (head->op) {
	case FGV_GRAPH_NO_OP:
		return !head->message_len;
	case FGV_GRAPH_CHOICE:
		return head->message_len == sizeof(struct fgv_graph_choice) && !head->is_disabled;
	default:
		return can_be_node(head->op);
	}
}

static CUresult read_choice(const uint8_t *message, struct fgv_gpu_node *node)
{
	static const uint32_t most[] = {
		[CU_GRAPH_COND_TYPE_IF] = 2,
		[CU_GRAPH_COND_TYPE_WHILE] = 1,
		[CU_GRAPH_COND_TYPE_SWITCH] = FGV_GRAPH_BODIES_MAX,
	};
	struct fgv_graph_choice choice;

	memcpy(&choice, message, sizeof(choice));
	if (choice.type >= FGV_ARRAY_LEN(most) || !choice.bodies ||
	    choice.bodies > most[choice.type])
		return CUDA_ERROR_INVALID_VALUE;
	node->kind = FGV_GPU_NODE_CHOICE;
	node->choice.condition = choice.condition;
	node->choice.type = (CUgraphConditionalNodeType)choice.type;
	node->choice.bodies = choice.bodies;
	return CUDA_SUCCESS;
}

static CUresult read_next(struct fgv_session *session, struct fgv_graph_text *text, uint32_t limit,
			  struct fgv_graph_node *head, struct fgv_gpu_node *node,
			  struct fgv_graph_kept *kept)
{
	const uint8_t *from = take(text, sizeof(*head)), *before, *message;
	CUresult status;

	if (!from)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(head, from, sizeof(*head));
	if (!is_good(head, limit))
		return CUDA_ERROR_INVALID_VALUE;
	before = take(text, head->before_count * sizeof(uint32_t));
	message = before ? take(text, head->message_len) : NULL;
	if (!message)
		return CUDA_ERROR_INVALID_VALUE;
	node->before_count = head->before_count;
	node->is_disabled = head->is_disabled;
	node->inside = head->inside;
	node->body = head->body;
	status = read_before(text, before, head->number, node);
	if (status != CUDA_SUCCESS || head->op == FGV_GRAPH_NO_OP)
		return status;
	if (head->op == FGV_GRAPH_CHOICE)
		return read_choice(message, node);
	status = read_work(session, text, head, message, node, kept);
	if (status == CUDA_SUCCESS && head->priority) {
		node->kernel.has_priority = true;
		node->kernel.priority = 1 - (int)head->priority;
	}
	return status;
}

CUresult fgv_graph_text_next(struct fgv_session *session, struct fgv_graph_text *text,
			     uint32_t limit, uint32_t *number, struct fgv_gpu_node *node,
			     struct fgv_graph_kept *kept)
{
	struct fgv_graph_node head = {0};
	CUresult status;

	status = read_next(session, text, limit, &head, node, kept);
	if (status != CUDA_SUCCESS) {
		fgv_graph_text_drop(session, kept);
		return status;
	}
	*number = head.number;
	return CUDA_SUCCESS;
}

void fgv_graph_text_drop(struct fgv_session *session, struct fgv_graph_kept *kept)
{
	for (unsigned i = 0; i < FGV_ARRAY_LEN(kept->needs); i++) {
		if (kept->needs[i])
			fgv_session_put(session, kept->needs[i]);
	}
	free(kept->storage);
	*kept = (struct fgv_graph_kept){0};
}

/* --- Host memory --------------------------------------------------------------- */

/* That the rows of a copy's side lie in; the handler has seen that it is that many. */
static uint64_t span_of(const CUDA_MEMCPY3D *copy, size_t pitch, size_t height)
{
	return ((copy->Depth - 1) * height + copy->Height - 1) * pitch + copy->WidthInBytes;
}

static bool is_mapped(const struct fgv_session *session, const void *at, uint64_t len)
{
	return fgv_mapped_find(&session->mapped, (uint64_t)(uintptr_t)at, len) != NULL;
}

bool fgv_graph_text_is_mapped(const struct fgv_session *session, const struct fgv_gpu_node *node)
{
	const CUDA_MEMCPY3D *copy = &node->copy;

	if (node->kind != FGV_GPU_NODE_COPY)
		return true;
	if (copy->srcMemoryType == CU_MEMORYTYPE_HOST &&
	    !is_mapped(session, copy->srcHost, span_of(copy, copy->srcPitch, copy->srcHeight)))
		return false;
	return copy->dstMemoryType != CU_MEMORYTYPE_HOST ||
	       is_mapped(session, copy->dstHost, span_of(copy, copy->dstPitch, copy->dstHeight));
}
