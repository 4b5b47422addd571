/*
 * Nodes of graphs that choose by a condition, which kernels set: if, else, loops, switches, one in
 * another; what is changed in their bodies, and the codes of wrong uses.
 */
#include "test.h"

/* Takes @step from the first word, counts in the second, and ends the loop at 0. */
static __global__ void count_down(cudaGraphConditionalHandle loop, int *words, int step)
{
	words[1]++;
	words[0] -= step;
	if (words[0] <= 0)
		cudaGraphSetConditional(loop, 0);
}

static __global__ void choose(cudaGraphConditionalHandle condition, const int *word)
{
	cudaGraphSetConditional(condition, *word);
}

static __global__ void add(int *word, int value)
{
	*word += value;
}

/* Begins the inner loop of a round of the outer one. */
static __global__ void begin(cudaGraphConditionalHandle inner, int *words)
{
	words[2] = 3;
	cudaGraphSetConditional(inner, 1);
}

static __global__ void inner_round(cudaGraphConditionalHandle inner, int *words)
{
	words[3]++;
	cudaGraphSetConditional(inner, --words[2] > 0);
}

#define WORDS 8

struct fixture {
	cudaStream_t stream;
	int *words; /* on the device */
};

/* What is still in the stream, which a copy does not wait for, uses the words. */
static void set(struct fixture *f, int first)
{
	int words[WORDS] = {first};

	CUDA(cudaStreamSynchronize(f->stream));
	CUDA(cudaMemcpy(f->words, words, sizeof(words), cudaMemcpyHostToDevice));
}

static int word(struct fixture *f, int number)
{
	int value;

	CUDA(cudaStreamSynchronize(f->stream));
	CUDA(cudaMemcpy(&value, f->words + number, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static void launch(struct fixture *f, cudaGraphExec_t exec, int first)
{
	set(f, first);
	CUDA(cudaGraphLaunch(exec, f->stream));
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *before, void *kernel,
				  void **args)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = kernel;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, before, before != NULL, &params));
	return node;
}

static cudaGraphNode_t add_to_word(cudaGraph_t graph, const cudaGraphNode_t *before, int *at,
				   int value)
{
	void *args[] = {&at, &value};

	return add_kernel(graph, before, (void *)add, args);
}

static cudaGraphNodeParams choice(cudaGraphConditionalHandle condition,
				  enum cudaGraphConditionalNodeType type, unsigned size)
{
	cudaGraphNodeParams params = {};

	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = condition;
	params.conditional.type = type;
	params.conditional.size = size;
	return params;
}

static cudaGraphNode_t add_choice(cudaGraph_t graph, const cudaGraphNode_t *before,
				  cudaGraphConditionalHandle condition,
				  enum cudaGraphConditionalNodeType type, unsigned size,
				  cudaGraph_t *bodies)
{
	cudaGraphNodeParams params = choice(condition, type, size);
	cudaGraphNode_t node;

	CUDA(cudaGraphAddNode(&node, graph, before, NULL, before != NULL, &params));
	for (unsigned i = 0; i < size; i++)
		bodies[i] = params.conditional.phGraph_out[i];
	return node;
}

static cudaGraphConditionalHandle new_condition(cudaGraph_t graph, unsigned value, unsigned flags)
{
	cudaGraphConditionalHandle condition;

	CUDA(cudaGraphConditionalHandleCreate(&condition, graph, value, flags));
	return condition;
}

/* Where loops can't be interrupted, they are not supported; all else that is here must be. */
static bool can_loop(struct fixture *f)
{
	cudaGraphConditionalHandle loop;
	cudaGraphExec_t exec;
	cudaGraph_t graph, body;
	cudaError_t made;
	void *args[] = {&loop, &f->words, NULL};
	int step = 1;

	args[2] = &step;
	CUDA(cudaGraphCreate(&graph, 0));
	loop = new_condition(graph, 1, cudaGraphCondAssignDefault);
	add_choice(graph, NULL, loop, cudaGraphCondTypeWhile, 1, &body);
	add_kernel(body, NULL, (void *)count_down, args);
	made = cudaGraphInstantiate(&exec, graph, 0);
	if (made != cudaErrorNotSupported) {
		CUDA(made);
		CUDA(cudaGraphExecDestroy(exec));
	}
	cudaGetLastError();
	CUDA(cudaGraphDestroy(graph));
	return made == cudaSuccess;
}

