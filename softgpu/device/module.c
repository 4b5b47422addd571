/* Modules, functions and launches, as the dispatcher sees them. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/device/internal.h"

/* With what it needs of the device. */
static CUresult create_program(struct softgpu *gpu, const char *const *ptx, size_t count, char *log,
			       size_t log_len, struct program **program)
{
	CUresult result =
		fgv_program_create(&gpu->memory, &gpu->programs, ptx, count, log, log_len, program);

	if (result != CUDA_SUCCESS || !(*program)->uses_heap)
		return result;
	result = fgv_softgpu_heap_need(&gpu->system.heap, &gpu->memory);
	if (result != CUDA_SUCCESS) {
		fgv_program_destroy(*program);
		*program = NULL;
	}
	return result;
}

CUresult softgpu_module_load(struct softgpu *gpu, const char *const *ptx, size_t count, char *log,
			     size_t log_len, struct softgpu_module **module)
{
	CUresult result = fgv_queue_fault(gpu);
	struct softgpu_module *m;

	if (result != CUDA_SUCCESS)
		return result;
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = create_program(gpu, ptx, count, log, log_len, &m->program);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && gpu->last_free) {
		fgv_queue_wait_frees(gpu);
		result = create_program(gpu, ptx, count, log, log_len, &m->program);
	}
	if (result == CUDA_SUCCESS)
		*module = m;
	else
		free(m);
	return result;
}

void fgv_module_destroy(struct softgpu_module *module)
{
	while (module->functions) {
		struct softgpu_function *f = module->functions;

		module->functions = f->next;
		free((void *)(uintptr_t)f->info.param_sizes);
		free(f);
	}
	fgv_program_destroy(module->program);
	free(module);
}

void softgpu_module_unload(struct softgpu *gpu, struct softgpu_module *module)
{
	struct command *command = fgv_queue_new(COMMAND_UNLOAD, 0);

	if (!command)
		return; /* lost until the process ends */
	if (module->program->data)
		fgv_softgpu_memory_retire(&gpu->memory, module->program->data);
	command->module = module;
	gpu->last_free = fgv_queue_submit_last(gpu, command);
}

uint64_t softgpu_module_bytes(const struct softgpu_module *module)
{
	return module->program->bytes;
}

