/*
 * Graphs that choose by conditions, of a guest that keeps the rules and of one that keeps none:
 * what is built of their texts, where conditions live, and what they are charged.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_graphs.h"

static uint32_t make_home(void)
{
	struct fgv_graph_home_reply reply = {0};

	ck_assert_uint_eq(vgpu_call(&graphs.vgpu, 0, FGV_OP_GRAPH_HOME, "", 0, &reply),
			  CUDA_SUCCESS);
	ck_assert_uint_ne(reply.home, 0);
	return reply.home;
}

static uint32_t ask_condition(uint32_t home, uint32_t value, uint32_t flags, uint64_t *condition)
{
	struct fgv_graph_condition_request request = {.home = home, .value = value, .flags = flags};
	struct fgv_graph_condition_reply reply = {0};
	uint32_t status = vgpu_call(&graphs.vgpu, 0, FGV_OP_GRAPH_CONDITION, &request,
				    sizeof(request), &reply);

	*condition = reply.condition;
	return status;
}

static uint64_t make_condition(uint32_t home, uint32_t value)
{
	uint64_t condition;

	ck_assert_uint_eq(ask_condition(home, value, CU_GRAPH_COND_ASSIGN_DEFAULT, &condition),
			  CUDA_SUCCESS);
	return condition;
}

static void put_choice(uint64_t condition, uint32_t type, uint32_t bodies, uint32_t inside,
		       uint16_t body)
{
	struct fgv_graph_choice choice = {condition, type, bodies};

	graphs_put_as((struct fgv_graph_node){.number = graphs.text.nodes,
					      .op = FGV_GRAPH_CHOICE,
					      .message_len = sizeof(choice),
					      .body = body,
					      .inside = inside},
		      &choice, -1, -1);
}

/* Sets word @at, in a body. */
static void put_inside(uint32_t inside, uint16_t body, uint32_t at, uint32_t value, int first)
{
	struct fgv_fill_request fill = graphs_fill_of(at, value);

	graphs_put_as((struct fgv_graph_node){.number = graphs.text.nodes,
					      .op = FGV_OP_FILL,
					      .message_len = sizeof(fill),
					      .body = body,
					      .inside = inside},
		      &fill, first, -1);
}

static uint32_t build(uint32_t home, uint32_t *graph)
{
	uint32_t refused;

	graphs.home = home;
	refused = graphs_build_of(graphs.text.nodes, 0, graphs.text.len, graph);
	graphs.home = graphs.text.len = graphs.text.nodes = 0;
	return refused;
}

static uint32_t must_build(uint32_t home)
{
	uint32_t graph;

	ck_assert_uint_eq(build(home, &graph), CUDA_SUCCESS);
	return graph;
}

static void be_holdable(bool holdable)
{
	__atomic_store_n(&graphs.vgpu.grant->is_holdable, holdable, __ATOMIC_SEQ_CST);
}

/* A switch, with an if in its second body; what comes behind waits for it. */
START_TEST(does_what_conditions_say)
{
	uint32_t home = make_home(), graph;
	uint64_t which = make_condition(home, (uint32_t)_i), nested = make_condition(home, 0);

	put_choice(which, CU_GRAPH_COND_TYPE_SWITCH, 2, 0, 0);
	put_inside(1, 0, 0, 10, -1);
	put_inside(1, 1, 1, 11, -1);
	put_choice(nested, CU_GRAPH_COND_TYPE_IF, 2, 1, 1);
	put_inside(4, 0, 2, 12, -1);
	put_inside(4, 1, 3, 13, -1);
	graphs_put_copy(4, 0, 0);
	graph = must_build(home);
	for (int i = 0; i < 2; i++) {
		for (int at = 0; at < 5; at++)
			graphs.data[at] = 0;
		graphs_must_run(graph);
		ck_assert_uint_eq(graphs.data[0], _i == 0 ? 10 : 0);
		ck_assert_uint_eq(graphs.data[1], _i == 1 ? 11 : 0);
		ck_assert_uint_eq(graphs.data[2], 0);
		ck_assert_uint_eq(graphs.data[3], _i == 1 ? 13 : 0);
		ck_assert_uint_eq(graphs.data[4], _i == 0 ? 10 : 0);
	}
	/* What is in a body is changed as all else is. */
	put_inside(0, 0, 0, 20, -1);
	graphs.text.bytes[0] = 1;
	graphs_post_update(graph);
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], _i == 0 ? 20 : 0);
}
END_TEST

