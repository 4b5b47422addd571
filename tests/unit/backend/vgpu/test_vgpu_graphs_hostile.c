/*
 * Graphs of a guest that keeps no rule: their texts are not believed, and what they take is
 * bounded, charged and given back.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_graphs.h"

#define WORDS 64u

enum { BAD_TEXTS = 22 };

/* A text that is wrong in one way; how many nodes the guest says that it has. */
static uint32_t write_wrong(int how)
{
	struct fgv_fill_request fill = graphs_fill_of(0, 1);
	struct fgv_graph_node head = {.op = FGV_OP_FILL, .message_len = sizeof(fill)};
	uint32_t add = vgpu_must_get(&graphs.vgpu, vgpu_add_ptx, "add");
	struct graphs_launch launch = graphs_launch_of(add, 1, 1);
	struct fgv_mem_free_request free_request = {.address = VGPU_SHARED_ADDRESS};

	switch (how) {
	case 0: /* waits for itself */
		graphs_put_word(0, 1, 0, -1);
		return 1;
	case 1: /* two wait for each other */
		graphs_put_word(0, 1, -1, -1);
		graphs_put_word(0, 1, 2, -1);
		graphs_put_word(1, 1, 1, -1);
		return 3;
	case 2: /* for one that there is not */
		graphs_put_word(0, 1, -1, -1);
		graphs_put_word(0, 1, 1000000, -1);
		return 2;
	case 3: /* more than there are before it */
		graphs_put_word(0, 1, -1, -1);
		graphs_put_word(0, 1, 0, 0);
		return 2;
	case 4:
		head.number = 1;
		break;
	case 5:
		head.inside = 1; /* itself */
		break;
	case 6:
		head.is_disabled = 2;
		break;
	case 7: /* a message that is not its operation's */
		head.message_len -= 8;
		break;
	case 8: /* one that is not there */
		head.message_len = UINT32_MAX;
		graphs_append(&head, sizeof(head));
		return 1;
	case 9: /* a node that is nothing, with a message */
		head.op = FGV_GRAPH_NO_OP;
		break;
	case 10: /* operations that are no nodes */
		graphs_put(FGV_OP_MEM_FREE, &free_request, sizeof(free_request), -1, -1);
		return 1;
	case 11:
		graphs_put(FGV_OP_GRAPH_LAUNCH, &free_request, sizeof(free_request), -1, -1);
		return 1;
	case 12:
		head.op = UINT32_MAX;
		break;
	case 13: /* a function that there is not */
		launch.head.function += 1;
		graphs_put(FGV_OP_LAUNCH, &launch, sizeof(launch), -1, -1);
		return 1;
	case 14: /* arguments that are not its own */
		graphs_put(FGV_OP_LAUNCH, &launch, sizeof(launch) - 8, -1, -1);
		return 1;
	case 15: /* fewer nodes than are said, more, and the most that can be said */
		graphs_put_word(0, 1, -1, -1);
		return 2;
	case 16:
		graphs_put_word(0, 1, -1, -1);
		graphs_put_word(0, 1, -1, -1);
		return 1;
	case 17:
		graphs_put_word(0, 1, -1, -1);
		return UINT32_MAX;
	case 18: /* half a node */
		graphs_append(&head, 16);
		return 1;
	case 19: /* the same node twice */
		graphs_put_word(0, 1, -1, -1);
		graphs_put_as(head, &fill, -1, -1);
		return 2;
	case 20: /* a priority of what is no kernel */
		head.priority = 1;
		break;
	case 21: /* one that there is not */
		head.op = FGV_OP_LAUNCH;
		head.message_len = sizeof(launch);
		head.priority = FGV_GRAPH_PRIORITY_MAX + 1;
		graphs_put_as(head, &launch, -1, -1);
		return 1;
	}
	graphs_put_as(head, &fill, -1, -1);
	return 1;
}

