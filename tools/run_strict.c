/*
 * fairgv-run --strict: a program that cannot reach a GPU but through FairGV. It gets a mount
 * namespace of its own whose /dev has everything but NVIDIA's devices. Without root that takes
 * a user namespace as well, in which the user stays who it is; the mounts are then locked for
 * whatever namespaces the program makes itself.
 *
 * Root could mount and make devices again: --strict keeps its programs from opening them by
 * mistake, not on purpose.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/log.h"
#include "tools/run.h"

#define DEV	    "/dev"
#define LEFT_OUT    "nvidia"
#define OWN_OPTIONS "mode=755,size=64k,nr_inodes=4096"

static int fail(const char *what)
{
	int error = errno;

	fgv_error("--strict: %s: %s", what, strerror(error));
	return -error;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);
	int ret = fd < 0 ? -errno : 0;

	if (!ret && write(fd, text, (size_t)len) != len)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	errno = -ret;
	return ret;
}

/* A user namespace in which the user and the group are what they were. */
static int enter_user_namespace(uid_t uid, gid_t gid)
{
	char map[64];

	if (unshare(CLONE_NEWUSER))
		return fail("no user namespace can be made here");
	snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	if (write_file("/proc/self/uid_map", map))
		return fail("/proc/self/uid_map");
	if (write_file("/proc/self/setgroups", "deny"))
		return fail("/proc/self/setgroups");
	snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	if (write_file("/proc/self/gid_map", map))
		return fail("/proc/self/gid_map");
	return 0;
}

/* What leads back after chroot(). */
struct place {
	int root;
	int folder;
};

static int find_place(struct place *place)
{
	place->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	place->folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return place->root < 0 || place->folder < 0 ? -errno : 0;
}

static void forget_place(const struct place *place)
{
	if (place->root >= 0)
		close(place->root);
	if (place->folder >= 0)
		close(place->folder);
}

static int return_to(const struct place *place)
{
	if (fchdir(place->root) || chroot(".") || fchdir(place->folder))
		return -errno;
	return 0;
}

/* To the root of all mounts: from a folder outside the root there is nothing to stop at. */
static int leave_root(const struct place *place)
{
	struct stat here, above;

	if (chroot(DEV) || fchdir(place->root))
		return -errno;
	do {
		if (stat(".", &here) || chdir("..") || stat(".", &above))
			return -errno;
	} while (here.st_ino != above.st_ino || here.st_dev != above.st_dev);
	return chroot(".") ? -errno : 0;
}

/*
 * Where root is in a chroot the root is no mount, and the one that it lies in can be had by its
 * own root only.
 */
static int be_private_outside(void)
{
	struct place place;
	int ret = find_place(&place), back;

	if (!ret) {
		ret = leave_root(&place);
		if (!ret && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			ret = -errno;
		back = return_to(&place);
		ret = ret ? ret : back;
	}
	forget_place(&place);
	errno = -ret;
	return ret;
}

/* What is mounted here is mounted nowhere else. */
static int be_private(void)
{
	if (!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 0;
	return errno == EINVAL ? be_private_outside() : -errno;
}

static int enter_namespaces(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int ret = uid ? enter_user_namespace(uid, gid) : 0;

	if (ret)
		return ret;
	if (unshare(CLONE_NEWNS))
		return fail("no mount namespace can be made here");
	if (be_private())
		return fail("/");
	return 0;
}

/* A link as it is. */
static int copy_link(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(from, name, target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	target[len] = '\0';
	return symlinkat(target, to, name) ? -errno : 0;
}

/* The same file or folder, with what is mounted in it, at the same name in the new /dev. */
static int bind(int from, int to, const char *name, bool is_folder)
{
	char source[64], target[64];
	int ret = 0, at, made;

	if (is_folder ? mkdirat(to, name, 0755) : 0)
		return -errno;
	made = openat(to, name,
		      is_folder ? O_PATH | O_CLOEXEC : O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
		      0600);
	at = openat(from, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	if (made < 0 || at < 0)
		ret = -errno;
	snprintf(source, sizeof(source), "/proc/self/fd/%d", at);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", made);
	if (!ret && mount(source, target, NULL, MS_BIND | MS_REC, NULL))
		ret = -errno;
	if (made >= 0)
		close(made);
	if (at >= 0)
		close(at);
	return ret;
}

static int copy_entry(int from, int to, const char *name)
{
	struct stat status;

	if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno; /* gone meanwhile */
	if (S_ISLNK(status.st_mode))
		return copy_link(from, to, name);
	return bind(from, to, name, S_ISDIR(status.st_mode));
}

static bool is_left_out(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..") ||
	       !strncmp(name, LEFT_OUT, sizeof(LEFT_OUT) - 1);
}

/* Everything of the old /dev but what is left out. */
static int fill(DIR *old, int made)
{
	const struct dirent *entry;

	while ((entry = readdir(old))) {
		int ret = is_left_out(entry->d_name) ? 0
						     : copy_entry(dirfd(old), made, entry->d_name);

		if (ret) {
			errno = -ret;
			return fail(entry->d_name);
		}
	}
	return 0;
}

static int replace_dev(void)
{
	DIR *old = opendir(DEV);
	int ret = 0, made;

	if (!old)
		return fail(DEV);
	if (mount("tmpfs", DEV, "tmpfs", MS_NOSUID | MS_NOEXEC, OWN_OPTIONS))
		ret = fail("a /dev of its own");
	made = ret ? -1 : open(DEV, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!ret)
		ret = made < 0 ? fail(DEV) : fill(old, made);
	if (!ret && mount(NULL, DEV, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL))
		ret = fail("a /dev that cannot be written");
	if (made >= 0)
		close(made);
	closedir(old);
	return ret;
}

int fgv_run_strict(void)
{
	int ret = enter_namespaces();

	return ret ? ret : replace_dev();
}
