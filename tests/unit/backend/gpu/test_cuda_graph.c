/*
 * Graphs of the CUDA implementation, with a driver of the test's: what it is asked for each kind
 * of node, which changes are its own, and which want a new graph.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/cuda_internal.h"

#define NODES 4

/* What the driver of the test's was asked, and says. */
static struct {
	CUresult instantiate, set;
	unsigned long long flags;
	int priority;
	CUgraphNodeParams nodes[NODES], changed;
	CUgraphNode before[NODES][2];
	size_t before_count[NODES];
	unsigned added, sets, enables, launches, execs_destroyed, graphs_destroyed, nodes_destroyed;
	CUgraph in[NODES], bodies[2];
	unsigned is_enabled;
	CUgraphNode set_node;
	CUlaunchAttributeID attributes[NODES];
	unsigned attribute_count;
	CUstream stream;
	int shared_bytes;
} said;

static struct fgv_cuda_driver driver;
static struct cuda cuda;
static struct fgv_gpu_graph *graph;
static uint32_t before_both[] = {0, 1}, before_first[] = {0};
static uint64_t argument = 5;
static void *params[] = {&argument};
static struct fgv_gpu_node nodes[NODES];

static CUresult graph_create(CUgraph *made, unsigned flags)
{
	(void)flags;
	*made = (CUgraph)&said;
	return CUDA_SUCCESS;
}

static CUresult add_node(CUgraphNode *node, CUgraph to, const CUgraphNode *before,
			 const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *how)
{
	ck_assert_ptr_null(edges);
	said.in[said.added] = to;
	if (how->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		how->conditional.phGraph_out = said.bodies;
	said.nodes[said.added] = *how;
	said.before_count[said.added] = count;
	for (size_t i = 0; i < count; i++)
		said.before[said.added][i] = before[i];
	*node = (CUgraphNode)(uintptr_t)++said.added;
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUgraphNode node, CUkernelNodeAttrID attribute,
			      const CUkernelNodeAttrValue *value)
{
	(void)node;
	if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		said.priority = value->priority;
	said.attributes[said.attribute_count++] = attribute;
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph of, unsigned long long flags)
{
	(void)of;
	said.flags = flags;
	*exec = said.instantiate == CUDA_SUCCESS ? (CUgraphExec)&said : NULL;
	return said.instantiate;
}

static CUresult set_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *how)
{
	(void)exec;
	said.sets++;
	said.set_node = node;
	said.changed = *how;
	return said.set;
}

static CUresult set_enabled(CUgraphExec exec, CUgraphNode node, unsigned is_enabled)
{
	(void)exec;
	(void)node;
	said.enables++;
	said.is_enabled = is_enabled;
	return CUDA_SUCCESS;
}

static CUresult launch(CUgraphExec exec, CUstream stream)
{
	(void)exec;
	said.launches++;
	said.stream = stream;
	return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec exec)
{
	(void)exec;
	said.execs_destroyed++;
	return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph of)
{
	(void)of;
	said.graphs_destroyed++;
	return CUDA_SUCCESS;
}

static CUresult destroy_node(CUgraphNode node)
{
	(void)node;
	said.nodes_destroyed++;
	return CUDA_SUCCESS;
}

static CUresult add_condition(CUgraphConditionalHandle *condition, CUgraph in, CUcontext context,
			      unsigned value, unsigned flags)
{
	ck_assert_ptr_eq(in, &said);
	ck_assert_ptr_eq(context, &driver);
	*condition = value + flags;
	return CUDA_SUCCESS;
}

static CUresult set_function(CUfunction function, CUfunction_attribute attribute, int value)
{
	(void)function;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		said.shared_bytes = value;
	return CUDA_SUCCESS;
}

