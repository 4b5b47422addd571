/*
 * A graph as text for Graphviz: a box for each graph, with its nodes and edges in it.
 */
#include "frontend/cuda/graph/graph.h"

#include <stdio.h>

#include "frontend/cuda/graph/graph_priv.h"
#include "frontend/cuda/module/registry.h"

#define KNOWN_FLAGS                                                                                \
	(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS |          \
	 CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS |                                             \
	 CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS | CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS | \
	 CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS |                                              \
	 CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS |                                   \
	 CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS |                                     \
	 CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES | CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES |      \
	 CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS |                                        \
	 CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES | CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS | \
	 CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS |                                           \
	 CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS |                                       \
	 CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO)

static const char *const kinds[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = "kernel",
	[CU_GRAPH_NODE_TYPE_MEMCPY] = "copy",
	[CU_GRAPH_NODE_TYPE_MEMSET] = "fill",
	[CU_GRAPH_NODE_TYPE_HOST] = "host function",
	[CU_GRAPH_NODE_TYPE_GRAPH] = "graph",
	[CU_GRAPH_NODE_TYPE_EMPTY] = "empty",
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "wait for event",
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "record event",
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "allocate",
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = "free",
};

static const char *const ends[] = {
	[CU_MEMORYTYPE_HOST] = "host",
	[CU_MEMORYTYPE_DEVICE] = "device",
	[CU_MEMORYTYPE_ARRAY] = "array",
	[CU_MEMORYTYPE_UNIFIED] = "by address",
};

static bool wants(unsigned flags, unsigned flag)
{
	return flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static void print_kernel(FILE *file, const struct fgv_work *work, unsigned flags)
{
	const CUDA_KERNEL_NODE_PARAMS_v3 *p = &work->task->params.kernel;
	const struct fgv_kernel *kernel = fgv_registry_kernel(p->func);

	fprintf(file, "\\n%s", kernel ? kernel->name : "(unloaded)");
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
		fprintf(file, "\\nfunction %p", (void *)p->func);
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(file, "\\n<<<(%u, %u, %u), (%u, %u, %u), %u>>>", p->gridDimX, p->gridDimY,
			p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ, p->sharedMemBytes);
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
		fprintf(file, "\\ncooperative %d, priority %d", work->task->attributes.cooperative,
			work->task->attributes.priority);
}

/* The address of an end, or its array. */
static const void *end_of(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array)
{
	if (type == CU_MEMORYTYPE_ARRAY)
		return array;
	return type == CU_MEMORYTYPE_HOST ? host : (const void *)(uintptr_t)device;
}

static void print_copy(FILE *file, const CUDA_MEMCPY3D *p, unsigned flags)
{
	/* Of what was captured, the ends may not be known. */
	if (p->srcMemoryType && p->dstMemoryType)
		fprintf(file, "\\n%s to %s", ends[p->srcMemoryType], ends[p->dstMemoryType]);
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
		fprintf(file, "\\nfrom %p to %p\\n%zu x %zu x %zu",
			end_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray),
			end_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray),
			p->WidthInBytes, p->Height, p->Depth);
}

static void print_fill(FILE *file, const CUDA_MEMSET_NODE_PARAMS_v2 *p, unsigned flags)
{
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
		fprintf(file, "\\n%#llx = %#x\\n%zu x %zu of %u bytes", p->dst, p->value, p->width,
			p->height, p->elementSize);
}

static void print_params(FILE *file, const struct fgv_work *work, unsigned flags)
{
	const CUgraphNodeParams *params = &work->task->params;

	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		print_kernel(file, work, flags);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		print_copy(file, &params->memcpy.copyParams, flags);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		print_fill(file, &params->memset, flags);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
			fprintf(file, "\\n%p(%p)", (void *)params->host.fn, params->host.userData);
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
			fprintf(file, "\\n%p", (void *)params->eventRecord.event);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
			fprintf(file, "\\n%p", (void *)params->eventWait.event);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		fprintf(file, "\\n%zu bytes at %#llx", params->alloc.bytesize, params->alloc.dptr);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		fprintf(file, "\\n%#llx", params->free.dptr);
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
			kinds[fgv_node_type(each)]);
		if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
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

CUresult fgv_graph_print_dot(CUgraph name, const char *path, unsigned flags)
{
	const struct fgv_graph *graph = fgv_graph_of(name);
	FILE *file;
	bool failed;

	if (!graph || !path || (flags & ~(unsigned)KNOWN_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "we");
	if (!file)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fputs("digraph dot {\n", file);
	print_graph(file, graph, flags);
	fputs("}\n", file);
	failed = ferror(file);
	return fclose(file) || failed ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
