/*
 * Graphs of a vGPU process: that they do what their nodes do, however they are changed, that
 * their texts are not believed, and that what they take is bounded and given back.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"
#include "tests/unit/vgpu_calls.h"

#define DATA_OFF (1 << 20)
#define DATA_LEN (64u << 10)
#define WORDS	 64u

static struct vgpu vgpu;
static volatile uint32_t *data; /* what the GPU has at VGPU_SHARED_ADDRESS */

/* A text that is being written. */
static struct {
	uint8_t bytes[FGV_DATA_MAX];
	uint32_t len, nodes;
} text;

static void setup(void)
{
	vgpu_start(&vgpu);
	data = vgpu_arena(&vgpu, DATA_OFF);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, DATA_OFF, DATA_LEN),
			  CUDA_SUCCESS);
	text.len = text.nodes = 0;
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static uint64_t used_bytes(void)
{
	return __atomic_load_n(&vgpu.accounts->sessions[2].memory_bytes, __ATOMIC_SEQ_CST);
}

/* --- Writing ------------------------------------------------------------------- */

static void append(const void *from, uint32_t len)
{
	memset(text.bytes + text.len, 0, fgv_align_up(len, 8));
	memcpy(text.bytes + text.len, from, len);
	text.len += (uint32_t)fgv_align_up(len, 8);
}

/* A node that waits for those @before, of any number; -1: for none. */
static void put_as(struct fgv_graph_node head, const void *message, int first, int second)
{
	uint32_t before[2] = {(uint32_t)first, (uint32_t)second};

	head.before_count = (first >= 0) + (second >= 0);
	append(&head, sizeof(head));
	append(before, head.before_count * (uint32_t)sizeof(*before));
	append(message, head.message_len);
	text.nodes++;
}

static void put(uint16_t op, const void *message, uint32_t len, int first, int second)
{
	put_as((struct fgv_graph_node){.number = text.nodes, .op = op, .message_len = len}, message,
	       first, second);
}

static void put_nothing(int first, int second)
{
	put(FGV_GRAPH_NO_OP, "", 0, first, second);
}

static struct fgv_fill_request fill_of(uint32_t at, uint32_t value)
{
	return (struct fgv_fill_request){
		.address = VGPU_SHARED_ADDRESS + 4ull * at,
		.count = 1,
		.value = value,
		.width = 4,
	};
}

/* Sets word @at of the data. */
static void put_word(uint32_t at, uint32_t value, int first, int second)
{
	struct fgv_fill_request request = fill_of(at, value);

	put(FGV_OP_FILL, &request, sizeof(request), first, second);
}

/* Copies word @from to @to, both of the data. */
static void put_copy(uint32_t to, uint32_t from, int first)
{
	struct fgv_copy_device_request request = {
		.to = VGPU_SHARED_ADDRESS + 4ull * to,
		.from = VGPU_SHARED_ADDRESS + 4ull * from,
		.size = 4,
	};

	put(FGV_OP_COPY_DEVICE, &request, sizeof(request), first, -1);
}

struct launch {
	struct fgv_launch_request head;
	uint64_t args[3];
};

/* Adds @more and 5 to the first @count words. */
static struct launch launch_of(uint32_t function, uint32_t count, uint32_t more)
{
	return (struct launch){
		.head = {.function = function,
			 .grid = {1, 1, 1},
			 .block = {128, 1, 1},
			 .param_count = 3},
		.args = {VGPU_SHARED_ADDRESS, count, more},
	};
}

static void put_launch(uint32_t function, uint32_t count, uint32_t more, int first)
{
	struct launch launch = launch_of(function, count, more);

	put(FGV_OP_LAUNCH, &launch, sizeof(launch), first, -1);
}

/* --- Asking -------------------------------------------------------------------- */

