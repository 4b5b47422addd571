/*
 * What the process gives up, since it serves a guest that may try to take it over. On
 * some machines a kernel can read and write the memory of the process that launched it,
 * so what holds is not this program's care alone but what the process may do at all.
 *
 * It is in three parts, since a process may open the GPU before it is known whom it is for:
 *
 *	begin	the first thing that it does
 *	enter	before it has threads and opens the GPU: what needs no VM
 *	close	when its VM is known, before anything of the guest's comes in
 *
 * docs/design/0014-privileges.md says why each is where it is.
 *
 * Threads: begin and enter before the process has any; close holds for all of them.
 */
#ifndef FGV_VGPU_SANDBOX_H
#define FGV_VGPU_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "backend/vgpu/sandbox/filter.h"
#include "backend/vgpu/sandbox/limits.h"

struct fgv_prepare;

/* No user of the VM's own: root becomes nobody. */
#define FGV_NO_UID 0

/* That the GPU's device files may belong to. */
#define FGV_SANDBOX_GROUPS 8

struct fgv_sandbox {
	struct fgv_filter filter;
	gid_t groups[FGV_SANDBOX_GROUPS]; /* those without which these can't be opened */
	size_t group_count;
	uint32_t lacks; /* FGV_LACKS_*: what this machine does not allow */
	int listener;	/* as of fgv_filter_load(); the caller closes it */
};

/*
 * Ends with the daemon, can't be traced or dumped, and is the first to go where memory is
 * short. 0 or a negative errno.
 */
int fgv_sandbox_begin(void);

/*
 * Namespaces, files (landlock.h), and no capability any more but those to change its user.
 * 0 or a negative errno, and then the process must not go on; what only some machines allow is
 * noted in sandbox->lacks.
 */
int fgv_sandbox_enter(struct fgv_sandbox *sandbox, const struct fgv_prepare *prepare);

struct fgv_sandbox_terms {
	uint32_t uid; /* the VM's own, or FGV_NO_UID */
	struct fgv_limits limits;
	const void *window; /* of which alone parts can be mapped once more */
	uint64_t window_len;
};

/*
 * Becomes the VM's user, takes on its limits, and loses the system calls that serving a guest
 * does not need. 0 or a negative errno, and then the process must not serve anybody.
 */
int fgv_sandbox_close(struct fgv_sandbox *sandbox, const struct fgv_sandbox_terms *terms);

#endif
