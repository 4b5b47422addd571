/*
 * Graphs that the host builds: how many requests instantiating, changing and launching take, that
 * what they do is what the program asked for, and where graphs are cut.
 */
#include <string.h>

#include "frontend/cuda/memory/memcpy.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/stream/event.h"
#include "tests/unit/frontend/cuda/core_chain.h"

/* --- What it takes ------------------------------------------------------------- */

START_TEST(launch_is_one_request)
{
	CUgraphExec exec;

	load_kernel();
	exec = instantiate(new_chain(100));
	for (int i = 0; i < 3; i++)
		launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 1);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_PART), 0);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 3);
	ck_assert_uint_eq(requests(FGV_OP_LAUNCH), 0);
	ck_assert_uint_eq(HOST_GET(launch_count), 300);
	for (uint64_t i = 0; i < 300; i++)
		ck_assert_uint_eq(argument(i), i % 100);
	EXPECT(fgv_exec_destroy(exec), CUDA_SUCCESS);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_DESTROY), 1);
}
END_TEST

static void set_priority(CUgraphNode node, int priority)
{
	const CUkernelNodeAttrValue value = {.priority = priority};

	EXPECT(fgv_node_set_attribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
}

/* With the flag, and within CUDA's range; also where they change. */
START_TEST(priorities_come_where_they_are_asked_for)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec;
	CUgraph graph;

	load_kernel();
	graph = new_chain(3);
	set_priority(nodes[0], -3);
	set_priority(nodes[1], -100);
	exec = instantiate(graph);
	launch(exec);
	host_seen();
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(host.priorities[i], 0);
	host_seen();
	EXPECT(fgv_exec_destroy(exec), CUDA_SUCCESS);
	EXPECT(fgv_exec_create(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
	       CUDA_SUCCESS);
	launch(exec);
	host_seen();
	ck_assert_uint_eq(host.priorities[0], 4);
	ck_assert_uint_eq(host.priorities[1], FGV_GRAPH_PRIORITY_MAX);
	ck_assert_uint_eq(host.priorities[2], 1);
	host_seen();
	set_priority(nodes[2], -1);
	EXPECT(fgv_exec_update(exec, graph, &info), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), 1);
	host_seen();
	ck_assert_uint_eq(host.priorities[2], 2);
}
END_TEST

START_TEST(large_ones_come_in_parts)
{
	CUgraphExec exec;

	load_kernel();
	exec = instantiate(new_chain(MANY));
	launch(exec);
	ck_assert_uint_gt(requests(FGV_OP_GRAPH_PART), 1);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 1);
	ck_assert_uint_eq(HOST_GET(launch_count), MANY);
	for (uint64_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(argument(i), i);
}
END_TEST

/* Only what was changed is sent, by whichever call, with the next launch. */
START_TEST(changes_are_sent_alone)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, other;
	CUgraphExec exec;

	load_kernel();
	graph = new_chain(100);
	exec = instantiate(graph);
	EXPECT(fgv_exec_set_params(exec, nodes[7], kernel_of(1007)), CUDA_SUCCESS);
	EXPECT(fgv_exec_set_params(exec, nodes[8], kernel_of(1008)), CUDA_SUCCESS);
	EXPECT(fgv_exec_set_enabled(exec, nodes[9], 0), CUDA_SUCCESS);
	launch(exec);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), 1);
	ck_assert_uint_eq(HOST_GET(launch_count), 198);
	ck_assert_uint_eq(argument(7), 1007);
	ck_assert_uint_eq(argument(99 + 8), 1008);
	ck_assert_uint_eq(argument(9), 10);

	other = new_chain(100);
	EXPECT(fgv_exec_update(exec, other, &info), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), 2);
	ck_assert_uint_eq(argument(198 + 7), 7);
	EXPECT(fgv_exec_update(exec, other, &info), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), 2);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 1);
}
END_TEST

