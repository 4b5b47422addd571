/*
 * Threads in /proc; see cosched_proc.h.
 */
#define _GNU_SOURCE
#include "backend/sched/cosched_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A process with more threads, in a pid namespace of its own, is not searched to the end: a
 * look takes some 35 us.
 */
#define LOOKS_MAX 256

#define NAME_LEN 32

int fgv_cosched_proc_open(pid_t pid)
{
	char path[NAME_LEN];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool fgv_cosched_proc_has(int folder, pid_t thread)
{
	char name[NAME_LEN];

	snprintf(name, sizeof(name), "%d", (int)thread);
	return !faccessat(folder, name, F_OK, 0);
}

/* The file has the time that it ran, the time that it waited, and how often it did. */
bool fgv_cosched_proc_waited(int folder, pid_t thread, uint64_t *waited_ns)
{
	char path[NAME_LEN], text[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%d/schedstat", (int)thread);
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return sscanf(text, "%*u %" SCNu64, waited_ns) == 1;
}

/* The number behind @key in @line, the last one if there are more; false: it has no such key. */
static bool read_last(const char *line, const char *key, long *number)
{
	size_t len = strlen(key);
	const char *last;

	if (strncmp(line, key, len) != 0)
		return false;
	last = strrchr(line + len, '\t');
	*number = strtol(last ? last : line + len, NULL, 10);
	return true;
}

/* Whether the thread whose status is in @file calls itself @called and runs as @uid. */
static bool is_it(FILE *file, pid_t called, uid_t uid)
{
	long own_id = 0, user = -1;
	char *line = NULL;
	size_t room = 0;
	unsigned real;

	while (getline(&line, &room, file) > 0 && !read_last(line, "NSpid:", &own_id)) {
		if (sscanf(line, "Uid: %u", &real) == 1)
			user = (long)real;
	}
	free(line);
	return own_id == called && user == (long)uid;
}

static bool is_called(int folder, pid_t thread, pid_t called, uid_t uid)
{
	char path[NAME_LEN];
	FILE *file;
	bool found;
	int fd;

	snprintf(path, sizeof(path), "%d/status", (int)thread);
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return false;
	}
	found = is_it(file, called, uid);
	fclose(file);
	return found;
}

/* Looks at all threads. */
static pid_t search(int folder, pid_t called, uid_t uid)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *threads = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	pid_t found = 0;

	if (!threads) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (int i = 0; i < LOOKS_MAX && !found && (entry = readdir(threads)); i++) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread > 0 && is_called(folder, thread, called, uid))
			found = thread;
	}
	closedir(threads);
	return found;
}

pid_t fgv_cosched_proc_find(int folder, pid_t process, pid_t called, uid_t uid)
{
	if (is_called(folder, called, called, uid))
		return called;
	/* In the daemon's own pid namespace all are called here what they call themselves. */
	return is_called(folder, process, process, uid) ? 0 : search(folder, called, uid);
}
