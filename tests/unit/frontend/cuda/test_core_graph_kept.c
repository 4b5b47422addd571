/*
 * Graphs of the host's that are kept for the next one with the same text: when instantiating asks
 * the host for nothing, when it must not be so, and that what is kept is bounded and goes.
 */
#include "frontend/cuda/context/limit.h"
#include "frontend/cuda/context/reset.h"
#include "frontend/cuda/graph/exec_kept.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/stream/stream.h"
#include "tests/unit/frontend/cuda/core_chain.h"

#define SHORT 10 /* nodes of a chain */

static void launch_in(CUgraphExec exec, CUstream stream)
{
	EXPECT(fgv_exec_launch(exec, stream), CUDA_SUCCESS);
}

static void end(CUgraphExec exec)
{
	EXPECT(fgv_exec_destroy(exec), CUDA_SUCCESS);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	host_seen();
}

/* From instantiating to the end. */
static void live(CUgraph graph, CUstream stream)
{
	CUgraphExec exec = instantiate(graph);

	launch_in(exec, stream);
	end(exec);
}

/* So that one of it is kept. */
static CUgraph keep_chain(unsigned count)
{
	CUgraph graph = new_chain(count);

	live(graph, NULL);
	live(graph, NULL);
	return graph;
}

static void check_host(uint64_t built, uint64_t destroyed)
{
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_BUILD), built);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_DESTROY), destroyed);
}

/* --- What is the same ---------------------------------------------------------- */

START_TEST(comes_again_without_the_host)
{
	CUgraph graph;

	load_kernel();
	graph = new_chain(SHORT);
	live(graph, NULL);
	check_host(1, 1);
	live(graph, NULL);
	check_host(2, 1);
	for (int i = 0; i < 3; i++)
		live(graph, NULL);
	EXPECT(fgv_graph_destroy(graph), CUDA_SUCCESS);
	live(new_chain(SHORT), NULL);
	check_host(2, 1);
	ck_assert_uint_eq(requests(FGV_OP_GRAPH_LAUNCH), 6);
	for (uint64_t i = 0; i < 6 * SHORT; i++)
		ck_assert_uint_eq(argument(i), i % SHORT);
}
END_TEST

/* It has another edge. */
START_TEST(another_is_another)
{
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	EXPECT(fgv_graph_add_edges(graph, &nodes[0], &nodes[2], NULL, 1), CUDA_SUCCESS);
	live(graph, NULL);
	check_host(3, 2);
	EXPECT(fgv_graph_remove_edges(graph, &nodes[0], &nodes[2], 1), CUDA_SUCCESS);
	live(graph, NULL);
	check_host(3, 2);
}
END_TEST

/* One graph of the host's is one executable graph's at a time. */
START_TEST(two_at_once_are_two)
{
	CUgraphExec first, second;
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	first = instantiate(graph);
	second = instantiate(graph);
	check_host(3, 1);
	EXPECT(fgv_exec_set_enabled(first, nodes[0], 0), CUDA_SUCCESS);
	launch(first);
	launch(second);
	ck_assert_uint_eq(HOST_GET(launch_count), 4 * SHORT - 1);
	end(first);
	check_host(3, 2);
	end(second);
	check_host(3, 2);
}
END_TEST

/* It would not do what its text says. */
START_TEST(changed_ones_are_not_kept)
{
	CUgraphExec exec;
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	exec = instantiate(graph);
	EXPECT(fgv_exec_set_params(exec, nodes[0], kernel_of(99)), CUDA_SUCCESS);
	launch(exec);
	end(exec);
	check_host(2, 2);
	live(graph, NULL);
	check_host(3, 2);
	ck_assert_uint_eq(argument(3 * SHORT), 0);
}
END_TEST

/* A change that was not sent is no change. */
START_TEST(changes_that_were_never_launched)
{
	CUgraphExec exec;
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	exec = instantiate(graph);
	EXPECT(fgv_exec_set_params(exec, nodes[0], kernel_of(99)), CUDA_SUCCESS);
	end(exec);
	live(graph, NULL);
	check_host(2, 1);
	ck_assert_uint_eq(argument(2 * SHORT), 0);
}
END_TEST

