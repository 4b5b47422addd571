/*
 * Graphs of a vGPU process: that they do what their nodes do, however they are changed, in the
 * order that was asked for.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_graphs.h"

#define WORDS 64u

START_TEST(does_what_its_nodes_do)
{
	uint32_t add = vgpu_must_get(&graphs.vgpu, vgpu_add_ptx, "add"), graph;

	graphs_put_word(0, 7, -1, -1);
	graphs_put_word(1, 30, -1, -1);
	graphs_put_nothing(0, 1);
	graphs_put_launch(add, 2, 1, 2);
	graphs_put_copy(2, 1, 3);
	graph = graphs_must_build();
	ck_assert_uint_eq(graphs.vgpu.accounts->sessions[2].launches, 0);
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 13);
	ck_assert_uint_eq(graphs.data[1], 36);
	ck_assert_uint_eq(graphs.data[2], 36);
	graphs.data[0] = graphs.data[2] = 0;
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 13);
	ck_assert_uint_eq(graphs.data[2], 36);
	ck_assert_uint_eq(graphs.vgpu.accounts->sessions[2].launches, 2);
}
END_TEST

/* A text of several parts, cut anywhere. */
START_TEST(comes_in_parts)
{
	struct fgv_graph_part_request head = {0};
	uint8_t message[sizeof(head) + 4096];
	uint32_t graph, len, cut;

	for (uint32_t i = 0; i < WORDS; i++)
		graphs_put_word(i, i + 1, (int)i - 1, -1);
	len = graphs.text.len;
	cut = len / 3 + 1;
	for (uint32_t at = 0; at < 2 * cut; at += cut) {
		head.offset = at;
		memcpy(message, &head, sizeof(head));
		memcpy(message + sizeof(head), graphs.text.bytes + at, cut);
		vgpu_must_post(&graphs.vgpu, 0, FGV_OP_GRAPH_PART, message,
			       (uint32_t)sizeof(head) + cut);
	}
	memmove(graphs.text.bytes, graphs.text.bytes + 2ul * cut, len - 2 * cut);
	ck_assert_uint_eq(graphs_build_of(WORDS, 2ul * cut, len - 2 * cut, &graph), CUDA_SUCCESS);
	graphs_must_run(graph);
	for (uint32_t i = 0; i < WORDS; i++)
		ck_assert_uint_eq(graphs.data[i], i + 1);
	/* They are used up. */
	ck_assert_uint_eq(graphs_build_of(WORDS, 2ul * cut, len - 2 * cut, &graph),
			  CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Arguments, what is done at all, and a node of another kind; what was launched is done as it was.
 */
START_TEST(follows_changes)
{
	uint32_t add = vgpu_must_get(&graphs.vgpu, vgpu_add_ptx, "add"), graph;
	struct graphs_launch launch = graphs_launch_of(add, 1, 20);

	graphs_put_word(0, 0, -1, -1);
	graphs_put_launch(add, 1, 1, 0);
	graph = graphs_must_build();
	graphs_post_launch(graph, 0);
	graphs_put_as((struct fgv_graph_node){.number = 1,
					      .op = FGV_OP_LAUNCH,
					      .message_len = sizeof(launch)},
		      &launch, -1, -1);
	graphs_post_update(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs.data[0], 6);
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 25);
	graphs_put_as((struct fgv_graph_node){.number = 1,
					      .op = FGV_OP_LAUNCH,
					      .message_len = sizeof(launch),
					      .is_disabled = 1},
		      &launch, -1, -1);
	graphs_post_update(graph);
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 0);
	graphs_put_word(0, 99, -1, -1);
	graphs.text.bytes[0] = 1;
	graphs_post_update(graph);
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 99);
}
END_TEST

/* While launches are put off to go to the driver together, a graph's are noted one by one. */
START_TEST(is_built_beside_launches)
{
	const uint64_t bytes = 8 << 20;
	uint32_t add = vgpu_must_get(&graphs.vgpu, vgpu_add_ptx, "add"), graph;
	uint64_t memory = vgpu_must_alloc(&graphs.vgpu, bytes);
	const uint64_t args[] = {memory, 128, 1};

	for (uint32_t i = 0; i < 40; i++) {
		vgpu_fill(&graphs.vgpu, memory, bytes / 4, i, 4);
		vgpu_launch(&graphs.vgpu, add, 1, args, 3);
	}
	graphs_put_word(0, 0, -1, -1);
	for (int i = 0; i < 10; i++)
		graphs_put_launch(add, 1, 1, i);
	graph = graphs_must_build();
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs.vgpu.accounts->sessions[2].launches, 40);
	graphs.data[0] = 1000;
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 60);
}
END_TEST

