/* Texts of graphs, and what is asked of a vGPU process with them. */
#include "tests/unit/backend/vgpu/vgpu_graphs.h"

#include <check.h>
#include <cuda.h>
#include <string.h>
#include "common/util.h"

struct graphs graphs;

void graphs_setup(void)
{
	vgpu_start(&graphs.vgpu);
	graphs.data = vgpu_arena(&graphs.vgpu, DATA_OFF);
	ck_assert_uint_eq(vgpu_host_map(&graphs.vgpu, VGPU_SHARED_ADDRESS, DATA_OFF, DATA_LEN),
			  CUDA_SUCCESS);
	graphs.text.len = graphs.text.nodes = 0;
	graphs.home = 0;
}

void graphs_teardown(void)
{
	vgpu_leave(&graphs.vgpu);
}

uint64_t graphs_used_bytes(void)
{
	return __atomic_load_n(&graphs.vgpu.accounts->sessions[2].memory_bytes, __ATOMIC_SEQ_CST);
}

/* --- Writing ------------------------------------------------------------------- */

void graphs_append(const void *from, uint32_t len)
{
	memset(graphs.text.bytes + graphs.text.len, 0, fgv_align_up(len, 8));
	memcpy(graphs.text.bytes + graphs.text.len, from, len);
	graphs.text.len += (uint32_t)fgv_align_up(len, 8);
}

void graphs_put_as(struct fgv_graph_node head, const void *message, int first, int second)
{
	uint32_t before[2] = {(uint32_t)first, (uint32_t)second};

	head.before_count = (first >= 0) + (second >= 0);
	graphs_append(&head, sizeof(head));
	graphs_append(before, head.before_count * (uint32_t)sizeof(*before));
	graphs_append(message, head.message_len);
	graphs.text.nodes++;
}

void graphs_put(uint16_t op, const void *message, uint32_t len, int first, int second)
{
	graphs_put_as(
		(struct fgv_graph_node){.number = graphs.text.nodes, .op = op, .message_len = len},
		message, first, second);
}

void graphs_put_nothing(int first, int second)
{
	graphs_put(FGV_GRAPH_NO_OP, "", 0, first, second);
}

struct fgv_fill_request graphs_fill_of(uint32_t at, uint32_t value)
{
	return (struct fgv_fill_request){
		.address = VGPU_SHARED_ADDRESS + 4ull * at,
		.count = 1,
		.value = value,
		.width = 4,
	};
}

void graphs_put_word(uint32_t at, uint32_t value, int first, int second)
{
	struct fgv_fill_request request = graphs_fill_of(at, value);

	graphs_put(FGV_OP_FILL, &request, sizeof(request), first, second);
}

void graphs_put_copy(uint32_t to, uint32_t from, int first)
{
	struct fgv_copy_device_request request = {
		.to = VGPU_SHARED_ADDRESS + 4ull * to,
		.from = VGPU_SHARED_ADDRESS + 4ull * from,
		.size = 4,
	};

	graphs_put(FGV_OP_COPY_DEVICE, &request, sizeof(request), first, -1);
}

struct graphs_launch graphs_launch_of(uint32_t function, uint32_t count, uint32_t more)
{
	return (struct graphs_launch){
		.head = {.function = function,
			 .grid = {1, 1, 1},
			 .block = {128, 1, 1},
			 .param_count = 3},
		.args = {VGPU_SHARED_ADDRESS, count, more},
	};
}

void graphs_put_launch(uint32_t function, uint32_t count, uint32_t more, int first)
{
	struct graphs_launch launch = graphs_launch_of(function, count, more);

	graphs_put(FGV_OP_LAUNCH, &launch, sizeof(launch), first, -1);
}

/* --- Asking -------------------------------------------------------------------- */

uint32_t graphs_build_of(uint32_t nodes, uint64_t offset, uint32_t len, uint32_t *graph)
{
	struct fgv_graph_build_request head = {
		.offset = offset, .nodes = nodes, .home = graphs.home};
	static uint8_t message[sizeof(head) + FGV_DATA_MAX];
	struct fgv_graph_build_reply reply = {0};

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), graphs.text.bytes, len);
	ck_assert_uint_eq(vgpu_call(&graphs.vgpu, 0, FGV_OP_GRAPH_BUILD, message,
				    (uint32_t)sizeof(head) + len, &reply),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(!reply.graph, reply.refused != CUDA_SUCCESS);
	*graph = reply.graph;
	return reply.refused;
}

uint32_t graphs_must_build(void)
{
	uint32_t graph;

	ck_assert_uint_eq(graphs_build_of(graphs.text.nodes, 0, graphs.text.len, &graph),
			  CUDA_SUCCESS);
	graphs.text.len = graphs.text.nodes = 0;
	return graph;
}

void graphs_post_launch(uint32_t graph, uint32_t stream)
{
	struct fgv_graph_launch_request request = {.graph = graph, .stream = stream};

	vgpu_must_post(&graphs.vgpu, 0, FGV_OP_GRAPH_LAUNCH, &request, sizeof(request));
}

void graphs_must_run(uint32_t graph)
{
	graphs_post_launch(graph, 0);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
}

void graphs_post_update(uint32_t graph)
{
	struct fgv_graph_update_request head = {.graph = graph};
	static uint8_t message[sizeof(head) + FGV_DATA_MAX];

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), graphs.text.bytes, graphs.text.len);
	vgpu_must_post(&graphs.vgpu, 0, FGV_OP_GRAPH_UPDATE, message,
		       (uint32_t)sizeof(head) + graphs.text.len);
	graphs.text.len = graphs.text.nodes = 0;
}

void graphs_post_destroy(uint32_t graph)
{
	struct fgv_graph_destroy_request request = {.graph = graph};

	vgpu_must_post(&graphs.vgpu, 0, FGV_OP_GRAPH_DESTROY, &request, sizeof(request));
}
