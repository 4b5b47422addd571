/*
 * Control groups, by their files; see cgroup.h.
 */
#include "backend/guard/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a period of 100 ms, which is the kernel's own. */
#define PERIOD_US 100000

__attribute__((format(printf, 2, 3))) static int put(const char *path, const char *format, ...)
{
	char text[64];
	va_list args;
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int len, ret = 0;

	if (fd < 0)
		return -errno;
	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(fd, text, (size_t)len) != len)
		ret = -errno;
	close(fd);
	return ret;
}

static int name_file(char *path, const char *group, const char *file)
{
	return snprintf(path, PATH_MAX, "%s/%s", group, file) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Where control groups of version 2 are mounted; "" where they are not. */
static void find_mount(char *mount, size_t len)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[2048];

	mount[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		const char *kind = strstr(line, " - ");

		if (kind && !strncmp(kind, " - cgroup2 ", 11) &&
		    sscanf(line, "%*d %*d %*s %*s %2047s", at) == 1)
			snprintf(mount, len, "%s", at);
	}
	if (file)
		fclose(file);
}

/* The group that this process is in, below the mount. */
static void find_own(char *own, size_t len)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4096];

	own[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::", 3))
			snprintf(own, len, "%s", line + 3);
	}
	if (file)
		fclose(file);
}

/* Whether this process is the only one in @group. */
static bool is_alone(const char *group)
{
	char path[PATH_MAX], line[32];
	bool alone = true;
	FILE *file;

	if (name_file(path, group, "cgroup.procs"))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		alone &= atoi(line) == getpid();
	fclose(file);
	return alone;
}

/* Its own group, if that was given to it: a service's with Delegate=yes, or a container's. */
static int choose_own(char *base, size_t len, char *why, size_t why_len)
{
	char mount[PATH_MAX], own[PATH_MAX];

	find_mount(mount, sizeof(mount));
	find_own(own, sizeof(own));
	if (!*mount || !*own) {
		snprintf(why, why_len, "there are no control groups of version 2");
		return -ENOENT;
	}
	if (snprintf(base, len, "%s%s", mount, strcmp(own, "/") ? own : "") >= (int)len)
		return -ENAMETOOLONG;
	if (access(base, W_OK)) {
		snprintf(why, why_len, "%s: %s", base, strerror(errno));
		return -errno;
	}
	if (!is_alone(base)) {
		snprintf(why, why_len, "%s is not this daemon's alone", base);
		return -EBUSY;
	}
	return 0;
}

/* A group with processes of its own can't hand controllers on: so the daemon goes below. */
static int prepare(const char *base, bool move, char *why, size_t why_len)
{
	static const char *const controllers[] = {"+memory", "+pids", "+cpu"};
	char path[PATH_MAX];
	int ret = 0;

	if (move) {
		ret = name_file(path, base, "daemon");
		if (!ret && mkdir(path, 0755) && errno != EEXIST)
			ret = -errno;
		if (!ret)
			ret = name_file(path, base, "daemon/cgroup.procs");
		if (!ret)
			ret = put(path, "0");
	}
	if (!ret)
		ret = name_file(path, base, "cgroup.subtree_control");
	for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers) && !ret; i++) {
		ret = put(path, "%s", controllers[i]);
		if (ret)
			snprintf(why, why_len, "%s: %s: %s", path, controllers[i], strerror(-ret));
	}
	if (ret && !*why)
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
	return ret;
}

/* Leaves @base as it was. */
static void move_back(const char *base)
{
	char path[PATH_MAX];

	if (!name_file(path, base, "cgroup.procs"))
		put(path, "0");
	if (!name_file(path, base, "daemon"))
		rmdir(path);
}

int fgv_cgroups_init(struct fgv_cgroups *cgroups, const char *choice, char *why, size_t why_len)
{
	bool own = !strcmp(choice, "auto");
	int ret = 0;

	*cgroups = (struct fgv_cgroups){0};
	why[0] = '\0';
	if (!strcmp(choice, "off"))
		return 0;
	if (own) {
		ret = choose_own(cgroups->base, sizeof(cgroups->base), why, why_len);
	} else {
		snprintf(cgroups->base, sizeof(cgroups->base), "%s", choice);
		cgroups->made = !mkdir(choice, 0755);
		if (!cgroups->made && errno != EEXIST) {
			ret = -errno;
			snprintf(why, why_len, "%s: %s", choice, strerror(errno));
		}
	}
	if (!ret)
		ret = prepare(cgroups->base, own, why, why_len);
	if (ret && cgroups->made)
		rmdir(cgroups->base);
	if (ret && own && *cgroups->base)
		move_back(cgroups->base);
	if (ret)
		*cgroups = (struct fgv_cgroups){0};
	return own || !ret ? 0 : -EINVAL;
}

static int name_group(const struct fgv_cgroups *cgroups, const char *vm, char *group)
{
	return snprintf(group, PATH_MAX, "%s/vm-%s", cgroups->base, vm) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

/* "max" where there is no limit, as one may stay from a daemon before. */
static int put_limits(const char *group, const struct fgv_config_vm *vm, uint64_t threads)
{
	char path[PATH_MAX];
	int ret = name_file(path, group, "memory.max");

	if (!ret && vm->host_memory_bytes == FGV_CONFIG_NO_LIMIT)
		ret = put(path, "max");
	else if (!ret)
		ret = put(path, "%" PRIu64, vm->host_memory_bytes);
	if (!ret)
		ret = name_file(path, group, "pids.max");
	if (!ret)
		ret = put(path, "%" PRIu64, threads);
	if (!ret)
		ret = name_file(path, group, "cpu.max");
	if (!ret && vm->processors)
		ret = put(path, "%" PRIu64 " %d", vm->processors * PERIOD_US, PERIOD_US);
	else if (!ret)
		ret = put(path, "max %d", PERIOD_US);
	return ret;
}

int fgv_cgroups_open(const struct fgv_cgroups *cgroups, const struct fgv_config_vm *vm,
		     uint64_t threads, char *why, size_t why_len)
{
	char group[PATH_MAX] = "/dev/null", path[PATH_MAX] = "/dev/null";
	int ret = 0, fd = -1;

	if (*cgroups->base) {
		ret = name_group(cgroups, vm->name, group);
		if (!ret && mkdir(group, 0755) && errno != EEXIST)
			ret = -errno;
		if (!ret)
			ret = put_limits(group, vm, threads);
		if (!ret)
			ret = name_file(path, group, "cgroup.procs");
	}
	if (!ret) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		ret = fd < 0 ? -errno : 0;
	}
	if (ret)
		snprintf(why, why_len, "%s: %s", group, strerror(-ret));
	return ret ? ret : fd;
}

int fgv_cgroups_limit(const struct fgv_cgroups *cgroups, const struct fgv_config_vm *vm,
		      uint64_t threads)
{
	char group[PATH_MAX];
	int ret;

	if (!*cgroups->base)
		return 0;
	ret = name_group(cgroups, vm->name, group);
	return ret ? ret : put_limits(group, vm, threads);
}

void fgv_cgroups_close(const struct fgv_cgroups *cgroups, const char *name)
{
	char group[PATH_MAX];

	if (*cgroups->base && !name_group(cgroups, name, group))
		rmdir(group);
}

/* The daemon's own group goes when the daemon has gone, by whoever gave it. */
void fgv_cgroups_fini(struct fgv_cgroups *cgroups)
{
	if (!*cgroups->base)
		return;
	if (cgroups->made)
		rmdir(cgroups->base);
	cgroups->base[0] = '\0';
}