/* A kernel's module is there as long as a graph needs it, whatever the guest does with it. */
START_TEST(keeps_its_modules)
{
	struct fgv_module_unload_request unload;
	uint64_t before = graphs_used_bytes(), loaded;
	uint32_t add, graph;

	ck_assert_uint_eq(vgpu_load_ptx(&graphs.vgpu, vgpu_add_ptx, &unload.module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_function(&graphs.vgpu, unload.module, "add", &add),
			  CUDA_SUCCESS);
	loaded = graphs_used_bytes();
	ck_assert_uint_gt(loaded, before);
	graphs_put_launch(add, 1, 1, -1);
	graph = graphs_must_build();
	vgpu_must_post(&graphs.vgpu, 0, FGV_OP_MODULE_UNLOAD, &unload, sizeof(unload));
	graphs.data[0] = 0;
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 6);
	ck_assert_uint_gt(graphs_used_bytes(), loaded);
	graphs_post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
}
END_TEST

static void put_event(uint16_t op, uint32_t event, int first)
{
	struct fgv_event_record_request record = {.event = event};
	struct fgv_stream_wait_event_request wait = {.event = event};

	if (op == FGV_OP_EVENT_RECORD)
		graphs_put(op, &record, sizeof(record), first, -1);
	else
		graphs_put(op, &wait, sizeof(wait), first, -1);
}

/* Arrays and events are there as long as a graph needs them, and charged. */
START_TEST(keeps_arrays_and_events)
{
	struct fgv_array_destroy_request destroy;
	struct fgv_event_destroy_request event;
	struct fgv_copy_box_request box = {.box = {16, 1, 1}};
	uint64_t before = graphs_used_bytes(), with_array;
	uint32_t graph;

	destroy.array = vgpu_must_create_array(&graphs.vgpu, (uint64_t[]){4, 0, 0}, 0, 0);
	event.event = vgpu_must_create_event(&graphs.vgpu);
	with_array = graphs_used_bytes();
	box.to_array = destroy.array;
	box.from[0] = VGPU_SHARED_ADDRESS;
	graphs_put(FGV_OP_COPY_BOX, &box, sizeof(box), -1, -1);
	box = (struct fgv_copy_box_request){.from_array = destroy.array, .box = {16, 1, 1}};
	box.to[0] = VGPU_SHARED_ADDRESS + 16;
	graphs_put(FGV_OP_COPY_BOX, &box, sizeof(box), 0, -1);
	put_event(FGV_OP_EVENT_RECORD, event.event, 1);
	put_event(FGV_OP_STREAM_WAIT_EVENT, event.event, -1);
	graph = graphs_must_build();
	vgpu_must_post(&graphs.vgpu, 0, FGV_OP_ARRAY_DESTROY, &destroy, sizeof(destroy));
	vgpu_must_post(&graphs.vgpu, 0, FGV_OP_EVENT_DESTROY, &event, sizeof(event));
	for (uint32_t i = 0; i < 4; i++) {
		graphs.data[i] = 70 + i;
		graphs.data[4 + i] = 0;
	}
	graphs_must_run(graph);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(graphs.data[4 + i], 70 + i);
	ck_assert_uint_gt(graphs_used_bytes(), with_array);
	graphs_post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
}
END_TEST

/* What is judged by a graph's events while launches wait is judged by those that it was made with.
 */
