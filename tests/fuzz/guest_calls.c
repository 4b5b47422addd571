#include "tests/fuzz/guest_calls.h"

#include <stdlib.h>
#include <string.h>
#include "common/util.h"
#include "tests/fuzz/guest_program.h"

struct guest_program program;

#define FROM(value)	((uint64_t)(uintptr_t)(value))
#define TO(type, value) ((type)(uintptr_t)(value))

/* --- What it has ---------------------------------------------------------------------------- */

static void destroy(enum kind kind, uint64_t value)
{
	switch (kind) {
	case MEMORY:
		cuMemFree_v2(value);
		break;
	case PINNED:
		cuMemFreeHost(TO(void *, value));
		break;
	case ORDERED:
		cuMemFreeAsync(value, NULL);
		break;
	case STREAM:
		cuStreamDestroy_v2(TO(CUstream, value));
		break;
	case EVENT:
		cuEventDestroy_v2(TO(CUevent, value));
		break;
	case MODULE:
		cuModuleUnload(TO(CUmodule, value));
		break;
	case LIBRARY:
		cuLibraryUnload(TO(CUlibrary, value));
		break;
	case ARRAY:
		cuArrayDestroy(TO(CUarray, value));
		break;
	case TEXTURE:
		cuTexObjectDestroy(value);
		break;
	case SURFACE:
		cuSurfObjectDestroy(value);
		break;
	case GRAPH:
		cuGraphDestroy(TO(CUgraph, value));
		break;
	case EXEC:
		cuGraphExecDestroy(TO(CUgraphExec, value));
		break;
	case HANDLE:
		cuMemRelease(value);
		break;
	case ADDRESS:
		cuMemUnmap(value, MAPPED);
		cuMemAddressFree(value, MAPPED);
		break;
	case LINK:
		cuLinkDestroy(TO(CUlinkState, value));
		break;
	case POOL:
		cuMemPoolDestroy(TO(CUmemoryPool, value));
		break;
	default:
		abort();
	}
}

void guest_keep(enum kind kind, uint64_t value)
{
	unsigned *count = &program.counts[kind];

	if (*count == KEPT_MAX)
		destroy(kind, program.kept[kind][--*count]);
	program.kept[kind][(*count)++] = value;
}

uint64_t guest_pick(enum kind kind)
{
	unsigned count = program.counts[kind];

	return count ? program.kept[kind][guest_draw() % count] : 0;
}

static void drop(void)
{
	enum kind kind = guest_draw() % KINDS;
	unsigned *count = &program.counts[kind];
	unsigned which;
	uint64_t value;

	/* What it has got of a module goes with that. */
	if (!*count)
		return;
	if (kind == MODULE || kind == LIBRARY)
		program.function = NULL;
	which = guest_draw() % *count;
	value = program.kept[kind][which];
	program.kept[kind][which] = program.kept[kind][--*count];
	if (kind == STREAM && TO(CUstream, value) == program.captured)
		program.captured = NULL;
	destroy(kind, value);
}

CUstream guest_pick_stream(void)
{
	return guest_draw() % 2 ? NULL : TO(CUstream, guest_pick(STREAM));
}

/* --- Streams, events, graphs ---------------------------------------------------------------- */

static void use_stream(void)
{
	CUstream stream;
	CUevent event;
	float ms;

	if (guest_draw() % 2 && !cuStreamCreate(&stream, guest_draw() % 2))
		guest_keep(STREAM, FROM(stream));
	if (guest_draw() % 2 && !cuEventCreate(&event, guest_draw() % 4))
		guest_keep(EVENT, FROM(event));
	stream = guest_pick_stream();
	event = TO(CUevent, guest_pick(EVENT));
	switch (guest_draw() % 6) {
	case 0:
		cuStreamSynchronize(stream);
		break;
	case 1:
		cuStreamQuery(stream);
		break;
	case 2:
		if (event)
			cuEventRecord(event, stream);
		break;
	case 3:
		if (event)
			cuStreamWaitEvent(stream, event, 0);
		break;
	case 4:
		if (event)
			cuEventElapsedTime_v2(&ms, event, TO(CUevent, guest_pick(EVENT)));
		break;
	default:
		cuStreamWriteValue32_v2(stream, guest_pick(MEMORY), guest_draw(), 0);
		cuStreamWaitValue32_v2(stream, guest_pick(MEMORY), guest_draw(), 0);
		cuCtxSynchronize();
	}
}

static void end_capture(void)
{
	CUgraph graph = NULL;

	if (program.captured && !cuStreamEndCapture(program.captured, &graph) && graph)
		guest_keep(GRAPH, FROM(graph));
	program.captured = NULL;
}

static void capture(void)
{
	CUstream stream = TO(CUstream, guest_pick(STREAM));

	if (program.captured)
		end_capture();
	else if (stream && !cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED))
		program.captured = stream;
}

