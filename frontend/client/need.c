/* What the program needs; see need.h. */
#include "frontend/client/need.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/client/connect.h"

#define WARP	    32
#define THREADS_MAX 1024 /* of a block */

/* Digits at *@at, which then is behind them. */
static bool read_number(const char **at, uint64_t max, uint64_t *value)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*value = strtoull(*at, &end, 10);
	*at = end;
	return !errno && *value <= max;
}

static bool read_size(const char **at, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *unit;

	if (!read_number(at, UINT64_MAX >> 40, bytes))
		return false;
	unit = **at ? strchr(units, **at) : NULL;
	if (unit) {
		*bytes <<= 10 * (unit - units + 1);
		(*at)++;
	}
	return true;
}

static bool read_shape(const char **at, struct fgv_msg_need *need)
{
	uint64_t threads;

	if (!read_number(at, UINT32_MAX, &need->blocks) || *(*at)++ != 'x' ||
	    !read_number(at, THREADS_MAX, &threads))
		return false;
	need->block_warps = (uint32_t)(threads + WARP - 1) / WARP;
	return true;
}

CUresult fgv_need_read(const struct fgv_failure *failure, struct fgv_msg_need *need)
{
	const char *text = getenv("FAIRGV_NEED"), *at = text;

	*need = (struct fgv_msg_need){0};
	if (!text || !*text)
		return CUDA_SUCCESS;
	if (read_size(&at, &need->memory_bytes) &&
	    (!*at || (*at++ == ':' && read_shape(&at, need) && !*at)))
		return CUDA_SUCCESS;
	return fgv_connect_fail(failure, CUDA_ERROR_INVALID_VALUE,
				"FAIRGV_NEED is neither a size, as \"2G\", nor that with blocks "
				"and threads, as \"2G:1024x256\"");
}
