/*
 * The seals are what makes it one: once they are on, no mapping can be written and no descriptor
 * can shorten it.
 */
#define _GNU_SOURCE
#include "backend/vgpu/images/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/wire.h"
#include "common/util.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* What blocks of a file are counted in, whatever they are. */
#define BLOCK_BYTES 512

static int fill(int fd, const void *image, uint64_t len)
{
	void *base;

	if (ftruncate(fd, (off_t)(len + 1)) < 0)
		return -errno;
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	memcpy(base, image, len);
	munmap(base, len);
	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

int fgv_image_file_create(const void *image, uint64_t len)
{
	int fd = memfd_create("fairgv-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	err = fill(fd, image, len);
	if (err < 0)
		close(fd);
	return err < 0 ? err : fd;
}

int fgv_image_file_check(int fd, uint64_t len)
{
	struct stat file;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &file) < 0 ||
	    (uint64_t)file.st_size != len + 1)
		return -EBADF;
	/* Behind its end there may be memory, too, that nobody sees. */
	if ((uint64_t)file.st_blocks * BLOCK_BYTES > fgv_align_up(len + 1, FGV_PAGE_BYTES))
		return -EBADF;
	return 0;
}

const char *fgv_image_file_map(int fd, uint64_t len)
{
	const char *base;

	if (fgv_image_file_check(fd, len) < 0)
		return NULL;
	base = mmap(NULL, len + 1, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED)
		return NULL;
	if (base[len] == '\0')
		return base;
	munmap((void *)base, len + 1);
	return NULL;
}