static void add_nodes(CUgraph graph)
{
	CUDA_KERNEL_NODE_PARAMS kernel = {.func = program.function,
					  .gridDimX = 1,
					  .gridDimY = 1,
					  .gridDimZ = 1,
					  .blockDimX = 32,
					  .blockDimY = 1,
					  .blockDimZ = 1,
					  .kernelParams = program.args};
	CUDA_MEMSET_NODE_PARAMS fill = {.dst = guest_pick(MEMORY),
					.value = 1,
					.elementSize = 1,
					.width = guest_draw(),
					.height = 1};
	CUgraphConditionalHandle condition;
	CUgraphNode node;

	if (kernel.func)
		cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel);
	cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, program.contexts[0]);
	if (guest_draw() % 2) {
		CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};

		if (cuGraphConditionalHandleCreate(&condition, graph, program.contexts[0], 1,
						   CU_GRAPH_COND_ASSIGN_DEFAULT))
			return;
		params.conditional.handle = condition;
		params.conditional.type = CU_GRAPH_COND_TYPE_IF;
		params.conditional.size = 1;
		params.conditional.ctx = program.contexts[0];
		cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params);
	}
}

static void use_graph(void)
{
	CUgraphExecUpdateResultInfo result;
	CUgraph graph;
	CUgraphExec exec;

	if (guest_draw() % 2 && !cuGraphCreate(&graph, 0)) {
		add_nodes(graph);
		guest_keep(GRAPH, FROM(graph));
	}
	graph = TO(CUgraph, guest_pick(GRAPH));
	if (graph && guest_draw() % 2 && !cuGraphInstantiateWithFlags(&exec, graph, 0))
		guest_keep(EXEC, FROM(exec));
	exec = TO(CUgraphExec, guest_pick(EXEC));
	if (!exec)
		return;
	cuGraphUpload(exec, guest_pick_stream());
	cuGraphLaunch(exec, guest_pick_stream());
	if (graph && guest_draw() % 2)
		cuGraphExecUpdate_v2(exec, graph, &result);
}

/* --- The device ----------------------------------------------------------------------------- */

static void ask_device(void)
{
	CUatomicOperation operations[] = {CU_ATOMIC_OPERATION_INTEGER_ADD};
	unsigned capabilities;
	CUdevprop properties;
	char name[300];
	size_t value;
	int number;

	cuCtxGetLimit(&value, (CUlimit)(guest_draw() % 8));
	cuCtxSetLimit((CUlimit)(guest_draw() % 8), guest_draw_len());
	cuDeviceGetAttribute(&number, (CUdevice_attribute)(guest_draw() + 1), 0);
	cuDeviceGetName(name, sizeof(name), guest_draw() % GUEST_DEVICES);
	cuDeviceGetPCIBusId(name, sizeof(name), 0);
	cuDeviceGetProperties(&properties, 0);
	cuDeviceTotalMem_v2(&value, 0);
	cuDeviceGetTexture1DLinearMaxWidth(&value, CU_AD_FORMAT_FLOAT, 1, 0);
	cuDeviceGetHostAtomicCapabilities(&capabilities, operations, 1, 0);
}

static void change_device(void)
{
	cuCtxSetCurrent(program.contexts[guest_draw() % 4 == 3]);
}

void guest_calls_start(void)
{
	for (unsigned i = 0; i < PARAMS_MOST; i++)
		program.args[i] = program.buffer;
	if (cuInit(0))
		abort();
	for (int i = 0; i < GUEST_DEVICES; i++) {
		if (cuDevicePrimaryCtxRetain(&program.contexts[i], i))
			abort();
	}
	for (int i = GUEST_DEVICES - 1; i >= 0; i--) {
		if (cuCtxSetCurrent(program.contexts[i]) || cuCtxSynchronize())
			abort();
	}
}

void guest_calls_run(struct slots_input *input)
{
	static void (*const calls[])(void) = {
		guest_allocate,
		guest_copy,
		guest_copy_box,
		guest_ask_pointer,
		guest_ask_pool,
		guest_map_memory,
		guest_make_array,
		guest_make_texture,
		guest_make_tensor_map,
		guest_load_module,
		guest_load_library,
		guest_ask_function,
		guest_launch,
		guest_link_images,
		use_stream,
		capture,
		use_graph,
		ask_device,
		change_device,
		drop,
		guest_host_scribble,
	};

	program.input = input;
	calls[guest_draw() % FGV_ARRAY_LEN(calls)]();
}

void guest_calls_end(void)
{
	static struct slots_input nothing;

	program.input = &nothing;
	cuCtxSetCurrent(program.contexts[0]);
	end_capture();
	program.function = NULL;
	for (enum kind kind = KINDS; kind-- > 0;) {
		while (program.counts[kind])
			destroy(kind, program.kept[kind][--program.counts[kind]]);
	}
	for (int i = 0; i < GUEST_DEVICES; i++)
		cuDevicePrimaryCtxReset_v2(i);
	cuCtxSetCurrent(program.contexts[0]);
}