/* A fill and nothing at all, a copy behind both, and a kernel behind the fill. */
static void set_nodes(void)
{
	memset(nodes, 0, sizeof(nodes));
	nodes[0].kind = FGV_GPU_NODE_FILL;
	nodes[0].fill = (typeof(nodes[0].fill)){0x1000, 64, 7, 4, 16, 1};
	nodes[2].kind = FGV_GPU_NODE_COPY;
	nodes[2].before = before_both;
	nodes[2].before_count = 2;
	nodes[2].copy = (CUDA_MEMCPY3D){.srcDevice = 0x1000, .dstDevice = 0x2000, .Depth = 1};
	nodes[3].kind = FGV_GPU_NODE_KERNEL;
	nodes[3].before = before_first;
	nodes[3].before_count = 1;
	nodes[3].kernel.function = (struct fgv_gpu_function *)&cuda;
	nodes[3].kernel.grid[0] = 3;
	nodes[3].kernel.block[1] = 4;
	nodes[3].kernel.shared_bytes = 100000;
	nodes[3].kernel.params = params;
}

static void setup(void)
{
	memset(&said, 0, sizeof(said));
	driver = (struct fgv_cuda_driver){
		.graph_create = graph_create,
		.graph_add_node = add_node,
		.graph_set_attribute = set_attribute,
		.graph_instantiate = instantiate,
		.graph_set_node = set_node,
		.graph_set_enabled = set_enabled,
		.graph_launch = launch,
		.graph_exec_destroy = exec_destroy,
		.graph_destroy = graph_destroy,
		.graph_destroy_node = destroy_node,
		.graph_condition = add_condition,
		.function_set_attribute = set_function,
	};
	cuda = (struct cuda){.base.ops = &fgv_gpu_cuda, .driver = &driver};
	cuda.context = (CUcontext)&driver;
	cuda.legacy.next = cuda.legacy.previous = &cuda.legacy;
	set_nodes();
	graph = NULL;
}

static void make(void)
{
	ck_assert_uint_eq(fgv_gpu_cuda.graph_create(&cuda.base, nodes, NODES, &graph),
			  CUDA_SUCCESS);
}

static CUresult update(uint32_t number)
{
	return fgv_gpu_cuda.graph_update(&cuda.base, graph, number);
}

static void teardown(void)
{
	if (graph)
		ck_assert_uint_eq(fgv_gpu_cuda.graph_destroy(&cuda.base, graph), CUDA_SUCCESS);
}

START_TEST(each_node_is_the_drivers)
{
	make();
	ck_assert_uint_eq(said.added, NODES);
	for (int i = 0; i < NODES; i++)
		ck_assert_ptr_eq(said.in[i], (CUgraph)&said);
	ck_assert_uint_eq(said.nodes[0].type, CU_GRAPH_NODE_TYPE_MEMSET);
	ck_assert_uint_eq(said.nodes[0].memset.dst, 0x1000);
	ck_assert_uint_eq(said.nodes[0].memset.width, 16);
	ck_assert_uint_eq(said.nodes[0].memset.elementSize, 4);
	ck_assert_ptr_eq(said.nodes[0].memset.ctx, &driver);
	ck_assert_uint_eq(said.nodes[1].type, CU_GRAPH_NODE_TYPE_EMPTY);
	ck_assert_uint_eq(said.nodes[2].type, CU_GRAPH_NODE_TYPE_MEMCPY);
	ck_assert_uint_eq(said.nodes[2].memcpy.copyParams.dstDevice, 0x2000);
	ck_assert_ptr_eq(said.nodes[2].memcpy.copyCtx, &driver);
	ck_assert_uint_eq(said.before_count[2], 2);
	ck_assert_ptr_eq(said.before[2][1], (CUgraphNode)2);
	ck_assert_uint_eq(said.nodes[3].type, CU_GRAPH_NODE_TYPE_KERNEL);
	ck_assert_ptr_eq(said.nodes[3].kernel.func, (CUfunction)&cuda);
	ck_assert_ptr_eq(said.nodes[3].kernel.kernelParams, params);
	ck_assert_uint_eq(said.nodes[3].kernel.blockDimY, 4);
	ck_assert_ptr_eq(said.before[3][0], (CUgraphNode)1);
	ck_assert_int_eq(said.shared_bytes, 100000);
	ck_assert_uint_eq(said.attribute_count, 0);
	ck_assert_uint_eq(said.enables, 0);
}
END_TEST