START_TEST(changes_no_events)
{
	uint32_t event = vgpu_must_create_event(&graphs.vgpu), graph;

	if (_i == 0)
		put_event(FGV_OP_EVENT_RECORD, event, -1);
	else
		graphs_put_word(0, 1, -1, -1);
	graph = graphs_must_build();
	if (_i == 0)
		graphs_put_word(0, 1, -1, -1);
	else
		put_event(FGV_OP_EVENT_RECORD, event, -1);
	graphs_post_update(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/*
 * Behind a function that has not returned, what is done with the graph waits in its order; what has
 * to do with another one goes on.
 */
START_TEST(waits_for_functions)
{
	uint32_t stream = vgpu_must_create_stream(&graphs.vgpu, CU_STREAM_NON_BLOCKING);
	uint32_t other = vgpu_must_create_stream(&graphs.vgpu, CU_STREAM_NON_BLOCKING);
	struct fgv_host_func_request func = {.stream = stream, .number = 1};
	struct fgv_host_func_next_request next = {0};
	struct fgv_stream_sync_request sync = {.stream = other};
	uint32_t graph, second;
	uint64_t number;

	graphs_put_word(0, 1, -1, -1);
	graphs_put_copy(1, 0, 0);
	graph = graphs_must_build();
	graphs_put_word(2, 1, -1, -1);
	second = graphs_must_build();
	graphs.data[0] = graphs.data[1] = graphs.data[2] = 0;
	vgpu_must_post(&graphs.vgpu, 0, FGV_OP_HOST_FUNC, &func, sizeof(func));
	graphs_post_launch(graph, stream);
	graphs_put_word(0, 2, -1, -1);
	graphs_post_update(graph);
	graphs_post_launch(graph, other);
	graphs_post_destroy(graph);
	graphs_post_launch(second, other);
	vgpu_must_post(&graphs.vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next));
	ck_assert_uint_eq(vgpu_wait(&graphs.vgpu, 1, &number), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs.data[0], 0);
	next.done = number;
	vgpu_must_post(&graphs.vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next));
	ck_assert_uint_eq(vgpu_call(&graphs.vgpu, 0, FGV_OP_STREAM_SYNC, &sync, sizeof(sync), NULL),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(graphs.data[1], 2);
	ck_assert_uint_eq(graphs.data[2], 1);
}
END_TEST

#define CHAIN 8

static void change_launch(uint32_t number, uint32_t function, uint32_t more)
{
	struct graphs_launch launch = graphs_launch_of(function, 1, more);

	graphs_put_as((struct fgv_graph_node){.number = number,
					      .op = FGV_OP_LAUNCH,
					      .message_len = sizeof(launch)},
		      &launch, -1, -1);
}

static void change_word(uint32_t number, uint32_t value)
{
	struct fgv_fill_request fill = graphs_fill_of(0, value);

	graphs_put_as((struct fgv_graph_node){.number = number,
					      .op = FGV_OP_FILL,
					      .message_len = sizeof(fill)},
		      &fill, -1, -1);
}

/* Each node has its own arguments, however often all were changed, and where the graph is made
 * anew of them, as for a kernel that becomes a fill. */
START_TEST(all_follow_changes)
{
	uint32_t add = vgpu_must_get(&graphs.vgpu, vgpu_add_ptx, "add"), graph;

	graphs_put_word(0, 0, -1, -1);
	for (uint32_t i = 1; i <= CHAIN; i++)
		graphs_put_launch(add, 1, 1, (int)i - 1);
	graph = graphs_must_build();
	for (uint32_t round = 1; round <= 4; round++) {
		for (uint32_t i = 1; i <= CHAIN; i++) {
			change_launch(i, add, 7);
			if (i % 3 == 0)
				change_word(0, round);
			change_launch(i, add, round * 20 + i);
		}
		graphs_post_update(graph);
		graphs_must_run(graph);
		ck_assert_uint_eq(graphs.data[0],
				  round + CHAIN * (round * 20 + 5) + CHAIN * (CHAIN + 1) / 2);
	}
	change_word(1, 50);
	graphs_post_update(graph);
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 50 + (CHAIN - 1) * 85 + CHAIN * (CHAIN + 1) / 2 - 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_graphs");
	TCase *tests = tcase_create("vgpu_graphs");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, graphs_setup, graphs_teardown);
	tcase_add_test(tests, does_what_its_nodes_do);
	tcase_add_test(tests, comes_in_parts);
	tcase_add_test(tests, follows_changes);
	tcase_add_test(tests, all_follow_changes);
	tcase_add_test(tests, is_built_beside_launches);
	tcase_add_test(tests, keeps_its_modules);
	tcase_add_test(tests, keeps_arrays_and_events);
	tcase_add_loop_test(tests, changes_no_events, 0, 2);
	tcase_add_test(tests, waits_for_functions);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
