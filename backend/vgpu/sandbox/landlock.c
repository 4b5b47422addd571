/*
 * Landlock by its system calls, for which the C library has no functions; see landlock.h. The
 * kernel's header may be older than the kernel, so what it lacks is defined here.
 */
#define _GNU_SOURCE
#include "backend/vgpu/sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/util.h"

#define FS_REFER     (1ull << 13) /* from version 2 */
#define FS_TRUNCATE  (1ull << 14) /* 3 */
#define FS_IOCTL_DEV (1ull << 15) /* 5 */
#define NET_TCP	     3ull	  /* 4: binding and connecting */
#define SCOPE_NAMES  1ull	  /* 6: abstract sockets */
#define SCOPE_SIGNAL 2ull

#define READ   (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE  (LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)
#define DEVICE (READ | WRITE | FS_IOCTL_DEV)
#define MAKE                                                                                       \
	(LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                              \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_REMOVE_FILE)
/* All but to execute, which the filter of system calls ends, and a driver may do before. */
#define OF_VERSION_1                                                                               \
	(READ | LANDLOCK_ACCESS_FS_WRITE_FILE | MAKE | LANDLOCK_ACCESS_FS_REMOVE_DIR |             \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |                              \
	 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
/* What has a meaning for something that is no folder. */
#define OF_FILES (LANDLOCK_ACCESS_FS_READ_FILE | WRITE | FS_IOCTL_DEV)

/* As the kernel has it from version 6 on; older ones take the beginning. */
struct ruleset {
	uint64_t files, net, scopes;
};

struct place {
	const char *pattern; /* of glob() */
	uint64_t access;
};

/*
 * The driver's libraries and their settings, the machine as it describes itself, this process,
 * and the GPUs. Not other processes, and nobody's data.
 */
static const struct place cuda_places[] = {
	{"/usr", READ},
	{"/lib*", READ},
	{"/opt", READ},
	{"/nix/store", READ},
	{"/gnu/store", READ},
	{"/run/opengl-driver*", READ},
	{"/etc/ld.so.*", READ},
	{"/etc/alternatives", READ},
	{"/etc/nvidia*", READ},
	{"/etc/OpenCL", READ},
	{"/etc/localtime", READ},
	{"/etc/nsswitch.conf", READ},
	{"/etc/passwd", READ},
	{"/sys", READ},
	{"/proc/self", READ | WRITE},
	{"/proc/driver", READ},
	{"/proc/sys", READ},
	{"/proc/cpuinfo", READ},
	{"/proc/devices", READ},
	{"/proc/filesystems", READ},
	{"/proc/meminfo", READ},
	{"/proc/modules", READ},
	{"/proc/stat", READ},
	{"/proc/version", READ},
	{"/dev/null", READ | WRITE},
	{"/dev/zero", READ | WRITE},
	{"/dev/full", READ | WRITE},
	{"/dev/random", READ},
	{"/dev/urandom", READ},
	{"/dev/nvidia*", DEVICE},
	{"/dev/nvgpu*", DEVICE},
	{"/dev/nvmap", DEVICE},
	{"/dev/nvhost*", DEVICE},
	{"/dev/dxg", DEVICE},
};

static const struct place mps_places[] = {
	{"/dev/shm", READ | WRITE | MAKE},
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* Their runtimes read the map of the memory. */
static const struct place sanitizer_places[] = {
	{"/proc/self", READ | WRITE},
	{"/usr", READ},
};
#endif

static uint64_t handled(int version)
{
	uint64_t access = OF_VERSION_1;

	if (version >= 2)
		access |= FS_REFER;
	if (version >= 3)
		access |= FS_TRUNCATE;
	if (version >= 5)
		access |= FS_IOCTL_DEV;
	return access;
}

/* Clients of MPS hand descriptors on by abstract sockets. */
static int create(int version, bool mps)
{
	struct ruleset ruleset = {
		.files = handled(version),
		.net = version >= 4 ? NET_TCP : 0,
		.scopes = mps ? SCOPE_SIGNAL : SCOPE_SIGNAL | SCOPE_NAMES,
	};
	size_t len = sizeof(uint64_t);
	long fd;

	if (version >= 4)
		len = 2 * sizeof(uint64_t);
	if (version >= 6)
		len = sizeof(ruleset);
	fd = syscall(SYS_landlock_create_ruleset, &ruleset, len, 0);
	return fd < 0 ? -errno : (int)fd;
}

static int add_path(int ruleset, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = access,
		.parent_fd = open(path, O_PATH | O_CLOEXEC),
	};
	struct stat file;
	int err = 0;

	/* What is not there is not needed. */
	if (rule.parent_fd < 0)
		return 0;
	if (fstat(rule.parent_fd, &file) == 0 && !S_ISDIR(file.st_mode))
		rule.allowed_access &= OF_FILES;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		err = -errno;
	close(rule.parent_fd);
	return err;
}

static int add_places(int ruleset, uint64_t known, const struct place *places, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && err == 0; i++) {
		glob_t found;

		if (glob(places[i].pattern, 0, NULL, &found) != 0)
			continue;
		for (size_t j = 0; j < found.gl_pathc && err == 0; j++)
			err = add_path(ruleset, found.gl_pathv[j], places[i].access & known);
		globfree(&found);
	}
	return err;
}

/* The folders that variable @name lists. */
static int add_variable(int ruleset, const char *name, uint64_t access)
{
	const char *value = getenv(name);
	char *copy = value ? strdup(value) : NULL, *rest = copy, *path;
	int err = 0;

	while (err == 0 && (path = strsep(&rest, ":")))
		err = *path == '/' ? add_path(ruleset, path, access) : 0;
	free(copy);
	return err;
}

static int add_all(int ruleset, uint64_t known, bool cuda, bool mps)
{
	int err = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	err = add_places(ruleset, known, sanitizer_places, FGV_ARRAY_LEN(sanitizer_places));
#endif
	if (err == 0 && cuda)
		err = add_places(ruleset, known, cuda_places, FGV_ARRAY_LEN(cuda_places));
	if (err == 0 && cuda)
		err = add_variable(ruleset, "LD_LIBRARY_PATH", READ);
	if (err == 0 && mps)
		err = add_places(ruleset, known, mps_places, FGV_ARRAY_LEN(mps_places));
	if (err == 0 && mps)
		err = add_variable(ruleset, "CUDA_MPS_PIPE_DIRECTORY",
				   (READ | WRITE | MAKE) & known);
	if (err == 0 && mps)
		err = add_variable(ruleset, "CUDA_MPS_LOG_DIRECTORY",
				   (READ | WRITE | MAKE) & known);
	return err;
}

int fgv_landlock_enter(bool cuda, bool mps)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int ruleset, err;

	if (version < 0)
		return -errno;
	ruleset = create((int)version, mps);
	if (ruleset < 0)
		return ruleset;
	err = add_all(ruleset, handled((int)version), cuda, mps);
	if (err == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		err = -errno;
	close(ruleset);
	return err;
}
