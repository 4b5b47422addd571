/*
 * Graphs and captures in the driver's terms, as far as no program of the runtime's reaches them.
 */
#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/graph/capture.h"
#include "frontend/cuda/graph/exec.h"
#include "frontend/cuda/graph/graph.h"
#include "frontend/cuda/graph/node.h"
#include "frontend/cuda/graph/user_object.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/graph_memory.h"
#include "frontend/cuda/memory/memcpy.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/module/library.h"
#include "frontend/cuda/stream/event.h"
#include "frontend/cuda/stream/host_func.h"
#include "frontend/cuda/stream/ordered.h"
#include "frontend/cuda/stream/stream.h"
#include "tests/unit/frontend/cuda/test_core.h"

static CUgraph new_graph(void)
{
	CUgraph graph;

	EXPECT(fgv_graph_create(&graph, 0), CUDA_SUCCESS);
	return graph;
}

/* Launches what @graph does once. */
static void run(CUgraph graph)
{
	CUgraphExec exec;

	EXPECT(fgv_exec_create(&exec, graph, 0), CUDA_SUCCESS);
	EXPECT(fgv_exec_launch(exec, NULL), CUDA_SUCCESS);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	EXPECT(fgv_exec_destroy(exec), CUDA_SUCCESS);
	host_seen();
}

static CUdeviceptr new_memory(size_t bytes)
{
	CUdeviceptr address;

	EXPECT(fgv_memory_alloc(&address, bytes), CUDA_SUCCESS);
	return address;
}

static void read_back(void *to, CUdeviceptr from, size_t bytes)
{
	EXPECT(fgv_memcpy_run(to, (void *)from, bytes, FGV_MEMCPY_FROM_DEVICE, NULL, true),
	       CUDA_SUCCESS);
}

/* --- Nodes ---------------------------------------------------------------------- */

static CUkernel new_kernel(void)
{
	CUlibrary library;
	CUkernel kernel;

	EXPECT(fgv_library_load_data(&library, &container), CUDA_SUCCESS);
	EXPECT(fgv_library_get_kernel(&kernel, library, "add"), CUDA_SUCCESS);
	return kernel;
}

static CUgraphNodeParams of_kernel(CUfunction function, CUkernel kernel, void **args, void **extra)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	params.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = function,
		.kern = kernel,
		.gridDimX = 2,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args,
		.extra = extra,
	};
	return params;
}

/* The host's kernel has parameters of 8, 4 and 1 bytes, 128 bytes apart. */
static void check_launch(uint64_t number, uint64_t first, uint64_t second, uint64_t third)
{
	const uint64_t expected[3] = {first, second, third};

	ck_assert_uint_eq(HOST_GET(launch_count), number + 1);
	ck_assert_uint_eq(host.launches[number].grid[0], 2);
	ck_assert_mem_eq(host.launches[number].args, expected, sizeof(expected));
}

