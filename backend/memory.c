/*
 * Shared memory; see memory.h.
 */
#define _GNU_SOURCE
#include "backend/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A descriptor of it that is only read can't be opened anew for more by another user. */
static int create(const char *name, uint64_t len, size_t map_len, int last_seals, void **base)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;
	int ret;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, S_IRUSR | S_IWUSR) || ftruncate(fd, (off_t)len))
		goto close_fd;
	memory = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		goto close_fd;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | last_seals)) {
		ret = -errno;
		munmap(memory, map_len);
		close(fd);
		return ret;
	}
	*base = memory;
	return fd;
close_fd:
	ret = -errno;
	close(fd);
	return ret;
}

int fgv_memory_create_large(const char *name, uint64_t len, size_t map_len, void **base)
{
	return create(name, len, map_len, F_SEAL_SEAL, base);
}

int fgv_memory_create(const char *name, size_t len, void **base)
{
	return create(name, len, len, F_SEAL_SEAL, base);
}

int fgv_memory_create_readable(const char *name, size_t len, void **base)
{
	return create(name, len, len, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL, base);
}

int fgv_memory_reopen_readable(int fd)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	return again < 0 ? -errno : again;
}