START_TEST(refuses_wrong_texts)
{
	uint32_t nodes = write_wrong(_i), graph;
	uint64_t before = graphs_used_bytes();

	ck_assert_uint_ne(graphs_build_of(nodes, 0, graphs.text.len, &graph), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
	graphs.text.len = graphs.text.nodes = 0;
	graphs_put_word(0, 3, -1, -1);
	graphs_must_run(graphs_must_build());
	ck_assert_uint_eq(graphs.data[0], 3);
}
END_TEST

/* As a change, what is wrong leaves a graph that can only be destroyed. */
START_TEST(refuses_wrong_changes)
{
	uint32_t graph;

	graphs_put_word(0, 3, -1, -1);
	graph = graphs_must_build();
	write_wrong(_i);
	graphs_post_update(graph);
	ck_assert_uint_ne(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	graphs_post_launch(graph, 0);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
	graphs_post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
}
END_TEST

/* Nor is what is wrong better for being as long as what was right before. */
START_TEST(refuses_wrong_changes_in_place)
{
	uint32_t add = vgpu_must_get(&graphs.vgpu, vgpu_add_ptx, "add"), graph;
	struct graphs_launch launch = graphs_launch_of(add, 1, 1);

	graphs_put_word(0, 3, -1, -1);
	graphs_put_launch(add, 1, 1, 0);
	graph = graphs_must_build();
	for (int i = 0; i < 3; i++) {
		if (i == 2 && _i == 0)
			launch.head.function++;
		else if (i == 2)
			launch.head.param_count++;
		graphs_put_as((struct fgv_graph_node){.number = 1,
						      .op = FGV_OP_LAUNCH,
						      .message_len = sizeof(launch)},
			      &launch, -1, -1);
		graphs_post_update(graph);
	}
	ck_assert_uint_ne(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	graphs_post_update(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
	graphs_post_launch(graph, 0);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
	graphs_post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
}
END_TEST

/* But for less than one block. What is charged. */
static uint64_t fill_quota(void)
{
	uint64_t address;

	for (uint64_t bytes = VGPU_QUOTA; bytes; bytes /= 2) {
		while (vgpu_alloc(&graphs.vgpu, bytes, &address) == CUDA_SUCCESS)
			continue;
	}
	return graphs_used_bytes();
}

/* So often that there is no room for the text. */
static void change_node(uint32_t graph, struct fgv_graph_node head, const void *message)
{
	for (int i = 0; i < 200; i++)
		graphs_put_as(head, message, -1, -1);
	graphs_post_update(graph);
}

/* Other arguments take no memory, other messages do. */
START_TEST(changes_in_place_without_room)
{
	uint32_t add = vgpu_must_get(&graphs.vgpu, vgpu_add_ptx, "add"), graph;
	struct fgv_fill_request fill = graphs_fill_of(0, 9);
	struct graphs_launch launch = graphs_launch_of(add, 1, 20);
	struct fgv_graph_node head = {
		.number = 1, .op = FGV_OP_LAUNCH, .message_len = sizeof(launch)};
	uint64_t used;

	graphs_put_word(0, 0, -1, -1);
	graphs_put_launch(add, 1, 1, 0);
	graph = graphs_must_build();
	used = fill_quota();
	change_node(graph, head, &launch);
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 25);
	ck_assert_uint_eq(graphs_used_bytes(), used);
	head.op = FGV_OP_FILL;
	head.message_len = sizeof(fill);
	change_node(graph, head, &fill);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(graphs_used_bytes(), used);
}
END_TEST

START_TEST(finds_no_graph_by_an_old_handle)
{
	uint32_t graph;

	graphs_put_word(0, 1, -1, -1);
	graph = graphs_must_build();
	graphs_post_destroy(graph);
	for (uint32_t i = 0; i < 2; i++) {
		graphs_post_launch(graph, 0);
		ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_HANDLE);
		graphs_put_word(0, 1, -1, -1);
		graphs_post_update(graph);
		ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_HANDLE);
		graphs_put_word(0, 1, -1, -1);
		graphs_must_build(); /* in its place */
	}
}
END_TEST

/* A copy's host memory that the guest takes away may be something else by then. */
START_TEST(does_not_touch_host_memory_that_is_gone)
{
	struct fgv_copy_device_request request = {.to = VGPU_SHARED_ADDRESS, .size = 4};
	uint32_t graph;

	request.from = vgpu_must_alloc(&graphs.vgpu, 4096);
	graphs_put(FGV_OP_COPY_DEVICE, &request, sizeof(request), -1, -1);
	graph = graphs_must_build();
	graphs_must_run(graph);
	ck_assert_uint_eq(vgpu_host_unmap(&graphs.vgpu, VGPU_SHARED_ADDRESS), CUDA_SUCCESS);
	graphs_post_launch(graph, 0);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&graphs.vgpu, VGPU_SHARED_ADDRESS, DATA_OFF, DATA_LEN),
			  CUDA_SUCCESS);
	graphs_must_run(graph);
}
END_TEST

