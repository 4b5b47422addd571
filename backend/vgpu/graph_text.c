/*
 * Reading nodes of graphs.
 */
#include "backend/vgpu/graph_text.h"

#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"
#include "common/util.h"

/* A GPU that notes in @node what it is asked for. */
struct noting {
	struct fgv_gpu base;
	struct fgv_gpu *real;
	struct fgv_gpu_node *node;
};

static struct noting *noting_of(struct fgv_gpu *gpu)
{
	return (struct noting *)gpu;
}

/* --- What is noted ------------------------------------------------------------- */

static struct fgv_gpu_node *note(struct fgv_gpu *gpu, enum fgv_gpu_node_kind kind)
{
	struct fgv_gpu_node *node = noting_of(gpu)->node;

	node->kind = kind;
	return node;
}

/* The arguments are where the handler has put them: the reader copies that. */
static CUresult note_launch(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
			    const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			    struct fgv_gpu_stream *stream, void **params)
{
	struct fgv_gpu_node *node = note(gpu, FGV_GPU_NODE_KERNEL);

	(void)stream;
	node->kernel.function = function;
	node->kernel.shared_bytes = shared_bytes;
	node->kernel.params = params;
	memcpy(node->kernel.grid, grid, sizeof(node->kernel.grid));
	memcpy(node->kernel.block, block, sizeof(node->kernel.block));
	return CUDA_SUCCESS;
}

static CUresult note_cooperative(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
				 const uint32_t grid[3], const uint32_t block[3],
				 uint32_t shared_bytes, struct fgv_gpu_stream *stream,
				 void **params)
{
	noting_of(gpu)->node->kernel.how.cooperative = true;
	return note_launch(gpu, function, grid, block, shared_bytes, stream, params);
}

static CUresult note_clusters(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
			      const uint32_t grid[3], const uint32_t block[3],
			      uint32_t shared_bytes, struct fgv_gpu_stream *stream,
			      const struct fgv_gpu_clusters *how, void **params)
{
	struct fgv_gpu_node *node = noting_of(gpu)->node;

	if (!noting_of(gpu)->real->ops->launch_clusters)
		return CUDA_ERROR_NOT_SUPPORTED;
	node->kernel.in_clusters = true;
	node->kernel.how = *how;
	return note_launch(gpu, function, grid, block, shared_bytes, stream, params);
}

/* A copy that is one row. */
static CUDA_MEMCPY3D *note_row(struct fgv_gpu *gpu, size_t bytes)
{
	CUDA_MEMCPY3D *copy = &note(gpu, FGV_GPU_NODE_COPY)->copy;

	*copy = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = bytes,
		.srcHeight = 1,
		.dstPitch = bytes,
		.dstHeight = 1,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1,
	};
	return copy;
}

static CUresult note_copy_device(struct fgv_gpu *gpu, uint64_t dst, uint64_t src, size_t bytes,
				 struct fgv_gpu_stream *stream)
{
	CUDA_MEMCPY3D *copy = note_row(gpu, bytes);

	(void)stream;
	copy->srcDevice = src;
	copy->dstDevice = dst;
	return CUDA_SUCCESS;
}

static CUresult note_copy_in(struct fgv_gpu *gpu, uint64_t dst, const void *src, size_t bytes,
			     struct fgv_gpu_stream *stream)
{
	CUDA_MEMCPY3D *copy = note_row(gpu, bytes);

	(void)stream;
	copy->srcMemoryType = CU_MEMORYTYPE_HOST;
	copy->srcHost = src;
	copy->dstDevice = dst;
	return CUDA_SUCCESS;
}

static CUresult note_copy_out(struct fgv_gpu *gpu, void *dst, uint64_t src, size_t bytes,
			      struct fgv_gpu_stream *stream)
{
	CUDA_MEMCPY3D *copy = note_row(gpu, bytes);

	(void)stream;
	copy->srcDevice = src;
	copy->dstMemoryType = CU_MEMORYTYPE_HOST;
	copy->dstHost = dst;
	return CUDA_SUCCESS;
}