/* One graph at a time is in a home, which lives as long as the graph does. */
START_TEST(homes_have_one_graph)
{
	uint64_t before = graphs_used_bytes(), condition;
	uint32_t home = make_home(), graph, second;

	condition = make_condition(home, 1);
	for (int i = 0; i < 2; i++) {
		put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
		put_inside(1, 0, 0, 1, -1);
		graph = must_build(home);
		put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
		ck_assert_uint_eq(build(home, &second), CUDA_ERROR_NOT_SUPPORTED);
		if (i == 0)
			graphs_post_destroy(graph);
	}
	graphs_post_destroy(home);
	graphs.data[0] = 0;
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 1);
	graphs_post_launch(home, 0);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_HANDLE);
	graphs_post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
}
END_TEST

/* A loop is work of any length, and only for sessions that can be interrupted. */
START_TEST(loops_want_holding)
{
	uint32_t home = make_home(), graph;
	uint64_t condition = make_condition(home, 0);

	put_choice(condition, CU_GRAPH_COND_TYPE_WHILE, 1, 0, 0);
	put_inside(1, 0, 0, 1, -1);
	be_holdable(false);
	ck_assert_uint_eq(build(home, &graph), CUDA_ERROR_NOT_SUPPORTED);
	be_holdable(true);
	put_choice(condition, CU_GRAPH_COND_TYPE_WHILE, 1, 0, 0);
	put_inside(1, 0, 0, 1, -1);
	graph = must_build(home);
	graphs.data[0] = 0;
	graphs_must_run(graph);
	ck_assert_uint_eq(graphs.data[0], 0);
}
END_TEST

/* Its session ends, and nobody waits for it. */
START_TEST(endless_loops_end_with_their_session)
{
	uint32_t home = make_home();
	uint64_t condition = make_condition(home, 1);

	be_holdable(true);
	put_choice(condition, CU_GRAPH_COND_TYPE_WHILE, 1, 0, 0);
	put_inside(1, 0, 0, 1, -1);
	graphs_post_launch(must_build(home), 0);
	while (!graphs.data[0])
		continue;
}
END_TEST

enum { WRONG_TEXTS = 14 };

static void put_record_inside(uint32_t inside)
{
	struct fgv_event_record_request record = {.event = vgpu_must_create_event(&graphs.vgpu)};

	graphs_put_as((struct fgv_graph_node){.number = graphs.text.nodes,
					      .op = FGV_OP_EVENT_RECORD,
					      .message_len = sizeof(record),
					      .inside = inside},
		      &record, -1, -1);
}

/* A text that is wrong in one way. */
static void write_wrong(int how, uint64_t condition)
{
	switch (how) {
	case 0: /* a condition that there is not */
		put_choice(condition + 1, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
		return;
	case 1: /* none that chooses by it */
		graphs_put_word(0, 1, -1, -1);
		return;
	case 2: /* two that do */
		put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
		put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
		return;
	case 3: /* so many bodies as there can't be */
		put_choice(condition, CU_GRAPH_COND_TYPE_IF, 3, 0, 0);
		return;
	case 4:
		put_choice(condition, CU_GRAPH_COND_TYPE_WHILE, 2, 0, 0);
		return;
	case 5:
		put_choice(condition, CU_GRAPH_COND_TYPE_SWITCH, 0, 0, 0);
		return;
	case 6:
		put_choice(condition, CU_GRAPH_COND_TYPE_SWITCH, UINT32_MAX, 0, 0);
		return;
	case 7:
		put_choice(condition, 3, 1, 0, 0);
		return;
	case 8: /* inside of itself */
		put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 1, 0);
		return;
	}
	put_choice(condition, CU_GRAPH_COND_TYPE_IF, 2, 0, 0);
	put_inside(1, 0, 0, 1, -1);
	switch (how) {
	case 9: /* in a body that it does not have */
		put_inside(1, 2, 0, 1, -1);
		return;
	case 10: /* inside of what is no choice */
		put_inside(2, 0, 0, 1, -1);
		return;
	case 11: /* behind another body's, and what is in none */
		put_inside(1, 1, 0, 1, 1);
		return;
	case 12:
		graphs_put_word(0, 1, 1, -1);
		return;
	case 13: /* an event in a body */
		put_record_inside(1);
		return;
	}
}

