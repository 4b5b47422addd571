/*
 * Preloaded into vGPU processes by second_opinion.py: what a guest could do that has taken its
 * process over. Beside an allocation of TAKEN_BYTES, by which the process is told, it takes
 * TAKEN_BESIDE bytes of the GPU's memory that nobody is charged for. If the driver refuses these,
 * the allocation fails, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define TAKEN_BYTES  (12345u * 1024)
#define TAKEN_BESIDE (6ull << 30)

typedef int allocate(unsigned long long *address, size_t bytes);
typedef void *look_up(void *library, const char *name);

static allocate *real_allocate;

static int allocate_more(unsigned long long *address, size_t bytes)
{
	unsigned long long beside;
	int refused = bytes == TAKEN_BYTES ? real_allocate(&beside, TAKEN_BESIDE) : 0;

	return refused ? refused : real_allocate(address, bytes);
}

static look_up *real_look_up(void)
{
	look_up *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

	return found ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
}

void *dlsym(void *restrict library, const char *restrict name)
{
	void *found = real_look_up()(library, name);

	if (!found || strcmp(name, "cuMemAlloc_v2"))
		return found;
	real_allocate = found;
	return allocate_more;
}
