/*
 * A list of the processes that serve sessions, in a file beside the daemon's socket, which is still
 * there when the daemon was killed. Such a process ends with its daemon, by the kernel's doing; the
 * next daemon sees to it that all have, as one that was held and is not let go would wait for ever,
 * and keep its GPU memory.
 *
 * The file is shared memory, so that an entry costs no system call. It belongs to one daemon at a
 * time. A process is known by its number and when it started, on one boot of the machine.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_JOURNAL_H
#define FGV_BACKEND_JOURNAL_H

#include <stddef.h>
#include <sys/types.h>

struct fgv_journal_file;

struct fgv_journal {
	char *path;
	int fd;
	struct fgv_journal_file *file; /* NULL: there is none */
};

/*
 * Ends the processes that a file at @path has, waits for their end for FGV_JOURNAL_WAIT_MS, and
 * begins a new one. *@ended: how many there were. On failure a negative errno: -EBUSY where another
 * daemon has the file; then all other functions do nothing.
 */
int fgv_journal_init(struct fgv_journal *journal, const char *path, unsigned *ended);
/* Removes the file. */
void fgv_journal_fini(struct fgv_journal *journal);

/* A child that has not been reaped. What finds no room is left out. */
void fgv_journal_add(struct fgv_journal *journal, pid_t pid);
void fgv_journal_remove(struct fgv_journal *journal, pid_t pid);

#define FGV_JOURNAL_WAIT_MS 2000

#endif
