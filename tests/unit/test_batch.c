/*
 * Batches of launches: whatever goes together, the GPU gets the same launches in the same order
 * as without batches, also where it fails at some of them.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"

#define FUNCTIONS 8
#define STREAMS	  11 /* more than have chains */
#define ARGS_MAX  600
#define LOG_MAX	  1000
#define QUOTA	  (1ull << 30)

/* What the GPU has executed, or should have. */
struct executed {
	const void *function, *stream;
	uint32_t grid[3], block[3], shared_bytes;
	uint32_t args_len;
	uint8_t args[ARGS_MAX];
};

/* A graph as the driver has it: its nodes as they were when it was told of them. */
struct fgv_gpu_graph {
	uint32_t count;
	const struct fgv_gpu_node *nodes;
	struct executed launches[FGV_BATCH_LONGEST];
};

static struct fgv_session session;
static struct fgv_allowance allowance;
static struct fgv_accounts accounts;
static struct fgv_account *const account = &accounts.sessions[0];
static struct fgv_object functions[FUNCTIONS];
static uint32_t sizes[FUNCTIONS][80];
static struct executed executed[LOG_MAX], wanted[LOG_MAX];
static unsigned executed_count, wanted_count;
static unsigned graphs, launched_graphs, updates;
static unsigned fails; /* one of so many calls about graphs fails; 0: none */

static bool fails_now(void)
{
	return fails && random() % fails == 0;
}

static const struct fgv_object *object_of(const void *function)
{
	return &functions[(const struct fgv_object *)function - functions];
}

static void note(struct executed *launch, const void *function, const uint32_t grid[3],
		 const uint32_t block[3], uint32_t shared_bytes, void **params)
{
	const struct fgv_object *object = object_of(function);

	memset(launch, 0, sizeof(*launch));
	launch->function = function;
	memcpy(launch->grid, grid, sizeof(launch->grid));
	memcpy(launch->block, block, sizeof(launch->block));
	launch->shared_bytes = shared_bytes;
	for (uint32_t i = 0; i < object->function.param_count; i++) {
		memcpy(launch->args + launch->args_len, params[i], object->function.param_sizes[i]);
		launch->args_len += object->function.param_sizes[i];
	}
}

static CUresult launch(struct fgv_gpu *gpu, struct fgv_gpu_function *function,
		       const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
		       struct fgv_gpu_stream *stream, void **params)
{
	(void)gpu;
	ck_assert_uint_lt(executed_count, LOG_MAX);
	note(&executed[executed_count], function, grid, block, shared_bytes, params);
	executed[executed_count++].stream = stream;
	return CUDA_SUCCESS;
}

static void take_node(struct fgv_gpu_graph *graph, uint32_t number)
{
	const struct fgv_gpu_node *node = &graph->nodes[number];

	ck_assert_int_eq(node->kind, FGV_GPU_NODE_KERNEL);
	ck_assert_uint_eq(node->before_count, number > 0);
	if (number)
		ck_assert_uint_eq(*node->before, number - 1);
	note(&graph->launches[number], node->kernel.function, node->kernel.grid, node->kernel.block,
	     node->kernel.shared_bytes, node->kernel.params);
}

static CUresult graph_create(struct fgv_gpu *gpu, const struct fgv_gpu_node *nodes, uint32_t count,
			     struct fgv_gpu_graph **graph)
{
	(void)gpu;
	if (fails_now())
		return CUDA_ERROR_OUT_OF_MEMORY;
	ck_assert_uint_le(count, FGV_BATCH_LONGEST);
	*graph = calloc(1, sizeof(**graph));
	(*graph)->nodes = nodes;
	(*graph)->count = count;
	for (uint32_t i = 0; i < count; i++)
		take_node(*graph, i);
	graphs++;
	return CUDA_SUCCESS;
}

static CUresult graph_update(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number)
{
	(void)gpu;
	if (fails_now())
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	ck_assert_uint_lt(number, graph->count);
	take_node(graph, number);
	updates++;
	return CUDA_SUCCESS;
}