static void fill_info(struct softgpu_function_info *info, const struct code *code, uint32_t *sizes)
{
	int *a = info->attributes;

	for (uint32_t i = 0; i < code->params_count; i++) {
		sizes[i] = code->params[i].bytes;
		sizes[code->params_count + i] = code->params[i].offset;
	}
	info->param_count = code->params_count;
	info->param_sizes = sizes;
	info->param_offsets = sizes + code->params_count;
	a[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] =
		code->max_threads ? (int)code->max_threads : THREADS_MAX;
	a[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)code->shared_bytes;
	a[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)code->local_bytes;
	a[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
	a[CU_FUNC_ATTRIBUTE_PTX_VERSION] = code->target;
	a[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = CAPABILITY_MAJOR * 10 + CAPABILITY_MINOR;
	a[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] =
		code->dynamic_base < SHARED_DEFAULT_MAX
			? (int)(SHARED_DEFAULT_MAX - code->dynamic_base)
			: 0;
	a[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
}

CUresult softgpu_module_function(struct softgpu_module *module, const char *name,
				 struct softgpu_function **function)
{
	const struct symbol *s =
		fgv_softgpu_map_find(&module->program->exports, name, strlen(name));
	struct softgpu_function *f;
	uint32_t *sizes;

	if (!s || s->kind != SYMBOL_FUNCTION)
		return CUDA_ERROR_NOT_FOUND;
	if (s->code->function) {
		*function = s->code->function;
		return CUDA_SUCCESS;
	}
	f = calloc(1, sizeof(*f));
	sizes = calloc(2 * s->code->params_count + 1, sizeof(*sizes));
	if (!f || !sizes) {
		free(f);
		free(sizes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	f->module = module;
	f->code = s->code;
	fill_info(&f->info, s->code, sizes);
	f->next = module->functions;
	module->functions = f;
	s->code->function = f;
	*function = f;
	return CUDA_SUCCESS;
}

CUresult softgpu_module_global(struct softgpu_module *module, const char *name, uint64_t *address,
			       size_t *bytes)
{
	const struct symbol *s =
		fgv_softgpu_map_find(&module->program->exports, name, strlen(name));

	if (!s || s->kind != SYMBOL_ADDRESS)
		return CUDA_ERROR_NOT_FOUND;
	*address = s->value;
	*bytes = s->bytes;
	return CUDA_SUCCESS;
}

void softgpu_module_kernels(const struct softgpu_module *module,
			    void (*each)(const char *name, void *arg), void *arg)
{
	const struct program *program = module->program;

	for (uint32_t i = 0; i < program->functions_count; i++) {
		if (program->functions[i]->entry)
			each(program->functions[i]->name, arg);
	}
}

const struct softgpu_function_info *softgpu_function_info(const struct softgpu_function *function)
{
	return &function->info;
}

/* The compiler's code uses the second word. */
#define WORKSPACE_BYTES 256

static CUresult check_launch(const struct softgpu *gpu, const struct code *code,
			     const uint32_t grid[3], const uint32_t block[3],
			     uint32_t dynamic_bytes)
{
	static const uint32_t grid_max[3] = {INT32_MAX, 65535, 65535};
	static const uint32_t block_max[3] = {1024, 1024, 64};
	struct room_need need;
	uint32_t threads;

	for (int i = 0; i < 3; i++) {
		if (!grid[i] || grid[i] > grid_max[i] || !block[i] || block[i] > block_max[i])
			return CUDA_ERROR_INVALID_VALUE;
		if (code->required_block[i] && block[i] != code->required_block[i])
			return CUDA_ERROR_INVALID_VALUE;
	}
	threads = block[0] * block[1] * block[2];
	if (threads > THREADS_MAX || dynamic_bytes > SHARED_MAX ||
	    code->shared_bytes > SHARED_MAX ||
	    (dynamic_bytes && code->dynamic_base + dynamic_bytes > SHARED_MAX))
		return CUDA_ERROR_INVALID_VALUE;
	if (code->max_threads && threads > code->max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	/* As a device says that has no memory for its threads' own. */
	if (!fgv_room_need(code, threads, dynamic_bytes, gpu->room_max, &need))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult launch(struct softgpu *gpu, struct softgpu_function *function,
		       const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
		       struct softgpu_stream *stream, void *const *args, uint64_t workspace)
{
	const struct code *code = function->code;
	struct command *command = fgv_queue_new(COMMAND_LAUNCH, code->param_bytes);

	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->launch.code = code;
	memcpy(command->launch.grid, grid, sizeof(command->launch.grid));
	memcpy(command->launch.block, block, sizeof(command->launch.block));
	command->launch.threads = block[0] * block[1] * block[2];
	command->launch.dynamic_bytes = shared_bytes;
	command->launch.workspace = workspace;
	for (uint32_t i = 0; i < code->params_count; i++)
		memcpy(command->param + code->params[i].offset, args[i], code->params[i].bytes);
	fgv_queue_submit(gpu, command, QUEUE_COMPUTE, stream);
	return CUDA_SUCCESS;
}

CUresult softgpu_launch(struct softgpu *gpu, struct softgpu_function *function,
			const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			struct softgpu_stream *stream, void *const *args)
{
	CUresult result = fgv_queue_fault(gpu);

	if (result == CUDA_SUCCESS)
		result = check_launch(gpu, function->code, grid, block, shared_bytes);
	if (result != CUDA_SUCCESS)
		return result;
	return launch(gpu, function, grid, block, shared_bytes, stream, args, 0);
}

/*
 * What the blocks of a grid count in when they wait for each other; it is zero at first, as all
 * memory. One for all grids: one runs at a time, and leaves it as the next may find it.
 */
static CUresult need_workspace(struct softgpu *gpu)
{
	if (gpu->grid_workspace)
		return CUDA_SUCCESS;
	return softgpu_mem_alloc(gpu, WORKSPACE_BYTES, &gpu->grid_workspace);
}

static bool has_room(const struct softgpu *gpu, const struct code *code, const uint32_t grid[3],
		     const uint32_t block[3], uint32_t dynamic_bytes)
{
	uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
	int per_processor = 0, threads_each = 0;
	unsigned processors = fgv_workers_at_once(gpu);
	struct room_need need;

	softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &per_processor);
	softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &threads_each);
	return blocks <= (uint64_t)per_processor * processors &&
	       blocks * threads <= (uint64_t)threads_each * processors &&
	       fgv_room_need(code, (uint32_t)threads, dynamic_bytes, gpu->room_max / blocks, &need);
}

CUresult softgpu_launch_cooperative(struct softgpu *gpu, struct softgpu_function *function,
				    const uint32_t grid[3], const uint32_t block[3],
				    uint32_t shared_bytes, struct softgpu_stream *stream,
				    void *const *args)
{
	CUresult result = fgv_queue_fault(gpu);

	if (result == CUDA_SUCCESS)
		result = check_launch(gpu, function->code, grid, block, shared_bytes);
	if (result == CUDA_SUCCESS && !has_room(gpu, function->code, grid, block, shared_bytes))
		result = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	if (result == CUDA_SUCCESS)
		result = need_workspace(gpu);
	if (result != CUDA_SUCCESS)
		return result;
	return launch(gpu, function, grid, block, shared_bytes, stream, args, gpu->grid_workspace);
}