static CUresult note_box(struct fgv_gpu *gpu, const CUDA_MEMCPY3D *box,
			 struct fgv_gpu_stream *stream)
{
	(void)stream;
	note(gpu, FGV_GPU_NODE_COPY)->copy = *box;
	return CUDA_SUCCESS;
}

static CUresult note_fill(struct fgv_gpu *gpu, uint64_t dst, uint32_t value, unsigned width,
			  size_t count, struct fgv_gpu_stream *stream)
{
	struct fgv_gpu_node *node = note(gpu, FGV_GPU_NODE_FILL);

	(void)stream;
	node->fill.address = dst;
	node->fill.pitch = count * width;
	node->fill.value = value;
	node->fill.width = width;
	node->fill.count = count;
	node->fill.rows = 1;
	return CUDA_SUCCESS;
}

static CUresult note_fill_rows(struct fgv_gpu *gpu, uint64_t dst, size_t pitch, uint8_t value,
			       size_t width, size_t height, struct fgv_gpu_stream *stream)
{
	note_fill(gpu, dst, value, 1, width, stream);
	noting_of(gpu)->node->fill.pitch = pitch;
	noting_of(gpu)->node->fill.rows = height;
	return CUDA_SUCCESS;
}

static CUresult note_record(struct fgv_gpu *gpu, struct fgv_gpu_event *event,
			    struct fgv_gpu_stream *stream)
{
	(void)stream;
	note(gpu, FGV_GPU_NODE_RECORD)->event = event;
	return CUDA_SUCCESS;
}

static CUresult note_wait(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
			  struct fgv_gpu_event *event)
{
	(void)stream;
	note(gpu, FGV_GPU_NODE_WAIT)->event = event;
	return CUDA_SUCCESS;
}

/* A launch may need more local memory than there was. */
static CUresult ask_limit(struct fgv_gpu *gpu, CUlimit limit, size_t *value)
{
	struct fgv_gpu *real = noting_of(gpu)->real;

	return real->ops->limit_get(real, limit, value);
}

/* What the operations of can_be_node() ask of a GPU. */
static const struct fgv_gpu_ops noting_ops = {
	.name = "noting",
	.copy_in_bulk = note_copy_in,
	.copy_out = note_copy_out,
	.copy_device = note_copy_device,
	.fill = note_fill,
	.fill_rows = note_fill_rows,
	.copy_box = note_box,
	.launch = note_launch,
	.launch_cooperative = note_cooperative,
	.launch_clusters = note_clusters,
	.event_record = note_record,
	.stream_wait_event = note_wait,
	.limit_get = ask_limit,
};

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

/* Runs the handler of @request, on a GPU that notes it in @node. */
static CUresult run_noting(struct fgv_session *session, struct fgv_request *request,
			   const uint8_t *message, uint32_t len, struct fgv_gpu_node *node)
{
	struct fgv_gpu *gpu = session->gpu;
	struct noting noting = {.base.ops = &noting_ops, .real = gpu, .node = node};
	uint64_t launches = session->account->launches;
	uint64_t bytes_in = session->account->bytes_in, bytes_out = session->account->bytes_out;
	uint8_t reply[FGV_SLOT_FIRST];
	uint32_t reply_len;
	CUresult status;

	session->gpu = &noting.base;
	if (fgv_dispatch(session, request, message, len, reply, &reply_len, &status) < 0)
		status = CUDA_ERROR_INVALID_VALUE;
	session->gpu = gpu;
	/* Nothing was launched, nor copied. */
	__atomic_store_n(&session->account->launches, launches, __ATOMIC_RELAXED);
	__atomic_store_n(&session->account->bytes_in, bytes_in, __ATOMIC_RELAXED);
	__atomic_store_n(&session->account->bytes_out, bytes_out, __ATOMIC_RELAXED);
	return status;
}