static CUresult graph_launch(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
			     struct fgv_gpu_stream *stream)
{
	(void)gpu;
	if (fails_now())
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < graph->count; i++) {
		ck_assert_uint_lt(executed_count, LOG_MAX);
		executed[executed_count] = graph->launches[i];
		executed[executed_count++].stream = stream;
	}
	launched_graphs++;
	return CUDA_SUCCESS;
}

static CUresult graph_destroy(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph)
{
	(void)gpu;
	graphs--;
	free(graph);
	return CUDA_SUCCESS;
}

static const struct fgv_gpu_ops ops = {
	.launch = launch,
	.graph_create = graph_create,
	.graph_update = graph_update,
	.graph_launch = graph_launch,
	.graph_destroy = graph_destroy,
};

static void setup(void)
{
	static struct fgv_gpu gpu = {.ops = &ops};

	memset(&session, 0, sizeof(session));
	session.gpu = &gpu;
	session.account = account;
	memset(&accounts, 0, sizeof(accounts));
	allowance.memory_bytes = QUOTA;
	fgv_quota_init(&session.quota, &allowance, &accounts, account, 0, 4096);
	fgv_quota_set_give_up(&session.quota, fgv_batch_cache_give_up, &session);
	session.costs.graph = session.costs.graph_node = 1;
	session.gate.submitted = 1; /* the GPU has work */
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		/* The last has more arguments than a batch takes, the one before more bytes. */
		uint32_t count = i == FUNCTIONS - 1 ? FGV_BATCH_PARAMS + 1 : i;

		functions[i].function.gpu = (struct fgv_gpu_function *)&functions[i];
		functions[i].function.param_count = count;
		functions[i].function.param_sizes = sizes[i];
		for (unsigned k = 0; k < count; k++) {
			sizes[i][k] = i == FUNCTIONS - 2 && k == 0 ? FGV_BATCH_ARGS : 1 + k % 8;
			functions[i].function.args_len += (sizes[i][k] + 7) & ~7u;
		}
	}
	fgv_batch_init(&session.batch, true);
	srandom(7);
}

static void teardown(void)
{
	fgv_batch_fini(&session);
	ck_assert_uint_eq(graphs, 0);
	ck_assert_uint_eq(account->memory_bytes, 0);
	fgv_quota_fini(&session.quota);
}

static struct fgv_gpu_stream *stream_number(unsigned number)
{
	return number ? (struct fgv_gpu_stream *)(uintptr_t)(number * 64) : NULL;
}

/* Launches, and notes what should come of it. */
static void put(unsigned function, unsigned stream, uint32_t grid, uint8_t seed)
{
	static uint8_t args[ARGS_MAX + 65 * 8];
	const uint32_t grids[3] = {grid, 2, 1}, blocks[3] = {32, 1, grid % 3 + 1};
	const struct fgv_object *object = &functions[function];
	uint8_t *arg = args;

	memset(args, seed, sizeof(args));
	for (uint32_t i = 0; i < object->function.param_count; i++) {
		*arg = (uint8_t)(seed + i);
		session.params[i] = arg;
		arg += (sizes[function][i] + 7) & ~7u;
	}
	ck_assert_uint_lt(wanted_count, LOG_MAX);
	note(&wanted[wanted_count], object->function.gpu, grids, blocks, grid, session.params);
	wanted[wanted_count++].stream = stream_number(stream);
	ck_assert_int_eq(
		fgv_batch_launch(&session, object, grids, blocks, grid, stream_number(stream)),
		CUDA_SUCCESS);
	memset(args, 0xdd, sizeof(args));
}

/* All that was asked for has been done, in this order. */
static void compare(void)
{
	fgv_batch_flush(&session);
	ck_assert_uint_eq(executed_count, wanted_count);
	for (unsigned i = 0; i < wanted_count; i++)
		ck_assert_mem_eq(&executed[i], &wanted[i], sizeof(wanted[i]));
	executed_count = wanted_count = 0;
}

