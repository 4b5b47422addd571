/*
 * Shared memory; see memory.h.
 */
#define _GNU_SOURCE
#include "backend/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int fgv_memory_create_large(const char *name, uint64_t len, size_t map_len, void **base)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;
	int ret;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)len) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto close_fd;
	memory = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		goto close_fd;
	*base = memory;
	return fd;
close_fd:
	ret = -errno;
	close(fd);
	return ret;
}

int fgv_memory_create(const char *name, size_t len, void **base)
{
	return fgv_memory_create_large(name, len, len, base);
}
