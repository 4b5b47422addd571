/*
 * A result takes the place of its option's value; a text that of the buffer whose address the value
 * is, and how long that is, is the value of another option.
 */
#include "frontend/libcuda/jit.h"

#include <stdio.h>
#include <string.h>

#include "frontend/libcuda/driver.h"

CUresult fgv_jit_check(const struct fgv_jit *jit)
{
	if (jit->count && (!jit->options || !jit->values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < jit->count; i++) {
		if ((unsigned)jit->options[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* Where the value of @option is; NULL: it is not among them. */
static void **find(const struct fgv_jit *jit, CUjit_option option)
{
	for (unsigned i = 0; i < jit->count; i++) {
		if (jit->options[i] == option)
			return &jit->values[i];
	}
	return NULL;
}

static void write_log(const struct fgv_jit *jit, CUjit_option buffer, CUjit_option size,
		      const char *text)
{
	void **to = find(jit, buffer), **room = find(jit, size);
	size_t bytes = to && *to && room ? (unsigned)(uintptr_t)*room : 0;
	int len = 0;

	if (bytes)
		len = snprintf(*to, bytes, "%s", text);
	if (room)
		*room = (void *)(uintptr_t)((size_t)len < bytes ? (size_t)len : bytes);
}

bool fgv_jit_number(const struct fgv_jit *jit, CUjit_option option, uint32_t *value)
{
	void **found = find(jit, option);

	if (found)
		*value = (uint32_t)(uintptr_t)*found;
	return found;
}

void fgv_jit_tell(const struct fgv_jit *jit, const char *errors, const char *info)
{
	void **time = find(jit, CU_JIT_WALL_TIME);
	float none = 0;

	if (time)
		memcpy(time, &none, sizeof(none));
	write_log(jit, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info);
	write_log(jit, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, errors);
}

CUresult fgv_jit_finish(const struct fgv_jit *jit, CUresult res)
{
	const char *text = "";

	if (res)
		cuGetErrorString(res, &text);
	fgv_jit_tell(jit, text, "");
	return res;
}
