/*
 * The memory of GPUs that programs of a VM share, by keys: its descriptors, which keep it, and who
 * has it. What nobody has any more goes. It is charged to the VM as long as it is here.
 *
 * Threads: one.
 */
#ifndef FGV_VGPU_IMAGES_SHARED_H
#define FGV_VGPU_IMAGES_SHARED_H

#include <bsd/sys/tree.h>
#include "backend/shared.h"

struct fgv_shared_memory;
RB_HEAD(fgv_shared_tree, fgv_shared_memory);

struct fgv_shared {
	struct fgv_shared_tree tree;
	uint32_t count;
	uint32_t gpus; /* 0: nothing is shared */
	struct fgv_shared_account *accounts[FGV_GPU_DEVICES_MAX];
};

void fgv_shared_init(struct fgv_shared *shared);
void fgv_shared_fini(struct fgv_shared *shared);

/* Another of the VM's GPUs, whose account is written from now on. */
void fgv_shared_add_gpu(struct fgv_shared *shared, struct fgv_shared_account *account);

/*
 * Takes over @fd, of memory that the session with account number @account has. Its key; or -EPERM
 * where nothing is shared, -EINVAL, -ENOSPC.
 */
int fgv_shared_put(struct fgv_shared *shared, unsigned account, uint32_t gpu, uint64_t bytes,
		   int fd, struct fgv_key *key);
/* Its descriptor, which stays its own; -ENOENT, -EXDEV, -EPERM. */
int fgv_shared_find(struct fgv_shared *shared, uint32_t gpu, const struct fgv_key *key,
		    uint64_t *bytes);
/* A session has it from now on; has it no more; and has nothing any more. */
void fgv_shared_use(struct fgv_shared *shared, unsigned account, const struct fgv_key *key);
void fgv_shared_drop(struct fgv_shared *shared, unsigned account, const struct fgv_key *key);
void fgv_shared_end(struct fgv_shared *shared, unsigned account);

#endif