START_TEST(kernels_by_either_name)
{
	uint64_t a = 7;
	uint32_t b = 8;
	uint8_t c = 9;
	void *args[] = {&a, &b, &c};
	CUkernel kernel = new_kernel();
	CUgraph graph = new_graph();
	CUgraphNodeParams params = of_kernel(NULL, kernel, args, NULL), told;
	CUgraphNode node;

	EXPECT(fgv_node_add(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	a = b = c = 0;
	run(graph);
	check_launch(0, 7, 8, 9);
	EXPECT(fgv_node_get_params(node, CU_GRAPH_NODE_TYPE_KERNEL, &told), CUDA_SUCCESS);
	ck_assert_ptr_eq(told.kernel.func, (CUfunction)kernel);
	ck_assert_uint_eq(told.kernel.gridDimX, 2);
	ck_assert_uint_eq(*(uint64_t *)told.kernel.kernelParams[0], 7);
	ck_assert_uint_eq(*(uint8_t *)told.kernel.kernelParams[2], 9);
	*(uint32_t *)told.kernel.kernelParams[1] = 10;
	params = of_kernel((CUfunction)kernel, NULL, told.kernel.kernelParams, NULL);
	EXPECT(fgv_node_set_params(node, &params), CUDA_SUCCESS);
	run(graph);
	check_launch(1, 7, 10, 9);
	params = of_kernel(NULL, (CUkernel)&a, args, NULL);
	EXPECT(fgv_node_set_params(node, &params), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(fgv_node_get_params(node, CU_GRAPH_NODE_TYPE_MEMCPY, &told),
	       CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(kernels_with_packed_arguments)
{
	uint8_t buffer[2 * 128 + 1] = {[0] = 3, [128] = 4, [256] = 5};
	size_t len = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &len,
			 CU_LAUNCH_PARAM_END};
	CUgraph graph = new_graph();
	CUgraphNodeParams params = of_kernel(NULL, new_kernel(), NULL, extra), told;
	CUgraphNode node;

	EXPECT(fgv_node_add(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	memset(buffer, 0, sizeof(buffer));
	run(graph);
	check_launch(0, 3, 4, 5);
	EXPECT(fgv_node_get_params(node, CU_GRAPH_NODE_TYPE_KERNEL, &told), CUDA_SUCCESS);
	ck_assert_ptr_eq(told.kernel.extra, NULL);
	ck_assert_uint_eq(*(uint8_t *)told.kernel.kernelParams[2], 5);
}
END_TEST

static CUgraphNodeParams of_fill(CUdeviceptr address, unsigned element)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

	params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = address,
						     .pitch = 16,
						     .value = 0xa1b2c3d4,
						     .elementSize = element,
						     .width = 3,
						     .height = 2};
	return params;
}

START_TEST(fills_of_elements)
{
	CUdeviceptr address = new_memory(32);
	CUgraph graph = new_graph();
	CUgraphNodeParams params = of_fill(address, 4), told;
	uint32_t got[8];
	CUgraphNode node;

	EXPECT(fgv_node_add(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	EXPECT(fgv_node_get_params(node, CU_GRAPH_NODE_TYPE_MEMSET, &told), CUDA_SUCCESS);
	ck_assert_mem_eq(&told.memset, &params.memset, sizeof(told.memset));
	run(graph);
	read_back(got, address, sizeof(got));
	ck_assert_uint_eq(got[2], 0xa1b2c3d4);
	ck_assert_uint_eq(got[6], 0xa1b2c3d4);
	params = of_fill(address, 3);
	EXPECT(fgv_node_set_params(node, &params), CUDA_ERROR_INVALID_VALUE);
	params = of_fill(address + 2, 4);
	EXPECT(fgv_node_set_params(node, &params), CUDA_ERROR_INVALID_VALUE);
	params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	EXPECT(fgv_node_add(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

/* An address that is not known here is for the GPU to judge, but not while a node is made. */
START_TEST(copies_to_unknown_addresses)
{
	CUdeviceptr address = new_memory(32);
	const char from[16] = "abcd....efgh....";
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY}, told;
	CUgraph graph = new_graph();
	CUgraphNode node;
	char got[32];

	ck_assert_int_eq(fgv_addrmap_remove(address, FGV_RANGE_MEMORY), 0);
	params.memcpy.copyParams = rows_in(address, from);
	EXPECT(fgv_node_add(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	EXPECT(fgv_node_get_params(node, CU_GRAPH_NODE_TYPE_MEMCPY, &told), CUDA_SUCCESS);
	ck_assert_mem_eq(&told.memcpy, &params.memcpy, sizeof(told.memcpy));
	run(graph);
	read_back(got, address, sizeof(got));
	ck_assert_mem_eq(got, "abcd", 4);
	ck_assert_mem_eq(got + 16, "efgh", 4);
}
END_TEST

static int calls;

static void count_call(void *data)
{
	(void)data;
	calls++;
}

START_TEST(nodes_without_work_of_the_gpu)
{
	CUgraph graph = new_graph(), child = new_graph(), found;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST}, told;
	CUgraphNode nodes[3], list[2];
	CUgraphEdgeData edge = {.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, .from_port = 1};
	size_t size = 2;
	CUevent event;

	params.host = (CUDA_HOST_NODE_PARAMS_v2){count_call, &calls};
	EXPECT(fgv_node_add(&nodes[0], graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	EXPECT(fgv_node_get_params(nodes[0], CU_GRAPH_NODE_TYPE_HOST, &told), CUDA_SUCCESS);
	ck_assert(told.host.fn == count_call && told.host.userData == &calls);
	params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH};
	params.graph.graph = child;
	EXPECT(fgv_node_add(&nodes[1], graph, nodes, &edge, 1, &params), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_node_add(&nodes[1], graph, nodes, NULL, 1, &params), CUDA_SUCCESS);
	EXPECT(fgv_node_get_params(nodes[1], CU_GRAPH_NODE_TYPE_GRAPH, &told), CUDA_SUCCESS);
	found = told.graph.graph;
	ck_assert_ptr_ne(found, child);
	EXPECT(fgv_graph_destroy(found), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_event_create(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
	params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	params.eventRecord.event = event;
	EXPECT(fgv_node_add(&nodes[2], graph, nodes, NULL, 2, &params), CUDA_SUCCESS);
	EXPECT(fgv_node_get_before(nodes[2], list, NULL, &size), CUDA_SUCCESS);
	ck_assert(size == 2 && list[0] == nodes[0] && list[1] == nodes[1]);
	EXPECT(fgv_graph_destroy(graph), CUDA_SUCCESS);
	EXPECT(fgv_node_get_type(nodes[0], &told.type), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* --- Captures and the memory of graphs -------------------------------------------- */

static CUstream new_stream(void)
{
	CUstream stream;

	EXPECT(fgv_stream_create(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	return stream;
}

static void check_type(CUgraphNode node, CUgraphNodeType type)
{
	CUgraphNodeType found;

	EXPECT(fgv_node_get_type(node, &found), CUDA_SUCCESS);
	ck_assert_int_eq(found, type);
}

START_TEST(memory_of_captures)
{
	CUstream stream = new_stream();
	CUgraphNode nodes[3];
	CUgraphNodeParams told;
	CUgraphExec exec;
	CUdeviceptr address, other;
	CUgraph graph;
	size_t count = 3;
	uint64_t bytes;

	EXPECT(fgv_capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	EXPECT(fgv_ordered_alloc(&address, 1 << 20, NULL, stream), CUDA_SUCCESS);
	EXPECT(fgv_ordered_free(address, stream), CUDA_SUCCESS);
	/* What is freed by then is good enough. */
	EXPECT(fgv_ordered_alloc(&other, 1 << 20, NULL, stream), CUDA_SUCCESS);
	ck_assert_uint_eq(other, address);
	EXPECT(fgv_memory_alloc(&other, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(fgv_capture_end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	ck_assert_ptr_eq(graph, NULL);

	EXPECT(fgv_capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	EXPECT(fgv_ordered_alloc(&address, 1 << 20, NULL, stream), CUDA_SUCCESS);
	EXPECT(fgv_host_func_launch(stream, count_call, NULL), CUDA_SUCCESS);
	EXPECT(fgv_capture_end(stream, &graph), CUDA_SUCCESS);
	EXPECT(fgv_graph_get_nodes(graph, nodes, &count), CUDA_SUCCESS);
	ck_assert_uint_eq(count, 2);
	check_type(nodes[0], CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	check_type(nodes[1], CU_GRAPH_NODE_TYPE_HOST);
	EXPECT(fgv_node_get_params(nodes[0], CU_GRAPH_NODE_TYPE_MEM_ALLOC, &told), CUDA_SUCCESS);
	ck_assert_uint_eq(told.alloc.dptr, address);
	ck_assert_uint_eq(told.alloc.bytesize, 1 << 20);

	EXPECT(fgv_memory_free(address), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_exec_create(&exec, graph, 0), CUDA_SUCCESS);
	EXPECT(fgv_exec_launch(exec, stream), CUDA_SUCCESS);
	EXPECT(fgv_exec_launch(exec, stream), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_graph_memory_get_attribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes),
	       CUDA_SUCCESS);
	ck_assert_uint_eq(bytes, 1 << 20);
	EXPECT(fgv_memory_free(address), CUDA_SUCCESS);
	EXPECT(fgv_exec_launch(exec, stream), CUDA_SUCCESS);
	EXPECT(fgv_ordered_free(address, stream), CUDA_SUCCESS);
	EXPECT(fgv_ordered_free(address, stream), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_exec_destroy(exec), CUDA_SUCCESS);
	EXPECT(fgv_graph_destroy(graph), CUDA_SUCCESS);
	EXPECT(fgv_graph_memory_get_attribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes),
	       CUDA_SUCCESS);
	ck_assert_uint_eq(bytes, 0);
	EXPECT(fgv_graph_memory_trim(1), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

START_TEST(what_captures_tell)
{
	CUstream stream = new_stream();
	CUstreamCaptureStatus status;
	CUgraph graph, found;
	const CUgraphNode *last;
	size_t count;
	const struct fgv_capture_info wanted = {
		.status = &status, .graph = &found, .dependencies = &last, .count = &count};
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	EXPECT(fgv_capture_end(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	EXPECT(fgv_capture_begin(NULL, mode), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	graph = new_graph();
	EXPECT(fgv_capture_begin_to_graph(stream, graph, NULL, NULL, 0, mode), CUDA_SUCCESS);
	EXPECT(fgv_capture_begin(stream, mode), CUDA_ERROR_ILLEGAL_STATE);
	EXPECT(fgv_host_func_launch(stream, count_call, NULL), CUDA_SUCCESS);
	EXPECT(fgv_capture_get_info(stream, &wanted), CUDA_SUCCESS);
	ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	ck_assert_ptr_eq(found, graph);
	ck_assert_uint_eq(count, 1);
	check_type(last[0], CU_GRAPH_NODE_TYPE_HOST);
	EXPECT(fgv_capture_update(stream, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
	       CUDA_SUCCESS);
	EXPECT(fgv_capture_end(stream, &found), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	EXPECT(fgv_capture_exchange_mode(&mode), CUDA_SUCCESS);
	ck_assert_int_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	EXPECT(fgv_capture_exchange_mode(&mode), CUDA_SUCCESS);
	EXPECT(fgv_graph_destroy(graph), CUDA_SUCCESS);
}
END_TEST

/* A graph that is gone holds nothing any more. */
START_TEST(objects_of_the_program)
{
	CUgraph graph = new_graph();
	CUuserObject object;

	EXPECT(fgv_user_object_create(&object, &calls, count_call, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_user_object_create(&object, &calls, count_call, 1,
				      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
	       CUDA_SUCCESS);
	EXPECT(fgv_graph_retain_object(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE),
	       CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_graph_retain_object(graph, object, 2, 0), CUDA_SUCCESS);
	EXPECT(fgv_graph_release_object(graph, object, 3), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_user_object_release(object, 1), CUDA_SUCCESS);
	EXPECT(fgv_graph_release_object(graph, object, 1), CUDA_SUCCESS);
	EXPECT(fgv_graph_destroy(graph), CUDA_SUCCESS);
	EXPECT(fgv_user_object_release(object, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_graph");
	TCase *tests = tcase_create("core_graph");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, kernels_by_either_name);
	tcase_add_test(tests, kernels_with_packed_arguments);
	tcase_add_test(tests, fills_of_elements);
	tcase_add_test(tests, copies_to_unknown_addresses);
	tcase_add_test(tests, nodes_without_work_of_the_gpu);
	tcase_add_test(tests, memory_of_captures);
	tcase_add_test(tests, what_captures_tell);
	tcase_add_test(tests, objects_of_the_program);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
