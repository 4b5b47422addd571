/*
 * Values that streams wait for (stall.h), and whether they have come. In host memory that the GPU
 * sees they are just read. In the GPU's own memory they are copied out, which is work: it waits for
 * the gate, and is charged.
 *
 * Only the session's own work can change its GPU's memory. So a value is looked at once when
 * its turn has come, from time to time while there is work, and once after that: one that never
 * comes asks for no grant.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_VALUES_H
#define FGV_VGPU_VALUES_H

#include <stdbool.h>
#include <stdint.h>

struct fgv_gpu_fence;
struct fgv_gpu_stream;
struct fgv_host_func;
struct fgv_session;

/* One look at a time. */
struct fgv_looks {
	struct fgv_host_func *of;      /* whose value is on its way; NULL: none is */
	struct fgv_gpu_fence *fence;   /* behind that */
	struct fgv_gpu_stream *stream; /* NULL: there was no look yet */
	uint64_t *word;		       /* where it goes, which the GPU sees */
	uint64_t count;		       /* of all looks, which the gate counts as work */
	uint64_t others;	       /* work that is not a look, as of the last one */
	uint64_t next_ns;	       /* not before that */
	uint64_t gap_ns;
};

/*
 * Whether it has come, or cannot come any more, of which the program hears with its next call. The
 * work before it is done.
 */
bool fgv_value_has_come(struct fgv_session *session, struct fgv_host_func *value);

/* Nothing is waited for any more. */
void fgv_values_fini(struct fgv_session *session);

#endif