/* The graph of the text as it is, and why there is none. */
static uint32_t build_of(uint32_t nodes, uint64_t offset, uint32_t len, uint32_t *graph)
{
	struct fgv_graph_build_request head = {.offset = offset, .nodes = nodes};
	static uint8_t message[sizeof(head) + FGV_DATA_MAX];
	struct fgv_graph_build_reply reply = {0};

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), text.bytes, len);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_GRAPH_BUILD, message,
				    (uint32_t)sizeof(head) + len, &reply),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(!reply.graph, reply.refused != CUDA_SUCCESS);
	*graph = reply.graph;
	return reply.refused;
}

static uint32_t must_build(void)
{
	uint32_t graph;

	ck_assert_uint_eq(build_of(text.nodes, 0, text.len, &graph), CUDA_SUCCESS);
	text.len = text.nodes = 0;
	return graph;
}

static void post_launch(uint32_t graph, uint32_t stream)
{
	struct fgv_graph_launch_request request = {.graph = graph, .stream = stream};

	vgpu_must_post(&vgpu, 0, FGV_OP_GRAPH_LAUNCH, &request, sizeof(request));
}

static void must_run(uint32_t graph)
{
	post_launch(graph, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}

/* With the text, which is used up. */
static void post_update(uint32_t graph)
{
	struct fgv_graph_update_request head = {.graph = graph};
	static uint8_t message[sizeof(head) + FGV_DATA_MAX];

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), text.bytes, text.len);
	vgpu_must_post(&vgpu, 0, FGV_OP_GRAPH_UPDATE, message, (uint32_t)sizeof(head) + text.len);
	text.len = text.nodes = 0;
}

static void post_destroy(uint32_t graph)
{
	struct fgv_graph_destroy_request request = {.graph = graph};

	vgpu_must_post(&vgpu, 0, FGV_OP_GRAPH_DESTROY, &request, sizeof(request));
}

/* --- What graphs do ------------------------------------------------------------ */

START_TEST(does_what_its_nodes_do)
{
	uint32_t add = vgpu_must_get(&vgpu, vgpu_add_ptx, "add"), graph;

	put_word(0, 7, -1, -1);
	put_word(1, 30, -1, -1);
	put_nothing(0, 1);
	put_launch(add, 2, 1, 2);
	put_copy(2, 1, 3);
	graph = must_build();
	ck_assert_uint_eq(vgpu.accounts->sessions[2].launches, 0);
	must_run(graph);
	ck_assert_uint_eq(data[0], 13);
	ck_assert_uint_eq(data[1], 36);
	ck_assert_uint_eq(data[2], 36);
	data[0] = data[2] = 0;
	must_run(graph);
	ck_assert_uint_eq(data[0], 13);
	ck_assert_uint_eq(data[2], 36);
	ck_assert_uint_eq(vgpu.accounts->sessions[2].launches, 2);
}
END_TEST

