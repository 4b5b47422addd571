/*
 * The filter of system calls: an allow list, made by callgen.py from the lists in this folder.
 * A call that is not on it returns ENOSYS, which a library takes for an older kernel and goes
 * on, where a signal would end the session. Where the daemon listens it hears of each such call
 * and decides; so that is where they are counted and named (backend/guard/refusals.h).
 *
 * It is built while there is time and loaded when there is none: building takes a millisecond.
 *
 * Threads: built and loaded by one; it holds for all.
 */
#ifndef FGV_VGPU_FILTER_H
#define FGV_VGPU_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>

/* Which lists; and what becomes of the rest. */
struct fgv_filter_terms {
	bool cuda;   /* also what NVIDIA's driver needs */
	bool listen; /* the holder of the listener answers, rather than the kernel */
	bool record; /* of NVIDIA's list nothing, so that the listener hears of all of it */
};

struct fgv_filter {
	struct fgv_filter_terms terms;
	struct sock_fprog program;
};

/* 0 or a negative errno; fgv_filter_fini() frees it. */
int fgv_filter_init(struct fgv_filter *filter, const struct fgv_filter_terms *terms);
void fgv_filter_fini(struct fgv_filter *filter);

/*
 * From now on it holds, for all threads and for ever. *@listener: the descriptor that tells of
 * refused calls, or -1 where none is wanted or the kernel gives none. New privileges must be
 * given up already.
 */
int fgv_filter_load(struct fgv_filter *filter, int *listener);

#endif
