/*
 * Each thread's stack of contexts. It holds handles, so that a context may be destroyed while it
 * is on any. Few programs nest more than a handful; a deeper stack is given back at the thread's
 * end.
 */
#include <stdlib.h>
#include <string.h>

#include "frontend/client/thread.h"
#include "frontend/cuda/context/ctx.h"

#define DEPTH 8u

struct stack {
	CUcontext first[DEPTH];
	CUcontext *more; /* all of it, where that is not enough */
	uint32_t room;	 /* of that */
	uint32_t depth;
};

static __thread struct stack stack;

static void thread_end(void)
{
	free(stack.more);
	stack = (struct stack){0};
}

static __thread struct fgv_thread_part part = {.end = thread_end};

static CUcontext *entries(void)
{
	return stack.more ? stack.more : stack.first;
}

static CUresult grow(void)
{
	uint32_t room = 2 * (stack.more ? stack.room : DEPTH);
	CUcontext *more = malloc(room * sizeof(*more));

	if (!more || fgv_thread_add(&part)) {
		free(more);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(more, entries(), stack.depth * sizeof(*more));
	free(stack.more);
	stack.more = more;
	stack.room = room;
	return CUDA_SUCCESS;
}

CUcontext fgv_ctx_top(void)
{
	return stack.depth ? entries()[stack.depth - 1] : NULL;
}

static CUresult push(CUcontext handle)
{
	CUresult res = CUDA_SUCCESS;

	if (stack.depth == (stack.more ? stack.room : DEPTH))
		res = grow();
	if (!res)
		entries()[stack.depth++] = handle;
	return res;
}

/* One that the thread may work in. */
static CUresult find_usable(CUcontext handle)
{
	struct fgv_ctx *context;
	CUresult res = handle ? fgv_ctx_find(handle, &context) : CUDA_ERROR_INVALID_CONTEXT;

	if (!res && !fgv_ctx_is_active(context) && !context->is_primary)
		res = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return res;
}

CUresult fgv_ctx_push(CUcontext handle)
{
	CUresult res = find_usable(handle);

	return res ? res : push(handle);
}

CUresult fgv_ctx_pop(CUcontext *handle)
{
	CUcontext top = fgv_ctx_top();

	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (handle)
		*handle = top;
	return CUDA_SUCCESS;
}

CUresult fgv_ctx_set(CUcontext handle)
{
	CUresult res = handle ? find_usable(handle) : CUDA_SUCCESS;

	if (res || !handle) {
		if (!res && stack.depth)
			stack.depth--;
		return res;
	}
	if (!stack.depth)
		return push(handle);
	entries()[stack.depth - 1] = handle;
	return CUDA_SUCCESS;
}