/* A text of several parts, cut anywhere. */
START_TEST(comes_in_parts)
{
	struct fgv_graph_part_request head = {0};
	uint8_t message[sizeof(head) + 4096];
	uint32_t graph, len, cut;

	for (uint32_t i = 0; i < WORDS; i++)
		put_word(i, i + 1, (int)i - 1, -1);
	len = text.len;
	cut = len / 3 + 1;
	for (uint32_t at = 0; at < 2 * cut; at += cut) {
		head.offset = at;
		memcpy(message, &head, sizeof(head));
		memcpy(message + sizeof(head), text.bytes + at, cut);
		vgpu_must_post(&vgpu, 0, FGV_OP_GRAPH_PART, message, (uint32_t)sizeof(head) + cut);
	}
	memmove(text.bytes, text.bytes + 2ul * cut, len - 2 * cut);
	ck_assert_uint_eq(build_of(WORDS, 2ul * cut, len - 2 * cut, &graph), CUDA_SUCCESS);
	must_run(graph);
	for (uint32_t i = 0; i < WORDS; i++)
		ck_assert_uint_eq(data[i], i + 1);
	/* They are used up. */
	ck_assert_uint_eq(build_of(WORDS, 2ul * cut, len - 2 * cut, &graph),
			  CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Arguments, what is done at all, and a node of another kind; what was launched is done as it was.
 */
START_TEST(follows_changes)
{
	uint32_t add = vgpu_must_get(&vgpu, vgpu_add_ptx, "add"), graph;
	struct launch launch = launch_of(add, 1, 20);

	put_word(0, 0, -1, -1);
	put_launch(add, 1, 1, 0);
	graph = must_build();
	post_launch(graph, 0);
	put_as((struct fgv_graph_node){1, FGV_OP_LAUNCH, sizeof(launch), 0, 0, 0}, &launch, -1, -1);
	post_update(graph);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 6);
	must_run(graph);
	ck_assert_uint_eq(data[0], 25);
	put_as((struct fgv_graph_node){1, FGV_OP_LAUNCH, sizeof(launch), 0, 1, 0}, &launch, -1, -1);
	post_update(graph);
	must_run(graph);
	ck_assert_uint_eq(data[0], 0);
	put_word(0, 99, -1, -1);
	text.bytes[0] = 1;
	post_update(graph);
	must_run(graph);
	ck_assert_uint_eq(data[0], 99);
}
END_TEST

/* A kernel's module is there as long as a graph needs it, whatever the guest does with it. */
START_TEST(keeps_its_modules)
{
	struct fgv_module_unload_request unload;
	uint64_t before = used_bytes(), loaded;
	uint32_t add, graph;

	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, vgpu_add_ptx, &unload.module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, unload.module, "add", &add), CUDA_SUCCESS);
	loaded = used_bytes();
	ck_assert_uint_gt(loaded, before);
	put_launch(add, 1, 1, -1);
	graph = must_build();
	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_UNLOAD, &unload, sizeof(unload));
	data[0] = 0;
	must_run(graph);
	ck_assert_uint_eq(data[0], 6);
	ck_assert_uint_gt(used_bytes(), loaded);
	post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
}
END_TEST

/*
 * Behind a function that has not returned, what is done with the graph waits in its order; what has
 * to do with another one goes on.
 */
START_TEST(waits_for_functions)
{
	uint32_t stream = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	uint32_t other = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	struct fgv_host_func_request func = {.stream = stream, .number = 1};
	struct fgv_host_func_next_request next = {0};
	struct fgv_stream_sync_request sync = {.stream = other};
	uint32_t graph, second;
	uint64_t number;

	put_word(0, 1, -1, -1);
	put_copy(1, 0, 0);
	graph = must_build();
	put_word(2, 1, -1, -1);
	second = must_build();
	data[0] = data[1] = data[2] = 0;
	vgpu_must_post(&vgpu, 0, FGV_OP_HOST_FUNC, &func, sizeof(func));
	post_launch(graph, stream);
	put_word(0, 2, -1, -1);
	post_update(graph);
	post_launch(graph, other);
	post_destroy(graph);
	post_launch(second, other);
	vgpu_must_post(&vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next));
	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, &number), CUDA_SUCCESS);
	ck_assert_uint_eq(data[0], 0);
	next.done = number;
	vgpu_must_post(&vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next));
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_STREAM_SYNC, &sync, sizeof(sync), NULL),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 2);
	ck_assert_uint_eq(data[2], 1);
}
END_TEST

/* --- A guest that keeps no rule ------------------------------------------------ */

enum { BAD_TEXTS = 19 };

