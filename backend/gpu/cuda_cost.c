/*
 * What things take of the GPU's memory. The driver is asked where it can tell beforehand; the rest
 * was measured, on an H200 with driver 580, by the process's figure of NVML (tests/gpu/hostile
 * measures it anew).
 */
#include "backend/gpu/cuda_internal.h"

#include "backend/gpu/image_cost.h"
#include "common/util.h"

/* The driver takes memory in blocks, of which small allocations share one. */
#define BLOCK_BYTES (2ull * 1024 * 1024)

/* 4,096 streams took 2.2 GiB. */
#define STREAM_BYTES (576u * 1024)
#define EVENT_BYTES  256u
/* A header in a table of the context's. */
#define TEXTURE_BYTES 64u
/*
 * Of a graph, the commands of its launch; its requests' arguments are charged besides. What the
 * documentation leads one to expect, for tests/gpu/hostile to measure.
 */
#define GRAPH_BYTES (64u * 1024)
#define NODE_BYTES  2048u

/*
 * Where the driver does not tell of an array: rows of so many bytes, and so many of them in each
 * layer or slice. An array of 16,384 layers of 512 texels took 512 times what its texels do.
 */
#define ROW_BYTES  512u
#define LAYER_ROWS 512u

static uint64_t attribute(struct cuda *cuda, CUdevice_attribute attribute)
{
	int value = 0;

	if (cuda->driver->device_attribute(&value, attribute, cuda->device) != CUDA_SUCCESS)
		return 0;
	return value < 0 ? 0 : (uint64_t)value;
}

void fgv_cuda_costs(struct fgv_gpu *gpu, struct fgv_gpu_costs *costs)
{
	struct cuda *cuda = cuda_of(gpu);

	*costs = (struct fgv_gpu_costs){
		.granule = BLOCK_BYTES,
		.stream = STREAM_BYTES,
		.event = EVENT_BYTES,
		.texture = TEXTURE_BYTES,
		.graph = GRAPH_BYTES,
		.graph_node = NODE_BYTES,
		.threads = attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
			   attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
	};
}

/* --- Arrays ------------------------------------------------------------------ */

/* An array whose memory comes later takes none, and the driver says how much that would be. */
static CUresult ask_plain(struct cuda *cuda, const CUDA_ARRAY3D_DESCRIPTOR *deferred,
			  CUDA_ARRAY_MEMORY_REQUIREMENTS *needs)
{
	CUarray array;
	CUresult status = cuda->driver->array_create(&array, deferred);

	if (status != CUDA_SUCCESS)
		return status;
	status = cuda->driver->array_requirements(needs, array, cuda->device);
	cuda->driver->array_destroy(array);
	return status;
}

static CUresult ask_mipmapped(struct cuda *cuda, const CUDA_ARRAY3D_DESCRIPTOR *deferred,
			      unsigned levels, CUDA_ARRAY_MEMORY_REQUIREMENTS *needs)
{
	CUmipmappedArray array;
	CUresult status = cuda->driver->mipmapped_create(&array, deferred, levels);

	if (status != CUDA_SUCCESS)
		return status;
	status = cuda->driver->mipmapped_requirements(needs, array, cuda->device);
	cuda->driver->mipmapped_destroy(array);
	return status;
}

static CUresult ask(struct cuda *cuda, const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels,
		    uint64_t *bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR deferred = *wanted;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
	CUresult status;

	deferred.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
	if (levels)
		status = ask_mipmapped(cuda, &deferred, levels, &needs);
	else
		status = ask_plain(cuda, &deferred, &needs);
	if (status == CUDA_SUCCESS && !needs.size)
		status = CUDA_ERROR_NOT_SUPPORTED;
	if (status == CUDA_SUCCESS)
		*bytes = fgv_align_up(needs.size, fgv_max_u64(needs.alignment, 1));
	return status;
}

/* With twice the first level there is room for all levels below it. */
static uint64_t padded_bytes(const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels,
			     uint64_t texel_bytes)
{
	uint64_t rows = fgv_max_u64(wanted->Height, 1), slices = fgv_max_u64(wanted->Depth, 1);
	uint64_t row = texel_bytes / rows / slices + 1, bytes;

	row = fgv_align_up(row, ROW_BYTES);
	rows = fgv_align_up(rows, LAYER_ROWS);
	if (__builtin_mul_overflow(row, rows, &bytes) ||
	    __builtin_mul_overflow(bytes, slices, &bytes) ||
	    __builtin_mul_overflow(bytes, levels > 1 ? 2 : 1, &bytes))
		return UINT64_MAX;
	return bytes;
}

CUresult fgv_cuda_array_cost(struct fgv_gpu *gpu, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
			     unsigned levels, uint64_t *bytes)
{
	if (ask(cuda_of(gpu), wanted, levels, bytes) != CUDA_SUCCESS)
		*bytes = padded_bytes(wanted, levels, *bytes);
	return CUDA_SUCCESS;
}

/* --- Modules ----------------------------------------------------------------- */

/* Variables of some size get blocks of their own. */
CUresult fgv_cuda_module_cost(struct fgv_gpu *gpu, const void *image, size_t len,
			      const struct fgv_gpu_placed *placed, size_t count, char *log,
			      size_t log_len, struct fgv_gpu_module_cost *cost)
{
	CUresult status = fgv_image_cost(image, len, fgv_cuda_sm(cuda_of(gpu)), placed, count, log,
					 log_len, cost);

	if (status == CUDA_SUCCESS && cost->data >= BLOCK_BYTES / 2 &&
	    cost->data <= UINT64_MAX - BLOCK_BYTES)
		cost->data = fgv_align_up(cost->data, BLOCK_BYTES);
	return status;
}
