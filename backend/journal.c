/*
 * The journal; see journal.h.
 */
#define _GNU_SOURCE
#include "backend/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/util.h"

#define BOOT_LEN 40
#define ENTRIES	 4096

/* proc(5): the 22nd field of /proc/PID/stat; the third is behind the name, which may be anything.
 */
#define START_FIELD 22
#define FIRST_FIELD 3

struct entry {
	uint64_t started; /* in clock ticks since the boot; 0: no entry */
	int32_t pid;
	uint32_t reserved;
};

struct fgv_journal_file {
	char boot[BOOT_LEN];
	struct entry entries[ENTRIES];
};

static void read_line(const char *path, char *line, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, line, len - 1);

	line[got > 0 ? got : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

static void read_boot(char boot[BOOT_LEN])
{
	memset(boot, 0, BOOT_LEN);
	read_line("/proc/sys/kernel/random/boot_id", boot, BOOT_LEN);
}

/* When process @pid started; 0: there is none. */
static uint64_t started(pid_t pid)
{
	char path[64], line[512];
	const char *field;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	read_line(path, line, sizeof(line));
	field = strrchr(line, ')');
	for (int i = FIRST_FIELD; field && i <= START_FIELD; i++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field + 1, NULL, 10) : 0;
}

/* --- Those that a killed daemon has left ------------------------------------ */

/* Sees, with the process in hand, that it is the one that was meant. False: that one has gone. */
static bool end_process(const struct entry *entry, int *pidfd)
{
	*pidfd = pidfd_open(entry->pid, 0);
	if (*pidfd < 0)
		return false;
	if (started(entry->pid) == entry->started &&
	    pidfd_send_signal(*pidfd, SIGKILL, NULL, 0) == 0)
		return true;
	close(*pidfd);
	return false;
}

static void await_end(int pidfd, uint64_t deadline_ns)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};
	uint64_t now_ns = fgv_now_ns();

	if (now_ns < deadline_ns)
		poll(&fd, 1, (int)((deadline_ns - now_ns) / FGV_NS_PER_MS) + 1);
	close(pidfd);
}

static unsigned end_all(const struct fgv_journal_file *file)
{
	int pidfds[ENTRIES];
	unsigned count = 0;
	uint64_t deadline_ns;

	for (unsigned i = 0; i < ENTRIES; i++)
		count += file->entries[i].started && file->entries[i].pid > 1 &&
			 end_process(&file->entries[i], &pidfds[count]);
	deadline_ns = fgv_now_ns() + FGV_JOURNAL_WAIT_MS * FGV_NS_PER_MS;
	for (unsigned i = 0; i < count; i++)
		await_end(pidfds[i], deadline_ns);
	return count;
}

/* --- The file --------------------------------------------------------------- */

/* This user's own, and nobody else's. */
static int check_file(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode) || stat.st_uid != geteuid() || stat.st_nlink != 1)
		return -EPERM;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return ftruncate(fd, sizeof(struct fgv_journal_file)) < 0 ? -errno : 0;
}

static int open_file(struct fgv_journal *journal)
{
	void *memory;
	int ret;

	journal->fd = open(journal->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (journal->fd < 0)
		return -errno;
	ret = check_file(journal->fd);
	if (ret)
		goto close_file;
	memory = mmap(NULL, sizeof(*journal->file), PROT_READ | PROT_WRITE, MAP_SHARED, journal->fd,
		      0);
	ret = memory == MAP_FAILED ? -errno : 0;
	if (ret)
		goto close_file;
	journal->file = memory;
	return 0;
close_file:
	close(journal->fd);
	return ret;
}

int fgv_journal_init(struct fgv_journal *journal, const char *path, unsigned *ended)
{
	char boot[BOOT_LEN];
	int ret;

	*journal = (struct fgv_journal){.path = strdup(path), .fd = -1};
	ret = journal->path ? open_file(journal) : -ENOMEM;
	if (ret) {
		free(journal->path);
		journal->path = NULL;
		return ret;
	}
	read_boot(boot);
	*ended = memcmp(journal->file->boot, boot, BOOT_LEN) == 0 ? end_all(journal->file) : 0;
	memset(journal->file, 0, sizeof(*journal->file));
	memcpy(journal->file->boot, boot, BOOT_LEN);
	return 0;
}

void fgv_journal_fini(struct fgv_journal *journal)
{
	if (!journal->file)
		return;
	unlink(journal->path);
	munmap(journal->file, sizeof(*journal->file));
	close(journal->fd);
	free(journal->path);
	*journal = (struct fgv_journal){.fd = -1};
}

static struct entry *find(struct fgv_journal *journal, uint64_t since, pid_t pid)
{
	for (unsigned i = 0; journal->file && i < ENTRIES; i++) {
		struct entry *entry = &journal->file->entries[i];

		if (entry->started == since && entry->pid == pid)
			return entry;
	}
	return NULL;
}

/* The time is stored last: an entry that is half there is none. */
void fgv_journal_add(struct fgv_journal *journal, pid_t pid)
{
	struct entry *entry = find(journal, 0, 0);

	if (!entry)
		return;
	entry->pid = pid;
	__atomic_store_n(&entry->started, started(pid), __ATOMIC_RELEASE);
}

void fgv_journal_remove(struct fgv_journal *journal, pid_t pid)
{
	for (unsigned i = 0; journal->file && i < ENTRIES; i++) {
		struct entry *entry = &journal->file->entries[i];

		if (entry->pid != pid)
			continue;
		__atomic_store_n(&entry->started, 0, __ATOMIC_RELEASE);
		entry->pid = 0;
	}
}