/* A text that is wrong in one way; how many nodes the guest says that it has. */
static uint32_t write_wrong(int how)
{
	struct fgv_fill_request fill = fill_of(0, 1);
	struct fgv_graph_node head = {.op = FGV_OP_FILL, .message_len = sizeof(fill)};
	uint32_t add = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	struct launch launch = launch_of(add, 1, 1);
	struct fgv_mem_free_request free_request = {.address = VGPU_SHARED_ADDRESS};

	switch (how) {
	case 0: /* waits for itself */
		put_word(0, 1, 0, -1);
		return 1;
	case 1: /* two wait for each other */
		put_word(0, 1, 1, -1);
		put_word(1, 1, 0, -1);
		return 2;
	case 2: /* for one that there is not */
		put_word(0, 1, -1, -1);
		put_word(0, 1, 1000000, -1);
		return 2;
	case 3: /* more than there are before it */
		put_word(0, 1, -1, -1);
		put_word(0, 1, 0, 0);
		return 2;
	case 4:
		head.number = 1;
		break;
	case 5:
		head.reserved = 1;
		break;
	case 6:
		head.is_disabled = 2;
		break;
	case 7: /* a message that is not its operation's */
		head.message_len -= 8;
		break;
	case 8: /* one that is not there */
		head.message_len = UINT32_MAX;
		append(&head, sizeof(head));
		return 1;
	case 9: /* a node that is nothing, with a message */
		head.op = FGV_GRAPH_NO_OP;
		break;
	case 10: /* operations that are no nodes */
		put(FGV_OP_MEM_FREE, &free_request, sizeof(free_request), -1, -1);
		return 1;
	case 11:
		put(FGV_OP_GRAPH_LAUNCH, &free_request, sizeof(free_request), -1, -1);
		return 1;
	case 12:
		head.op = UINT32_MAX;
		break;
	case 13: /* a function that there is not */
		launch.head.function += 1;
		put(FGV_OP_LAUNCH, &launch, sizeof(launch), -1, -1);
		return 1;
	case 14: /* arguments that are not its own */
		put(FGV_OP_LAUNCH, &launch, sizeof(launch) - 8, -1, -1);
		return 1;
	case 15: /* fewer nodes than are said, more, and the most that can be said */
		put_word(0, 1, -1, -1);
		return 2;
	case 16:
		put_word(0, 1, -1, -1);
		put_word(0, 1, -1, -1);
		return 1;
	case 17:
		put_word(0, 1, -1, -1);
		return UINT32_MAX;
	case 18: /* half a node */
		append(&head, 16);
		return 1;
	}
	put_as(head, &fill, -1, -1);
	return 1;
}