/* A loop between two kernels, launched again, changed, and instantiated once more. */
static void loops(struct fixture *f)
{
	cudaGraphConditionalHandle loop;
	cudaGraphExec_t exec, second;
	cudaGraphExecUpdateResultInfo info;
	cudaGraphNode_t before, node, in_body;
	cudaKernelNodeParams params = {};
	enum cudaGraphNodeType type;
	cudaGraph_t graph, body, clone;
	int step = 1;
	void *args[] = {&loop, &f->words, &step};

	CUDA(cudaGraphCreate(&graph, 0));
	loop = new_condition(graph, 1, cudaGraphCondAssignDefault);
	before = add_to_word(graph, NULL, f->words, 5);
	node = add_choice(graph, &before, loop, cudaGraphCondTypeWhile, 1, &body);
	in_body = add_kernel(body, NULL, (void *)count_down, args);
	add_to_word(graph, &node, f->words, 100);
	CUDA(cudaGraphNodeGetType(node, &type));
	EXPECT_EQ(cudaGraphNodeTypeConditional, type);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int first = 2; first < 5; first++) {
		launch(f, exec, first);
		EXPECT_EQ(100, word(f, 0));
		EXPECT_EQ(first + 5, word(f, 1));
	}
	/* There is one at a time, and no copy. */
	EXPECT_CODE(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph, 0));
	EXPECT_CODE(cudaErrorNotSupported, cudaGraphClone(&clone, graph));
	cudaGetLastError();
	CUDA(cudaGraphExecUpdate(exec, graph, &info));
	step = 3;
	params.func = (void *)count_down;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphExecKernelNodeSetParams(exec, in_body, &params));
	launch(f, exec, 7);
	EXPECT_EQ(4, word(f, 1));
	CUDA(cudaGraphLaunch(exec, f->stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	launch(f, exec, 7);
	EXPECT_EQ(12, word(f, 1));
	/* What was instantiated needs the graph no more. */
	CUDA(cudaGraphDestroy(graph));
	launch(f, exec, 3);
	EXPECT_EQ(8, word(f, 1));
	CUDA(cudaGraphExecDestroy(exec));
}

/* Rounds of a loop in which another one makes three rounds each. */
static void loops_in_loops(struct fixture *f)
{
	cudaGraphConditionalHandle outer, inner;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph, body, inner_body;
	int step = 1;
	void *down[] = {&outer, &f->words, &step}, *both[] = {&inner, &f->words};

	CUDA(cudaGraphCreate(&graph, 0));
	outer = new_condition(graph, 1, cudaGraphCondAssignDefault);
	inner = new_condition(graph, 0, 0);
	add_choice(graph, NULL, outer, cudaGraphCondTypeWhile, 1, &body);
	node = add_kernel(body, NULL, (void *)begin, both);
	node = add_choice(body, &node, inner, cudaGraphCondTypeWhile, 1, &inner_body);
	add_kernel(inner_body, NULL, (void *)inner_round, both);
	add_kernel(body, &node, (void *)count_down, down);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	launch(f, exec, 4);
	EXPECT_EQ(4, word(f, 1));
	EXPECT_EQ(12, word(f, 3));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* By what a kernel before them says, in a body of several nodes. */
static void ifs(struct fixture *f)
{
	cudaGraphConditionalHandle one, two;
	cudaGraphNode_t nodes[2], node;
	cudaGraphExec_t exec;
	cudaGraph_t graph, bodies[3];
	void *args[] = {&one, &f->words}, *others[] = {&two, &f->words};

	CUDA(cudaGraphCreate(&graph, 0));
	one = new_condition(graph, 7, 0);
	two = new_condition(graph, 7, cudaGraphCondAssignDefault);
	nodes[0] = add_kernel(graph, NULL, (void *)choose, args);
	nodes[1] = add_kernel(graph, nodes, (void *)choose, others);
	node = add_choice(graph, &nodes[1], one, cudaGraphCondTypeIf, 1, bodies);
	add_choice(graph, &node, two, cudaGraphCondTypeIf, 2, bodies + 1);
	node = add_to_word(bodies[0], NULL, f->words + 1, 10);
	add_to_word(bodies[0], &node, f->words + 1, 1);
	add_to_word(bodies[1], NULL, f->words + 2, 20);
	add_to_word(bodies[2], NULL, f->words + 3, 30);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int value = 0; value < 3; value++) {
		launch(f, exec, value);
		EXPECT_EQ(value ? 11 : 0, word(f, 1));
		EXPECT_EQ(value ? 20 : 0, word(f, 2));
		EXPECT_EQ(value ? 0 : 30, word(f, 3));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* Bodies of copies, fills and child graphs; no body for what is too much. */
static void switches(struct fixture *f)
{
	cudaGraphConditionalHandle which;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph, child, bodies[3];
	cudaMemsetParams fill = {};
	void *args[] = {&which, &f->words};

	CUDA(cudaGraphCreate(&graph, 0));
	which = new_condition(graph, 0, 0);
	node = add_kernel(graph, NULL, (void *)choose, args);
	node = add_choice(graph, &node, which, cudaGraphCondTypeSwitch, 3, bodies);
	add_to_word(graph, &node, f->words + 4, 1);
	fill.dst = f->words + 1;
	fill.value = 66;
	fill.elementSize = 4;
	fill.width = fill.height = 1;
	CUDA(cudaGraphAddMemsetNode(&node, bodies[0], NULL, 0, &fill));
	CUDA(cudaGraphAddMemcpyNode1D(&node, bodies[0], &node, 1, f->words + 2, f->words + 1, 4,
				      cudaMemcpyDeviceToDevice));
	CUDA(cudaGraphCreate(&child, 0));
	node = add_to_word(child, NULL, f->words + 1, 5);
	add_to_word(child, &node, f->words + 1, 6);
	CUDA(cudaGraphAddEmptyNode(&node, bodies[1], NULL, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, bodies[1], &node, 1, child));
	add_to_word(bodies[1], &node, f->words + 2, 7);
	CUDA(cudaGraphDestroy(child));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int value = 0; value < 4; value++) {
		const int first[] = {66, 11, 0, 0}, second[] = {66, 7, 0, 0};

		launch(f, exec, value);
		EXPECT_EQ(first[value], word(f, 1));
		EXPECT_EQ(second[value], word(f, 2));
		EXPECT_EQ(1, word(f, 4));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* A body that a stream's capture fills, and a node that is destroyed and made anew. */
static void captured(struct fixture *f)
{
	cudaGraphConditionalHandle condition;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph, body, same;

	CUDA(cudaGraphCreate(&graph, 0));
	condition = new_condition(graph, 1, cudaGraphCondAssignDefault);
	node = add_choice(graph, NULL, condition, cudaGraphCondTypeIf, 1, &body);
	CUDA(cudaGraphDestroyNode(node));
	add_choice(graph, NULL, condition, cudaGraphCondTypeIf, 1, &body);
	CUDA(cudaStreamBeginCaptureToGraph(f->stream, body, NULL, NULL, 0,
					   cudaStreamCaptureModeThreadLocal));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->words + 1, 3));
	LAUNCH(add<<<1, 1, 0, f->stream>>>(f->words + 1, 4));
	CUDA(cudaStreamEndCapture(f->stream, &same));
	EXPECT(same == body);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	launch(f, exec, 0);
	EXPECT_EQ(7, word(f, 1));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void do_nothing(void *data)
{
	(void)data;
}

static void wrong(struct fixture *f)
{
	cudaGraphConditionalHandle condition, other;
	cudaGraphNodeParams params = {};
	cudaHostNodeParams function = {do_nothing, NULL};
	cudaGraphExec_t exec;
	cudaGraph_t graph, second, body;
	cudaGraphNode_t node;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&second, 0));
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaGraphConditionalHandleCreate(&condition, graph, 0, 2));
	condition = new_condition(graph, 1, cudaGraphCondAssignDefault);
	/* Nothing chooses by it. */
	add_to_word(graph, NULL, f->words, 1);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
	params = choice(condition, cudaGraphCondTypeWhile, 2);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params = choice(condition, cudaGraphCondTypeIf, 3);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params = choice(condition, cudaGraphCondTypeSwitch, 0);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params = choice(condition + 1000, cudaGraphCondTypeIf, 1);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	add_choice(graph, NULL, condition, cudaGraphCondTypeIf, 1, &body);
	params = choice(condition, cudaGraphCondTypeIf, 1);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	EXPECT_CODE(cudaErrorNotSupported,
		    cudaGraphAddChildGraphNode(&node, second, NULL, 0, graph));
	/* No functions in bodies. */
	other = new_condition(second, 1, cudaGraphCondAssignDefault);
	add_choice(second, NULL, other, cudaGraphCondTypeIf, 1, &body);
	if (cudaGraphAddHostNode(&node, body, NULL, 0, &function) == cudaSuccess)
		EXPECT_CODE(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, second, 0));
	cudaGetLastError();
	CUDA(cudaGraphDestroy(second));
	CUDA(cudaGraphDestroy(graph));
}

int main(void)
{
	struct fixture f;

	CUDA(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&f.words, WORDS * sizeof(int)));
	if (can_loop(&f)) {
		loops(&f);
		loops_in_loops(&f);
	}
	ifs(&f);
	switches(&f);
	captured(&f);
	wrong(&f);
	CUDA(cudaFree(f.words));
	CUDA(cudaStreamDestroy(f.stream));
	return 0;
}
