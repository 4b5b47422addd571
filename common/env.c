#define _GNU_SOURCE
#include "common/env.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

unsigned fgv_env_processors(void)
{
	cpu_set_t set;
	long count;

	if (!sched_getaffinity(0, sizeof(set), &set))
		return (unsigned)CPU_COUNT(&set);
	/* More than the set has room for. */
	count = sysconf(_SC_NPROCESSORS_ONLN);
	return count > 0 ? (unsigned)count : 1;
}

uint64_t fgv_env_number(const char *variable, uint64_t max, uint64_t otherwise)
{
	const char *text = getenv(variable);
	unsigned long long number;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return otherwise;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number > max)
		return otherwise;
	return number;
}