START_TEST(many_changes_take_few_messages)
{
	CUgraphExec exec;

	load_kernel();
	exec = instantiate(new_chain(MANY));
	for (unsigned i = 0; i < MANY; i++)
		EXPECT(fgv_exec_set_params(exec, nodes[i], kernel_of(5000 + i)), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_gt(requests(FGV_OP_GRAPH_UPDATE), 1);
	ck_assert_uint_lt(requests(FGV_OP_GRAPH_UPDATE), MANY / 20);
	for (uint64_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(argument(i), 5000 + i);
}
END_TEST

/* --- What can't be there ------------------------------------------------------- */

/* Before, between and after the kernels of a child graph, which has two ends. */
START_TEST(children_are_part_of_it)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	CUgraph graph = new_graph(), child = new_graph();
	CUgraphNode first, second, inner;
	CUgraphExec exec;

	load_kernel();
	EXPECT(fgv_node_add(&inner, child, NULL, NULL, 0, kernel_of(1)), CUDA_SUCCESS);
	EXPECT(fgv_node_add(&inner, child, NULL, NULL, 0, kernel_of(2)), CUDA_SUCCESS);
	EXPECT(fgv_node_add(&first, graph, NULL, NULL, 0, kernel_of(0)), CUDA_SUCCESS);
	params.graph.graph = child;
	EXPECT(fgv_node_add(&second, graph, &first, NULL, 1, &params), CUDA_SUCCESS);
	EXPECT(fgv_node_add(&first, graph, &second, NULL, 1, kernel_of(3)), CUDA_SUCCESS);
	params.graph.graph = new_graph();
	EXPECT(fgv_node_add(&second, graph, &first, NULL, 1, &params), CUDA_SUCCESS);
	exec = instantiate(graph);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 1);
	ck_assert_uint_eq(HOST_GET(launch_count), 4);
	for (uint64_t i = 0; i < 4; i++)
		ck_assert_uint_eq(argument(i), i);
}
END_TEST

START_TEST(refused_ones_are_launched_node_by_node)
{
	CUgraphExec exec;

	load_kernel();
	HOST_SET(status[FGV_OP_GRAPH_BUILD], CUDA_ERROR_NOT_SUPPORTED);
	exec = instantiate(new_chain(10));
	EXPECT(fgv_exec_set_params(exec, nodes[3], kernel_of(1003)), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 0);
	ck_assert_uint_eq(requests(FGV_OP_LAUNCH), 10);
	ck_assert_uint_eq(argument(3), 1003);
}
END_TEST

/* --- What is cut --------------------------------------------------------------- */

/* The tests' host calls none. */
static void do_nothing(void *data)
{
	(void)data;
}

static CUgraphNode add_function(CUgraph graph, CUgraphNode before)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
	CUgraphNode node;

	params.host.fn = do_nothing;
	EXPECT(fgv_node_add(&node, graph, before ? &before : NULL, NULL, before != NULL, &params),
	       CUDA_SUCCESS);
	return node;
}

static CUgraphNode add_kernel(CUgraph graph, CUgraphNode before, uint64_t value)
{
	CUgraphNode node;

	EXPECT(fgv_node_add(&node, graph, before ? &before : NULL, NULL, before != NULL,
			    kernel_of(value)),
	       CUDA_SUCCESS);
	return node;
}

START_TEST(functions_cut)
{
	CUgraph graph;
	CUgraphNode last;
	CUgraphExec exec;

	load_kernel();
	graph = new_chain(10);
	last = add_function(graph, nodes[9]);
	for (unsigned i = 10; i < 20; i++)
		last = add_kernel(graph, last, i);
	/* A branch of its own does not cut once more. */
	last = 0;
	for (unsigned i = 0; i < 5; i++)
		last = add_kernel(graph, last, 100);
	exec = instantiate(graph);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 2);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 2);
	ck_assert_uint_eq(requests(FGV_OP_HOST_FUNC), 1);
	ck_assert_uint_eq(requests(FGV_OP_LAUNCH), 0);
	ck_assert_uint_eq(HOST_GET(launch_count), 25);
	for (uint64_t i = 0; i < 10; i++) {
		ck_assert_uint_eq(argument(i), i);
		ck_assert_uint_eq(argument(15 + i), 10 + i);
	}
	EXPECT(fgv_exec_destroy(exec), CUDA_SUCCESS);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_DESTROY), 2);
}
END_TEST

