#include "tests/unit/backend/vgpu/batch_driver.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define ARGS_MAX 600

/* What the GPU has executed, or should have. */
struct launch {
	const void *function, *stream;
	uint32_t grid[3], block[3], shared_bytes;
	uint32_t args_len;
	uint8_t args[ARGS_MAX];
};

/* A graph as the driver has it: its nodes as they were when it was told of them. */
struct fgv_gpu_graph {
	uint32_t count;
	const struct fgv_gpu_node *nodes;
	const void *stream; /* the only one that it may be launched in */
	bool is_launched;
	struct launch launches[FGV_BATCH_LONGEST];
};

struct driver driver;
static struct fgv_object functions[DRIVER_FUNCTIONS], streams[DRIVER_STREAMS];
static uint32_t sizes[DRIVER_FUNCTIONS][80];
static struct launch executed[DRIVER_LOG_MAX], wanted[DRIVER_LOG_MAX];

static bool fails_now(void)
{
	return driver.fails && random() % driver.fails == 0;
}

/* The same in each run, so that sequences are cut at the same places. */
static struct fgv_gpu_function *handle_of(unsigned number)
{
	return (struct fgv_gpu_function *)(uintptr_t)(4096 + 64 * number);
}

static const struct fgv_object *object_of(const void *handle)
{
	return &functions[((uintptr_t)handle - 4096) / 64];
}

static void note(struct launch *launch, const void *function, const uint32_t grid[3],
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
	ck_assert_uint_lt(driver.executed, DRIVER_LOG_MAX);
	note(&executed[driver.executed], function, grid, block, shared_bytes, params);
	executed[driver.executed++].stream = stream;
	return CUDA_SUCCESS;
}

/* --- Graphs ---------------------------------------------------------------------- */

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
	driver.graphs++;
	return CUDA_SUCCESS;
}

static CUresult graph_update(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph, uint32_t number)
{
	(void)gpu;
	if (fails_now())
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	ck_assert_uint_lt(number, graph->count);
	take_node(graph, number);
	driver.updates++;
	return CUDA_SUCCESS;
}

static CUresult graph_launch(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph,
			     struct fgv_gpu_stream *stream)
{
	(void)gpu;
	if (fails_now())
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* In two streams it would have one wait for the other. */
	ck_assert(!graph->is_launched || graph->stream == stream);
	graph->is_launched = true;
	graph->stream = stream;
	for (uint32_t i = 0; i < graph->count; i++) {
		ck_assert_uint_lt(driver.executed, DRIVER_LOG_MAX);
		executed[driver.executed] = graph->launches[i];
		executed[driver.executed++].stream = stream;
	}
	driver.launched_graphs++;
	return CUDA_SUCCESS;
}

static CUresult graph_destroy(struct fgv_gpu *gpu, struct fgv_gpu_graph *graph)
{
	(void)gpu;
	driver.graphs--;
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

/* --- The session ------------------------------------------------------------------- */

static void make_functions(void)
{
	memset(functions, 0, sizeof(functions));
	memset(streams, 0, sizeof(streams));
	for (unsigned i = 0; i < DRIVER_FUNCTIONS; i++) {
		/* The last has more arguments than a batch takes, the one before more bytes. */
		uint32_t count = i == DRIVER_FUNCTIONS - 1 ? FGV_BATCH_PARAMS + 1 : i;

		functions[i].function.gpu = handle_of(i);
		functions[i].function.param_count = count;
		functions[i].function.param_sizes = sizes[i];
		for (unsigned k = 0; k < count; k++) {
			sizes[i][k] =
				i == DRIVER_FUNCTIONS - 2 && k == 0 ? FGV_BATCH_ARGS : 1 + k % 8;
			functions[i].function.args_len += (sizes[i][k] + 7) & ~7u;
		}
	}
}

void driver_setup(void)
{
	static struct fgv_gpu gpu = {.ops = &ops};
	struct fgv_session *session = &driver.session;

	memset(&driver, 0, sizeof(driver));
	session->gpu = &gpu;
	session->account = &driver.accounts.sessions[0];
	driver.allowance.memory_bytes = DRIVER_QUOTA;
	fgv_quota_init(&session->quota, &driver.allowance, &driver.accounts, session->account, 0,
		       4096);
	fgv_quota_set_give_up(&session->quota, fgv_batch_cache_give_up, session);
	session->costs.graph = session->costs.graph_node = 1;
	session->gate.submitted = 1;
	session->gate.grant = &driver.grant;
	driver.grant.limit_ns = FGV_GRANT_NO_LIMIT;
	driver.grant.word = FGV_GRANT_BUSY;
	make_functions();
	fgv_batch_init(&session->batch, true);
	srandom(7);
}

void driver_teardown(void)
{
	fgv_batch_fini(&driver.session);
	ck_assert_uint_eq(driver.graphs, 0);
	ck_assert_uint_eq(driver.session.account->memory_bytes, 0);
	fgv_quota_fini(&driver.session.quota);
}

struct fgv_gpu_stream *driver_stream(unsigned number)
{
	return number ? (struct fgv_gpu_stream *)(uintptr_t)(number * 64) : NULL;
}

void driver_set_ends(unsigned stream, uint64_t ns)
{
	streams[stream].ends_ns = ns;
}

void driver_make_urgent(unsigned stream)
{
	streams[stream].is_urgent = true;
}

/* --- Asking and comparing -------------------------------------------------------------- */

void driver_put(unsigned function, unsigned stream, uint32_t grid, uint8_t seed)
{
	static uint8_t args[ARGS_MAX + 65 * 8];
	const uint32_t grids[3] = {grid, 2, 1}, blocks[3] = {32, 1, grid % 3 + 1};
	const struct fgv_object *object = &functions[function];
	struct fgv_session *session = &driver.session;
	uint8_t *arg = args;

	memset(args, seed, sizeof(args));
	for (uint32_t i = 0; i < object->function.param_count; i++) {
		*arg = (uint8_t)(seed + i);
		session->params[i] = arg;
		arg += (sizes[function][i] + 7) & ~7u;
	}
	ck_assert_uint_lt(driver.wanted, DRIVER_LOG_MAX);
	note(&wanted[driver.wanted], object->function.gpu, grids, blocks, grid, session->params);
	wanted[driver.wanted++].stream = driver_stream(stream);
	streams[stream].stream = driver_stream(stream);
	ck_assert_int_eq(fgv_batch_launch(session, object, grids, blocks, grid,
					  stream ? &streams[stream] : NULL),
			 CUDA_SUCCESS);
	memset(args, 0xdd, sizeof(args));
}

void driver_compare_sent(void)
{
	ck_assert_uint_le(driver.executed, driver.wanted);
	for (unsigned i = 0; i < driver.executed; i++)
		ck_assert_mem_eq(&executed[i], &wanted[i], sizeof(wanted[i]));
	driver.wanted -= driver.executed;
	memmove(wanted, wanted + driver.executed, driver.wanted * sizeof(wanted[0]));
	driver.executed = 0;
}

void driver_compare(void)
{
	fgv_batch_flush(&driver.session);
	ck_assert_uint_eq(driver.executed, driver.wanted);
	driver_compare_sent();
}
