/*
 * The threads of another process, as /proc has them.
 *
 * Threads: any.
 */
#ifndef FGV_BACKEND_SCHED_COSCHED_PROC_H
#define FGV_BACKEND_SCHED_COSCHED_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The folder of process @pid's threads, or a negative errno. It stays that process's, and is
 * empty once that has ended, whoever gets its id.
 */
int fgv_cosched_proc_open(pid_t pid);

/*
 * The id that the thread of @process has here which calls itself @called, in whatever pid
 * namespace, and runs as user @uid; 0: there is none such.
 */
pid_t fgv_cosched_proc_find(int folder, pid_t process, pid_t called, uid_t uid);

/* Whether @thread is still one of the process. */
bool fgv_cosched_proc_has(int folder, pid_t thread);

/* How long in all it could have run, but had no processor; false: the kernel does not say. */
bool fgv_cosched_proc_waited(int folder, pid_t thread, uint64_t *waited_ns);

#endif