/* Room for @param_count pointers, and behind them a copy of the message, without its stream. */
static uint8_t *keep_message(struct fgv_graph_kept *kept, uint16_t op, const uint8_t *message,
			     uint32_t len, uint32_t param_count)
{
	uint64_t pointers = param_count * sizeof(void *);
	uint32_t off = fgv_op_infos[op].stream_off;
	uint8_t *copy;

	kept->bytes = len;
	kept->storage = malloc(pointers + len + 1);
	if (!kept->storage)
		return NULL;
	copy = (uint8_t *)kept->storage + pointers;
	memcpy(copy, message, len);
	if (off + sizeof(uint32_t) <= len)
		memset(copy + off, 0, sizeof(uint32_t));
	return copy;
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
static CUresult need_all(struct fgv_session *session, uint16_t op, const uint8_t *message,
			 uint32_t len, struct fgv_graph_kept *kept)
{
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

static CUresult read_work(struct fgv_session *session, struct fgv_request *request,
			  const uint8_t *message, uint32_t len, struct fgv_gpu_node *node,
			  struct fgv_graph_kept *kept)
{
	struct fgv_object *function =
		is_launch(request->op) ? function_in(session, message, len) : NULL;
	uint32_t param_count = function ? function->function.param_count : 0;
	uint8_t *copy = keep_message(kept, request->op, message, len, param_count);
	CUresult status;

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = run_noting(session, request, copy, len, node);
	if (status != CUDA_SUCCESS)
		return status;
	kept->kind = request->subject ? request->subject : request->op;
	kept->amount = request->amount;
	if (node->kind != FGV_GPU_NODE_KERNEL)
		return need_all(session, request->op, copy, len, kept);
	memcpy(kept->storage, session->params, param_count * sizeof(void *));
	node->kernel.params = kept->storage;
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
static CUresult read_before(const uint8_t *from, uint32_t number, struct fgv_gpu_node *node)
{
	if (!node->before_count)
		return CUDA_SUCCESS;
	node->before = malloc(node->before_count * sizeof(uint32_t));
	if (!node->before)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(node->before, from, node->before_count * sizeof(uint32_t));
	for (uint32_t i = 0; i < node->before_count; i++) {
		if (node->before[i] >= number)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static bool is_good(const struct fgv_graph_node *head, uint32_t limit)
{
	if (head->number >= limit || head->is_disabled > 1 || head->inside > head->number ||
	    (head->body && !head->inside) || head->message_len > FGV_MESSAGE_MAX ||
	    head->before_count > head->number)
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
	struct fgv_request request;
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
	status = read_before(before, head->number, node);
	if (status != CUDA_SUCCESS || head->op == FGV_GRAPH_NO_OP)
		return status;
	if (head->op == FGV_GRAPH_CHOICE)
		return read_choice(message, node);
	request = (struct fgv_request){.op = (uint16_t)head->op};
	return read_work(session, &request, message, head->message_len, node, kept);
}

CUresult fgv_graph_text_next(struct fgv_session *session, struct fgv_graph_text *text,
			     uint32_t limit, uint32_t *number, struct fgv_gpu_node *node,
			     struct fgv_graph_kept *kept)
{
	struct fgv_graph_node head = {0};
	CUresult status;

	memset(node, 0, sizeof(*node));
	memset(kept, 0, sizeof(*kept));
	status = read_next(session, text, limit, &head, node, kept);
	if (status != CUDA_SUCCESS) {
		fgv_graph_text_drop(session, node, kept);
		return status;
	}
	*number = head.number;
	return CUDA_SUCCESS;
}

void fgv_graph_text_drop(struct fgv_session *session, struct fgv_gpu_node *node,
			 struct fgv_graph_kept *kept)
{
	for (unsigned i = 0; i < FGV_ARRAY_LEN(kept->needs); i++) {
		if (kept->needs[i])
			fgv_session_put(session, kept->needs[i]);
	}
	free(kept->storage);
	free(node->before);
	*kept = (struct fgv_graph_kept){0};
	node->before = NULL;
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