/* One that nothing comes before is where the graph begins, and single kernels are no graphs. */
START_TEST(is_cut_as_seldom_as_can_be)
{
	CUgraph graph = new_graph();
	CUgraphNode first, last;
	CUgraphExec exec;

	load_kernel();
	first = add_kernel(graph, NULL, 0);
	last = add_function(graph, NULL);
	EXPECT(fgv_graph_add_edges(graph, &first, (CUgraphNode[]){add_kernel(graph, last, 1)}, NULL,
				   1),
	       CUDA_SUCCESS);
	exec = instantiate(graph);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 1);
	last = add_function(graph, first);
	add_kernel(graph, last, 2);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 1);
	exec = instantiate(graph);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 2);
	ck_assert_uint_eq(HOST_GET(launch_count), 2 + 3);
	ck_assert_uint_eq(requests(FGV_OP_HOST_FUNC), 1 + 2);
}
END_TEST

/* In a child graph, where what waits for that graph waits for all its parts. */
START_TEST(children_are_cut)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	CUgraph graph = new_graph(), child = new_graph();
	CUgraphNode last, node;
	CUgraphExec exec;

	load_kernel();
	add_kernel(child, NULL, 10);
	last = add_function(child, add_kernel(child, add_kernel(child, NULL, 11), 12));
	add_kernel(child, add_kernel(child, last, 13), 14);
	params.graph.graph = child;
	last = add_kernel(graph, NULL, 1);
	EXPECT(fgv_node_add(&node, graph, &last, NULL, 1, &params), CUDA_SUCCESS);
	add_kernel(graph, node, 2);
	exec = instantiate(graph);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 2);
	ck_assert_uint_eq(requests(FGV_OP_HOST_FUNC), 1);
	ck_assert_uint_eq(HOST_GET(launch_count), 7);
	ck_assert_uint_eq(argument(0), 1);
	for (uint64_t i = 4; i < 6; i++)
		ck_assert_uint_eq(argument(i), i + 9);
	ck_assert_uint_eq(argument(6), 2);
}
END_TEST

/* A change goes to the part that its node is in; what is posted one by one is not sent at all. */
START_TEST(parts_are_changed_alone)
{
	CUgraphNode function, last;
	CUgraph graph;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
	CUgraphExec exec;

	load_kernel();
	graph = new_chain(10);
	function = add_function(graph, nodes[9]);
	last = add_kernel(graph, add_kernel(graph, function, 10), 11);
	exec = instantiate(graph);
	EXPECT(fgv_exec_set_params(exec, nodes[4], kernel_of(1004)), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), 1);
	EXPECT(fgv_exec_set_params(exec, last, kernel_of(1011)), CUDA_SUCCESS);
	EXPECT(fgv_exec_set_params(exec, nodes[5], kernel_of(1005)), CUDA_SUCCESS);
	params.host.fn = do_nothing;
	EXPECT(fgv_exec_set_params(exec, function, &params), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), 3);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 2);
	ck_assert_uint_eq(argument(4), 1004);
	ck_assert_uint_eq(argument(12 + 4), 1004);
	ck_assert_uint_eq(argument(12 + 5), 1005);
	ck_assert_uint_eq(argument(12 + 11), 1011);
	ck_assert_uint_eq(requests(FGV_OP_HOST_FUNC), 2);
}
END_TEST

/* Events are the host's; another one in a node has the host build the graph anew. */
START_TEST(events_are_for_the_host)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	CUgraph graph = new_graph();
	CUgraphNode record, last;
	CUevent first, second;
	CUgraphExec exec;

	load_kernel();
	EXPECT(fgv_event_create(&first, 0), CUDA_SUCCESS);
	EXPECT(fgv_event_create(&second, 0), CUDA_SUCCESS);
	last = add_kernel(graph, NULL, 1);
	params.eventRecord.event = first;
	EXPECT(fgv_node_add(&record, graph, &last, NULL, 1, &params), CUDA_SUCCESS);
	exec = instantiate(graph);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 1);
	ck_assert_uint_eq(requests(FGV_OP_EVENT_RECORD), 0);
	params.eventRecord.event = second;
	EXPECT(fgv_exec_set_params(exec, record, &params), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), 0);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 2);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 2);
}
END_TEST