/* What they do depends on the memory that was there when the graph was built. */
START_TEST(fills_are_built_anew)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	CUgraph graph = new_graph();
	CUdeviceptr memory;

	EXPECT(fgv_memory_alloc(&memory, 64), CUDA_SUCCESS);
	params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		.dst = memory, .elementSize = 4, .width = 4, .height = 1};
	EXPECT(fgv_node_add(&nodes[0], graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	for (int i = 0; i < 4; i++)
		live(graph, NULL);
	check_host(4, 4);
}
END_TEST

/* --- Streams ------------------------------------------------------------------- */

/* Its earlier launch may still run there, and natively the two would run side by side. */
START_TEST(is_built_anew_for_another_stream)
{
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	load_kernel();
	EXPECT(fgv_stream_create(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	graph = keep_chain(SHORT);
	exec = instantiate(graph);
	check_host(2, 1);
	EXPECT(fgv_exec_set_params(exec, nodes[0], kernel_of(99)), CUDA_SUCCESS);
	launch_in(exec, stream);
	launch_in(exec, stream);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	check_host(3, 1);
	host_seen();
	for (uint64_t i = 2 * SHORT; i < 4 * SHORT; i++)
		ck_assert_uint_ne(host.launches[i].stream, host.launches[0].stream);
	ck_assert_uint_eq(argument(2 * SHORT), 99);
	ck_assert_uint_eq(argument(3 * SHORT), 99);
	host_seen();
	end(exec);
	check_host(3, 1);
	live(graph, NULL);
	check_host(3, 1);
	ck_assert_uint_eq(argument(4 * SHORT), 0);
}
END_TEST

/* Each stream gets its own, once there is one. */
START_TEST(streams_take_turns)
{
	CUstream streams[2];
	CUgraph graph;

	load_kernel();
	for (int i = 0; i < 2; i++)
		EXPECT(fgv_stream_create(&streams[i], CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	graph = keep_chain(SHORT);
	for (int i = 0; i < 8; i++)
		live(graph, streams[i % 2]);
	check_host(4, 1);
	host_seen();
	for (uint64_t i = 0; i < 8; i++)
		ck_assert_uint_eq(host.launches[(2 + i) * SHORT].stream,
				  host.launches[(2 + i % 2) * SHORT].stream);
}
END_TEST

START_TEST(is_for_any_stream_unless_launched)
{
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	load_kernel();
	EXPECT(fgv_stream_create(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	graph = new_chain(SHORT);
	end(instantiate(graph));
	end(instantiate(graph));
	exec = instantiate(graph);
	launch_in(exec, stream);
	launch_in(exec, NULL);
	end(exec);
	check_host(2, 1);
	live(graph, NULL);
	check_host(2, 1);
}
END_TEST

/* --- What is alike ------------------------------------------------------------- */

/* The chain's kernels get @value, and one more each. */
static void set_all(unsigned count, uint64_t value)
{
	for (unsigned i = 0; i < count; i++)
		EXPECT(fgv_node_set_params(nodes[i], kernel_of(value + i)), CUDA_SUCCESS);
}

static void check_arguments(uint64_t first_launch, unsigned count, uint64_t value)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_uint_eq(argument(first_launch + i), value + i);
}

/* The host is told what differs, and builds nothing. */
START_TEST(alike_ones_are_changed)
{
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	for (uint64_t i = 1; i <= 4; i++) {
		EXPECT(fgv_node_set_params(nodes[SHORT - 1], kernel_of(100 * i)), CUDA_SUCCESS);
		live(graph, NULL);
		check_host(2, 1);
		ck_assert_uint_eq(requests(FGV_OP_GRAPH_UPDATE), i);
		check_arguments((i + 1) * SHORT, SHORT - 1, 0);
		ck_assert_uint_eq(argument((i + 2) * SHORT - 1), 100 * i);
	}
	ck_assert_uint_eq(HOST_GET(changed_nodes), 4);
}
END_TEST

/* From the second graph on, and however long what is sent. */
START_TEST(all_of_alike_ones_are_changed)
{
	CUgraph graph;

	load_kernel();
	graph = new_chain(MANY);
	for (uint64_t i = 0; i < 5; i++) {
		set_all(MANY, i * 10000);
		live(graph, NULL);
		check_arguments(i * MANY, MANY, i * 10000);
	}
	check_host(2, 1);
	ck_assert_uint_eq(HOST_GET(changed_nodes), 3 * MANY);
	ck_assert_uint_lt(requests(FGV_OP_GRAPH_UPDATE), 3 * MANY / 20);
}
END_TEST

/* Texts that take turns have a graph each. */
START_TEST(those_that_come_again_are_not_changed)
{
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	for (uint64_t i = 0; i < 8; i++) {
		set_all(SHORT, i % 3 * 100);
		live(graph, NULL);
		check_arguments((i + 2) * SHORT, SHORT, i % 3 * 100);
	}
	check_host(4, 1);
	ck_assert_uint_eq(HOST_GET(changed_nodes), 2 * SHORT);
}
END_TEST

/* More texts than are kept: each is made of another, as that costs less than building it. */
START_TEST(those_that_come_again_too_late_are_changed)
{
	const unsigned texts = FGV_EXEC_KEPT_MAX + 4;
	CUgraph graph;

	load_kernel();
	graph = new_chain(SHORT);
	for (uint64_t i = 0; i < 4 * texts; i++) {
		set_all(SHORT, i % texts * 100);
		live(graph, NULL);
		check_arguments(i * SHORT, SHORT, i % texts * 100);
	}
	ck_assert_uint_le(requests(FGV_OP_GRAPH_BUILD), FGV_EXEC_KEPT_MAX + 1);
}
END_TEST

/* What the program changes then is not what the text says. */
START_TEST(alike_ones_that_are_changed_again_are_not_kept)
{
	CUgraphExec exec;
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	set_all(SHORT, 100);
	exec = instantiate(graph);
	EXPECT(fgv_exec_set_params(exec, nodes[0], kernel_of(99)), CUDA_SUCCESS);
	launch(exec);
	end(exec);
	check_host(2, 2);
	live(graph, NULL);
	check_host(3, 2);
	check_arguments(3 * SHORT, SHORT, 100);
}
END_TEST

/* Its earlier launch may still run there. */
START_TEST(alike_ones_of_another_stream_are_left_there)
{
	CUstream stream;
	CUgraph graph;

	load_kernel();
	EXPECT(fgv_stream_create(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	graph = keep_chain(SHORT);
	for (uint64_t i = 1; i <= 6; i++) {
		set_all(SHORT, i * 100);
		live(graph, i % 2 ? stream : NULL);
		check_arguments((i + 1) * SHORT, SHORT, i * 100);
		ck_assert_uint_eq(host.launches[(i + 1) * SHORT].stream != host.launches[0].stream,
				  i % 2);
	}
	check_host(3, 1);
}
END_TEST

/* --- Where it ends ------------------------------------------------------------- */

START_TEST(goes_with_its_module)
{
	CUgraphExec exec;
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	exec = instantiate(graph);
	live(graph, NULL);
	check_host(3, 1);
	EXPECT(fgv_library_unload(library), CUDA_SUCCESS);
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	check_host(3, 2);
	end(exec);
	check_host(3, 3);
}
END_TEST

START_TEST(goes_with_a_limit)
{
	CUgraph graph;

	load_kernel();
	graph = keep_chain(SHORT);
	EXPECT(fgv_limit_set(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
	check_host(2, 2);
	live(graph, NULL);
	check_host(3, 2);
}
END_TEST

START_TEST(goes_with_a_reset)
{
	load_kernel();
	instantiate(keep_chain(SHORT));
	live(new_chain(SHORT), NULL);
	check_host(3, 1);
	EXPECT(fgv_reset_device(), CUDA_SUCCESS);
	check_host(3, 3);
}
END_TEST

START_TEST(makes_room_for_memory)
{
	CUdeviceptr memory;

	load_kernel();
	keep_chain(SHORT);
	HOST_SET(status[FGV_OP_MEM_ALLOC], CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(fgv_memory_alloc(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
	check_host(2, 2);
	ck_assert_uint_eq(requests(FGV_OP_MEM_ALLOC), 2);
	EXPECT(fgv_memory_alloc(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(requests(FGV_OP_MEM_ALLOC), 3);
}
END_TEST

START_TEST(makes_room_for_graphs)
{
	load_kernel();
	keep_chain(SHORT);
	HOST_SET(status[FGV_OP_GRAPH_BUILD], CUDA_ERROR_OUT_OF_MEMORY);
	live(new_chain(SHORT + 1), NULL);
	check_host(4, 2);
	ck_assert_uint_eq(HOST_GET(launch_count), 3 * SHORT + 1);
}
END_TEST

START_TEST(only_so_many_are_kept)
{
	const unsigned chains = FGV_EXEC_KEPT_MAX + 3;

	load_kernel();
	for (unsigned i = 1; i <= chains; i++)
		keep_chain(i);
	check_host(2 * chains, chains + 3);
	live(new_chain(chains), NULL);
	live(new_chain(4), NULL);
	check_host(2 * chains, chains + 3);
	live(new_chain(3), NULL);
	check_host(2 * chains + 1, chains + 4);
}
END_TEST

START_TEST(only_so_many_nodes_are_kept)
{
	const uint64_t chains = FGV_EXEC_KEPT_NODES_MAX / MANY + 1;

	load_kernel();
	for (unsigned i = 0; i < chains; i++)
		keep_chain(MANY - i);
	check_host(2 * chains, chains + 1);
	live(new_chain(MANY - 1), NULL);
	check_host(2 * chains, chains + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_graph_kept");
	TCase *tests = tcase_create("core_graph_kept");

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, comes_again_without_the_host);
	tcase_add_test(tests, another_is_another);
	tcase_add_test(tests, two_at_once_are_two);
	tcase_add_test(tests, changed_ones_are_not_kept);
	tcase_add_test(tests, changes_that_were_never_launched);
	tcase_add_test(tests, fills_are_built_anew);
	tcase_add_test(tests, is_built_anew_for_another_stream);
	tcase_add_test(tests, streams_take_turns);
	tcase_add_test(tests, is_for_any_stream_unless_launched);
	tcase_add_test(tests, alike_ones_are_changed);
	tcase_add_test(tests, all_of_alike_ones_are_changed);
	tcase_add_test(tests, those_that_come_again_are_not_changed);
	tcase_add_test(tests, those_that_come_again_too_late_are_changed);
	tcase_add_test(tests, alike_ones_that_are_changed_again_are_not_kept);
	tcase_add_test(tests, alike_ones_of_another_stream_are_left_there);
	tcase_add_test(tests, goes_with_its_module);
	tcase_add_test(tests, goes_with_a_limit);
	tcase_add_test(tests, goes_with_a_reset);
	tcase_add_test(tests, makes_room_for_memory);
	tcase_add_test(tests, makes_room_for_graphs);
	tcase_add_test(tests, only_so_many_are_kept);
	tcase_add_test(tests, only_so_many_nodes_are_kept);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
