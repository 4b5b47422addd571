/* Device memory as the dispatcher sees it: allocation, registration, copies and fills. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/device/internal.h"

_Static_assert(SOFTGPU_GRANULE == UNIT_BYTES, "what is promised");

CUresult softgpu_mem_alloc(struct softgpu *gpu, uint64_t bytes, uint64_t *address)
{
	CUresult result = fgv_queue_fault(gpu);

	if (result != CUDA_SUCCESS)
		return result;
	result = fgv_softgpu_memory_alloc(&gpu->memory, bytes, UNIT_BYTES, address);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && gpu->last_free) {
		fgv_queue_wait_frees(gpu);
		result = fgv_softgpu_memory_alloc(&gpu->memory, bytes, UNIT_BYTES, address);
	}
	return result;
}

CUresult softgpu_mem_free(struct softgpu *gpu, uint64_t address)
{
	CUresult fault = fgv_queue_fault(gpu);
	struct command *command;
	CUresult result;

	if (fault != CUDA_SUCCESS)
		return fault;
	command = fgv_queue_new(COMMAND_FREE, 0);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = fgv_softgpu_memory_retire(&gpu->memory, address);
	if (result != CUDA_SUCCESS) {
		free(command);
		return result;
	}
	command->address = address;
	gpu->last_free = fgv_queue_submit_last(gpu, command);
	return CUDA_SUCCESS;
}

CUresult softgpu_host_register(struct softgpu *gpu, void *base, size_t bytes)
{
	CUresult fault = fgv_queue_fault(gpu);

	if (fault != CUDA_SUCCESS)
		return fault;
	return fgv_softgpu_host_add(&gpu->memory, (uint64_t)(uintptr_t)base, bytes, false);
}

/* Without memory for the command it waits instead. */
CUresult softgpu_host_retire(struct softgpu *gpu, void *base)
{
	struct command *command = fgv_queue_new(COMMAND_HIDE, 0);
	uint64_t address = (uint64_t)(uintptr_t)base;

	if (!fgv_softgpu_host_set(&gpu->memory, address, RANGE_RETIRED)) {
		free(command);
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	}
	if (!command) {
		fgv_queue_wait_all(gpu);
		fgv_softgpu_host_set(&gpu->memory, address, RANGE_HIDDEN);
		return CUDA_SUCCESS;
	}
	command->address = address;
	fgv_queue_submit_last(gpu, command);
	return CUDA_SUCCESS;
}

CUresult softgpu_host_unregister(struct softgpu *gpu, void *base)
{
	fgv_queue_wait_fault(gpu);
	return fgv_softgpu_host_remove(&gpu->memory, (uint64_t)(uintptr_t)base);
}

/*
 * What computes later finds what was queued last in @stream, in whatever stream it runs: programs
 * take a cudaMemcpy() that has returned for done, and a cudaMemset(), and so it is on NVIDIA's GPUs
 * as a rule.
 */
static void come_first(struct softgpu *gpu, struct softgpu_stream *stream)
{
	fgv_point_join(&gpu->kept, stream ? &stream->last : &gpu->default_stream.last);
}

/* With @keep the command carries a copy of the source, so that the call may return at once. */
static CUresult queue_copy(struct softgpu *gpu, void *dst, const void *src, size_t bytes, bool keep,
			   bool is_peers, unsigned queue, struct softgpu_stream *stream)
{
	CUresult fault = fgv_queue_fault(gpu);
	struct command *command;

	if (fault != CUDA_SUCCESS || !bytes)
		return fault;
	command = fgv_queue_new(COMMAND_COPY, keep ? bytes : 0);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->copy.dst = dst;
	command->copy.src = keep ? memcpy(command->param, src, bytes) : src;
	command->copy.bytes = bytes;
	command->copy.is_peers = is_peers;
	fgv_queue_submit(gpu, command, queue, stream);
	if (keep)
		come_first(gpu, stream);
	return CUDA_SUCCESS;
}

static bool inside(struct softgpu *gpu, uint64_t address, size_t bytes)
{
	return !bytes || fgv_softgpu_memory_inside(&gpu->memory, address, bytes);
}

CUresult softgpu_copy_htod(struct softgpu *gpu, uint64_t dst, const void *src, size_t bytes,
			   struct softgpu_stream *stream)
{
	if (!inside(gpu, dst, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return queue_copy(gpu, (void *)(uintptr_t)dst, src, bytes, false, false, QUEUE_IN, stream);
}

CUresult softgpu_copy_htod_inline(struct softgpu *gpu, uint64_t dst, const void *src, size_t bytes,
				  struct softgpu_stream *stream)
{
	if (!inside(gpu, dst, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return queue_copy(gpu, (void *)(uintptr_t)dst, src, bytes, true, false, QUEUE_COMPUTE,
			  stream);
}

CUresult softgpu_copy_dtoh(struct softgpu *gpu, void *dst, uint64_t src, size_t bytes,
			   struct softgpu_stream *stream)
{
	if (!inside(gpu, src, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return queue_copy(gpu, dst, (const void *)(uintptr_t)src, bytes, false, false, QUEUE_OUT,
			  stream);
}

CUresult softgpu_copy_dtod(struct softgpu *gpu, uint64_t dst, uint64_t src, size_t bytes,
			   struct softgpu_stream *stream)
{
	bool is_peers[2] = {false, false};

	if (bytes && (!fgv_softgpu_memory_reaches(&gpu->memory, dst, bytes, &is_peers[0]) ||
		      !fgv_softgpu_memory_reaches(&gpu->memory, src, bytes, &is_peers[1])))
		return CUDA_ERROR_INVALID_VALUE;
	return queue_copy(gpu, (void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes, false,
			  is_peers[0] || is_peers[1], fgv_queue_for_copy(gpu, dst, src), stream);
}

/* Bytes from the first to the last that a fill touches; false where that overflows. */
static bool fill_span(size_t pitch, unsigned width, size_t row_elements, size_t rows, size_t *span)
{
	size_t row;

	return !__builtin_mul_overflow(row_elements, (size_t)width, &row) &&
	       !__builtin_mul_overflow(rows - 1, pitch, span) &&
	       !__builtin_add_overflow(*span, row, span) && (rows == 1 || pitch >= row);
}

CUresult softgpu_fill(struct softgpu *gpu, uint64_t dst, size_t pitch, uint32_t value,
		      unsigned width, size_t row_elements, size_t rows,
		      struct softgpu_stream *stream)
{
	CUresult fault = fgv_queue_fault(gpu);
	struct command *command;
	size_t span;

	if (fault != CUDA_SUCCESS)
		return fault;
	if ((width != 1 && width != 2 && width != 4) || dst % width || pitch % width)
		return CUDA_ERROR_INVALID_VALUE;
	if (!row_elements || !rows)
		return CUDA_SUCCESS;
	if (!fill_span(pitch, width, row_elements, rows, &span) || !inside(gpu, dst, span))
		return CUDA_ERROR_INVALID_VALUE;
	command = fgv_queue_new(COMMAND_FILL, 0);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->fill.dst = (char *)(uintptr_t)dst;
	command->fill.pitch = pitch;
	command->fill.value = value;
	command->fill.width = width;
	command->fill.row_elements = row_elements;
	command->fill.rows = rows;
	fgv_queue_submit(gpu, command, QUEUE_COMPUTE, stream);
	if (!stream)
		come_first(gpu, stream);
	return CUDA_SUCCESS;
}