/* More nodes than a graph may have, in as many parts as it takes. */
START_TEST(refuses_too_many_nodes)
{
	struct fgv_graph_part_request head = {0};
	const struct fgv_graph_node nothing = {0};
	static uint8_t message[sizeof(head) + 2048 * sizeof(nothing)];
	uint64_t before = graphs_used_bytes();
	uint32_t graph;

	memset(message, 0, sizeof(message));
	for (uint32_t i = 0; i < FGV_GRAPH_NODES_MAX; i += 2048) {
		memcpy(message, &head, sizeof(head));
		for (uint32_t node = 0; node < 2048; node++) {
			uint32_t number = i + node;

			memcpy(message + sizeof(head) + node * sizeof(nothing), &number,
			       sizeof(number));
		}
		vgpu_must_post(&graphs.vgpu, 0, FGV_OP_GRAPH_PART, message, sizeof(message));
		head.offset += 2048 * sizeof(nothing);
	}
	graphs_put_as((struct fgv_graph_node){.number = FGV_GRAPH_NODES_MAX}, "", -1, -1);
	ck_assert_uint_eq(
		graphs_build_of(FGV_GRAPH_NODES_MAX + 1, head.offset, graphs.text.len, &graph),
		CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(graphs_used_bytes(), before);
}
END_TEST

/* Each node waits for all before it: more edges than a graph may have, in few nodes. */
START_TEST(refuses_too_many_edges)
{
	enum { NODES = 1450 };
	struct fgv_graph_part_request head = {0};
	static uint8_t message[sizeof(head) + sizeof(struct fgv_graph_node) + 4 * (NODES + 1)];
	uint32_t graph, len;

	for (uint32_t i = 0; i < NODES; i++) {
		struct fgv_graph_node node = {.number = i, .before_count = i};

		memset(message, 0, sizeof(message));
		memcpy(message, &head, sizeof(head));
		memcpy(message + sizeof(head), &node, sizeof(node));
		for (uint32_t at = 0; at < i; at++)
			memcpy(message + sizeof(head) + sizeof(node) + 4ul * at, &at, sizeof(at));
		len = (uint32_t)(sizeof(node) + (i + i % 2) * sizeof(uint32_t));
		vgpu_must_post(&graphs.vgpu, 0, FGV_OP_GRAPH_PART, message,
			       (uint32_t)sizeof(head) + len);
		head.offset += len;
	}
	graphs_put_as((struct fgv_graph_node){.number = NODES}, "", -1, -1);
	ck_assert_uint_eq(graphs_build_of(NODES + 1, head.offset, graphs.text.len, &graph),
			  CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

/* Copies are not held: a graph of them could go on for any time behind the end of its slice. */
START_TEST(refuses_to_move_without_end)
{
	struct fgv_fill_request fill = graphs_fill_of(0, 1);
	uint64_t memory = vgpu_must_alloc(&graphs.vgpu, 16 << 20);
	uint32_t graph, all;

	fill.address = memory;
	fill.count = (16 << 20) / 4;
	for (int i = 0; i < 16; i++)
		graphs_put(FGV_OP_FILL, &fill, sizeof(fill), i - 1, -1);
	all = graphs.text.len;
	ck_assert_uint_eq(graphs_build_of(16, 0, all, &graph), CUDA_SUCCESS);
	graphs_put_word(0, 1, -1, -1);
	ck_assert_uint_eq(graphs_build_of(17, 0, graphs.text.len, &graph),
			  CUDA_ERROR_NOT_SUPPORTED);
	/* Nor by a change. */
	graphs.text.len = graphs.text.nodes = 0;
	graphs_put_word(0, 1, -1, -1);
	graph = graphs_must_build();
	fill.count = UINT64_MAX / 4;
	graphs_put(FGV_OP_FILL, &fill, sizeof(fill), -1, -1);
	graphs_post_update(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

/* Graphs are charged: of as many as it likes a guest gets what its quota has room for. */
START_TEST(charges_for_graphs)
{
	uint64_t before = graphs_used_bytes();
	uint32_t made[1000], count = 0;

	for (uint32_t i = 0; i < 2000; i++)
		graphs_put_nothing((int)i - 1, -1);
	while (graphs_build_of(graphs.text.nodes, 0, graphs.text.len, &made[count]) ==
	       CUDA_SUCCESS) {
		ck_assert_uint_gt(graphs_used_bytes(), before + count * 2000ull);
		count++;
		ck_assert_uint_lt(count, 1000);
	}
	ck_assert_uint_gt(count, 2);
	ck_assert_uint_le(graphs_used_bytes(), VGPU_QUOTA);
	while (count > 0)
		graphs_post_destroy(made[--count]);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
}
END_TEST

/* Parts that never become a graph are bounded, and go with the session. */
START_TEST(keeps_no_parts_without_end)
{
	struct fgv_graph_part_request head = {0};
	static uint8_t message[sizeof(head) + FGV_DATA_MAX];
	uint32_t graph;

	for (uint64_t at = 0; at <= FGV_GRAPH_TEXT_MAX + FGV_DATA_MAX; at += FGV_DATA_MAX) {
		head.offset = at;
		memcpy(message, &head, sizeof(head));
		vgpu_must_post(&graphs.vgpu, 0, FGV_OP_GRAPH_PART, message, sizeof(message));
	}
	graphs_put_word(0, 1, -1, -1);
	ck_assert_uint_eq(graphs_build_of(1, FGV_GRAPH_TEXT_MAX, graphs.text.len, &graph),
			  CUDA_ERROR_INVALID_VALUE);
	head.offset = 0;
	memcpy(message, &head, sizeof(head));
	vgpu_must_post(&graphs.vgpu, 1, FGV_OP_GRAPH_PART, message, sizeof(message));
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
}
END_TEST

/* Destroyed at work, and at work at the session's end. */
START_TEST(goes_while_it_runs)
{
	uint32_t graph;

	for (uint32_t i = 0; i < 400; i++)
		graphs_put_word(i % WORDS, i, (int)i - 1, -1);
	graph = graphs_must_build();
	for (uint32_t i = 0; i < 20; i++)
		graphs_post_launch(graph, 0);
	if (_i == 0) {
		graphs_post_destroy(graph);
		ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
		ck_assert_uint_eq(graphs.data[399 % WORDS], 399);
	}
}
END_TEST

/* A node that waits for each earlier one. */
static void put_after_all(void)
{
	struct fgv_graph_node head = {
		.number = graphs.text.nodes,
		.op = FGV_GRAPH_NO_OP,
		.before_count = graphs.text.nodes,
	};
	uint32_t before[128];

	for (uint32_t i = 0; i < graphs.text.nodes; i++)
		before[i] = i;
	graphs_append(&head, sizeof(head));
	graphs_append(before, head.before_count * (uint32_t)sizeof(*before));
	graphs.text.nodes++;
}

/* They take memory of the process as nodes and messages do. */
START_TEST(charges_for_edges)
{
	uint64_t before, without, with;
	uint32_t graph;

	before = graphs_used_bytes();
	for (uint32_t i = 0; i < 128; i++)
		graphs_put_nothing(-1, -1);
	graphs_must_build();
	without = graphs_used_bytes() - before;
	for (uint32_t i = 0; i < 128; i++)
		put_after_all();
	before = graphs_used_bytes();
	graph = graphs_must_build();
	with = graphs_used_bytes() - before;
	ck_assert_uint_ge(with - without, 4 * 128 * 127 / 2);
	graphs_must_run(graph);
	graphs_post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_graphs_hostile");
	TCase *tests = tcase_create("vgpu_graphs_hostile");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, graphs_setup, graphs_teardown);
	tcase_add_test(tests, finds_no_graph_by_an_old_handle);
	tcase_add_test(tests, does_not_touch_host_memory_that_is_gone);
	tcase_add_test(tests, refuses_too_many_nodes);
	tcase_add_test(tests, refuses_too_many_edges);
	tcase_add_test(tests, refuses_to_move_without_end);
	tcase_add_test(tests, charges_for_graphs);
	tcase_add_test(tests, charges_for_edges);
	tcase_add_test(tests, keeps_no_parts_without_end);
	tcase_add_loop_test(tests, refuses_wrong_texts, 0, BAD_TEXTS);
	tcase_add_loop_test(tests, refuses_wrong_changes, 2, 15);
	tcase_add_loop_test(tests, refuses_wrong_changes, 20, BAD_TEXTS);
	tcase_add_loop_test(tests, refuses_wrong_changes_in_place, 0, 2);
	tcase_add_test(tests, changes_in_place_without_room);
	tcase_add_loop_test(tests, goes_while_it_runs, 0, 2);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
