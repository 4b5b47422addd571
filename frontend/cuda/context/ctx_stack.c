/*
 * The stack holds handles, so that a context may be destroyed while it is on any. Few programs nest
 * more than a handful; a deeper stack is given back at the thread's end.
 */
#include "frontend/cuda/context/ctx_stack.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/client/thread.h"

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

CUresult fgv_ctx_stack_push(CUcontext handle)
{
	CUresult res = CUDA_SUCCESS;

	if (stack.depth == (stack.more ? stack.room : DEPTH))
		res = grow();
	if (!res)
		entries()[stack.depth++] = handle;
	return res;
}

bool fgv_ctx_stack_pop(void)
{
	if (!stack.depth)
		return false;
	stack.depth--;
	return true;
}

void fgv_ctx_stack_replace(CUcontext handle)
{
	entries()[stack.depth - 1] = handle;
}
