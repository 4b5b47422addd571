/*
 * The GPU that notes what it is asked for.
 */
#include "backend/vgpu/graph_noting.h"

#include <string.h>
#include "backend/vgpu/session.h"

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

/* What the operations that can be nodes ask of a GPU. */
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

/* --- A request ------------------------------------------------------------------- */

CUresult fgv_graph_note(struct fgv_session *session, struct fgv_request *request,
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