START_TEST(an_idle_gpu_gets_the_first_at_once)
{
	session.gate.finished = session.gate.submitted;
	put(1, 0, 1, 0);
	ck_assert_uint_eq(executed_count, 1);
	session.gate.submitted++;
	put(1, 0, 2, 0);
	ck_assert_uint_eq(executed_count, 1);
	put(1, 0, 3, 0);
	ck_assert_uint_eq(executed_count, 3);
	for (unsigned i = 0; i < 3; i++)
		put(1, 0, i, 0);
	ck_assert_uint_eq(executed_count, 3);
	put(1, 0, 4, 0);
	ck_assert_uint_eq(executed_count, 7);
	compare();
}
END_TEST

/* As many as may wait, again and again. */
static void put_many(unsigned batches, uint8_t seed)
{
	for (unsigned i = 0; i < batches; i++) {
		for (unsigned k = 0; k < FGV_BATCH_MAX; k++)
			put(k % 4, 1, k, seed);
		compare();
	}
}

START_TEST(long_queues_become_graphs)
{
	put_many(10, 1);
	ck_assert_uint_gt(launched_graphs, 0);
	ck_assert_uint_gt(account->batched, 0);
	/* What is the same as last time is not told again. */
	updates = 0;
	put_many(4, 1);
	ck_assert_uint_eq(updates, 0);
	put_many(2, 2);
	ck_assert_uint_eq(updates, FGV_BATCH_MAX * 3 / 4);
}
END_TEST

START_TEST(off_means_one_by_one)
{
	fgv_batch_init(&session.batch, false);
	put_many(10, 1);
	ck_assert_uint_eq(graphs + launched_graphs, 0);
}
END_TEST

START_TEST(what_goes_is_forgotten)
{
	put_many(10, 1);
	ck_assert_uint_gt(graphs, 0);
	fgv_batch_forget_stream(&session, stream_number(2));
	ck_assert_uint_gt(graphs, 0);
	fgv_batch_forget_stream(&session, stream_number(1));
	ck_assert_uint_eq(graphs, 0);
	put_many(10, 1);
	ck_assert_uint_gt(graphs, 0);
	fgv_batch_forget_functions(&session);
	ck_assert_uint_eq(graphs, 0);
	put_many(1, 1);
}
END_TEST

static void do_something(unsigned *stream)
{
	unsigned what = (unsigned)random() % 1000;

	if (what < 10) {
		fgv_batch_flush(&session);
		fgv_batch_forget_functions(&session);
	} else if (what < 20) {
		fgv_batch_flush(&session);
		fgv_batch_forget_stream(&session, stream_number((unsigned)random() % STREAMS));
	} else if (what < 30) {
		session.gate.finished = session.gate.submitted - what % 2;
	} else if (what < 60) {
		fgv_batch_flush(&session);
	} else if (what < 80) {
		*stream = (unsigned)random() % STREAMS;
	} else {
		put((unsigned)random() % FUNCTIONS, *stream, (uint32_t)random() % 4,
		    (uint8_t)(random() % 2));
	}
}

/* With failures of the driver's, in one of so many calls: 0, 100, 10. */
START_TEST(any_sequence)
{
	static const unsigned rates[] = {0, 100, 10};
	unsigned stream = 0;

	fails = rates[_i];
	for (unsigned i = 0; i < 100000; i++) {
		do_something(&stream);
		if (wanted_count > LOG_MAX - 10)
			compare();
		if (i % 1000 == 0)
			session.batch.failures = 0;
	}
	compare();
	ck_assert_int_eq(session.deferred, CUDA_SUCCESS);
	if (!fails)
		ck_assert_uint_gt(launched_graphs, 100);
}
END_TEST

/* Where the driver cannot follow at all, it is not asked for ever. */
START_TEST(a_driver_that_cannot)
{
	fails = 1;
	put_many(100, 1);
	ck_assert(!session.batch.is_on);
	ck_assert_uint_eq(graphs + launched_graphs, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("batch");
	TCase *t = tcase_create("batch");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_idle_gpu_gets_the_first_at_once);
	tcase_add_test(t, long_queues_become_graphs);
	tcase_add_test(t, off_means_one_by_one);
	tcase_add_test(t, what_goes_is_forgotten);
	tcase_add_loop_test(t, any_sequence, 0, 3);
	tcase_add_test(t, a_driver_that_cannot);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
