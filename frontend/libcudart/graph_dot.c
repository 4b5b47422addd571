/*
 * A graph as text for Graphviz: a box for each graph, with its nodes and edges in it.
 */
#include <stdio.h>

#include "common/util.h"
#include "frontend/cuda/module/module.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/graph.h"
#include "frontend/libcudart/registration.h"

#define KNOWN_FLAGS                                                                                \
	(cudaGraphDebugDotFlagsVerbose | cudaGraphDebugDotFlagsKernelNodeParams |                  \
	 cudaGraphDebugDotFlagsMemcpyNodeParams | cudaGraphDebugDotFlagsMemsetNodeParams |         \
	 cudaGraphDebugDotFlagsHostNodeParams | cudaGraphDebugDotFlagsEventNodeParams |            \
	 cudaGraphDebugDotFlagsExtSemasSignalNodeParams |                                          \
	 cudaGraphDebugDotFlagsExtSemasWaitNodeParams |                                            \
	 cudaGraphDebugDotFlagsKernelNodeAttributes | cudaGraphDebugDotFlagsHandles |              \
	 cudaGraphDebugDotFlagsConditionalNodeParams)

static const char *const kinds[] = {
	[cudaGraphNodeTypeKernel] = "kernel",
	[cudaGraphNodeTypeMemcpy] = "copy",
	[cudaGraphNodeTypeMemset] = "fill",
	[cudaGraphNodeTypeHost] = "host function",
	[cudaGraphNodeTypeGraph] = "graph",
	[cudaGraphNodeTypeEmpty] = "empty",
	[cudaGraphNodeTypeWaitEvent] = "wait for event",
	[cudaGraphNodeTypeEventRecord] = "record event",
	[cudaGraphNodeTypeMemAlloc] = "allocate",
	[cudaGraphNodeTypeMemFree] = "free",
};

static const char *const directions[] = {
	[cudaMemcpyHostToHost] = "host to host",
	[cudaMemcpyHostToDevice] = "host to device",
	[cudaMemcpyDeviceToHost] = "device to host",
	[cudaMemcpyDeviceToDevice] = "device to device",
	[cudaMemcpyDefault] = "by address",
};

static bool wants(unsigned flags, unsigned flag)
{
	return flags & (flag | cudaGraphDebugDotFlagsVerbose);
}

static void print_kernel(FILE *file, const struct fgv_work *work, unsigned flags)
{
	const struct cudaKernelNodeParamsV2 *p = &work->params.kernel;
	const struct fgv_kernel *kernel = fgv_registration_find(p->func);

	fprintf(file, "\\n%s", kernel ? kernel->name : "(unloaded)");
	if (wants(flags, cudaGraphDebugDotFlagsHandles))
		fprintf(file, "\\nfunction %p", p->func);
	if (wants(flags, cudaGraphDebugDotFlagsKernelNodeParams))
		fprintf(file, "\\n<<<(%u, %u, %u), (%u, %u, %u), %u>>>", p->gridDim.x, p->gridDim.y,
			p->gridDim.z, p->blockDim.x, p->blockDim.y, p->blockDim.z,
			p->sharedMemBytes);
	if (wants(flags, cudaGraphDebugDotFlagsKernelNodeAttributes))
		fprintf(file, "\\ncooperative %d, priority %d", work->attributes.cooperative,
			work->attributes.priority);
}

static void print_copy(FILE *file, const struct cudaMemcpy3DParms *p, unsigned flags)
{
	if ((unsigned)p->kind < FGV_ARRAY_LEN(directions))
		fprintf(file, "\\n%s", directions[p->kind]);
	if (wants(flags, cudaGraphDebugDotFlagsMemcpyNodeParams))
		fprintf(file, "\\nfrom %p to %p\\n%zu x %zu x %zu", p->srcPtr.ptr, p->dstPtr.ptr,
			p->extent.width, p->extent.height, p->extent.depth);
}

static void print_fill(FILE *file, const struct cudaMemsetParamsV2 *p, unsigned flags)
{
	if (wants(flags, cudaGraphDebugDotFlagsMemsetNodeParams))
		fprintf(file, "\\n%p = %#x\\n%zu x %zu of %u bytes", p->dst, p->value, p->width,
			p->height, p->elementSize);
}

static void print_params(FILE *file, const struct fgv_work *work, unsigned flags)
{
	const struct cudaGraphNodeParams *params = &work->params;

	switch (params->type) {
	case cudaGraphNodeTypeKernel:
		print_kernel(file, work, flags);
		break;
	case cudaGraphNodeTypeMemcpy:
		print_copy(file, &params->memcpy.copyParams, flags);
		break;
	case cudaGraphNodeTypeMemset:
		print_fill(file, &params->memset, flags);
		break;
	case cudaGraphNodeTypeHost:
		if (wants(flags, cudaGraphDebugDotFlagsHostNodeParams))
			fprintf(file, "\\n%p(%p)", (void *)params->host.fn, params->host.userData);
		break;
	case cudaGraphNodeTypeEventRecord:
		if (wants(flags, cudaGraphDebugDotFlagsEventNodeParams))
			fprintf(file, "\\n%p", (void *)params->eventRecord.event);
		break;
	case cudaGraphNodeTypeWaitEvent:
		if (wants(flags, cudaGraphDebugDotFlagsEventNodeParams))
			fprintf(file, "\\n%p", (void *)params->eventWait.event);
		break;
	case cudaGraphNodeTypeMemAlloc:
		fprintf(file, "\\n%zu bytes at %p", params->alloc.bytesize, params->alloc.dptr);
		break;
	case cudaGraphNodeTypeMemFree:
		fprintf(file, "\\n%p", params->free.dptr);
		break;
	default:
		break;
	}
}

static void print_graph(FILE *file, const struct fgv_graph *graph, unsigned flags)
{
	unsigned index = 0;

	fprintf(file, "subgraph \"cluster_%p\" {\nlabel=\"graph %p\";\n", (void *)graph->name,
		(void *)graph->name);
	for (const struct fgv_node *each = graph->first; each; each = each->next) {
		fprintf(file, "\"%p\" [shape=box label=\"%u %s", (void *)each->name, index++,
			kinds[each->work.params.type]);
		if (wants(flags, cudaGraphDebugDotFlagsHandles))
			fprintf(file, "\\nnode %p", (void *)each->name);
		print_params(file, &each->work, flags);
		fputs("\"];\n", file);
		for (uint32_t i = 0; i < each->before_count; i++)
			fprintf(file, "\"%p\" -> \"%p\";\n", (void *)each->before[i]->name,
				(void *)each->name);
		if (each->work.child)
			print_graph(file, each->work.child, flags);
	}
	fputs("}\n", file);
}

static cudaError_t print(const struct fgv_graph *graph, const char *path, unsigned flags)
{
	FILE *file;
	bool failed;

	if (!graph || !path || (flags & ~(unsigned)KNOWN_FLAGS))
		return cudaErrorInvalidValue;
	file = fopen(path, "we");
	if (!file)
		return cudaErrorOperatingSystem;
	fputs("digraph dot {\n", file);
	print_graph(file, graph, flags);
	fputs("}\n", file);
	failed = ferror(file);
	return fclose(file) || failed ? cudaErrorOperatingSystem : cudaSuccess;
}

FGV_EXPORT cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path,
					      unsigned int flags)
{
	return fgv_error_set(print(fgv_graph_of(graph), path, flags));
}
