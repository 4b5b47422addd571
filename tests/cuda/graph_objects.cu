/*
 * Objects of the program's that graphs keep alive, and graphs as text.
 */
#include "test.h"

#include <atomic>
#include <sched.h>
#include <unistd.h>

struct object {
	std::atomic<int> ended;
	std::atomic<int> used; /* by host nodes */
	int used_at_end;
};

static void end(void *data)
{
	struct object *object = (struct object *)data;

	object->used_at_end = object->used;
	object->ended++;
}

static void use(void *data)
{
	((struct object *)data)->used++;
}

static __global__ void nothing(void)
{
}

static void wait_for_end(struct object *object)
{
	while (!object->ended)
		sched_yield();
}

static cudaUserObject_t create(struct object *object, unsigned count)
{
	cudaUserObject_t name;

	CUDA(cudaUserObjectCreate(&name, object, end, count, cudaUserObjectNoDestructorSync));
	return name;
}

static void by_program(void)
{
	struct object object = {};
	cudaUserObject_t name = create(&object, 2);

	CUDA(cudaUserObjectRetain(name, 3));
	CUDA(cudaUserObjectRelease(name, 4));
	EXPECT_EQ(0, object.ended);
	CUDA(cudaUserObjectRelease(name, 1));
	wait_for_end(&object);
	EXPECT_EQ(1, object.ended);
}

/* A graph with a kernel and a use of @object, which is the graph's alone. */
static cudaGraph_t make(struct object *object)
{
	cudaKernelNodeParams kernel = {};
	cudaHostNodeParams host = {};
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	kernel.func = (void *)nothing;
	kernel.gridDim = dim3(1);
	kernel.blockDim = dim3(1);
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
	host.fn = use;
	host.userData = object;
	CUDA(cudaGraphAddHostNode(&node, graph, &node, 1, &host));
	CUDA(cudaGraphRetainUserObject(graph, create(object, 1), 1, cudaGraphUserObjectMove));
	return graph;
}

static void by_graphs(cudaStream_t stream)
{
	struct object object = {}, other = {};
	cudaUserObject_t name = create(&other, 1);
	cudaGraph_t graph = make(&object), clone;
	cudaGraphExec_t exec;

	CUDA(cudaGraphRetainUserObject(graph, name, 2, 0));
	CUDA(cudaGraphReleaseUserObject(graph, name, 1));
	CUDA(cudaUserObjectRelease(name, 1));
	EXPECT_EQ(0, other.ended);
	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphReleaseUserObject(graph, name, 1));
	EXPECT_EQ(0, other.ended);
	CUDA(cudaGraphDestroy(clone));
	wait_for_end(&other);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	EXPECT_EQ(0, object.ended);
	/* What has been launched needs its objects to its end. */
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaStreamSynchronize(stream));
	wait_for_end(&object);
	EXPECT_EQ(1, object.ended);
	EXPECT_EQ(3, object.used_at_end);
}

static void as_text(void)
{
	struct object object = {};
	cudaGraph_t graph = make(&object);
	char path[] = "/tmp/fairgv-graph-XXXXXX";
	static char text[65536];
	int fd = mkstemp(path);

	EXPECT(fd >= 0);
	CUDA(cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose));
	EXPECT(read(fd, text, sizeof(text) - 1) > 0);
	EXPECT(strstr(text, "digraph"));
	EXPECT(strstr(text, "nothing"));
	EXPECT(strstr(text, "->"));
	close(fd);
	unlink(path);
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphDebugDotPrint(NULL, path, 0));
	EXPECT_CODE(cudaErrorOperatingSystem,
		    cudaGraphDebugDotPrint(graph, "/no such folder/graph", 0));
	cudaGetLastError();
	CUDA(cudaGraphDestroy(graph));
	wait_for_end(&object);
}

static void wrong(void)
{
	struct object object = {};
	cudaUserObject_t name;

	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaUserObjectCreate(&name, &object, end, 0, cudaUserObjectNoDestructorSync));
	EXPECT_CODE(cudaErrorInvalidValue, cudaUserObjectCreate(&name, &object, end, 1, 0));
	name = create(&object, 1);
	EXPECT_CODE(cudaErrorInvalidValue, cudaUserObjectRetain(name, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaGraphRetainUserObject(NULL, name, 1, 0));
	cudaGetLastError();
	CUDA(cudaUserObjectRelease(name, 1));
	wait_for_end(&object);
}

int main(void)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	by_program();
	by_graphs(stream);
	as_text();
	wrong();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaDeviceSynchronize());
	return 0;
}