START_TEST(refuses_wrong_texts)
{
	uint32_t home = make_home(), graph;
	uint64_t condition = make_condition(home, 1), before;

	be_holdable(true);
	write_wrong(_i, condition);
	before = graphs_used_bytes();
	ck_assert_uint_ne(build(home, &graph), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
	put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
	put_inside(1, 0, 0, 7, -1);
	graphs_must_run(must_build(home));
	ck_assert_uint_eq(graphs.data[0], 7);
}
END_TEST

/* Without a home, at what is none, and in more bodies than anybody needs. */
START_TEST(refuses_what_has_no_home)
{
	uint32_t home = make_home(), graph, other;
	uint64_t condition = make_condition(home, 1), more;

	put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
	ck_assert_uint_ne(build(0, &graph), CUDA_SUCCESS);
	graphs_put_word(0, 1, -1, -1);
	other = must_build(0);
	ck_assert_uint_eq(ask_condition(other, 0, 0, &more), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(ask_condition(home, 0, 2, &more), CUDA_ERROR_INVALID_VALUE);
	put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
	ck_assert_uint_eq(build(other, &graph), CUDA_ERROR_INVALID_VALUE);
	put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
	ck_assert_uint_eq(build(home + 1, &graph), CUDA_ERROR_INVALID_HANDLE);
	graphs_post_launch(home, 0);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
	graphs_put_word(0, 1, -1, -1);
	graphs_post_update(home);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(refuses_to_go_too_deep)
{
	uint32_t home = make_home(), graph;

	for (uint32_t i = 0; i < FGV_GRAPH_DEPTH_MAX + 2; i++)
		put_choice(make_condition(home, 1), CU_GRAPH_COND_TYPE_IF, 1, i, 0);
	ck_assert_uint_eq(build(home, &graph), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

/* A choice stays what it is. */
START_TEST(refuses_to_change_choices)
{
	uint32_t home = make_home(), graph;
	uint64_t condition = make_condition(home, 1);

	put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
	put_inside(1, 0, 0, 1, -1);
	graph = must_build(home);
	if (_i == 0)
		graphs_put_word(0, 1, -1, -1);
	else
		put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
	graphs_post_update(graph);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_ERROR_INVALID_VALUE);
	graphs_post_destroy(graph);
	put_choice(condition, CU_GRAPH_COND_TYPE_IF, 1, 0, 0);
	graphs_must_run(must_build(home));
}
END_TEST

/* Homes and conditions without end are neither free nor many. */
START_TEST(charges_for_conditions)
{
	uint64_t before = graphs_used_bytes(), condition;
	uint32_t home = make_home(), count = 0;

	while (ask_condition(home, 0, 0, &condition) == CUDA_SUCCESS) {
		count++;
		ck_assert_uint_ge(graphs_used_bytes(), before + count * 64ull);
		ck_assert_uint_le(count, FGV_GRAPH_CONDITIONS_MAX);
	}
	ck_assert_uint_gt(count, 10);
	graphs_post_destroy(home);
	ck_assert_uint_eq(vgpu_device_sync(&graphs.vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(graphs_used_bytes(), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_choices");
	TCase *tests = tcase_create("vgpu_choices");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, graphs_setup, graphs_teardown);
	tcase_add_loop_test(tests, does_what_conditions_say, 0, 3);
	tcase_add_test(tests, homes_have_one_graph);
	tcase_add_test(tests, loops_want_holding);
	tcase_add_test(tests, endless_loops_end_with_their_session);
	tcase_add_loop_test(tests, refuses_wrong_texts, 0, WRONG_TEXTS);
	tcase_add_test(tests, refuses_what_has_no_home);
	tcase_add_test(tests, refuses_to_go_too_deep);
	tcase_add_loop_test(tests, refuses_to_change_choices, 0, 2);
	tcase_add_test(tests, charges_for_conditions);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
