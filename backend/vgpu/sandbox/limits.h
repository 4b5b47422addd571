/*
 * What the process may take of the host: limits of its own (setrlimit()), and that it is the
 * one to go where the host is out of memory.
 *
 * Threads: any.
 */
#ifndef FGV_VGPU_LIMITS_H
#define FGV_VGPU_LIMITS_H

#include <stdint.h>

/* Before the process can't be dumped any more, which takes its files in /proc from it. */
void fgv_limits_begin(void);

struct fgv_limits {
	uint64_t data_bytes; /* private memory; 0: no limit */
	uint64_t file_bytes; /* the largest file, memory without a name among them; 0: no limit */
	uint64_t threads;    /* of its user; 0: no limit, as where others are that user, too */
};

/* 0 or a negative errno. Never raises what is lower. */
int fgv_limits_set(const struct fgv_limits *limits);

#endif