START_TEST(refuses_wrong_texts)
{
	uint32_t nodes = write_wrong(_i), graph;
	uint64_t before = used_bytes();

	ck_assert_uint_ne(build_of(nodes, 0, text.len, &graph), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
	text.len = text.nodes = 0;
	put_word(0, 3, -1, -1);
	must_run(must_build());
	ck_assert_uint_eq(data[0], 3);
}
END_TEST

/* As a change, what is wrong leaves a graph that can only be destroyed. */
START_TEST(refuses_wrong_changes)
{
	uint32_t graph;

	put_word(0, 3, -1, -1);
	graph = must_build();
	write_wrong(_i);
	post_update(graph);
	ck_assert_uint_ne(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	post_launch(graph, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	post_destroy(graph);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

START_TEST(finds_no_graph_by_an_old_handle)
{
	uint32_t graph;

	put_word(0, 1, -1, -1);
	graph = must_build();
	post_destroy(graph);
	for (uint32_t i = 0; i < 2; i++) {
		post_launch(graph, 0);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
		put_word(0, 1, -1, -1);
		post_update(graph);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
		put_word(0, 1, -1, -1);
		must_build(); /* in its place */
	}
}
END_TEST

/* A copy's host memory that the guest takes away may be something else by then. */
START_TEST(does_not_touch_host_memory_that_is_gone)
{
	struct fgv_copy_device_request request = {.to = VGPU_SHARED_ADDRESS, .size = 4};
	uint32_t graph;

	request.from = vgpu_must_alloc(&vgpu, 4096);
	put(FGV_OP_COPY_DEVICE, &request, sizeof(request), -1, -1);
	graph = must_build();
	must_run(graph);
	ck_assert_uint_eq(vgpu_host_unmap(&vgpu, VGPU_SHARED_ADDRESS), CUDA_SUCCESS);
	post_launch(graph, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, DATA_OFF, DATA_LEN),
			  CUDA_SUCCESS);
	must_run(graph);
}
END_TEST

/* More nodes than a graph may have, in as many parts as it takes. */
START_TEST(refuses_too_many_nodes)
{
	struct fgv_graph_part_request head = {0};
	const struct fgv_graph_node nothing = {0};
	static uint8_t message[sizeof(head) + 2048 * sizeof(nothing)];
	uint64_t before = used_bytes();
	uint32_t graph;

	memset(message, 0, sizeof(message));
	for (uint32_t i = 0; i < FGV_GRAPH_NODES_MAX; i += 2048) {
		memcpy(message, &head, sizeof(head));
		for (uint32_t node = 0; node < 2048; node++) {
			uint32_t number = i + node;

			memcpy(message + sizeof(head) + node * sizeof(nothing), &number,
			       sizeof(number));
		}
		vgpu_must_post(&vgpu, 0, FGV_OP_GRAPH_PART, message, sizeof(message));
		head.offset += 2048 * sizeof(nothing);
	}
	put_as((struct fgv_graph_node){.number = FGV_GRAPH_NODES_MAX}, "", -1, -1);
	ck_assert_uint_eq(build_of(FGV_GRAPH_NODES_MAX + 1, head.offset, text.len, &graph),
			  CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(used_bytes(), before);
}
END_TEST

/* Graphs are charged: of as many as it likes a guest gets what its quota has room for. */
START_TEST(charges_for_graphs)
{
	uint64_t before = used_bytes();
	uint32_t graphs[1000], count = 0;

	for (uint32_t i = 0; i < 2000; i++)
		put_nothing((int)i - 1, -1);
	while (build_of(text.nodes, 0, text.len, &graphs[count]) == CUDA_SUCCESS) {
		ck_assert_uint_gt(used_bytes(), before + count * 2000ull);
		count++;
		ck_assert_uint_lt(count, 1000);
	}
	ck_assert_uint_gt(count, 2);
	ck_assert_uint_le(used_bytes(), VGPU_QUOTA);
	while (count > 0)
		post_destroy(graphs[--count]);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(used_bytes(), before);
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
		vgpu_must_post(&vgpu, 0, FGV_OP_GRAPH_PART, message, sizeof(message));
	}
	put_word(0, 1, -1, -1);
	ck_assert_uint_eq(build_of(1, FGV_GRAPH_TEXT_MAX, text.len, &graph),
			  CUDA_ERROR_INVALID_VALUE);
	head.offset = 0;
	memcpy(message, &head, sizeof(head));
	vgpu_must_post(&vgpu, 1, FGV_OP_GRAPH_PART, message, sizeof(message));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* Destroyed at work, and at work at the session's end. */
START_TEST(goes_while_it_runs)
{
	uint32_t graph;

	for (uint32_t i = 0; i < 400; i++)
		put_word(i % WORDS, i, (int)i - 1, -1);
	graph = must_build();
	for (uint32_t i = 0; i < 20; i++)
		post_launch(graph, 0);
	if (_i == 0) {
		post_destroy(graph);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
		ck_assert_uint_eq(data[399 % WORDS], 399);
	}
}
END_TEST

static TCase *new_case(const char *name)
{
	TCase *tests = tcase_create(name);

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	return tests;
}

int main(void)
{
	Suite *suite = suite_create("vgpu_graphs");
	TCase *work = new_case("work"), *hostile = new_case("hostile");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(work, does_what_its_nodes_do);
	tcase_add_test(work, comes_in_parts);
	tcase_add_test(work, follows_changes);
	tcase_add_test(work, keeps_its_modules);
	tcase_add_test(work, waits_for_functions);
	tcase_add_loop_test(hostile, refuses_wrong_texts, 0, BAD_TEXTS);
	tcase_add_loop_test(hostile, refuses_wrong_changes, 2, 15);
	tcase_add_test(hostile, finds_no_graph_by_an_old_handle);
	tcase_add_test(hostile, does_not_touch_host_memory_that_is_gone);
	tcase_add_test(hostile, refuses_too_many_nodes);
	tcase_add_test(hostile, charges_for_graphs);
	tcase_add_test(hostile, keeps_no_parts_without_end);
	tcase_add_loop_test(hostile, goes_while_it_runs, 0, 2);
	suite_add_tcase(suite, work);
	suite_add_tcase(suite, hostile);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