START_TEST(how_blocks_are_grouped_is_an_attribute)
{
	nodes[3].kernel.in_clusters = true;
	nodes[3].kernel.how = (struct fgv_gpu_clusters){
		.size = {2, 1, 1},
		.cooperative = true,
		.policy = CU_CLUSTER_SCHEDULING_POLICY_SPREAD,
	};
	make();
	ck_assert_uint_eq(said.attribute_count, 3);
	ck_assert_uint_eq(said.attributes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
	ck_assert_uint_eq(said.attributes[1], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
	/* Which no update changes. */
	nodes[3].kernel.how.size[0] = 4;
	ck_assert_uint_ne(update(3), CUDA_SUCCESS);
	ck_assert_uint_eq(said.sets, 0);
}
END_TEST

/* Without any, kernels have the stream's. */
START_TEST(priorities_are_attributes)
{
	make();
	ck_assert_uint_eq(said.flags, 0);
	teardown();
	setup();
	nodes[3].kernel.has_priority = true;
	nodes[3].kernel.priority = -4;
	make();
	ck_assert_uint_eq(said.flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
	ck_assert_uint_eq(said.attribute_count, 1);
	ck_assert_uint_eq(said.attributes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY);
	ck_assert_int_eq(said.priority, -4);
	/* Which no update changes. */
	nodes[3].kernel.priority = 0;
	ck_assert_uint_ne(update(3), CUDA_SUCCESS);
	nodes[3].kernel.priority = -4;
	ck_assert_uint_eq(update(3), CUDA_SUCCESS);
}
END_TEST

START_TEST(changes_are_the_nodes_own)
{
	make();
	nodes[3].kernel.grid[0] = 9;
	ck_assert_uint_eq(update(3), CUDA_SUCCESS);
	ck_assert_uint_eq(said.sets, 1);
	ck_assert_ptr_eq(said.set_node, (CUgraphNode)4);
	ck_assert_uint_eq(said.changed.kernel.gridDimX, 9);
	ck_assert_uint_eq(said.enables, 0);
	nodes[3].is_disabled = true;
	ck_assert_uint_eq(update(3), CUDA_SUCCESS);
	ck_assert_uint_eq(said.enables, 1);
	ck_assert_uint_eq(said.is_enabled, 0);
	nodes[0].kind = FGV_GPU_NODE_NOTHING;
	ck_assert_uint_ne(update(0), CUDA_SUCCESS);
	said.set = CUDA_ERROR_INVALID_VALUE;
	ck_assert_uint_eq(update(2), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* A disabled node is one from the beginning. */
START_TEST(disabled_nodes_are_switched_off)
{
	nodes[2].is_disabled = nodes[1].is_disabled = true;
	make();
	ck_assert_uint_eq(said.enables, 1);
	ck_assert_uint_eq(said.is_enabled, 0);
}
END_TEST

/* A fence that is there gets its event first, and the stream counts as busy. */
START_TEST(a_launch_is_work_in_its_stream)
{
	make();
	ck_assert_uint_eq(fgv_gpu_cuda.graph_launch(&cuda.base, graph, NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(said.launches, 1);
	ck_assert_ptr_null(said.stream);
	ck_assert(cuda.legacy.is_busy);
}
END_TEST

START_TEST(what_is_refused_leaves_nothing)
{
	said.instantiate = CUDA_ERROR_OUT_OF_MEMORY;
	ck_assert_uint_eq(fgv_gpu_cuda.graph_create(&cuda.base, nodes, NODES, &graph),
			  CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(said.graphs_destroyed, 1);
	ck_assert_uint_eq(said.execs_destroyed, 0);
}
END_TEST

START_TEST(events_are_the_drivers)
{
	nodes[0].kind = FGV_GPU_NODE_WAIT;
	nodes[0].event = (struct fgv_gpu_event *)&driver;
	nodes[1].kind = FGV_GPU_NODE_RECORD;
	nodes[1].event = (struct fgv_gpu_event *)&cuda;
	nodes[1].is_disabled = true;
	make();
	ck_assert_uint_eq(said.nodes[0].type, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	ck_assert_ptr_eq(said.nodes[0].eventWait.event, (CUevent)&driver);
	ck_assert_uint_eq(said.nodes[1].type, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	ck_assert_ptr_eq(said.nodes[1].eventRecord.event, (CUevent)&cuda);
	ck_assert_uint_eq(said.enables, 0);
}
END_TEST

/* What is in its bodies is added there; all else leaves the home, and that stays. */
START_TEST(choices_are_at_home)
{
	struct fgv_gpu_home *home;
	uint64_t condition;

	said.bodies[0] = (CUgraph)&nodes[0];
	said.bodies[1] = (CUgraph)&nodes[1];
	ck_assert_uint_eq(fgv_gpu_cuda.home_create(&cuda.base, &home), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_gpu_cuda.home_condition(&cuda.base, home, 41,
						      CU_GRAPH_COND_ASSIGN_DEFAULT, &condition),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(condition, 42);
	nodes[1].kind = FGV_GPU_NODE_CHOICE;
	nodes[1].choice.condition = condition;
	nodes[1].choice.type = CU_GRAPH_COND_TYPE_SWITCH;
	nodes[1].choice.bodies = 2;
	nodes[2].before_count = 0;
	nodes[2].inside = 2;
	nodes[3].before_count = 0;
	nodes[3].inside = 2;
	nodes[3].body = 1;
	for (unsigned i = 1; i < 3; i++) {
		said.added = 0;
		ck_assert_uint_eq(
			fgv_gpu_cuda.graph_create_in(&cuda.base, home, nodes, NODES, &graph),
			CUDA_SUCCESS);
		ck_assert_ptr_eq(said.in[0], (CUgraph)&said);
		ck_assert_ptr_eq(said.in[1], (CUgraph)&said);
		ck_assert_ptr_eq(said.in[2], said.bodies[0]);
		ck_assert_ptr_eq(said.in[3], said.bodies[1]);
		ck_assert_uint_eq(said.nodes[1].conditional.handle, 42);
		ck_assert_uint_eq(said.nodes[1].conditional.size, 2);
		ck_assert_ptr_eq(said.nodes[1].conditional.ctx, &driver);
		nodes[3].kernel.grid[0]++;
		ck_assert_uint_eq(update(3), CUDA_SUCCESS);
		ck_assert_uint_ne(update(1), CUDA_SUCCESS);
		ck_assert_uint_eq(fgv_gpu_cuda.graph_destroy(&cuda.base, graph), CUDA_SUCCESS);
		graph = NULL;
		ck_assert_uint_eq(said.nodes_destroyed, 2 * i);
		ck_assert_uint_eq(said.execs_destroyed, i);
		ck_assert_uint_eq(said.graphs_destroyed, 0);
	}
	ck_assert_uint_eq(fgv_gpu_cuda.home_destroy(&cuda.base, home), CUDA_SUCCESS);
	ck_assert_uint_eq(said.graphs_destroyed, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_graph");
	TCase *tests = tcase_create("graphs");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, each_node_is_the_drivers);
	tcase_add_test(tests, how_blocks_are_grouped_is_an_attribute);
	tcase_add_test(tests, priorities_are_attributes);
	tcase_add_test(tests, changes_are_the_nodes_own);
	tcase_add_test(tests, disabled_nodes_are_switched_off);
	tcase_add_test(tests, a_launch_is_work_in_its_stream);
	tcase_add_test(tests, what_is_refused_leaves_nothing);
	tcase_add_test(tests, events_are_the_drivers);
	tcase_add_test(tests, choices_are_at_home);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