/* Between two places on the device, or to the first from the program's memory. */
static CUgraphNodeParams copy_of(CUdeviceptr to, CUdeviceptr from, const void *program)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

	params.memcpy.copyParams = (CUDA_MEMCPY3D){
		.srcMemoryType = program ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = program,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
	return params;
}

static void check_word(CUdeviceptr address, uint32_t wanted)
{
	uint32_t got;

	EXPECT(fgv_memcpy_run(&got, (void *)address, 4, FGV_MEMCPY_FROM_DEVICE, NULL, true),
	       CUDA_SUCCESS);
	ck_assert_uint_eq(got, wanted);
}

/* A change can take it away from the host, and give it back. */
START_TEST(goes_and_comes_with_changes)
{
	uint32_t word = 77, other = 88;
	CUgraph graph = new_graph();
	CUgraphNodeParams params;
	CUdeviceptr memory;
	CUgraphExec exec;

	EXPECT(fgv_memory_alloc(&memory, 64), CUDA_SUCCESS);
	EXPECT(fgv_memcpy_run((void *)memory, &word, 4, FGV_MEMCPY_TO_DEVICE, NULL, true),
	       CUDA_SUCCESS);
	params = copy_of(memory + 16, memory, NULL);
	EXPECT(fgv_node_add(&nodes[0], graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	exec = instantiate(graph);
	launch(exec);
	check_word(memory + 16, 77);
	params = copy_of(memory + 16, 0, &other);
	EXPECT(fgv_exec_set_params(exec, nodes[0], &params), CUDA_SUCCESS);
	launch(exec);
	check_word(memory + 16, 88);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_DESTROY), 1);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 1);
	params = copy_of(memory + 32, memory + 16, NULL);
	EXPECT(fgv_exec_set_params(exec, nodes[0], &params), CUDA_SUCCESS);
	launch(exec);
	check_word(memory + 32, 88);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 2);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 2);
}
END_TEST

/* More than a graph of the host's may move, by all nodes together or by a change. */
START_TEST(moves_too_much)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	CUgraph graph = new_graph();
	CUdeviceptr memory;
	CUgraphExec exec;

	EXPECT(fgv_memory_alloc(&memory, 32 << 20), CUDA_SUCCESS);
	params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		.dst = memory, .elementSize = 4, .width = (32 << 20) / 4, .height = 1};
	for (int i = 0; i < 8; i++)
		EXPECT(fgv_node_add(&nodes[i], graph, i ? &nodes[i - 1] : NULL, NULL, i > 0,
				    &params),
		       CUDA_SUCCESS);
	exec = instantiate(graph);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 1);
	params.memset.width = 1;
	EXPECT(fgv_node_add(&nodes[8], graph, &nodes[7], NULL, 1, &params), CUDA_SUCCESS);
	launch(instantiate(graph));
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), 2);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 2);
	ck_assert_uint_eq(requests(FGV_OP_FILL), 1);

	/* Where one moves less, another may move more. */
	EXPECT(fgv_exec_set_params(exec, nodes[0], &params), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 3);
	params.memset.width = (32 << 20) / 4;
	EXPECT(fgv_exec_set_params(exec, nodes[0], &params), CUDA_SUCCESS);
	launch(exec);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 4);
	ck_assert_uint_eq(requests(FGV_OP_FILL), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_graph_host");
	TCase *tests = tcase_create("core_graph_host");

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, launch_is_one_request);
	tcase_add_test(tests, priorities_come_where_they_are_asked_for);
	tcase_add_test(tests, large_ones_come_in_parts);
	tcase_add_test(tests, changes_are_sent_alone);
	tcase_add_test(tests, many_changes_take_few_messages);
	tcase_add_test(tests, children_are_part_of_it);
	tcase_add_test(tests, refused_ones_are_launched_node_by_node);
	tcase_add_test(tests, events_are_for_the_host);
	tcase_add_test(tests, functions_cut);
	tcase_add_test(tests, is_cut_as_seldom_as_can_be);
	tcase_add_test(tests, children_are_cut);
	tcase_add_test(tests, parts_are_changed_alone);
	tcase_add_test(tests, goes_and_comes_with_changes);
	tcase_add_test(tests, moves_too_much);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
